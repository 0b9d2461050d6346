// SPDX-License-Identifier: MIT
// Waiting for work: the number per queue that changes with every commit that may have brought work nearer.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <stop_token>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_wakes_test {

using namespace support;
using transaction = vouch::memory::transaction;

namespace {

constexpr auto for_ever = std::chrono::nanoseconds::max();

/// 1 pending and due in an hour, 2 claimed, 3 and 4 in a lane of which 3 is claimed; 9 in "r" with 1 as its parent.
vouch::memory::store furnished() {
    vouch::memory::store store;
    auto d = draft_of(1);
    d.due_at = t0 + 1h;
    put(store, d);
    put(store, draft_of(2));
    for (const std::uint64_t n : {3U, 4U}) {
        d = draft_of(n);
        d.lane = "lane";
        put(store, d);
    }
    d = draft_of(9, "r");
    d.parent = id_of(1);
    put(store, d);
    REQUIRE(take(store, t0).size() == 2);
    return store;
}

/// Ends all waits that should have ended by themselves, so that a failing test ends too.
struct rescue {
    std::stop_source stop{};
    ~rescue() { stop.request_stop(); }
};

struct bringing {
    std::string_view what;
    std::function<void(transaction&)> in;
};

const std::vector<bringing>& bringing_work_nearer() {
    static const std::vector<bringing> all{
        {"enqueue", [](auto& tx) { tx.enqueue(std::array{draft_of(20)}, t0); }},
        {"retry",
         [](auto& tx) {
             settle_in(tx, {id_of(2), 1}, vouch::retry{"e", t0 + 1s}, t0);
         }},
        {"release",
         [](auto& tx) {
             settle_in(tx, {id_of(2), 1}, vouch::release{}, t0);
         }},
        {"advance",
         [](auto& tx) {
             settle_in(tx, {id_of(2), 1}, vouch::advance{"p", {}}, t0);
         }},
        {"nudge", [](auto& tx) { std::ignore = tx.nudge(id_of(1), t0); }},
        {"success of a lane's head",
         [](auto& tx) {
             settle_in(tx, {id_of(3), 1}, vouch::succeed{}, t0);
         }},
        {"burial of a lane's head",
         [](auto& tx) {
             settle_in(tx, {id_of(3), 1}, vouch::bury{"e", {}}, t0);
         }},
        {"cancel of a lapsed head", [](auto& tx) { std::ignore = tx.cancel(id_of(3), "e", t0 + 1h); }},
        {"a child's end", [](auto& tx) { std::ignore = tx.cancel(id_of(9), "e", t0); }},
    };
    return all;
}

} // namespace

TEST_CASE("wakes: changes with every commit that brings work nearer, and not before") {
    for (const auto& [what, in] : bringing_work_nearer()) {
        CAPTURE(what);
        auto store = furnished();
        const auto seen = store.wakes("q");
        auto tx = store.begin();
        in(tx);
        CHECK(store.wakes("q") == seen);
        tx.commit();
        CHECK(store.wakes("q") != seen);
    }
}

TEST_CASE("wakes: a rollback brings nothing, nor does an empty commit or another queue's") {
    for (const auto& [what, in] : bringing_work_nearer()) {
        CAPTURE(what);
        auto store = furnished();
        const auto seen = store.wakes("q");
        {
            auto tx = store.begin();
            in(tx);
        }
        CHECK(store.wakes("q") == seen);
        store.begin().commit();
        put(store, draft_of(30, "s"));
        CHECK(store.wakes("q") == seen);
    }
}

TEST_CASE("wait: comes back when a commit brings work, to every waiting thread") {
    for (const auto& [what, in] : bringing_work_nearer()) {
        CAPTURE(what);
        auto store = furnished();
        const auto seen = store.wakes("q");
        std::vector<std::future<std::uint64_t>> waiting;
        rescue at_end;
        for (int n = 0; n < 3; ++n) {
            waiting.push_back(std::async(std::launch::async, [store, seen, token = at_end.stop.get_token()] {
                return store.wait("q", seen, for_ever, token);
            }));
        }
        vouch::transact(store, in);
        for (auto& one : waiting) {
            REQUIRE(one.wait_for(20s) == std::future_status::ready);
            CHECK(one.get() != seen);
        }
    }
}

TEST_CASE("wait: work that came before it is not missed") {
    vouch::memory::store store;
    const auto seen = store.wakes("q");
    put(store, draft_of(1));
    const auto now = in_time([store, seen] { return store.wait("q", seen, for_ever, {}); });
    REQUIRE(now);
    CHECK(*now == store.wakes("q"));
    CHECK(*now != seen);
}

TEST_CASE("wait: for a queue that has had no entry yet") {
    vouch::memory::store store;
    CHECK(store.wakes("new") == store.wakes("newer"));
    std::future<std::uint64_t> waiting;
    rescue at_end;
    waiting = std::async(std::launch::async, [store, token = at_end.stop.get_token()] {
        return store.wait("new", store.wakes("newer"), for_ever, token);
    });
    put(store, draft_of(1, "new"));
    REQUIRE(waiting.wait_for(20s) == std::future_status::ready);
    CHECK(waiting.get() == store.wakes("new"));
}

TEST_CASE("wait: gives up when its time has passed, at once if there is none") {
    vouch::memory::store store;
    const auto seen = store.wakes("q");
    for (const auto at_most : {std::chrono::nanoseconds{0}, std::chrono::nanoseconds{-5},
                               std::chrono::nanoseconds::min(), std::chrono::nanoseconds{1}}) {
        CHECK(in_time([=] { return store.wait("q", seen, at_most, {}); }) == seen);
    }
}

TEST_CASE("wait: comes back when asked to stop, before or while it waits") {
    vouch::memory::store store;
    const auto seen = store.wakes("q");
    std::stop_source stop;
    std::promise<void> started;
    auto waiting = std::async(std::launch::async, [&started, store, seen, token = stop.get_token()] {
        started.set_value();
        return store.wait("q", seen, for_ever, token);
    });
    started.get_future().wait();
    CHECK(waiting.wait_for(0s) != std::future_status::ready);
    stop.request_stop();
    CHECK(waiting.get() == seen);
    CHECK(in_time([=, token = stop.get_token()] { return store.wait("q", seen, for_ever, token); }) == seen);
}

TEST_CASE("wait: blocks no other call") {
    vouch::memory::store store;
    const auto seen = store.wakes("idle");
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [store, seen, token = stop.get_token()] {
        return store.wait("idle", seen, for_ever, token);
    });
    const auto written = in_time([store]() mutable {
        put(store, draft_of(1));
        return store.counts("q").total();
    });
    stop.request_stop();
    CHECK(written == 1U);
    CHECK(waiting.get() == seen);
}

} // namespace memory_wakes_test
