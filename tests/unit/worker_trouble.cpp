// SPDX-License-Identifier: MIT
// A store that fails: transient errors are outlasted, commits in doubt are resolved, permanent errors stop the worker.
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <tuple>

#include "worker_support.hpp"

using namespace worker_test;
using vouch::error_kind;
using vouch::event_kind;
using vouch::state;

namespace {

/// Fails the next transactions as it is told, then lets all through.
class bad_luck {
  public:
    enum class fate { fine, begin_fails, lost_in_doubt, landed_in_doubt };

    bad_luck(tripwire& wire, std::deque<fate> plan, error_kind kind = error_kind::io)
        : plan_(std::move(plan)), kind_(kind) {
        wire.at_begin = [this] {
            const std::lock_guard lock(mutex_);
            if (!plan_.empty() && plan_.front() == fate::begin_fails) {
                plan_.pop_front();
                throw vouch::error(kind_, "planned");
            }
        };
        wire.at_commit = [this](const std::function<void()>& commit) {
            const auto next = take();
            if (next != fate::lost_in_doubt) {
                commit();
            }
            if (next != fate::fine) {
                throw vouch::error(kind_, "planned", {.in_doubt = true});
            }
        };
    }

    [[nodiscard]] bool is_over() const {
        const std::lock_guard lock(mutex_);
        return plan_.empty();
    }

  private:
    [[nodiscard]] fate take() {
        const std::lock_guard lock(mutex_);
        if (plan_.empty()) {
            return fate::fine;
        }
        const auto next = plan_.front();
        plan_.pop_front();
        return next;
    }

    mutable std::mutex mutex_;
    std::deque<fate> plan_;
    error_kind kind_;
};

using fate = bad_luck::fate;

struct troubled {
    deaf_store store{};
    vouch::outbox<deaf_store> outbox{store};
    vouch::testing::recorder seen{};
    std::atomic<int> calls = 0;
    vouch::router<deaf_store> routes{outbox};
    vouch::worker<deaf_store> worker{outbox, {.poll_interval = 20ms, .store_backoff = {.base = 1ms, .max = 20ms}}};

    explicit troubled(vouch::queue_options served = {.queue = "q"}) {
        routes.on("t", [this](vouch::delivery& d) {
            ++calls;
            d.emit({.queue = "effects", .topic = "done"});
        });
        worker.serve(routes, std::move(served));
        worker.observe(seen);
    }

    void emit(std::size_t count) { emit_many(store.plain(), outbox, count, {.queue = "q", .topic = "t"}); }
    [[nodiscard]] bool all_succeeded(std::size_t count) {
        return comes_true([&] { return count_of(store, state::succeeded) == count; });
    }
};

} // namespace

TEST_CASE("store errors: transient ones are retried with growing waits, and each is reported") {
    for (const auto kind : {error_kind::io, error_kind::busy, error_kind::full}) {
        troubled t;
        t.emit(5);
        const bad_luck luck(t.store.wire(), std::deque<fate>(6, fate::begin_fails), kind);
        const auto start = ticking::now();
        at_work running(t.worker);
        CHECK(t.all_succeeded(5));
        CHECK(ticking::now() - start >= 40ms); // 1 + 2 + 4 + 8 + 16 + 20, some of which jitter may take off
        CHECK(running.stop().store_errors == 6);
        CHECK(t.calls == 5);
        CHECK(t.seen.count(event_kind::store_error) == 6);
        for (const auto& e : t.seen.events()) {
            if (e.what == event_kind::store_error) {
                CHECK(e.error == name_of(kind));
                CHECK(e.queue == "q");
            }
        }
    }
}

TEST_CASE("store errors: while the store fails, a handler's outcome is kept and settled later") {
    troubled t;
    t.emit(1);
    const bad_luck luck(t.store.wire(), {fate::fine, fate::begin_fails, fate::begin_fails, fate::begin_fails});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    const auto done = running.stop();
    CHECK(t.calls == 1);
    CHECK(done.succeeded == 1);
    CHECK(done.store_errors == 3);
}

TEST_CASE("in doubt: a worker's claim is forgotten, whether it landed or not, and the lease heals it") {
    for (const auto what : {fate::lost_in_doubt, fate::landed_in_doubt}) {
        const bool landed = what == fate::landed_in_doubt;
        troubled t({.queue = "q", .lease = 300ms});
        t.emit(1);
        const bad_luck luck(t.store.wire(), {what});
        const auto start = ticking::now();
        at_work running(t.worker);
        CHECK(t.all_succeeded(1));
        CHECK(t.calls == 1);
        const auto e = t.store.list(vouch::query::all("q")).front();
        CHECK(e.epoch == (landed ? 3U : 1U)); // the forgotten one, one that handed it back, and the one alone
        if (landed) {
            CHECK(ticking::now() - start >= 295ms);
        }
        CHECK(running.stop().claimed == 1);
    }
}

