// SPDX-License-Identifier: MIT
// expect: vouch: a store needs a member type `transaction`
#include <vouch/vouch.hpp>

struct no_store {};

int main() {
    no_store store;
    const vouch::outbox outbox(store);
}
