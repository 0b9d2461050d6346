// SPDX-License-Identifier: MIT
// Lanes: one claimed at a time, in sequence; the head holds its lane until it is terminal.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_lanes_test {

using namespace support;
using vouch::state;
using vouch::verdict;

namespace {

vouch::draft in_lane(std::uint64_t n, vouch::time_point due = t0, const std::string& lane = "lane",
                     const std::string& queue = "q") {
    auto d = draft_of(n, queue);
    d.lane = lane;
    d.due_at = due;
    return d;
}

/// 1, 2 and 3 in one lane.
vouch::memory::store lane_of_three() {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, in_lane(n));
    }
    return store;
}

} // namespace

TEST_CASE("lane: one claimed at a time, in sequence") {
    auto store = lane_of_three();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        const auto claimed = take(store, t0);
        CHECK(numbers(claimed) == list{n});
        CHECK(take(store, t0).empty());
        settle(store, ticket_of(claimed.front()), vouch::succeed{});
    }
    CHECK(take(store, t0).empty());
}

TEST_CASE("lane: the head holds its lane while it is future-dated, retrying, released or between steps") {
    for (const vouch::outcome& outcome :
         {vouch::outcome{vouch::retry{"e", t0 + 1h}}, vouch::outcome{vouch::release{t0 + 1h}},
          vouch::outcome{vouch::advance{"p", t0 + 1h}}}) {
        auto store = lane_of_three();
        settle(store, take_one(store, t0), outcome);
        CHECK(take(store, t0 + 1h - tick).empty());
        CHECK(store.next_due("q") == t0 + 1h);
        CHECK(numbers(take(store, t0 + 1h)) == list{1});
    }
    vouch::memory::store store;
    put(store, in_lane(1, t0 + 1h));
    put(store, in_lane(2, t0));
    CHECK(take(store, t0 + 1h - tick).empty());
    CHECK(numbers(take(store, t0 + 1h)) == list{1});
}

TEST_CASE("lane: a lapsed head is taken over before anything behind it") {
    auto store = lane_of_three();
    CHECK(numbers(take(store, t0, {.lease = 1s})) == list{1});
    CHECK(numbers(take(store, t0 + 1h)) == list{1});
}

TEST_CASE("lane: the next one is free as soon as the head is terminal, in the same transaction") {
    auto store = lane_of_three();
    const auto t = take_one(store, t0);
    auto tx = store.begin();
    settle_in(tx, t, vouch::bury{"e", {}}, t0);
    CHECK(numbers(tx.claim(request(t0))) == list{2});
    CHECK(!tx.claim(request(t0)).size());
    tx.commit();
    CHECK(cancel(store, id_of(2), t0 + 1min) == verdict::applied);
    CHECK(numbers(take(store, t0 + 1min)) == list{3});
}

TEST_CASE("lane: blocked entries are counted, have no gate, and keep their due_at for their turn") {
    vouch::memory::store store;
    put(store, in_lane(1, t0 + 2h));
    put(store, in_lane(2, t0));
    put(store, in_lane(3, t0 + 1h));
    CHECK(store.counts("q")[state::pending] == 3);
    CHECK(store.next_due("q") == t0 + 2h);
    CHECK(take(store, t0 + 1h, {.only = id_of(2)}).empty());
    cancel(store, id_of(1));
    CHECK(store.next_due("q") == t0);
    cancel(store, id_of(2));
    CHECK(store.next_due("q") == t0 + 1h);
    CHECK(take(store, t0 + 1h - tick).empty());
    CHECK(numbers(take(store, t0 + 1h)) == list{3});
}

TEST_CASE("lane: a nudge on a blocked entry leaves it blocked, and counts when its turn comes") {
    vouch::memory::store store;
    put(store, in_lane(1, t0 + 1h));
    put(store, in_lane(2, t0 + 5h));
    CHECK(nudge(store, id_of(2)) == verdict::applied);
    CHECK(nudge(store, id_of(2)) == verdict::repeated);
    CHECK(store.find(id_of(2))->due_at == t0);
    CHECK(store.next_due("q") == t0 + 1h);
    CHECK(take(store, t0).empty());
    cancel(store, id_of(1));
    CHECK(numbers(take(store, t0)) == list{2});
}

