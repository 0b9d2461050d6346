// SPDX-License-Identifier: MIT
// Emit work in a transaction; a runner claims it under a lease, handles it and settles it. A rollback leaves nothing.
#include <cstdio>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);

    vouch::router router(outbox);
    router.on("user.created", [](vouch::delivery& d) { std::printf("welcome, %s\n", d.payload().c_str()); });

    // A producer emits work in its own transaction.
    vouch::transact(store, [&](auto& tx) {
        outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "ada"});
        outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "grace"});
    });

    // This transaction ends without a commit, so nothing of it is stored.
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
