// SPDX-License-Identifier: MIT
// Waiting for work: commits of this process are heard at once, those of others within milliseconds on Linux.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_wakes_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using store_type = vouch::sqlite::store;
using clock = std::chrono::steady_clock;

static_assert(vouch::waking_store<store_type>);

namespace {

/// Waits on a thread of its own while `work` runs a little later; says how long after `work` it woke, or nothing if it
/// slept through.
template <class Work>
std::optional<clock::duration> woken_after(store_type store, const std::string& queue, Work&& work) {
    const auto seen = store.wakes(queue);
    auto waiting = std::async(std::launch::async, [&store, &queue, seen] {
        const auto now_seen = store.wait(queue, seen, 5s, {});
        return std::pair{now_seen != seen, clock::now()};
    });
    std::this_thread::sleep_for(20ms);
    const auto begun = clock::now();
    work();
    const auto [woken, when] = waiting.get();
    return woken ? std::optional{when - begun} : std::nullopt;
}

void put_one(store_type store, std::uint64_t n, const std::string& queue = "q") {
    const auto d = draft_of(n, queue);
    vouch::enqueue(store, std::span(&d, 1), t0);
}

/// Commits as another process would. The entry with the highest number is due first.
void put_from_elsewhere(application& app, std::uint64_t n, const std::string& queue = "q") {
    vouch::sqlite::joined outbox(app.connection());
    auto d = draft_of(n, queue);
    d.due_at = t0 - std::chrono::microseconds(n);
    app.execute("BEGIN IMMEDIATE");
    outbox.enqueue(std::span(&d, 1), t0);
    app.execute("COMMIT");
}

} // namespace

TEST_CASE("wakes: a commit of this process is heard at once, through any handle") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type store(path, {.watch_every = 4s}); // so that polling cannot be what wakes
    const auto slow = 2s;
    auto after = woken_after(store, "q", [&] { put_one(store, 1); });
    REQUIRE(after);
    CHECK(*after < slow);

    const store_type other(path);
    after = woken_after(store, "q", [&] { put_one(other, 2); });
    REQUIRE(after);
    CHECK(*after < slow);
}

TEST_CASE("wakes: retries, releases, nudges, advances and the next of a lane wake as new work does") {
    const folder folder;
    store_type store(folder.fresh_path(), {.watch_every = 4s});
    auto d = draft_of(1);
    d.lane = "x";
    auto blocked = draft_of(2);
    blocked.lane = "x";
    vouch::enqueue(store, std::array{d, blocked}, t0);
    auto now = t0;
    const std::vector<vouch::outcome> outcomes{vouch::retry{"e", t0}, vouch::release{}, vouch::advance{"p", t0},
                                               vouch::succeed{}};
    for (const auto& outcome : outcomes) {
        const auto claimed = vouch::claim(store, request(now, {.limit = 1}));
        REQUIRE(claimed.size() == 1);
        const auto after = woken_after(store, "q", [&] {
            vouch::transact(store, [&](auto& tx) { return settle_in(tx, ticket_of(claimed.front()), outcome, now); });
        });
        CAPTURE(outcome.index());
        REQUIRE(after);
        CHECK(*after < 2s);
    }
    const auto later = draft_of(3, "r");
    auto future = later;
    future.due_at = t0 + 1h;
    vouch::enqueue(store, std::span(&future, 1), t0);
    const auto after =
        woken_after(store, "r", [&] { vouch::transact(store, [&](auto& tx) { return tx.nudge(future.id, t0); }); });
    REQUIRE(after);
    CHECK(*after < 2s);
}

TEST_CASE("wakes: a commit of another connection is noticed within the interval") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type store(path, {.watch_every = 10ms});
    application app(path); // as good as another process: nothing of ours sees its commit
    vouch::sqlite::joined outbox(app.connection());
    const auto after = woken_after(store, "q", [&] {
        app.execute("BEGIN");
        const auto d = draft_of(1);
        outbox.enqueue(std::span(&d, 1), t0);
        app.execute("COMMIT");
    });
    REQUIRE(after);
    CHECK(*after < 2s);
}

