// SPDX-License-Identifier: MIT
// expect: vouch: a handler takes `delivery&` or nothing
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("t", [](vouch::delivery) {});
}
