// SPDX-License-Identifier: MIT
// When a worker beside producers holds back its commits.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "worker_support.hpp"

namespace worker_gathering_test {

using namespace worker_test;
using std::chrono::microseconds;
using vouch::detail::gathering;
using steady = gathering::steady;

namespace {

constexpr steady::time_point start{1h};
constexpr steady::time_point at(std::int64_t us) { return start + microseconds(us); }

/// A commit that ends at `start` and took `cost`. The store's number of wake-ups is then `wakes`.
[[nodiscard]] gathering committed(std::uint64_t wakes, microseconds cost = 250us, microseconds at_most = 5ms) {
    gathering out(at_most);
    out.committed(start - cost, start);
    CHECK_FALSE(out.holds(wakes, start));
    return out;
}

/// The same, after a hold during which work has arrived.
[[nodiscard]] gathering busy() {
    auto out = committed(1);
    CHECK(out.holds(2, at(100)));
    CHECK(out.holds(3, at(600)));
    out.committed(at(5'000), at(5'250));
    return out;
}

} // namespace

TEST_CASE("gathering: nothing is held back before the first commit, and after one if no work was added") {
    gathering fresh(5ms);
    CHECK_FALSE(fresh.holds(0, start));
    CHECK_FALSE(fresh.holds(1, at(10)));
    auto idle = committed(1);
    CHECK_FALSE(idle.holds(1, at(100)));
    CHECK_FALSE(idle.holds(1, at(4'999)));
}

TEST_CASE("gathering: while work is added, the next commit is held back, but no longer than gather_within") {
    auto g = committed(1);
    std::uint64_t wakes = 1;
    for (std::int64_t us = 100; us < 5'000; us += 100) {
        CHECK(g.holds(++wakes, at(us)));
        CHECK(g.next() <= at(5'000));
    }
    CHECK_FALSE(g.holds(++wakes, at(5'000)));
    CHECK_FALSE(g.holds(++wakes, at(5'001)));
}

TEST_CASE("gathering: a hold ends when no work was added for as long as two commits take") {
    auto g = committed(1);
    CHECK(g.holds(2, at(100)));
    CHECK(g.next() == at(600));
    CHECK(g.holds(2, at(599)));
    CHECK_FALSE(g.holds(2, at(600)));
    CHECK_FALSE(g.holds(3, at(700))); // not again before the next commit
}

TEST_CASE("gathering: cheap commits are held back for a short time only") {
    auto g = committed(1, 5us);
    CHECK(g.holds(2, at(50)));
    CHECK_FALSE(g.holds(3, at(100))); // twenty commits
}

TEST_CASE("gathering: after a hold that paid, the next commit is held back at once") {
    auto g = busy();
    CHECK(g.holds(9, at(5'260)));
    CHECK(g.holds(10, at(5'900)));
    g.committed(at(10'250), at(10'500));
    CHECK(g.holds(11, at(10'510)));
    CHECK_FALSE(g.holds(11, at(11'200))); // the producers have stopped
    g.committed(at(11'200), at(11'450));
    CHECK_FALSE(g.holds(11, at(11'460)));
}

TEST_CASE("gathering: holds in vain become rare") {
    gathering g(5ms);
    std::uint64_t wakes = 0;
    int held = 0;
    for (std::int64_t round = 1; round <= 500; ++round) {
        const auto us = round * 10'000;
        g.committed(at(us - 250), at(us));
        CHECK_FALSE(g.holds(wakes, at(us)));
        held += g.holds(++wakes, at(us + 100)) ? 1 : 0;
        CHECK_FALSE(g.holds(wakes, at(us + 1'000)));
    }
    CHECK(held >= 1);
    CHECK(held <= 10);
}

TEST_CASE("gathering: with a gather_within of zero nothing is held back") {
    auto g = committed(1, 250us, 0us);
    CHECK_FALSE(g.holds(2, at(1)));
    CHECK_FALSE(g.holds(3, at(100)));
}

namespace {

/// The memory store with commits that take five milliseconds when a worker makes them: long, so that a producer on a busy
/// machine still adds work meanwhile.
class slow_store : public no_wakes_store {
  public:
    slow_store() {
        hooks().at_commit = [](const auto& commit) {
            std::this_thread::sleep_for(5ms);
            commit();
        };
    }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) { return plain().wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        return plain().wait(queue, seen, at_most, std::move(stop));
    }
};

/// How many commits a worker makes while a producer adds entries, one by one, for half a second.
[[nodiscard]] std::size_t commits_beside_a_producer(vouch::duration gather_within) {
    slow_store store;
    const vouch::outbox outbox(store);
    const vouch::outbox producer(store.plain());
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    vouch::worker worker(outbox, {.settle_within = 100ms, .gather_within = gather_within});
    worker.serve(routes, {.queue = "q"});
    running_worker running(worker);
    std::size_t count = 0;
    for (const auto until = steady_clock::now() + 500ms; steady_clock::now() < until; ++count) {
        producer.emit({.queue = "q", .topic = "t"});
        std::this_thread::sleep_for(100us);
    }
    CHECK(eventually([&] { return count_of(store, vouch::state::succeeded) == count; }));
    running.stop();
    return store.hooks().commits;
}

} // namespace

TEST_CASE("gathering: a worker beside a producer needs fewer commits with it") {
    const auto without = commits_beside_a_producer(0us);
    const auto with = commits_beside_a_producer(100ms);
    CAPTURE(without, with);
    CHECK(with * 2 < without);
}

} // namespace worker_gathering_test
