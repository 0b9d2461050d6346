// SPDX-License-Identifier: MIT
// Prints the metrics of a page, for the test of the alerts: of a shop that is well, or, after N rounds, of one where
// everything that the alerts watch goes wrong.
//
//   page_trouble N      0: all is well
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <vouch/page.hpp>
#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

namespace {

using namespace std::chrono_literals;

/// Entries that have been due, dead or half-way for an hour.
void store_trouble(vouch::memory::store& store) {
    auto now = vouch::system_now() - 1h;
    const vouch::outbox outbox(store, {.clock = [&now] { return now; }});
    static_cast<void>(outbox.emit({.queue = "mail", .topic = "due"}));
    const auto bad = outbox.emit({.queue = "mail", .topic = "bad"}).front().id;
    const auto claimed = vouch::claim(store, {.queue = "mail", .now = now, .lease = 1min, .worker = "w", .only = bad});
    vouch::transact(store, [&](auto& tx) {
        const std::array settles{vouch::settle{ticket_of(claimed.at(0)), vouch::bury{.error = "smtp"}}};
        static_cast<void>(tx.settle(settles, now));
    });
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("courier", {.queue = "courier", .topic = "book", .undo = "unbook", .timeout = 24h})
                          .build();
    vouch::router router(outbox);
    router.on(saga);
    static_cast<void>(outbox.start(saga, "orders", std::string("a book")));
    static_cast<void>(vouch::runner(outbox, router, {.queue = "orders"}).run_once());
}

void count_trouble(vouch::metrics& numbers, int rounds) {
    using kind = vouch::event_kind;
    const std::array<vouch::event, 6> events{{
        {.what = kind::retried, .queue = "mail", .error = "smtp"},
        {.what = kind::dead, .queue = "mail", .error = "smtp", .reason = vouch::death::exhausted},
        {.what = kind::dead, .queue = "orders", .error = "refund", .reason = vouch::death::rejected, .is_saga = true},
        {.what = kind::released, .queue = "orders", .tag = "unknown_version"},
        {.what = kind::store_error, .queue = "mail", .error = "io"},
        {.what = kind::hook_failed, .queue = "mail", .error = "audit"},
    }};
    for (int i = 0; i < rounds; ++i) {
        for (const auto& e : events) {
            numbers.on(e);
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 0;
    vouch::memory::store store;
    vouch::metrics numbers;
    const vouch::outbox outbox(store);
    static_cast<void>(outbox.emit({.queue = "mail", .topic = "later", .due_in = 1h}));
    // A worker that works well, so that every counter without an error code exists.
    numbers.on({.what = vouch::event_kind::succeeded, .queue = "mail"});
    numbers.on({.what = vouch::event_kind::succeeded, .queue = "orders", .tag = "completed", .is_saga = true});
    if (rounds > 0) {
        store_trouble(store);
        count_trouble(numbers, rounds);
    }
    vouch::page::site site(store, {.metrics = &numbers, .look_in_requests = false});
    site.look();
    const auto got = site.answer({.path = "/metrics", .headers = {{"Host", "localhost"}}});
    std::fputs(got.body.c_str(), stdout);
    return got.status == 200 ? 0 : 1;
}
