// SPDX-License-Identifier: MIT
// expect: deleted
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router router(outbox);
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::runner<vouch::memory::store> runner(outbox, vouch::router<vouch::memory::store>{}, {.queue = "q"});
}
