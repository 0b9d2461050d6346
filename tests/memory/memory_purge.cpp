// SPDX-License-Identifier: MIT
// Purge: terminal entries that ended before a time, oldest first, and none that a live entry still needs.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_purge_test {

using namespace support;
using kind = vouch::receipt::kind;
using vouch::state;

namespace {

/// Stored and ended at this time.
void put_ended(vouch::memory::store& store, const vouch::draft& d, vouch::time_point at) {
    put(store, d, at);
    cancel(store, d.id, at);
}
void put_ended(vouch::memory::store& store, std::uint64_t n, vouch::time_point at) {
    put_ended(store, draft_of(n), at);
}

void put_successor(vouch::memory::store& store, std::uint64_t dead, std::uint64_t fresh, vouch::time_point now = t0) {
    REQUIRE(vouch::transact(store, [&](auto& tx) {
                return vouch::requeue(tx, {.dead = id_of(dead), .successor = id_of(fresh), .now = now});
            }).what == kind::inserted);
}

vouch::purge_request before(vouch::time_point when, std::size_t limit = 1000) {
    return {.queue = "q", .before = when, .limit = limit};
}

list all(const vouch::memory::store& store) { return numbers(store.list(vouch::query::all("q"))); }

} // namespace

TEST_CASE("purge: removes what has ended, and says how many") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    put(store, draft_of(2));
    settle(store, take_one(store, t0), vouch::succeed{});
    put(store, draft_of(3));
    CHECK(purge(store, before(t0 + 1h)) == 2);
    CHECK(all(store) == list{3});
    CHECK(!store.find(id_of(1)));
    CHECK(store.counts("q").total() == 1);
    CHECK(purge(store, before(t0 + 1h)) == 0);
}

TEST_CASE("purge: never removes what is live, in any state") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    REQUIRE(take(store, t0, {.only = id_of(1)}).size() == 1);
    settle(store, take_one(store, t0, {.only = id_of(2)}), vouch::retry{"e", t0});
    CHECK(purge(store, before(vouch::time_point::max())) == 0);
    CHECK(all(store) == list{1, 2, 3});
}

TEST_CASE("purge: spares what ended at `before` itself") {
    vouch::memory::store store;
    put_ended(store, 1, t0 - tick);
    put_ended(store, 2, t0);
    put_ended(store, 3, t0 + tick);
    CHECK(purge(store, before(t0)) == 1);
    CHECK(all(store) == list{2, 3});
    CHECK(purge(store, before(t0 + tick)) == 1);
    CHECK(all(store) == list{3});
}

TEST_CASE("purge: goes by when an entry ended, not by when it was made") {
    vouch::memory::store store;
    put(store, draft_of(1), t0 - 10h);
    cancel(store, id_of(1), t0);
    CHECK(purge(store, before(t0)) == 0);
    CHECK(purge(store, before(t0 + tick)) == 1);
}

TEST_CASE("purge: oldest first, by end and then by sequence, at most `limit`") {
    vouch::memory::store store;
    put_ended(store, 1, t0 + 3s);
    put_ended(store, 2, t0 + 1s);
    put_ended(store, 3, t0 + 2s);
    put_ended(store, 4, t0 + 1s);
    put_ended(store, 5, t0);
    CHECK(purge(store, before(t0 + 1h, 0)) == 0);
    CHECK(purge(store, before(t0 + 1h, 2)) == 2);
    CHECK(all(store) == list{1, 3, 4});
    CHECK(purge(store, before(t0 + 1h, 2)) == 2);
    CHECK(all(store) == list{1});
}

TEST_CASE("purge: sees its own queue only") {
    vouch::memory::store store;
    put_ended(store, draft_of(1, "r"), t0);
    CHECK(purge(store, before(t0 + 1h)) == 0);
    CHECK(purge(store, {.queue = "nobody's", .before = t0 + 1h}) == 0);
    CHECK(purge(store, {.queue = "r", .before = t0 + 1h}) == 1);
}

TEST_CASE("purge: may be told to take only the succeeded or only the dead") {
    for (const auto wanted : {state::succeeded, state::dead}) {
        vouch::memory::store store;
        put_ended(store, 1, t0);
        auto d = draft_of(2);
        d.result = "";
        put(store, d);
        CHECK(purge(store, {.queue = "q", .before = t0 + 1h, .state = wanted}) == 1);
        CHECK(all(store) == (wanted == state::dead ? list{2} : list{1}));
    }
}

TEST_CASE("purge: keeps a member while its group has a live one, in whatever queue") {
    vouch::memory::store store;
    auto member = draft_of(1);
    member.group = "g";
    put_ended(store, member, t0);
    auto elsewhere = draft_of(2, "r");
    elsewhere.group = "g";
    put(store, elsewhere);
    CHECK(purge(store, before(t0 + 1h)) == 0);
    cancel(store, id_of(2));
    CHECK(purge(store, before(t0 + 1h)) == 1);
    CHECK(store.find(id_of(2)));
}

TEST_CASE("purge: keeps a parent while a child of its is live") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    auto child = draft_of(2, "r");
    child.parent = id_of(1);
    put(store, child);
    CHECK(purge(store, before(t0 + 1h)) == 0);
    cancel(store, id_of(2));
    CHECK(purge(store, before(t0 + 1h)) == 1);
}

TEST_CASE("purge: a child does not keep itself, nor does a live parent keep it") {
    vouch::memory::store store;
    put(store, draft_of(1, "r"));
    auto child = draft_of(2);
    child.parent = id_of(1);
    put_ended(store, child, t0);
    auto own = draft_of(3);
    own.parent = id_of(3);
    put_ended(store, own, t0);
    CHECK(purge(store, before(t0 + 1h)) == 2);
}

