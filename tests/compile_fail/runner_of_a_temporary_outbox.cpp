// SPDX-License-Identifier: MIT
// expect: deleted
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router<vouch::memory::store> router;
    vouch::memory::store store;
    vouch::runner<vouch::memory::store> runner(store, vouch::outbox{}, router, {.queue = "q"});
}