#if defined(__linux__)
namespace {

/// How often waits for the queue end until a stop is requested.
int count_wakes(store_type store, const std::string& queue, const std::stop_token& stop) {
    int out = 0;
    for (auto seen = store.wakes(queue); !stop.stop_requested();) {
        const auto now = store.wait(queue, seen, 10s, stop);
        out += now != seen && !stop.stop_requested() ? 1 : 0;
        seen = now;
    }
    return out;
}

} // namespace

TEST_CASE("wakes: a commit of another process is heard soon, however rarely the store looks") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type store(path, {.watch_every = 10min});
    application app(path);
    for (std::uint64_t n = 1; n <= 5; ++n) {
        const auto after = woken_after(store, "q", [&] { put_from_elsewhere(app, n); });
        REQUIRE(after);
        CHECK(*after < 2s);
    }
}

TEST_CASE("wakes: commits of another process wake those whose queue has another first entry, and hardly any others") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type store(path, {.watch_every = 10min});
    application app(path);
    put_from_elsewhere(app, 100, "r"); // stays first in its queue
    std::stop_source stop;
    const auto count = [&](const std::string& queue) {
        return std::async(std::launch::async,
                          [&store, queue, token = stop.get_token()] { return count_wakes(store, queue, token); });
    };
    auto busy = count("q");
    auto idle = count("r");
    for (std::uint64_t n = 1; n <= 20; ++n) {
        std::this_thread::sleep_for(20ms);
        put_from_elsewhere(app, n);
    }
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
    const int woken = busy.get();
    CHECK(woken > 5); // several commits may be one wake-up
    CHECK(idle.get() * 2 < woken);
}
#endif

TEST_CASE("wakes: what was committed between looking and waiting is not slept through") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type store(path, {.watch_every = 4s});
    for (const bool abroad : {false, true}) {
        const auto seen = store.wakes("q");
        if (abroad) {
            application app(path);
            put_from_elsewhere(app, 2);
        } else {
            put_one(store, 1);
        }
        const auto begun = clock::now();
        CHECK(store.wait("q", seen, 3s, {}) != seen);
        CHECK(clock::now() - begun < 2s);
    }
}

TEST_CASE("wakes: a commit of another process that makes nothing due sooner leaves the number as it is") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type store(path);
    application app(path);
    put_from_elsewhere(app, 5);
    auto seen = store.wakes("q");
    app.execute("CREATE TABLE orders (id)");
    put_from_elsewhere(app, 6, "r");
    CHECK(store.wakes("q") == seen);
    put_from_elsewhere(app, 4); // due behind the first
    CHECK(store.wakes("q") == seen + 1);
    put_from_elsewhere(app, 7);
    CHECK(store.wakes("q") == seen + 2);
    put_from_elsewhere(app, 8, "r");
    CHECK(store.wakes("q") == seen + 2);
    seen = store.wakes("q");
    app.execute("UPDATE vouch_entries SET gate = gate - 100 WHERE sequence = 1"); // as a nudge does
    CHECK(store.wakes("q") == seen + 1);
}

TEST_CASE("wakes: a rollback, a claim and another queue's work wake no waiter") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type store(path);
    const store_type other(path);
    put_one(store, 1);
    const auto seen = store.wakes("q");
    CHECK(vouch::claim(store, request(t0)).size() == 1);
    CHECK(store.wakes("q") == seen);
    put_one(store, 2, "r");
    CHECK(store.wakes("q") == seen);
    put_one(other, 3, "r");
    CHECK(store.wakes("q") == seen);
    {
        auto tx = store.begin();
        const auto d = draft_of(4);
        tx.enqueue(std::span(&d, 1), t0);
    }
    CHECK(store.wakes("q") == seen);
    CHECK(other.wakes("q") == seen);
    put_one(other, 4);
    CHECK(store.wakes("q") == seen + 1);
    CHECK(other.wakes("q") == seen + 1);
}

