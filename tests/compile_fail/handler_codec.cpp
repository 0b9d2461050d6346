// SPDX-License-Identifier: MIT
// expect: vouch: specialise vouch::codec for the payload's type
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    struct odd {};
    router.on<odd>("t", [](const odd&) {});
}