TEST_CASE("in doubt: a worker's settle is repeated under the same ticket, and its effects land once") {
    for (const auto what : {fate::lost_in_doubt, fate::landed_in_doubt}) {
        troubled t;
        t.emit(1);
        const bad_luck luck(t.store.wire(), {fate::fine, what});
        at_work running(t.worker);
        CHECK(t.all_succeeded(1));
        const auto done = running.stop();
        CHECK(luck.is_over());
        CHECK(t.calls == 1);
        CHECK(done.succeeded == 1);
        CHECK(done.stale == 0);
        CHECK(t.store.counts("effects").total() == 1);
    }
}

TEST_CASE("store errors: one that no repeat can cure stops the worker cleanly, and run throws it") {
    for (const auto kind : {error_kind::read_only, error_kind::corrupt, error_kind::misuse, error_kind::unsupported}) {
        troubled t;
        t.emit(3);
        const bad_luck luck(t.store.wire(), {fate::begin_fails}, kind);
        at_work running(t.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(t.calls == 0);
        CHECK(count_of(t.store, state::pending) == 3);
    }
    for (const auto kind : {error_kind::read_only, error_kind::corrupt}) {
        troubled t;
        t.emit(3);
        // The claim of one goes well; its settle, with the next claim, does not; then the store is in order again.
        const bad_luck luck(t.store.wire(), {fate::fine, fate::begin_fails}, kind);
        at_work running(t.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(t.seen.count(event_kind::store_error) == 1);
        CHECK(count_of(t.store, state::claimed) == 0); // what was in hand was settled on the way out
        CHECK(count_of(t.store, state::succeeded) == 1);
        CHECK(t.calls == 1);

        at_work again(t.worker); // and it may be run again
        CHECK(t.all_succeeded(3));
        CHECK(again.stop().succeeded == 2);
    }
}

TEST_CASE("store errors: a stop does not wait for a store that fails for good") {
    troubled t;
    std::atomic<bool> broken = false;
    t.store.wire().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    t.routes.on("breaks", [&](vouch::delivery&) { broken = true; });
    t.outbox.emit({.queue = "q", .topic = "breaks"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::store_error) >= 3; }));
    const auto done = running.stop();
    CHECK(done.unsettled == 1);
    CHECK(count_of(t.store, state::claimed) == 1); // its lease heals it
}

TEST_CASE("store errors: an exception of somebody else's stops the worker, too") {
    troubled t;
    t.emit(1);
    t.store.wire().at_begin = [&] { throw std::runtime_error("not ours"); };
    at_work running(t.worker);
    CHECK_THROWS_AS(running.wait(), std::runtime_error);
    CHECK(count_of(t.store, state::pending) == 1);
}

TEST_CASE("audit: while a worker's sink fails outcomes are kept past their leases, and no handler is called twice") {
    troubled t({.queue = "q", .batch_size = 10, .lease = 60ms});
    std::atomic<int> lines = 0;
    std::atomic<bool> down = true;
    t.worker.audit([&](tripped_transaction&, const vouch::audit_line&) {
        if (down) {
            throw std::runtime_error("no ink");
        }
        ++lines;
    });
    t.emit(40);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.calls >= 10; }));
    std::this_thread::sleep_for(400ms); // several leases
    const int kept = t.calls;
    CHECK(kept < 40); // it does not go on as if nothing were wrong
    CHECK(t.seen.count(event_kind::hook_failed) == static_cast<std::size_t>(kept));
    down = false;
    CHECK(t.all_succeeded(40));
    const auto done = running.stop();
    CHECK(done.unsettled + done.stale + done.lost == 0);
    CHECK(lines == 40);
    CHECK(t.calls == 40);
    CHECK(t.store.counts("effects").total() == 40);
}

TEST_CASE("hooks: one that always fails for one group does not stop a worker with one thread") {
    troubled t;
    t.worker.on_group_complete(
        [&](tripped_transaction&, const std::string&, const vouch::entry&) { throw std::runtime_error("never"); });
    t.outbox.emit({.queue = "q", .topic = "t", .group = "g"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::hook_failed) == 1; }));
    t.emit(20);
    CHECK(t.all_succeeded(20));
    const auto done = running.stop();
    CHECK(done.unsettled == 1); // given up at the stop; its lease heals it
    CHECK(t.calls == 21);
}

