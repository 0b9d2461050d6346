// SPDX-License-Identifier: MIT
// expect: vouch: a batch handler returns nothing or a `std::vector<vouch::outcome>`
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on_batch("t", [](vouch::delivery_batch&) { return vouch::succeed{}; });
}
