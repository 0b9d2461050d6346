// SPDX-License-Identifier: MIT
// Settle, extend, nudge and cancel through the store. The lifecycle itself is tested in `contract_*.cpp`; here that the
// store keeps to it: verdicts per item, places brought up to date, parents woken.
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_settle_test {

using namespace support;
using vouch::settlement;
using vouch::state;
using vouch::ticket;
using vouch::verdict;

namespace {

vouch::draft child_of(std::uint64_t parent, std::uint64_t n, std::string queue = "q") {
    auto d = draft_of(n, std::move(queue));
    d.parent = id_of(parent);
    return d;
}

/// A parent (1) that would sleep for an hour, with a child (2) in queue "r".
vouch::memory::store family() {
    vouch::memory::store store;
    auto parent = draft_of(1);
    parent.due_at = t0 + 1h;
    put(store, parent);
    put(store, child_of(1, 2, "r"));
    return store;
}

} // namespace

TEST_CASE("settle: every item gets its own verdict, in order") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    const auto first = take_one(store, t0, {.lease = 1s, .only = id_of(1)});
    const auto second = take_one(store, t0, {.only = id_of(2)});
    REQUIRE(take(store, t0 + 1s, {.only = id_of(1)}).size() == 1);
    const std::array settles{
        vouch::settle{first, vouch::succeed{}},
        vouch::settle{second, vouch::succeed{"done"}},
        vouch::settle{second, vouch::bury{"e", {}}},
        vouch::settle{{id_of(3), 0}, vouch::succeed{}},
        vouch::settle{{id_of(3), 1}, vouch::succeed{}},
        vouch::settle{{id_of(9), 1}, vouch::succeed{}},
        vouch::settle{{vouch::id{}, 0}, vouch::release{}},
    };
    const auto got = vouch::transact(store, [&](auto& tx) { return tx.settle(settles, t0 + 1s); });
    const std::vector<settlement> expected{
        {verdict::stale, false}, {verdict::applied, false}, {verdict::repeated, false}, {verdict::repeated, false},
        {verdict::stale, false}, {verdict::unknown, false}, {verdict::unknown, false}};
    CHECK(got == expected);
    CHECK(store.find(id_of(2))->result == "done");
}

TEST_CASE("settle: a settle that is not applied changes nothing that a reader can see") {
    vouch::memory::store store;
    put(store, draft_of(1));
    put(store, draft_of(2));
    const auto old = take_one(store, t0, {.lease = 1s, .only = id_of(1)});
    REQUIRE(take(store, t0 + 1s, {.only = id_of(1)}).size() == 1);
    cancel(store, id_of(2));
    const auto before = look(store);
    for (const auto& t : {old, ticket{id_of(1), 3}, ticket{id_of(2), 0}, ticket{id_of(2), 1}, ticket{id_of(3), 0}}) {
        CHECK(settle(store, t, vouch::bury{"e", {}}, t0 + 5s).verdict != verdict::applied);
        CHECK(extend(store, t, t0 + 5s, 1h) != verdict::applied);
    }
    CHECK(nudge(store, id_of(2), t0 + 5s) == verdict::stale);
    CHECK(cancel(store, id_of(1), t0 + 5s) == verdict::stale);
    CHECK(cancel(store, id_of(2), t0 + 5s) == verdict::repeated);
    CHECK(look(store) == before);
}

TEST_CASE("settle: a lease that is over but not taken over still settles") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto t = take_one(store, t0, {.lease = 1s});
    CHECK(settle(store, t, vouch::succeed{}, t0 + 1h).verdict == verdict::applied);
    CHECK(take(store, t0 + 2h).empty());
}

TEST_CASE("settle: times may run backwards") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto t = take_one(store, t0);
    CHECK(settle(store, t, vouch::retry{"e", t0 - 2h}, t0 - 1h).verdict == verdict::applied);
    CHECK(store.find(id_of(1))->updated_at == t0 - 1h);
    CHECK(store.next_due("q") == t0 - 2h);
    CHECK(take(store, t0 - 2h).size() == 1);
}

TEST_CASE("settle: a retry is due when it says, not before") {
    vouch::memory::store store;
    put(store, draft_of(1));
    settle(store, take_one(store, t0), vouch::retry{"e", t0 + 30s});
    CHECK(store.next_due("q") == t0 + 30s);
    CHECK(take(store, t0 + 30s - tick).empty());
    CHECK(take(store, t0 + 30s).front().attempts == 2);
}

TEST_CASE("settle: an entry that kills its runner every time still counts its attempts, but for the first lapse") {
    vouch::memory::store store;
    put(store, draft_of(1));
    for (std::uint32_t n = 1; n <= 20; ++n) {
        const auto claimed = take(store, t0 + 1min * (n - 1));
        REQUIRE(claimed.size() == 1);
        CHECK(claimed.front().attempts == (n == 1 ? 1 : n - 1));
        CHECK(claimed.front().lapses == n - 1);
        CHECK(claimed.front().failures == 0);
    }
}

