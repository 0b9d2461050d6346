// SPDX-License-Identifier: MIT
// The worker at work: threads, claims, settles, rests. Real time, because threads are the subject.
#include <array>
#include <atomic>
#include <tuple>

#include "worker_support.hpp"

using namespace worker_test;
using vouch::state;

TEST_CASE("worker: every entry of every queue is handled once, on as many threads as its queue may have") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    struct gauge {
        std::atomic<int> now = 0;
        std::atomic<int> most = 0;
        std::atomic<int> calls = 0;
    };
    std::array<gauge, 2> seen;
    std::array routes{vouch::router(outbox), vouch::router(outbox)};
    for (std::size_t i = 0; i < seen.size(); ++i) {
        routes[i].on("t", [&g = seen[i]](vouch::delivery&) {
            const int now = ++g.now;
            for (int most = g.most; most < now && !g.most.compare_exchange_weak(most, now);) {
            }
            std::this_thread::sleep_for(1ms);
            ++g.calls;
            --g.now;
        });
    }
    vouch::worker worker(outbox);
    worker.serve(routes[0], {.queue = "q", .concurrency = 4}).serve(routes[1], {.queue = "r"});
    emit_many(store, outbox, 200, {.queue = "q", .topic = "t"});
    emit_many(store, outbox, 50, {.queue = "r", .topic = "t"});

    at_work running(worker);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 200; }));
    CHECK(comes_true([&] { return count_of(store, state::succeeded, "r") == 50; }));
    const auto done = running.stop();
    CHECK(seen[0].calls == 200);
    CHECK(seen[1].calls == 50);
    CHECK(seen[0].most > 1);
    CHECK(seen[0].most <= 4);
    CHECK(seen[1].most == 1);
    CHECK(done.claimed == 250);
    CHECK(done.succeeded == 250);
    CHECK(done.store_errors == 0);
}

TEST_CASE("worker: claims no more than its threads can take, so that others may have the rest") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> started = 0;
    std::atomic<bool> go_on = false;
    vouch::router routes(outbox);
    routes.on("slow", [&](vouch::delivery&) {
        ++started;
        std::ignore = comes_true([&] { return go_on.load(); });
    });
    emit_many(store, outbox, 100, {.queue = "q", .topic = "slow"});
    vouch::worker worker(outbox, {.poll_interval = 5ms});
    worker.serve(routes, {.queue = "q", .concurrency = 3});
    at_work running(worker);
    CHECK(comes_true([&] { return started == 3; }));
    std::this_thread::sleep_for(30ms); // some polls
    CHECK(count_of(store, state::claimed) == 3);
    CHECK(count_of(store, state::pending) == 97);
    go_on = true;
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 100; }));
}

TEST_CASE("worker: outcomes of a batch are committed together, and with the next claim") {
    silent_store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    emit_many(store, outbox, 1000, {.queue = "q", .topic = "t"});
    store.wire().commits = 0;
    vouch::worker worker(outbox, {.settle_within = 1s});
    worker.serve(routes, {.queue = "q", .batch_size = 50});
    at_work running(worker);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1000; }));
    CHECK(running.stop().succeeded == 1000);
    // One claim of one, to learn how long a handler takes; then 51 at a time.
    CHECK(store.wire().commits >= 20);
    CHECK(store.wire().commits <= 60);
}

TEST_CASE("worker: an outcome does not wait for a slow neighbour longer than settle_within") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> go_on = false;
    vouch::router routes(outbox);
    routes.on("slow", [&](vouch::delivery&) { std::ignore = comes_true([&] { return go_on.load(); }); });
    routes.on("quick", [](vouch::delivery&) {});
    emit_many(store, outbox, 1, {.queue = "q", .topic = "slow"});
    emit_many(store, outbox, 1, {.queue = "q", .topic = "quick"});
    vouch::worker worker(outbox, {.poll_interval = 30s, .settle_within = 200ms});
    worker.serve(routes, {.queue = "q", .concurrency = 3}); // the third finds nothing, so no claim settles along
    const auto start = ticking::now();
    at_work running(worker);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }, 10s));
    CHECK(ticking::now() - start >= 190ms); // it waited for company
    CHECK(count_of(store, state::claimed) == 1);
    go_on = true;
    CHECK(running.stop().succeeded == 2);
}

namespace {

/// How long entries that come while a worker rests have to wait for their handler, at most.
template <class Store>
[[nodiscard]] ticking::duration longest_wait_for_a_handler(Store& store, vouch::duration poll_interval) {
    const vouch::outbox outbox(store);
    std::atomic<std::size_t> handled = 0;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { ++handled; });
    vouch::worker worker(outbox, {.poll_interval = poll_interval});
    worker.serve(routes, {.queue = "q"});
    at_work running(worker);
    ticking::duration longest{};
    for (std::size_t i = 1; i <= 3; ++i) {
        std::this_thread::sleep_for(20ms); // it has found nothing more and rests
        const auto start = ticking::now();
        outbox.emit({.queue = "q", .topic = "t"});
        REQUIRE(comes_true([&] { return handled == i; }));
        longest = std::max(longest, ticking::now() - start);
    }
    return longest;
}

constexpr auto hiccup = 250ms; // what a busy machine may add

} // namespace

TEST_CASE("wake-ups: with them new work does not wait for the poll") {
    vouch::memory::store store;
    CHECK(longest_wait_for_a_handler(store, 30s) < 5s);
}

