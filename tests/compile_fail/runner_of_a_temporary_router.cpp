// SPDX-License-Identifier: MIT
// expect: deleted
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router<vouch::memory::store> router;
    vouch::memory::store store;
    const vouch::outbox outbox;
    vouch::runner<vouch::memory::store> runner(store, outbox, vouch::router<vouch::memory::store>{}, {.queue = "q"});
}
