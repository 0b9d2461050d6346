// SPDX-License-Identifier: MIT
// Groups: the settle that takes the members not yet succeeded from one to zero says so, once per fall to zero.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_groups_test {

using namespace support;
using vouch::settlement;
using vouch::verdict;

namespace {

constexpr settlement plain{verdict::applied, false};
constexpr settlement completes{verdict::applied, true};

vouch::draft member(std::uint64_t n, const std::string& queue = "q", const std::string& group = "g") {
    auto d = draft_of(n, queue);
    d.group = group;
    return d;
}

vouch::memory::store group_of(std::uint64_t members) {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= members; ++n) {
        put(store, member(n));
    }
    return store;
}

settlement end(vouch::memory::store& store, std::uint64_t n, const vouch::outcome& outcome,
               const std::string& queue = "q") {
    return settle(store, take_one(store, t0 + 1h, {.queue = queue, .only = id_of(n)}), outcome, t0 + 1h);
}

void requeue_in(vouch::memory::store& store, std::uint64_t dead, std::uint64_t fresh) {
    const auto receipt = vouch::transact(store, [&](auto& tx) {
        return vouch::requeue(tx, {.dead = id_of(dead), .successor = id_of(fresh), .now = t0});
    });
    REQUIRE(receipt.what == vouch::receipt::kind::inserted);
}

} // namespace

TEST_CASE("group: the last success completes it, and no other settle says so") {
    auto store = group_of(3);
    CHECK(end(store, 2, vouch::succeed{}) == plain);
    CHECK(end(store, 1, vouch::retry{"e", t0}) == plain);
    CHECK(end(store, 1, vouch::release{}) == plain);
    CHECK(end(store, 1, vouch::advance{"p", t0}) == plain);
    CHECK(end(store, 1, vouch::succeed{}) == plain);
    CHECK(end(store, 3, vouch::succeed{}) == completes);
}

TEST_CASE("group: one member alone is a group") {
    auto store = group_of(1);
    CHECK(end(store, 1, vouch::succeed{}) == completes);
}

TEST_CASE("group: without a group nothing is completed") {
    vouch::memory::store store;
    put(store, draft_of(1));
    CHECK(end(store, 1, vouch::succeed{}) == plain);
}

TEST_CASE("group: spans queues") {
    vouch::memory::store store;
    put(store, member(1, "q"));
    put(store, member(2, "r"));
    put(store, member(3, "q", "another group"));
    CHECK(end(store, 1, vouch::succeed{}, "q") == plain);
    CHECK(end(store, 2, vouch::succeed{}, "r") == completes);
    CHECK(end(store, 3, vouch::succeed{}, "q") == completes);
}

TEST_CASE("group: two last settles in one batch report once, by the second") {
    auto store = group_of(2);
    const auto claimed = take(store, t0);
    const std::array settles{vouch::settle{ticket_of(claimed[1]), vouch::succeed{}},
                             vouch::settle{ticket_of(claimed[0]), vouch::succeed{}},
                             vouch::settle{ticket_of(claimed[0]), vouch::succeed{}}};
    const auto got = vouch::transact(store, [&](auto& tx) { return tx.settle(settles, t0); });
    CHECK(got == std::vector<settlement>{plain, completes, {verdict::repeated, false}});
}

TEST_CASE("group: a dead member keeps it open until its successor has succeeded") {
    auto store = group_of(2);
    CHECK(end(store, 1, vouch::bury{"e", {}}) == plain);
    CHECK(end(store, 2, vouch::succeed{}) == plain);
    requeue_in(store, 1, 3);
    CHECK(store.find(id_of(3))->group == "g");
    CHECK(end(store, 3, vouch::succeed{}) == completes);
}

TEST_CASE("group: a successor counts in its predecessor's place, through generations") {
    auto store = group_of(2);
    end(store, 1, vouch::bury{"e", {}});
    requeue_in(store, 1, 3);
    end(store, 3, vouch::bury{"e", {}});
    requeue_in(store, 3, 4);
    CHECK(end(store, 4, vouch::succeed{}) == plain);
    CHECK(end(store, 2, vouch::succeed{}) == completes);
}