TEST_CASE("extend: keeps others away until the new end") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto t = take_one(store, t0, {.lease = 10s});
    CHECK(extend(store, t, t0 + 5s, 10s) == verdict::applied);
    CHECK(store.next_due("q") == t0 + 15s);
    CHECK(take(store, t0 + 15s - tick).empty());
    CHECK(extend(store, t, t0 + 6s, 1s) == verdict::applied);
    CHECK(store.next_due("q") == t0 + 15s);
    CHECK(take(store, t0 + 15s).size() == 1);
    CHECK(extend(store, t, t0 + 15s, 10s) == verdict::stale);
}

TEST_CASE("nudge: makes a future entry claimable at once") {
    vouch::memory::store store;
    auto d = draft_of(1);
    d.due_at = t0 + 1h;
    put(store, d);
    CHECK(nudge(store, id_of(1), t0 + 1s) == verdict::applied);
    CHECK(nudge(store, id_of(1), t0 + 2s) == verdict::repeated);
    CHECK(store.find(id_of(1))->updated_at == t0 + 1s);
    CHECK(store.next_due("q") == t0 + 1s);
    CHECK(take(store, t0 + 1s).size() == 1);
    CHECK(nudge(store, id_of(9)) == verdict::unknown);
    CHECK(nudge(store, vouch::id{}) == verdict::unknown);
}

TEST_CASE("nudge: one that meets a claim is not lost") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto t = take_one(store, t0);
    CHECK(nudge(store, id_of(1), t0 + 1s) == verdict::applied);
    CHECK(store.next_due("q") == t0 + 1min);
    settle(store, t, vouch::release{t0 + 1h}, t0 + 2s);
    CHECK(store.next_due("q") == t0 + 2s);
}

TEST_CASE("cancel: ends an entry that no worker holds, and one whose lease has just ended") {
    vouch::memory::store store;
    put(store, draft_of(1));
    put(store, draft_of(2));
    const auto t = take_one(store, t0, {.lease = 10s, .only = id_of(2)});
    CHECK(cancel(store, id_of(1)) == verdict::applied);
    CHECK(store.find(id_of(1))->last_error == "cancelled");
    CHECK(cancel(store, id_of(2), t0 + 10s - tick) == verdict::stale);
    CHECK(cancel(store, id_of(2), t0 + 10s) == verdict::applied);
    CHECK(settle(store, t, vouch::succeed{}, t0 + 10s).verdict == verdict::stale);
    CHECK(cancel(store, id_of(9)) == verdict::unknown);
    CHECK(!store.next_due("q"));
    CHECK(store.counts("q")[state::dead] == 2);
}

TEST_CASE("parent: is woken in the same transaction when a child ends, by any verb") {
    for (const vouch::outcome& ending : {vouch::outcome{vouch::succeed{}}, vouch::outcome{vouch::bury{"e", {}}}}) {
        auto store = family();
        const auto t = take_one(store, t0, {.queue = "r"});
        auto tx = store.begin();
        settle_in(tx, t, ending, t0 + 5s);
        CHECK(tx.find(id_of(1))->due_at == t0 + 5s);
        CHECK(store.find(id_of(1))->due_at == t0 + 1h);
        tx.commit();
        CHECK(store.next_due("q") == t0 + 5s);
        CHECK(store.find(id_of(1))->updated_at == t0 + 5s);
    }
    auto store = family();
    CHECK(cancel(store, id_of(2), t0 + 6s) == verdict::applied);
    CHECK(store.next_due("q") == t0 + 6s);
}

TEST_CASE("parent: is left alone by what does not end its child") {
    for (const vouch::outcome& other : {vouch::outcome{vouch::retry{"e", t0}}, vouch::outcome{vouch::release{}},
                                        vouch::outcome{vouch::advance{"p", {}}}}) {
        auto store = family();
        settle(store, take_one(store, t0, {.queue = "r"}), other, t0 + 5s);
        CHECK(store.next_due("q") == t0 + 1h);
    }
    auto store = family();
    const auto t = take_one(store, t0, {.queue = "r"});
    settle(store, {t.id, t.epoch + 1}, vouch::succeed{}, t0 + 5s);
    cancel(store, id_of(2), t0 + 5s);
    CHECK(store.next_due("q") == t0 + 1h);
}

TEST_CASE("parent: one that is claimed is marked") {
    auto store = family();
    const auto t = take_one(store, t0 + 1h, {.only = id_of(1)});
    cancel(store, id_of(2), t0 + 1h);
    CHECK(store.find(id_of(1))->woken);
    settle(store, t, vouch::release{t0 + 9h}, t0 + 1h + 1s);
    CHECK(store.next_due("q") == t0 + 1h + 1s);
}

TEST_CASE("parent: absent, ended or its own, it does no harm") {
    vouch::memory::store store;
    put(store, child_of(9, 1));
    CHECK(settle(store, take_one(store, t0), vouch::succeed{}).verdict == verdict::applied);
    put(store, draft_of(2));
    put(store, child_of(2, 3));
    cancel(store, id_of(2), t0);
    const auto ended = store.find(id_of(2));
    CHECK(cancel(store, id_of(3), t0 + 1s) == verdict::applied);
    CHECK(store.find(id_of(2)) == ended);
    put(store, child_of(4, 4));
    CHECK(cancel(store, id_of(4), t0 + 1s) == verdict::applied);
    CHECK(store.find(id_of(4))->updated_at == t0 + 1s);
}

} // namespace memory_settle_test
