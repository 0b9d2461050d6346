// SPDX-License-Identifier: MIT
// expect: deleted
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router router(outbox);
    vouch::memory::store store;
    vouch::runner<vouch::memory::store> runner(store, vouch::outbox{}, router, {.queue = "q"});
}
