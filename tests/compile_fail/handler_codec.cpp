// SPDX-License-Identifier: MIT
// expect: vouch: specialise vouch::codec for the payload's type
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router router(outbox);
    struct odd {};
    router.on<odd>("t", [](const odd&) {});
}
