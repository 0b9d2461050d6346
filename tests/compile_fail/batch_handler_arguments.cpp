// SPDX-License-Identifier: MIT
// expect: vouch: a batch handler takes `delivery_batch&`
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on_batch("t", [](vouch::delivery&) {});
}
