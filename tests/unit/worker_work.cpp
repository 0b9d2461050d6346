// SPDX-License-Identifier: MIT
// The worker's threads, claims, settles and waits. In real time, because threads are the subject.
#include <array>
#include <atomic>
#include <tuple>

#include "worker_support.hpp"

namespace worker_work_test {

using namespace worker_test;
using vouch::state;

TEST_CASE("worker: every entry of every queue is handled once, on at most the queue's number of threads") {
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

    running_worker running(worker);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 200; }));
    CHECK(eventually([&] { return count_of(store, state::succeeded, "r") == 50; }));
    const auto done = running.stop();
    CHECK(seen[0].calls == 200);
    CHECK(seen[1].calls == 50);
    CHECK(seen[0].most > 1);
    CHECK(seen[0].most <= 4);
    CHECK(seen[1].most == 1);
    CHECK(done.claimed - done.released == 250); // on a slow machine some wait too long, and are handed back
    CHECK(done.succeeded == 250);
    CHECK(done.store_errors == 0);
}

TEST_CASE("worker: claims no more than its threads can handle, so that other workers can claim the rest") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> started = 0;
    std::atomic<bool> may_finish = false;
    vouch::router routes(outbox);
    routes.on("slow", [&](vouch::delivery&) {
        ++started;
        std::ignore = eventually([&] { return may_finish.load(); });
    });
    emit_many(store, outbox, 100, {.queue = "q", .topic = "slow"});
    vouch::worker worker(outbox, {.poll_interval = 5ms});
    worker.serve(routes, {.queue = "q", .concurrency = 3});
    running_worker running(worker);
    CHECK(eventually([&] { return started == 3; }));
    std::this_thread::sleep_for(30ms); // some polls
    CHECK(count_of(store, state::claimed) == 3);
    CHECK(count_of(store, state::pending) == 97);
    may_finish = true;
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 100; }));
}

TEST_CASE("worker: the outcomes of a batch are committed together with the next claim") {
    no_wakes_store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    emit_many(store, outbox, 1000, {.queue = "q", .topic = "t"});
    store.hooks().commits = 0;
    vouch::worker worker(outbox, {.settle_within = 1s});
    worker.serve(routes, {.queue = "q", .batch_size = 50});
    running_worker running(worker);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1000; }));
    CHECK(running.stop().succeeded == 1000);
    // One claim of one entry, to learn how long a handler takes; then 51 at a time.
    CHECK(store.hooks().commits >= 20);
    CHECK(store.hooks().commits <= 60);
}

TEST_CASE("worker: an outcome waits for a slow handler of its batch no longer than settle_within") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> may_finish = false;
    vouch::router routes(outbox);
    routes.on("slow", [&](vouch::delivery&) { std::ignore = eventually([&] { return may_finish.load(); }); });
    routes.on("quick", [](vouch::delivery&) {});
    emit_many(store, outbox, 1, {.queue = "q", .topic = "slow"});
    emit_many(store, outbox, 1, {.queue = "q", .topic = "quick"});
    vouch::worker worker(outbox, {.poll_interval = 30s, .settle_within = 200ms});
    // The third thread finds nothing to claim, so no claim carries the settle.
    worker.serve(routes, {.queue = "q", .concurrency = 3});
    const auto start = steady_clock::now();
    running_worker running(worker);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }, 10s));
    CHECK(steady_clock::now() - start >= 190ms); // it waited for others to settle with
    CHECK(count_of(store, state::claimed) == 1);
    may_finish = true;
    CHECK(running.stop().succeeded == 2);
}

namespace {

/// The longest time that an entry emitted while a worker is idle waits for its handler.
template <class Store>
[[nodiscard]] steady_clock::duration longest_wait_for_a_handler(Store& store, vouch::duration poll_interval) {
    const vouch::outbox outbox(store);
    std::atomic<std::size_t> handled = 0;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { ++handled; });
    vouch::worker worker(outbox, {.poll_interval = poll_interval});
    worker.serve(routes, {.queue = "q"});
    running_worker running(worker);
    steady_clock::duration longest{};
    for (std::size_t i = 1; i <= 3; ++i) {
        std::this_thread::sleep_for(20ms); // so that the worker is idle
        const auto start = steady_clock::now();
        outbox.emit({.queue = "q", .topic = "t"});
        REQUIRE(eventually([&] { return handled == i; }));
        longest = std::max(longest, steady_clock::now() - start);
    }
    return longest;
}

