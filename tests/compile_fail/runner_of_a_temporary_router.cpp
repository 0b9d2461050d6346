// SPDX-License-Identifier: MIT
// expect: deleted
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::runner<vouch::memory::store> runner(outbox, vouch::router(outbox), {.queue = "q"});
}