TEST_CASE("wakes: who waits for one queue sleeps while threads of this process commit to others") {
    const folder folder;
    const auto path = folder.fresh_path();
    const store_type idle(path, {.watch_every = 1ms});
    const auto seen = idle.wakes("idle");
    auto waiting = std::async(std::launch::async, [&] { return idle.wait("idle", seen, 10min, {}); });
    std::vector<std::thread> writers;
    for (std::uint64_t writer = 0; writer < 3; ++writer) {
        writers.emplace_back([&path, writer] {
            const store_type mine(path, {.synchronous = vouch::sqlite::synchronous::normal});
            for (std::uint64_t n = 1; n <= 100; ++n) {
                put_one(mine, 1000 * (writer + 1) + n, "busy");
            }
        });
    }
    for (auto& writer : writers) {
        writer.join();
    }
    CHECK(waiting.wait_for(0s) == std::future_status::timeout);
    CHECK(idle.wakes("idle") == seen);
    put_one(idle, 1, "idle");
    REQUIRE(waiting.wait_for(5s) == std::future_status::ready);
    CHECK(waiting.get() == seen + 1);
}

TEST_CASE("wakes: a commit of others right behind one of this process is heard") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type store(path);
    application app(path);
    auto seen = store.wakes("q");
    for (std::uint64_t n = 1; n <= 20; ++n) {
        CAPTURE(n);
        put_one(store, n, "r");
        put_from_elsewhere(app, 1000 + n);
        if (n % 2 == 0) {
            put_one(store, 100 + n, "r");
        }
        CHECK(store.wakes("q") == seen + 1);
        seen = store.wakes("q");
    }
}

TEST_CASE("wakes: a store that was watched leaves nothing but the file and its queue when it is closed") {
    const folder folder;
    const auto path = folder.fresh_path();
    {
        const store_type store(path);
        std::ignore = store.wakes("q");
        put_one(store, 1);
        std::ignore = store.wakes("q");
        std::ignore = store.counts("q");
    }
    CHECK(std::filesystem::exists(path));
    CHECK_FALSE(std::filesystem::exists(path + "-wal"));
}

TEST_CASE("wakes: a wait ends by itself, and by a stop") {
    const folder folder;
    const store_type store(folder.fresh_path());
    const auto seen = store.wakes("q");
    CHECK(store.wait("q", seen, 30ms, {}) == seen);
    CHECK(store.wait("q", seen, -1ms, {}) == seen);
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] { return store.wait("q", seen, 1h, stop.get_token()); });
    std::this_thread::sleep_for(20ms);
    stop.request_stop();
    REQUIRE(waiting.wait_for(5s) == std::future_status::ready);
    CHECK(waiting.get() == seen);
    CHECK(kind_of([&] { store.wait("", seen, 1s, {}); }) == vouch::error_kind::invalid_argument);
}

TEST_CASE("wakes: work that a joined writer brings into a transaction of ours wakes with its commit, and only then") {
    const folder files;
    store_type store(files.fresh_path());
    const auto join = [&](bool commits) {
        const auto seen = store.wakes("q");
        auto tx = store.begin();
        vouch::sqlite::joined inside(tx.connection());
        const auto d = draft_of(commits ? 1 : 2);
        inside.enqueue(std::span(&d, 1), t0);
        if (commits) {
            tx.commit();
        } else {
            auto gone = std::move(tx);
        }
        return store.wakes("q") != seen;
    };
    CHECK_FALSE(join(false));
    CHECK(join(true));
}

TEST_CASE("wakes: a watched store on a connection without a write-ahead log commits without waiting for itself") {
    const folder files;
    application app(files.fresh_path());
    app.execute("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 5");
    store_type store(app.connection(), {.busy_limit = 3s});
    std::ignore = store.wakes("q");
    const auto begun = clock::now();
    auto tx = store.begin();
    for (std::uint64_t n = 1; n <= 300; ++n) {
        auto d = draft_of(n);
        d.payload.assign(4000, 'x');
        tx.enqueue(std::span(&d, 1), t0);
    }
    tx.commit();
    CHECK(clock::now() - begun < 2500ms);
    CHECK(store.counts("q").total() == 300);
}

} // namespace sqlite_wakes_test