constexpr auto tolerance = 250ms; // for a busy machine

} // namespace

TEST_CASE("wake-ups: new work does not wait for the next poll") {
    vouch::memory::store store;
    CHECK(longest_wait_for_a_handler(store, 30s) < 5s);
}

TEST_CASE("wake-ups: if all are dropped, no entry is late by more than the poll interval") {
    dropped_wakes_store store;
    const auto longest = longest_wait_for_a_handler(store, 300ms);
    CHECK(longest > 100ms); // the wake-ups are dropped indeed
    CHECK(longest < 300ms + tolerance);
}

TEST_CASE("wake-ups: a store without them is polled") {
    no_wakes_store store;
    CHECK(longest_wait_for_a_handler(store, 300ms) < 300ms + tolerance);
}

TEST_CASE("worker: sleeps until the next entry is due, not until the next poll") {
    dropped_wakes_store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> handled = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { handled = true; });
    outbox.emit({.queue = "q", .topic = "t", .due_in = 150ms});
    const auto start = steady_clock::now();
    vouch::worker worker(outbox, {.poll_interval = 30s});
    worker.serve(routes, {.queue = "q"});
    running_worker running(worker);
    REQUIRE(eventually([&] { return handled.load(); }, 10s));
    CHECK(steady_clock::now() - start >= 145ms); // the two clocks may differ a little
}

TEST_CASE("worker: a failed entry is tried again when it is due") {
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
    running_worker running(worker);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }, 10s));
    const auto done = running.stop();
    CHECK(done.retried == 2);
    CHECK(done.succeeded == 1);
}

namespace {

/// Wakes every waiting worker all the time, as if others committed entries that cannot be claimed.
class spurious_wakes_store : public no_wakes_store {
  public:
    [[nodiscard]] std::uint64_t wakes(std::string_view) const { return ++wakes_; }
    std::uint64_t wait(std::string_view, std::uint64_t, std::chrono::nanoseconds at_most, std::stop_token) const {
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(1ms, at_most));
        return ++wakes_;
    }

  private:
    mutable std::atomic<std::uint64_t> wakes_ = 0;
};
static_assert(vouch::waking_store<spurious_wakes_store>);

template <class Store>
void check_claims_that_return_nothing() {
    Store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    outbox.emit({.queue = "q", .topic = "t"});
    store.hooks().claims_nothing = true;
    store.hooks().commits = 0;
    vouch::worker worker(outbox, {.poll_interval = 100ms});
    worker.serve(routes, {.queue = "q"});
    running_worker running(worker);
    std::this_thread::sleep_for(500ms);
    const auto claims = store.hooks().commits.load();
    CHECK(claims >= 4);
    CHECK(claims <= 25); // after 0, 2, 4, 8 ... 64, 100, 100 ms
    store.hooks().claims_nothing = false;
    const auto start = steady_clock::now();
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(steady_clock::now() - start < 100ms + tolerance);
    CHECK(running.stop().succeeded == 1);
}

} // namespace

TEST_CASE("worker: if due entries cannot be claimed, it tries less and less often, up to the poll interval") {
    check_claims_that_return_nothing<no_wakes_store>();
}

TEST_CASE("worker: if due entries cannot be claimed, it does not try again with every wake-up") {
    check_claims_that_return_nothing<spurious_wakes_store>();
}

TEST_CASE("worker: invalid options are refused") {
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
    running_worker running(worker);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(support::kind_of([&] { worker.serve(routes, {.queue = "r"}); }) == kind::misuse);
    CHECK(support::kind_of([&] { worker.run({}); }) == kind::misuse);
    CHECK(running.stop().succeeded == 1);
}

} // namespace worker_work_test
