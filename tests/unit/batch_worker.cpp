// SPDX-License-Identifier: MIT
// Batch handlers in a worker: how batches fill and wait, their leases, lost claims and stops. In real time, because
// threads are the subject.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <tuple>
#include <vector>

#include "worker_support.hpp"

namespace batch_worker_test {

using namespace worker_test;
using vouch::delivery;
using vouch::delivery_batch;
using vouch::event_kind;
using vouch::state;

namespace {

/// The sizes of the calls so far, and the entries that are being handled now.
class call_log {
  public:
    void begin(const delivery_batch& all) {
        const std::lock_guard lock(mutex_);
        sizes_.push_back(all.size());
        for (const auto& d : all) {
            is_twice_ = is_twice_ || !now_.insert(d.id()).second;
        }
    }
    void end(const delivery_batch& all) {
        const std::lock_guard lock(mutex_);
        for (const auto& d : all) {
            now_.erase(d.id());
        }
    }
    [[nodiscard]] std::vector<std::size_t> sizes() const {
        const std::lock_guard lock(mutex_);
        return sizes_;
    }
    [[nodiscard]] std::size_t count() const { return sizes().size(); }
    /// Whether an entry was in two calls at once.
    [[nodiscard]] bool is_twice() const {
        const std::lock_guard lock(mutex_);
        return is_twice_;
    }

  private:
    mutable std::mutex mutex_{};
    std::vector<std::size_t> sizes_{};
    std::set<vouch::id> now_{};
    bool is_twice_ = false;
};

struct batch_fixture {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    vouch::router<vouch::memory::store> routes{outbox};
    vouch::testing::recorder seen{};
    call_log calls{};
    std::atomic<bool> may_end = true; ///< handlers wait for this

