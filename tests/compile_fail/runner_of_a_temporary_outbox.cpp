// SPDX-License-Identifier: MIT
// expect: deleted
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    const vouch::router router(outbox);
    vouch::runner<vouch::memory::store> runner(vouch::outbox(store), router, {.queue = "q"});
}