TEST_CASE("wake-ups: when all are dropped, nothing is late by more than the poll interval") {
    deaf_store store;
    const auto longest = longest_wait_for_a_handler(store, 300ms);
    CHECK(longest > 100ms); // they are dropped indeed
    CHECK(longest < 300ms + hiccup);
}

TEST_CASE("wake-ups: a store that has none is polled") {
    silent_store store;
    CHECK(longest_wait_for_a_handler(store, 300ms) < 300ms + hiccup);
}

TEST_CASE("worker: sleeps until the next entry is due, not until the next poll") {
    deaf_store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> handled = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { handled = true; });
    outbox.emit({.queue = "q", .topic = "t", .due_in = 150ms});
    const auto start = ticking::now();
    vouch::worker worker(outbox, {.poll_interval = 30s});
    worker.serve(routes, {.queue = "q"});
    at_work running(worker);
    REQUIRE(comes_true([&] { return handled.load(); }, 10s));
    CHECK(ticking::now() - start >= 145ms); // the two clocks may differ a little
}

TEST_CASE("worker: a failed attempt is tried again when it is due") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery& d) {
        if (d.attempt() < 3) {
            throw vouch::failure("not_yet");
        }
    });
    outbox.emit({.queue = "q", .topic = "t"});
    vouch::worker worker(outbox, {.poll_interval = 30s});
    worker.serve(routes, {.queue = "q", .retry = {.backoff = vouch::fixed{20ms}}});
    at_work running(worker);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }, 10s));
    const auto done = running.stop();
    CHECK(done.retried == 2);
    CHECK(done.succeeded == 1);
}

namespace {

/// Wakes whoever waits all the time: others commit in this queue, and none of it can be claimed.
class noisy_store : public silent_store {
  public:
    [[nodiscard]] std::uint64_t wakes(std::string_view) const { return ++wakes_; }
    std::uint64_t wait(std::string_view, std::uint64_t, std::chrono::nanoseconds at_most, std::stop_token) const {
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(1ms, at_most));
        return ++wakes_;
    }

  private:
    mutable std::atomic<std::uint64_t> wakes_ = 0;
};
static_assert(vouch::waking_store<noisy_store>);

template <class Store>
void ask_for_what_is_passed_over() {
    Store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    outbox.emit({.queue = "q", .topic = "t"});
    store.wire().passes_over = true;
    store.wire().commits = 0;
    vouch::worker worker(outbox, {.poll_interval = 100ms});
    worker.serve(routes, {.queue = "q"});
    at_work running(worker);
    std::this_thread::sleep_for(500ms);
    const auto asked = store.wire().commits.load();
    CHECK(asked >= 4);
    CHECK(asked <= 25); // after 0, 2, 4, 8 ... 64, 100, 100 ms
    store.wire().passes_over = false;
    const auto start = ticking::now();
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(ticking::now() - start < 100ms + hiccup);
    CHECK(running.stop().succeeded == 1);
}

} // namespace

TEST_CASE("worker: what is due but passed over, because a transaction has it open, is asked for ever more rarely") {
    ask_for_what_is_passed_over<silent_store>();
}

TEST_CASE("worker: what is passed over is not asked for with every wake-up, either") {
    ask_for_what_is_passed_over<noisy_store>();
}

TEST_CASE("worker: options that make no sense are refused") {
    using kind = vouch::error_kind;
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    using worker_type = vouch::worker<vouch::memory::store>;
    const auto made = [&](vouch::worker_options how) {
        return support::kind_of([&] { const worker_type w(outbox, how); });
    };
    CHECK(made({}) == std::nullopt);
    CHECK(made({.poll_interval = 0s}) == kind::invalid_argument);
    CHECK(made({.settle_within = -1us}) == kind::invalid_argument);
    CHECK(made({.look_ahead = -1us}) == kind::invalid_argument);
    CHECK(made({.stop_tries = 0}) == kind::invalid_argument);
    CHECK(made({.stop_tries = -1}) == kind::invalid_argument);
    CHECK(made({.stop_tries = 1'001}) == kind::invalid_argument);
    CHECK(made({.stop_within = -1us}) == kind::invalid_argument);
    CHECK(made({.store_backoff = {.base = 0us}}) == kind::invalid_argument);
    CHECK(made({.purge_every = 0s}) == kind::invalid_argument);
    CHECK(made({.purge_limit = 0}) == kind::invalid_argument);

    worker_type worker(outbox);
    CHECK(support::kind_of([&] { worker.run({}); }) == kind::misuse);
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "q", .concurrency = 0}); }) == kind::invalid_argument);
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = ""}); }) == kind::invalid_argument);
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "q", .batch_size = 0}); }) == kind::invalid_argument);
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "q", .lease = 0us}); }) == kind::invalid_argument);
    worker_type patient(outbox, {.settle_within = 1s});
    CHECK(support::kind_of([&] { patient.serve(routes, {.queue = "q", .lease = 2s}); }) == kind::invalid_argument);
    CHECK(support::kind_of([&] { patient.serve(routes, {.queue = "q", .lease = 3s}); }) == std::nullopt);
    worker.serve(routes, {.queue = "q"});
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "q"}); }) == kind::invalid_argument);

    outbox.emit({.queue = "q", .topic = "t"});
    at_work running(worker);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "r"}); }) == kind::misuse);
    CHECK(support::kind_of([&] { worker.run({}); }) == kind::misuse);
    CHECK(running.stop().succeeded == 1);
}