TEST_CASE("hooks: while one fails at a stop, the leases of running handlers are extended all the same") {
    troubled t({.queue = "q", .concurrency = 2, .lease = 150ms});
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    t.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    t.worker.audit([](tripped_transaction&, const vouch::audit_line& line) {
        if (line.topic == "t") {
            throw std::runtime_error("never");
        }
    });
    const auto slow = t.outbox.emit({.queue = "q", .topic = "slow"}).front().id;
    t.emit(1);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return is_running && t.seen.count(event_kind::hook_failed) == 1; }));
    running.ask_to_stop();
    const auto lease = *t.store.find(slow)->lease_until;
    CHECK(comes_true([&] { return *t.store.find(slow)->lease_until > lease + 450ms; }));
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 1);
    CHECK(done.unsettled == 1);
    CHECK(t.store.find(slow)->epoch == 1);
}

TEST_CASE(
    "isolation: a lapsed entry whose outcome is held up, or that hangs, does not stop the other queues for good") {
    troubled t({.queue = "q"});
    t.worker.serve(t.routes, {.queue = "r"});
    t.worker.audit([](tripped_transaction&, const vouch::audit_line& line) {
        if (line.queue == "q") {
            throw std::runtime_error("never");
        }
    });
    t.emit(1);
    const auto now = t.outbox.now();
    REQUIRE(vouch::claim(t.store.plain(), {.queue = "q", .now = now - 1h, .lease = 1us}).empty());
    REQUIRE(vouch::claim(t.store.plain(), {.queue = "q", .now = now, .lease = 1us}).size() == 1); // and dies
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::hook_failed) == 1; }));
    emit_many(t.store.plain(), t.outbox, 50, {.queue = "r", .topic = "t"});
    CHECK(comes_true([&] { return count_of(t.store, state::succeeded, "r") == 50; }));
}

TEST_CASE("record: a worker keeps an outcome whose record the store's fault stops, and settles it later") {
    struct recording_faults {
        std::atomic<int>* faults;
        std::atomic<int>* worked;
        void work(vouch::delivery&) { ++*worked; }
        void record(tripped_transaction&) {
            if (--*faults >= 0) {
                throw vouch::error(error_kind::full, "planned");
            }
        }
    };
    troubled t({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> faults = 6;
    std::atomic<int> worked = 0;
    t.routes.on("records", recording_faults{&faults, &worked});
    t.outbox.emit({.queue = "q", .topic = "records"});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    CHECK(worked == 1);
}

TEST_CASE(
    "record: what follows from a failed one is decided by a handling thread, not by the one that extends leases") {
    struct turning {
        std::atomic<int>* strangers;
        std::shared_ptr<std::thread::id> worked_on = std::make_shared<std::thread::id>();
        void work(vouch::delivery&) { *worked_on = std::this_thread::get_id(); }
        void record(tripped_transaction&) { throw vouch::failure("constraint"); }
        vouch::outcome ended(vouch::delivery&, vouch::ending) {
            *strangers += *worked_on == std::this_thread::get_id() ? 0 : 1;
            return vouch::succeed{};
        }
    };
    troubled t({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> strangers = 0;
    t.routes.on("turns", turning{&strangers});
    t.outbox.emit({.queue = "q", .topic = "turns"});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    CHECK(strangers == 0); // one thread handles
}

TEST_CASE("store errors: a stop goes on trying while a handler runs, however long the store fails") {
    troubled t({.queue = "q", .concurrency = 2});
    std::atomic<bool> broken = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    t.store.wire().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    t.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    t.routes.on("breaks", [&](vouch::delivery&) {
        std::ignore = comes_true([&] { return is_running.load(); });
        broken = true;
    });
    t.outbox.emit({.queue = "q", .topic = "slow"});
    t.outbox.emit({.queue = "q", .topic = "breaks"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return broken.load(); }));
    running.ask_to_stop();
    // More tries than `stop_tries`, all in vain.
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::store_error) >= 20; }));
    broken = false;
    CHECK(comes_true([&] { return count_of(t.store, state::succeeded) == 1; })); // while the other still runs
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 2);
    CHECK(done.unsettled == 0);
}