TEST_CASE("lane: cancelling in the middle opens nothing") {
    auto store = lane_of_three();
    const auto t = take_one(store, t0);
    CHECK(cancel(store, id_of(2)) == verdict::applied);
    CHECK(take(store, t0).empty());
    CHECK(store.next_due("q") == t0 + 1min);
    settle(store, t, vouch::succeed{});
    CHECK(numbers(take(store, t0)) == list{3});
}

TEST_CASE("lane: names are a queue's own, and lanes do not wait for each other") {
    vouch::memory::store store;
    put(store, in_lane(1, t0, "a", "q"));
    put(store, in_lane(2, t0, "a", "q"));
    put(store, in_lane(3, t0, "b", "q"));
    put(store, in_lane(4, t0, "a", "r"));
    put(store, draft_of(5, "q"));
    put(store, draft_of(6, "q"));
    CHECK(numbers(take(store, t0, {.queue = "q"})) == list{1, 3, 5, 6});
    CHECK(numbers(take(store, t0, {.queue = "r"})) == list{4});
}

TEST_CASE("lane: is free again when all of it has ended, and a later entry starts it anew") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put(store, in_lane(n));
        const auto t = take_one(store, t0);
        CHECK(t.id == id_of(n));
        settle(store, t, vouch::succeed{});
    }
    CHECK(!store.next_due("q"));
}

TEST_CASE("lane: a batch of enqueues keeps its order") {
    vouch::memory::store store;
    const std::vector batch{in_lane(3), in_lane(1), in_lane(2)};
    vouch::enqueue(store, batch, t0);
    for (const std::uint64_t n : {3U, 1U, 2U}) {
        const auto t = take_one(store, t0);
        CHECK(t.id == id_of(n));
        settle(store, t, vouch::succeed{});
    }
}

TEST_CASE("lane: a successor stands at the end of its predecessor's lane") {
    auto store = lane_of_three();
    cancel(store, id_of(1));
    vouch::transact(store,
                    [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(4), .now = t0}); });
    CHECK(store.find(id_of(4))->lane == "lane");
    for (const std::uint64_t n : {2U, 3U, 4U}) {
        const auto t = take_one(store, t0);
        CHECK(t.id == id_of(n));
        settle(store, t, vouch::succeed{});
    }
}

TEST_CASE("lane: a rolled-back end of the head leaves the lane as it was") {
    auto store = lane_of_three();
    const auto t = take_one(store, t0);
    const auto before = look(store);
    {
        auto tx = store.begin();
        settle_in(tx, t, vouch::succeed{}, t0);
        CHECK(numbers(tx.claim(request(t0))) == list{2});
        settle_in(tx, {id_of(2), 1}, vouch::succeed{}, t0);
        const auto d = in_lane(4);
        tx.enqueue(std::span(&d, 1), t0);
        CHECK(numbers(tx.claim(request(t0))) == list{3});
    }
    CHECK(look(store) == before);
    CHECK(take(store, t0).empty());
    settle(store, t, vouch::succeed{});
    CHECK(numbers(take(store, t0)) == list{2});
}

TEST_CASE("lane: a lane that only a rolled-back transaction knew is gone") {
    vouch::memory::store store;
    {
        auto tx = store.begin();
        const auto d = in_lane(1, t0 + 1h);
        tx.enqueue(std::span(&d, 1), t0);
    }
    put(store, in_lane(2));
    CHECK(numbers(take(store, t0)) == list{2});
}

TEST_CASE("lane: long lanes drain in order through many transactions") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 300; ++n) {
        put(store, in_lane(n, t0, n % 2 == 0 ? "even" : "odd"));
    }
    std::uint64_t even = 2;
    std::uint64_t odd = 1;
    for (int round = 0; round < 150; ++round) {
        const auto claimed = take(store, t0);
        REQUIRE(numbers(claimed) == list{odd, even});
        for (const auto& e : claimed) {
            settle(store, ticket_of(e),
                   round % 2 == 0 ? vouch::outcome{vouch::succeed{}} : vouch::outcome{vouch::bury{"e", {}}});
        }
        even += 2;
        odd += 2;
    }
    CHECK(store.counts("q").live() == 0);
}

} // namespace memory_lanes_test
