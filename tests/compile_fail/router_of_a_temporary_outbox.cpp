// SPDX-License-Identifier: MIT
// expect: deleted
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    vouch::router<vouch::memory::store> router(vouch::outbox<vouch::memory::store>{store});
}
