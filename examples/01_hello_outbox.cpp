// SPDX-License-Identifier: MIT
// Work is emitted in a transaction, claimed under a lease, handled, and settled. What rolls back was never there.
#include <cstdio>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);

    vouch::router router(outbox);
    router.on("user.created", [](vouch::delivery& d) { std::printf("welcome, %s\n", d.payload().c_str()); });

    // A producer writes work in its own transaction.
    vouch::transact(store, [&](auto& tx) {
        outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "ada"});
        outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "grace"});
    });

    // This one changes its mind: the transaction ends without a commit, and nothing is left of it.
    {
        auto tx = store.begin();
        outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "nobody"});
    }

    vouch::runner runner(outbox, router, {.queue = "mail"});
    const auto done = runner.run_until_idle();
    std::printf("%zu claimed, %zu succeeded\n", done.claimed, done.succeeded);

    const auto counts = store.counts("mail");
    for (const auto state : vouch::all_states) {
        std::printf("%-9s %zu\n", name_of(state).data(), counts[state]);
    }
}