TEST_CASE("purge: a dead predecessor stays while its successor lives, and goes with it") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    put_successor(store, 1, 2);
    CHECK(purge(store, before(t0 + 1h)) == 0);
    cancel(store, id_of(2), t0 + 2h);
    CHECK(purge(store, before(t0 + 1h)) == 0); // the newest generation ended later
    CHECK(purge(store, before(t0 + 3h)) == 2);
    CHECK(all(store).empty());
}

TEST_CASE("purge: elder generations go first when the limit cuts, so none outlives its successor") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    put_successor(store, 1, 2);
    cancel(store, id_of(2), t0 + 1s);
    put_successor(store, 2, 3);
    cancel(store, id_of(3), t0 + 2s);
    CHECK(purge(store, before(t0 + 1h, 1)) == 1);
    CHECK(all(store) == list{2, 3});
    CHECK(purge(store, before(t0 + 1h, 1)) == 1);
    CHECK(all(store) == list{3});
    CHECK(store.find(id_of(3))->predecessor == id_of(2));
    CHECK(purge(store, before(t0 + 1h, 1)) == 1);
    CHECK(all(store).empty());
}

TEST_CASE("purge: a chain of which one is needed stays whole") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    put_successor(store, 1, 2);
    cancel(store, id_of(2), t0);
    auto child = draft_of(3, "r");
    child.parent = id_of(1);
    put(store, child);
    CHECK(purge(store, before(t0 + 1h)) == 0);
    cancel(store, id_of(3));
    CHECK(purge(store, before(t0 + 1h)) == 2);
}

TEST_CASE("purge: the state asked for is the newest generation's") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    put_successor(store, 1, 2);
    settle(store, take_one(store, t0), vouch::succeed{});
    CHECK(purge(store, {.queue = "q", .before = t0 + 1h, .state = state::dead}) == 0);
    CHECK(purge(store, {.queue = "q", .before = t0 + 1h, .state = state::succeeded}) == 2);
}

TEST_CASE("purge: what has the id of a purged predecessor is not the predecessor") {
    // Producers may derive ids, so the same id can come again once its window has passed.
    vouch::memory::store store;
    auto first = draft_of(1);
    first.key = "k";
    put_ended(store, first, t0);
    put_successor(store, 1, 2);
    cancel(store, id_of(2), t0);
    CHECK(purge(store, before(t0 + 1h, 1)) == 1);
    CHECK(all(store) == list{2});
    REQUIRE(put(store, draft_of(1), t0 + 1s).what == kind::inserted);
    CHECK(numbers(store.list(vouch::query::keyed("q", "k"))) == list{2});
    CHECK(purge(store, before(t0 + 1h)) == 1);
    CHECK(all(store) == list{1});
    CHECK(store.find(id_of(1))->state == state::pending);
}

TEST_CASE("purge: within a transaction it is seen at once, from outside after the commit") {
    vouch::memory::store store;
    put_ended(store, 1, t0);
    const auto before_it = look(store);
    auto tx = store.begin();
    CHECK(tx.purge(before(t0 + 1h)) == 1);
    CHECK(!tx.find(id_of(1)));
    CHECK(tx.list(vouch::query::all("q")).empty());
    CHECK(tx.counts("q").total() == 0);
    CHECK(tx.cancel(id_of(1), "e", t0) == vouch::verdict::unknown);
    CHECK(tx.purge(before(t0 + 1h)) == 0);
    CHECK(look(store) == before_it);
    tx.commit();
    CHECK(look(store) == look(vouch::memory::store{}));
}

TEST_CASE("purge: rolled back, everything is as it was and can be purged again") {
    vouch::memory::store store;
    auto d = draft_of(1);
    d.key = "k";
    d.group = "g";
    d.lane = "lane";
    put_ended(store, d, t0);
    put_successor(store, 1, 2);
    cancel(store, id_of(2), t0);
    const auto before_it = look(store);
    {
        auto tx = store.begin();
        CHECK(tx.purge(before(t0 + 1h)) == 2);
    }
    CHECK(look(store) == before_it);
    {
        auto tx = store.begin();
        CHECK(tx.purge(before(t0 + 1h, 1)) == 1);
        CHECK(numbers(tx.list(vouch::query::keyed("q", "k"))) == list{2});
        CHECK(vouch::requeue(tx, {.dead = id_of(2), .successor = id_of(3), .now = t0}).what == kind::inserted);
    }
    CHECK(look(store) == before_it);
    CHECK(purge(store, before(t0 + 1h)) == 2);
}

TEST_CASE("purge: a store used for long keeps working on what is left") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 2000; ++n) {
        auto d = draft_of(n);
        d.key = std::to_string(n);
        d.group = n % 2 == 0 ? "even" : "odd";
        put_ended(store, d, t0 + vouch::duration{static_cast<std::int64_t>(n)});
        if (n % 7 == 0) {
            CHECK(purge(store, before(t0 + 1h, 6)) == 6);
        }
    }
    CHECK(store.counts("q")[state::dead] == 2000 - 2000 / 7 * 6);
    const auto rest = store.list({.queue = "q", .limit = 10'000});
    CHECK(rest.size() == store.counts("q").total());
    CHECK(rest.front().id == id_of(2000 / 7 * 6 + 1));
    for (const auto& e : rest) {
        CHECK(store.find(e.id) == e);
    }
}

} // namespace memory_purge_test