    void on_batch(vouch::batch_options how) {
        routes.on_batch("b",
                        [this](delivery_batch& all) {
                            calls.begin(all);
                            std::ignore = eventually([&] { return may_end.load(); });
                            calls.end(all);
                        },
                        how, {.backoff = vouch::fixed{1ms}});
    }
    void emit(std::size_t count, const char* topic = "b") {
        emit_many(store, outbox, count, {.queue = "q", .topic = topic});
    }
    [[nodiscard]] bool all_succeed(std::size_t count, std::chrono::milliseconds within = 20s) {
        return eventually([&] { return count_of(store, state::succeeded) == count; }, within);
    }
};

void take_over(vouch::memory::store& store, const vouch::emitter& outbox, const vouch::id& id) {
    REQUIRE(vouch::claim(store, {.queue = "q", .now = outbox.now() + 2h, .lease = 1h, .worker = "other", .only = id})
                .size() == 1);
}

} // namespace

TEST_CASE("batch worker: every entry is in one call, no entry in two calls at once, and no call is too large") {
    batch_fixture f;
    f.on_batch({.size_max = 16, .wait = 1ms});
    std::atomic<int> singles = 0;
    f.routes.on("single", [&](delivery&) { ++singles; });
    vouch::worker one(f.outbox, {.name = "one"});
    vouch::worker two(f.outbox, {.name = "two"});
    one.serve(f.routes, {.queue = "q", .concurrency = 4});
    two.serve(f.routes, {.queue = "q", .concurrency = 4});
    running_worker first(one);
    running_worker second(two);
    for (int n = 0; n < 20; ++n) {
        f.emit(40);
        f.emit(10, "single");
    }
    CHECK(f.all_succeed(1000));
    const auto done = first.stop();
    CHECK(done.succeeded + second.stop().succeeded == 1000);
    CHECK_FALSE(f.calls.is_twice());
    CHECK(singles == 200);
    const auto sizes = f.calls.sizes();
    std::size_t total = 0;
    for (const auto n : sizes) {
        total += n;
    }
    CHECK(total == 800);
    CHECK(*std::max_element(sizes.begin(), sizes.end()) <= 16);
    CHECK(sizes.size() < 800);
}

TEST_CASE("batch worker: an idle thread gets a full batch at once, before anything is measured") {
    batch_fixture f;
    f.on_batch({.size_max = 30});
    f.emit(100);
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q"});
    running_worker running(worker);
    CHECK(f.all_succeed(100));
    CHECK(f.calls.sizes().front() == 30);
}

TEST_CASE("batch worker: a batch does not wait once as much is claimed as the options allow") {
    batch_fixture f;
    f.may_end = false;
    f.on_batch({.size_max = 100, .wait = 1h});
    f.emit(60);
    vouch::worker worker(f.outbox, {.poll_interval = 5ms});
    worker.serve(f.routes, {.queue = "q", .concurrency = 2, .batch_size = 20});
    running_worker running(worker);
    REQUIRE(eventually([&] { return f.calls.count() == 2; }));
    auto sizes = f.calls.sizes();
    std::sort(sizes.begin(), sizes.end());
    CHECK(sizes == std::vector<std::size_t>{20, 40}); // what is claimed for one thread, and for two
    f.may_end = true;
}

TEST_CASE("batch worker: a batch that is not full waits for further entries, no longer than `wait`") {
    batch_fixture f;
    f.on_batch({.size_max = 3, .wait = 200ms});
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q", .concurrency = 2});
    running_worker running(worker);
    const auto start = steady_clock::now();
    f.emit(1);
    REQUIRE(f.all_succeed(1));
    CHECK(steady_clock::now() - start >= 195ms);
    CHECK(f.calls.sizes() == std::vector<std::size_t>{1});
}

TEST_CASE("batch worker: the entry that fills a batch ends the wait") {
    batch_fixture f;
    f.on_batch({.size_max = 3, .wait = 1h});
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q", .concurrency = 2});
    running_worker running(worker);
    f.emit(1);
    REQUIRE(eventually([&] { return count_of(f.store, state::claimed) == 1; }));
    f.emit(1);
    REQUIRE(eventually([&] { return count_of(f.store, state::claimed) == 2; }));
    std::this_thread::sleep_for(20ms);
    CHECK(f.calls.count() == 0);
    f.emit(1);
    CHECK(f.all_succeed(3));
    CHECK(f.calls.sizes() == std::vector<std::size_t>{3});
}

TEST_CASE("batch worker: other entries pass a batch that waits, and a stop hands the batch back untouched") {
    batch_fixture f;
    f.on_batch({.size_max = 3, .wait = 1h});
    f.routes.on("single", [](delivery&) {});
    vouch::worker worker(f.outbox, {.look_ahead = 10s}); // so that nothing is handed back on a slow machine
    worker.serve(f.routes, {.queue = "q"});              // one thread
    running_worker running(worker);
    f.emit(2);
    REQUIRE(eventually([&] { return count_of(f.store, state::claimed) == 2; }));
    f.emit(5, "single");
    CHECK(f.all_succeed(5));
    CHECK(f.calls.count() == 0);
    const auto done = running.stop();
    CHECK(done.released == 2);
    CHECK(count_of(f.store, state::pending) == 2);
    for (const auto& e : f.store.list(vouch::query::live("q"))) {
        CHECK(e.attempts == 0);
    }
}

TEST_CASE("batch worker: an entry that must be handled alone does not wait for batches that wait") {
    batch_fixture f;
    f.on_batch({.size_max = 3, .wait = 1h});
    f.emit(1);
    const auto lapsed = f.store.list(vouch::query::all("q")).front().id;
    const auto past = f.outbox.now(); // the claim of a process that dies
    REQUIRE(vouch::claim(f.store, {.queue = "q", .now = past, .lease = 1us, .worker = "dead"}).size() == 1);
    f.emit(1);
    vouch::worker worker(f.outbox, {.poll_interval = 5ms});
    worker.serve(f.routes, {.queue = "q", .concurrency = 2});
    running_worker running(worker);
    CHECK(f.all_succeed(2));
    CHECK(f.calls.sizes() == std::vector<std::size_t>{1, 1});
    CHECK(f.store.find(lapsed)->epoch >= 2);
}

TEST_CASE("batch worker: while all threads are busy, nothing is claimed for them that would wait for long") {
    batch_fixture f;
    f.may_end = false;
    f.on_batch({.size_max = 10});
    vouch::worker worker(f.outbox, {.poll_interval = 5ms});
    worker.serve(f.routes, {.queue = "q"});
    running_worker running(worker);
    f.emit(1);
    REQUIRE(eventually([&] { return f.calls.count() == 1; }));
    f.emit(50);
    std::this_thread::sleep_for(50ms); // some polls
    CHECK(count_of(f.store, state::claimed) == 1);
    f.may_end = true;
    CHECK(f.all_succeed(51));
    CHECK(f.calls.sizes()[1] == 10);
}

TEST_CASE("batch worker: nothing is claimed ahead of batches that take longer than the look-ahead") {
    batch_fixture f;
    f.routes.on_batch("b",
                      [&](delivery_batch& all) {
                          f.calls.begin(all);
                          std::this_thread::sleep_for(60ms); // 6 ms per entry
                          f.calls.end(all);
                      },
                      {.size_max = 10});
    f.emit(40);
    vouch::worker worker(f.outbox, {.poll_interval = 5ms});
    worker.serve(f.routes, {.queue = "q"});
    running_worker running(worker);
    CHECK(f.all_succeed(40));
    CHECK(running.stop().released == 0);
    CHECK(f.calls.sizes() == std::vector<std::size_t>{10, 10, 10, 10});
}

TEST_CASE("batch worker: claims that slow single handlers leave waiting are handed back") {
    batch_fixture f;
    f.may_end = false;
    f.on_batch({.size_max = 40});
    std::atomic<int> started = 0;
    f.routes.on("slow", [&](delivery&) {
        ++started;
        std::ignore = eventually([&] { return f.may_end.load(); });
    });
    f.emit(60, "slow");
    vouch::worker worker(f.outbox, {.poll_interval = 5ms});
    worker.serve(f.routes, {.queue = "q", .concurrency = 2});
    running_worker running(worker);
    CHECK(eventually([&] { return started == 2 && count_of(f.store, state::claimed) == 2; }));
    std::this_thread::sleep_for(50ms); // some polls
    CHECK(count_of(f.store, state::claimed) == 2);
    f.may_end = true;
    CHECK(f.all_succeed(60));
    CHECK(started == 60);
}

TEST_CASE("batch worker: the leases of all entries of a running batch are extended") {
    batch_fixture f;
    std::atomic<bool> stop_requested = false;
    f.routes.on_batch("b", [&](delivery_batch& all) {
        f.calls.begin(all);
        std::this_thread::sleep_for(1500ms);
        for (const auto& d : all) {
            stop_requested = stop_requested || d.stop().stop_requested();
        }
        stop_requested = stop_requested || all.stop().stop_requested();
        f.calls.end(all);
    });
    f.emit(5);
    vouch::worker first(f.outbox, {.name = "first", .poll_interval = 20ms});
    vouch::worker second(f.outbox, {.name = "second", .poll_interval = 20ms}); // would take them over
    first.serve(f.routes, {.queue = "q", .lease = 600ms});
    second.serve(f.routes, {.queue = "q", .lease = 600ms});
    running_worker one(first);
    running_worker two(second);
    CHECK(f.all_succeed(5));
    CHECK(f.calls.sizes() == std::vector<std::size_t>{5});
    CHECK_FALSE(stop_requested);
    CHECK(one.stop().lost + two.stop().lost == 0);
}

TEST_CASE("batch worker: a lost claim stops its own delivery, and its late outcome is refused") {
    batch_fixture f;
    std::atomic<bool> others_stop = false;
    std::atomic<bool> is_stopped = false;
    f.routes.on_batch("b", [&](delivery_batch& all) {
        f.calls.begin(all);
        is_stopped = eventually([&] { return all[1].stop().stop_requested(); });
        others_stop = all[0].stop().stop_requested() || all[2].stop().stop_requested() || all.stop().stop_requested();
        f.calls.end(all);
    });
    f.emit(3);
    const auto lost = f.store.list(vouch::query::all("q"))[1].id;
    vouch::worker worker(f.outbox, {.poll_interval = 20ms});
    worker.serve(f.routes, {.queue = "q", .lease = 150ms});
    running_worker running(worker);
    REQUIRE(eventually([&] { return f.calls.count() == 1; }));
    take_over(f.store, f.outbox, lost);
    CHECK(f.all_succeed(2));
    const auto done = running.stop();
    CHECK(is_stopped);
    CHECK_FALSE(others_stop);
    CHECK(done.lost == 1);
    CHECK(done.stale == 1);
    CHECK(f.store.find(lost)->worker == "other");
    CHECK(f.store.find(lost)->state == state::claimed);
}

TEST_CASE("batch worker: a batch that has lost all its claims is asked to stop") {
    batch_fixture f;
    std::atomic<bool> is_stopped = false;
    f.routes.on_batch("b", [&](delivery_batch& all) {
        f.calls.begin(all);
        is_stopped = eventually([&] { return all.stop().stop_requested(); });
    });
    f.emit(2);
    vouch::worker worker(f.outbox, {.poll_interval = 20ms});
    worker.serve(f.routes, {.queue = "q", .lease = 150ms});
    running_worker running(worker);
    REQUIRE(eventually([&] { return f.calls.count() == 1; }));
    for (const auto& e : f.store.list(vouch::query::all("q"))) {
        take_over(f.store, f.outbox, e.id);
    }
    CHECK(eventually([&] { return is_stopped.load(); }));
    CHECK(eventually([&] { return running.stop().stale == 2; }));
}

TEST_CASE("batch worker: a stop asks running batches to stop, and settles what they return") {
    batch_fixture f;
    std::atomic<bool> all_stop = false;
    f.routes.on_batch("b", [&](delivery_batch& all) {
        f.calls.begin(all);
        all_stop = eventually([&] {
            return all.stop().stop_requested() &&
                   std::all_of(all.begin(), all.end(), [](const auto& d) { return d.stop().stop_requested(); });
        });
        return std::vector<vouch::outcome>{vouch::succeed{}, vouch::release{}, vouch::succeed{}};
    });
    f.emit(3);
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q"});
    running_worker running(worker);
    REQUIRE(eventually([&] { return f.calls.count() == 1; }));
    const auto done = running.stop();
    CHECK(all_stop);
    CHECK(done.succeeded == 2);
    CHECK(done.released == 1);
    CHECK(f.store.counts("q")[state::claimed] == 0);
}

TEST_CASE("batch worker: batches still running after stop_within are left to their leases, entry by entry") {
    batch_fixture f;
    f.may_end = false;
    f.on_batch({});
    f.emit(3);
    vouch::worker worker(f.outbox, {.log = vouch::log_level::off, .stop_within = 10ms});
    worker.serve(f.routes, {.queue = "q"});
    worker.observe(f.seen);
    running_worker running(worker);
    REQUIRE(eventually([&] { return f.calls.count() == 1; }));
    CHECK(running.stop().abandoned == 3);
    CHECK(f.seen.count(event_kind::unsettled) == 3);
    f.may_end = true;
}

TEST_CASE("batch worker: a batch that fails is tried again by policy, entry by entry") {
    batch_fixture f;
    std::atomic<int> failures = 0;
    f.routes.on_batch("b",
                      [&](delivery_batch& all) {
                          f.calls.begin(all);
                          f.calls.end(all);
                          if (all[0].attempt() < 3) {
                              ++failures;
                              throw std::runtime_error("not yet");
                          }
                      },
                      {.size_max = 10}, {.backoff = vouch::fixed{5ms}});
    f.emit(20);
    vouch::worker worker(f.outbox, {.log = vouch::log_level::off, .poll_interval = 20ms});
    worker.serve(f.routes, {.queue = "q", .concurrency = 2});
    running_worker running(worker);
    CHECK(f.all_succeed(20));
    const auto done = running.stop();
    CHECK(done.dead == 0);
    CHECK(done.retried >= 20);
    CHECK_FALSE(f.calls.is_twice());
}

TEST_CASE("batch worker: the wait of a batch counts from the time its entry was due") {
    batch_fixture f;
    f.on_batch({.size_max = 100, .wait = 1h});
    emit_many(f.store, f.outbox, 3, {.queue = "q", .topic = "b", .due_at = f.outbox.now() - 1h});
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q"});
    const running_worker running(worker);
    CHECK(f.all_succeed(3));
}

TEST_CASE("batch worker: a batch whose leases are not extended starts before they end") {
    batch_fixture f;
    f.on_batch({.size_max = 100, .wait = 1h});
    f.emit(3);
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q", .lease = 300ms, .extend_leases = false});
    running_worker running(worker);
    CHECK(f.all_succeed(3));
    CHECK(running.stop().stale == 0);
}

} // namespace batch_worker_test