TEST_CASE("group: a burial never completes it, even as the last to end") {
    auto store = group_of(2);
    CHECK(end(store, 1, vouch::succeed{}) == plain);
    CHECK(end(store, 2, vouch::bury{"e", {}}) == plain);
    auto cancelled = group_of(2);
    CHECK(end(cancelled, 1, vouch::succeed{}) == plain);
    CHECK(cancel(cancelled, id_of(2)) == verdict::applied);
    CHECK(cancelled.list(vouch::query::members("g")).size() == 2);
}

TEST_CASE("group: a later member opens it again, and it completes again") {
    auto store = group_of(1);
    CHECK(end(store, 1, vouch::succeed{}) == completes);
    put(store, member(2));
    put(store, member(3));
    CHECK(end(store, 2, vouch::succeed{}) == plain);
    CHECK(end(store, 3, vouch::succeed{}) == completes);
}

TEST_CASE(
    "group: members of a transaction not committed do not count for others, and a rolled-back end does not count") {
    auto store = group_of(2);
    const auto claimed = take(store, t0);
    {
        auto tx = store.begin();
        CHECK(settle_in(tx, ticket_of(claimed[0]), vouch::succeed{}, t0) == plain);
        CHECK(settle_in(tx, ticket_of(claimed[1]), vouch::succeed{}, t0) == completes);
    }
    {
        auto tx = store.begin();
        const auto d = member(3);
        tx.enqueue(std::span(&d, 1), t0);
        CHECK(settle_in(tx, ticket_of(claimed[0]), vouch::succeed{}, t0) == plain);
        CHECK(settle_in(tx, ticket_of(claimed[1]), vouch::succeed{}, t0) == plain);
    }
    CHECK(settle(store, ticket_of(claimed[0]), vouch::succeed{}) == plain);
    CHECK(settle(store, ticket_of(claimed[1]), vouch::succeed{}) == completes);
}

TEST_CASE("group: a rolled-back requeue leaves the dead member counting") {
    auto store = group_of(2);
    end(store, 1, vouch::bury{"e", {}});
    {
        auto tx = store.begin();
        CHECK(vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(3), .now = t0}).what ==
              vouch::receipt::kind::inserted);
    }
    CHECK(end(store, 2, vouch::succeed{}) == plain);
    requeue_in(store, 1, 4);
    CHECK(end(store, 4, vouch::succeed{}) == completes);
}

TEST_CASE("group: buried and requeued within one transaction, then rolled back, it is as before") {
    auto store = group_of(2);
    const auto claimed = take(store, t0);
    const auto before = look(store);
    {
        auto tx = store.begin();
        settle_in(tx, ticket_of(claimed[0]), vouch::bury{"e", {}}, t0);
        std::ignore = vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(3), .now = t0});
        std::ignore = tx.cancel(id_of(3), "e", t0);
        std::ignore = vouch::requeue(tx, {.dead = id_of(3), .successor = id_of(4), .now = t0});
        CHECK(settle_in(tx, ticket_of(claimed[1]), vouch::succeed{}, t0) == plain);
        const auto last = tx.claim(request(t0));
        CHECK(settle_in(tx, ticket_of(last.front()), vouch::succeed{}, t0) == completes);
    }
    CHECK(look(store) == before);
    CHECK(settle(store, ticket_of(claimed[0]), vouch::succeed{}) == plain);
    CHECK(settle(store, ticket_of(claimed[1]), vouch::succeed{}) == completes);
}

TEST_CASE("group: once its dead member is purged it no longer counts") {
    auto store = group_of(2);
    end(store, 1, vouch::bury{"e", {}});
    end(store, 2, vouch::succeed{});
    CHECK(purge(store, {.queue = "q", .before = t0 + 2h, .state = vouch::state::dead}) == 1);
    put(store, member(3));
    CHECK(end(store, 3, vouch::succeed{}) == completes);
}

} // namespace memory_groups_test