TEST_CASE("store errors: an outcome that has landed is never reported as unsettled") {
    troubled t({.queue = "q", .batch_size = 2});
    std::atomic<bool> broken = false;
    t.store.wire().at_commit = [&](const std::function<void()>& commit) {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
        commit();
        broken = t.calls == 2; // the settle has landed, and nothing after it will
    };
    t.emit(2);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return broken.load(); }));
    const auto done = running.stop();
    CHECK(done.succeeded == count_of(t.store, state::succeeded));
    CHECK(done.unsettled == 2 - done.succeeded);
}

TEST_CASE("retention: ended entries are swept in bounded commits, by their rules, while work goes on") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    vouch::router routes(outbox);
    routes.on("good", [](vouch::delivery&) {});
    routes.on("bad", [](vouch::delivery&) { throw vouch::reject("bad"); });
    emit_many(store, outbox, 95, {.queue = "q", .topic = "good"});
    emit_many(store, outbox, 5, {.queue = "q", .topic = "bad"});
    emit_many(store, outbox, 10, {.queue = "kept", .topic = "good"});
    vouch::worker worker(outbox, {.purge_every = 5ms, .purge_limit = 10});
    worker.serve(routes, {.queue = "q", .retention = {.succeeded = vouch::purge_rule::immediately()}});
    worker.serve(routes, {.queue = "kept", .retention = {.succeeded = vouch::purge_rule::after(1h)}});
    worker.observe(seen);
    at_work running(worker);
    CHECK(comes_true([&] { return store.counts("q").total() == 5; }));
    CHECK(comes_true([&] { return count_of(store, state::succeeded, "kept") == 10; }));
    std::this_thread::sleep_for(30ms); // some more sweeps
    CHECK(count_of(store, state::dead) == 5);
    const auto done = running.stop();
    CHECK(done.purged == 95);
    CHECK(store.counts("kept").total() == 10);
    CHECK(seen.count(event_kind::purged) >= 10); // no commit removed more than ten
}

TEST_CASE("retention: a sweep goes on as long as something goes, past any number of entries that are still needed") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    constexpr std::uint64_t needed = 6'000;
    vouch::transact(store, [&](auto& tx) {
        const auto past = outbox.now() - 1h;
        for (std::uint64_t n = 1; n <= needed; ++n) {
            vouch::draft d{.id = {.high = 7, .low = n}, .queue = "q", .topic = "t", .group = n % 300 == 0 ? "" : "g"};
            tx.enqueue(std::array{d}, past);
            std::ignore = tx.cancel(d.id, "e", past + vouch::duration{static_cast<std::int64_t>(n)});
        }
        const vouch::draft live{.id = {.high = 8, .low = 1}, .queue = "elsewhere", .topic = "t", .group = "g"};
        tx.enqueue(std::array{live}, past);
    });
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    vouch::worker worker(outbox, {.purge_every = 1h, .purge_limit = 10}); // so there is one sweep
    worker.serve(routes, {.queue = "q", .retention = {.dead = vouch::purge_rule::immediately()}});
    at_work running(worker);
    CHECK(comes_true([&] { return store.counts("q").total() == needed - needed / 300; }));
    CHECK(running.stop().purged == needed / 300);
}

TEST_CASE("retention: a queue in which entries end all the time does not keep the dead from being swept") {
    silent_store store;
    const vouch::outbox outbox(store);
    store.wire().at_commit = [](const std::function<void()>& commit) {
        commit();
        std::this_thread::sleep_for(5ms);
    };
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    const std::vector<vouch::draft> bad(1, {.id = support::id_of(1), .queue = "q", .topic = "bad"});
    vouch::enqueue(store.plain(), bad, outbox.now());
    REQUIRE(vouch::transact(store.plain(), [&](auto& tx) { return tx.cancel(bad[0].id, "bad", outbox.now()); }) ==
            vouch::verdict::applied);
    vouch::worker worker(outbox, {.purge_every = 5ms, .purge_limit = 10});
    worker.serve(routes,
                 {.queue = "q",
                  .retention = {.succeeded = vouch::purge_rule::after(20ms), .dead = vouch::purge_rule::after(20ms)}});
    std::jthread busy([&](const std::stop_token& stop) {
        for (std::uint64_t n = 2; !stop.stop_requested(); ++n) {
            const std::vector<vouch::draft> done(
                1, {.id = support::id_of(n), .queue = "q", .topic = "done", .result = std::string{}});
            vouch::enqueue(store.plain(), done, outbox.now());
            std::this_thread::sleep_for(1ms);
        }
    });
    at_work running(worker);
    CHECK(comes_true([&] { return !store.find(bad[0].id); }, 5s));
}
