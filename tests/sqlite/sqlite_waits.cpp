// SPDX-License-Identifier: MIT
// How long the SQLite store waits: for its turn no longer than `busy_limit`, for itself not at all, and for extreme
// durations without overflow.
#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_waits_test {

using namespace support;
using sqlite_test::folder;
using vouch::error_kind;
using store_type = vouch::sqlite::store;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

namespace {

void put(store_type& store, std::uint64_t n) { vouch::enqueue(store, std::array{draft_of(n)}, t0); }

} // namespace

TEST_CASE("waits: begin waits for a transaction of the same process no longer than busy_limit, and names it") {
    const folder files;
    const auto path = files.fresh_path();
    store_type patient(path);
    store_type hasty(path, {.busy_limit = 30ms});
    auto tx = patient.begin();
    std::optional<vouch::error> refused;
    milliseconds waited{};
    std::thread([&] {
        const auto start = clock::now();
        refused = error_of([&] { std::ignore = hasty.begin(); });
        waited = std::chrono::duration_cast<milliseconds>(clock::now() - start);
    }).join();
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::busy);
    CHECK(std::string(refused->what()).find("busy_limit, 30 ms") != std::string::npos);
    CHECK(waited >= 30ms);
    CHECK(waited < 5s);
    tx.enqueue(std::array{draft_of(1)}, t0); // and it does no harm
    tx.commit();
    put(hasty, 2);
    CHECK(patient.counts("q").total() == 2);
}

TEST_CASE("waits: those behind one that gives up keep their places and get their turns") {
    const folder files;
    const auto path = files.fresh_path();
    store_type patient(path);
    store_type hasty(path, {.busy_limit = 30ms});
    auto tx = patient.begin();
    std::optional<error_kind> first;
    std::thread gives_up([&] { first = kind_of([&] { std::ignore = hasty.begin(); }); });
    std::this_thread::sleep_for(10ms);
    std::thread behind([&] { put(patient, 1); });
    gives_up.join();
    CHECK(first == error_kind::busy);
    tx.commit();
    behind.join();
    CHECK(patient.find(id_of(1)));
}

TEST_CASE("waits: two stores begun in opposite order on two threads wait for each other no longer than busy_limit") {
    const folder files;
    store_type left(files.fresh_path(), {.busy_limit = 100ms});
    store_type right(files.fresh_path(), {.busy_limit = 100ms});
    std::latch both(2);
    std::atomic<int> busy = 0;
    const auto begin_both = [&](store_type& first, store_type& second) {
        auto mine = first.begin();
        both.arrive_and_wait();
        const auto refused = kind_of([&] { std::ignore = second.begin(); });
        busy += refused == error_kind::busy ? 1 : 0;
    };
    const auto start = clock::now();
    std::thread other([&] { begin_both(right, left); });
    begin_both(left, right);
    other.join();
    CHECK(busy >= 1);
    CHECK(clock::now() - start < 5s);
    put(left, 1);
    put(right, 1);
}

TEST_CASE("waits: a thread that moved its transaction away waits for it like any other") {
    const folder files;
    store_type store(files.fresh_path());
    const auto use = [](store_type::transaction tx) {
        std::this_thread::sleep_for(30ms);
        tx.enqueue(std::array{draft_of(1)}, t0);
        tx.commit();
    };
    {
        std::thread other(use, store.begin()); // the thread has not used it yet
        put(store, 2);
        other.join();
    }
    CHECK(store.find(id_of(1))->sequence < store.find(id_of(2))->sequence);
    {
        auto tx = store.begin();
        tx.enqueue(std::array{draft_of(3)}, t0); // used here, and moved then
        std::thread other([mine = std::move(tx)]() mutable {
            std::this_thread::sleep_for(30ms);
            mine.commit();
        });
        put(store, 4);
        other.join();
    }
    CHECK(store.find(id_of(3))->sequence < store.find(id_of(4))->sequence);
}

TEST_CASE("waits: a thread that would wait for its own moved transaction is busy when the limit is over") {
    const folder files;
    store_type store(files.fresh_path(), {.busy_limit = 30ms});
    auto first = store.begin();
    auto tx = std::move(first);
    const auto refused = error_of([&] { std::ignore = store.begin(); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::busy);
    CHECK(std::string(refused->what()).find("belongs to this thread") != std::string::npos);
    CHECK_FALSE(tx.find(id_of(1)));
    CHECK(kind_of([&] { std::ignore = store.begin(); }) == error_kind::misuse); // used here since
    first = store_type::transaction(std::move(tx));
    CHECK(kind_of([&] { std::ignore = store.begin(); }) == error_kind::busy);
}

TEST_CASE("waits: durations that mean nothing are refused by name, and the longest are no overflow") {
    const folder files;
    const auto path = files.fresh_path();
    const auto refused = [&](milliseconds busy_limit, milliseconds watch_every) {
        const auto e =
            error_of([&] { store_type store(path, {.busy_limit = busy_limit, .watch_every = watch_every}); });
        REQUIRE(e);
        CHECK(e->kind() == error_kind::invalid_argument);
        return std::string(e->what());
    };
    for (const auto negative : {milliseconds{-1}, milliseconds::min()}) {
        CHECK(refused(negative, 20ms).find("busy_limit is " + std::to_string(negative.count()) + " ms") !=
              std::string::npos);
        CHECK(refused(10ms, negative).find("watch_every is") != std::string::npos);
    }
    CHECK(refused(10ms, 0ms).find("it must be at least 1 ms") != std::string::npos); // it would spin

    store_type store(path, {.busy_limit = milliseconds::max(), .watch_every = milliseconds::max()});
    std::thread other([&, tx = std::make_unique<store_type::transaction>(store.begin())]() mutable {
        std::this_thread::sleep_for(20ms);
        tx.reset();
    });
    put(store, 1);
    other.join();
    store_type none(path, {.busy_limit = 0ms}); // never waits, and needs not to
    put(none, 2);
    CHECK(store.counts("q").total() == 2);
}

TEST_CASE("waits: a wait for new work may be of any length") {
    using std::chrono::nanoseconds;
    const folder files;
    store_type store(files.fresh_path(), {.watch_every = milliseconds::max()});
    const auto seen = store.wakes("q");
    for (const auto none : {nanoseconds::zero(), nanoseconds{-1}, nanoseconds::min()}) {
        CHECK(store.wait("q", seen, none, {}) == seen);
    }
    std::thread other([store]() mutable {
        std::this_thread::sleep_for(20ms);
        put(store, 1);
    });
    CHECK(store.wait("q", seen, nanoseconds::max(), {}) != seen);
    other.join();
}

} // namespace sqlite_waits_test
