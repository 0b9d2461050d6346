// SPDX-License-Identifier: MIT
// expect: vouch: a handler returns nothing, an outcome, a string, or a value with a vouch::codec
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    struct odd {};
    router.on("t", [](vouch::delivery&) { return odd{}; });
}
