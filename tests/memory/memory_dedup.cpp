// SPDX-License-Identifier: MIT
// Dedup by id, by key and by predecessor. Retention is the window: a purged key is free again.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_dedup_test {

using namespace support;
using kind = vouch::receipt::kind;
using vouch::receipt;

namespace {

vouch::draft keyed(std::uint64_t n, const std::string& key = "k", const std::string& queue = "q") {
    auto d = draft_of(n, queue);
    d.key = key;
    return d;
}

vouch::draft after(std::uint64_t predecessor, std::uint64_t n, const std::string& queue = "q") {
    auto d = draft_of(n, queue);
    d.predecessor = id_of(predecessor);
    return d;
}

constexpr receipt inserted(std::uint64_t n) { return {kind::inserted, id_of(n)}; }
constexpr receipt duplicate(std::uint64_t n) { return {kind::duplicate, id_of(n)}; }
constexpr receipt refused{kind::refused, {}};

} // namespace

TEST_CASE("dedup: an id already stored is a duplicate of itself, and nothing of the draft is written") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto before = look(store);
    auto other = draft_of(1, "r");
    other.payload = "other";
    other.key = "k";
    CHECK(put(store, other, t0 + 1h) == duplicate(1));
    CHECK(look(store) == before);
    CHECK(put(store, keyed(2, "k", "r")) == inserted(2));
}

TEST_CASE("dedup: a key is unique per queue, in every state of the one that has it") {
    vouch::memory::store store;
    CHECK(put(store, keyed(1)) == inserted(1));
    CHECK(put(store, keyed(2)) == duplicate(1)); // pending
    CHECK(put(store, keyed(3, "k", "r")) == inserted(3));
    CHECK(put(store, keyed(4, "l")) == inserted(4));
    const auto t = take_one(store, t0, {.only = id_of(1)});
    CHECK(put(store, keyed(2)) == duplicate(1)); // claimed
    settle(store, t, vouch::retry{"e", t0});
    CHECK(put(store, keyed(2)) == duplicate(1)); // retrying
    settle(store, take_one(store, t0, {.only = id_of(1)}), vouch::succeed{});
    CHECK(put(store, keyed(2)) == duplicate(1)); // succeeded
    cancel(store, id_of(4));
    CHECK(put(store, keyed(2, "l")) == duplicate(4)); // dead
    CHECK(!store.find(id_of(2)));
}

TEST_CASE("dedup: no key means no dedup") {
    vouch::memory::store store;
    CHECK(put(store, draft_of(1)) == inserted(1));
    CHECK(put(store, draft_of(2)) == inserted(2));
}

TEST_CASE("dedup: the id is looked at before the key") {
    vouch::memory::store store;
    put(store, keyed(1, "k"));
    put(store, keyed(2, "l"));
    CHECK(put(store, keyed(2, "k")) == duplicate(2));
}

TEST_CASE("dedup: a later draft of a batch sees the earlier ones") {
    vouch::memory::store store;
    const std::vector batch{keyed(1), keyed(2), draft_of(1), keyed(3, "l"), draft_of(3)};
    const std::vector<receipt> expected{inserted(1), duplicate(1), duplicate(1), inserted(3), duplicate(3)};
    CHECK(vouch::enqueue(store, batch, t0) == expected);
    CHECK(numbers(store.list(vouch::query::all("q"))) == list{1, 3});
}

TEST_CASE("dedup: a repeated enqueue with the same ids finds that it had landed") {
    vouch::memory::store store;
    const std::vector batch{keyed(1), draft_of(2)};
    vouch::enqueue(store, batch, t0);
    const auto before = look(store);
    CHECK(vouch::enqueue(store, batch, t0 + 1h) == std::vector<receipt>{duplicate(1), duplicate(2)});
    CHECK(look(store) == before);
}

TEST_CASE("dedup: the key of a rolled-back draft is free") {
    vouch::memory::store store;
    {
        auto tx = store.begin();
        const auto d = keyed(1);
        tx.enqueue(std::span(&d, 1), t0);
        CHECK(tx.find(id_of(1)));
    }
    CHECK(put(store, keyed(2)) == inserted(2));
    CHECK(put(store, keyed(1)) == duplicate(2));
}

TEST_CASE("dedup: a purged id and key are free again, within the purging transaction too") {
    vouch::memory::store store;
    put(store, keyed(1));
    cancel(store, id_of(1));
    {
        auto tx = store.begin();
        CHECK(tx.purge({.queue = "q", .before = t0 + tick}) == 1);
        const std::vector batch{keyed(1)};
        CHECK(tx.enqueue(batch, t0 + 1s).front() == inserted(1));
        CHECK(tx.find(id_of(1))->state == vouch::state::pending);
        CHECK(store.find(id_of(1))->state == vouch::state::dead);
        CHECK(store.list(vouch::query::keyed("q", "k")).front().state == vouch::state::dead);
    }
    CHECK(store.find(id_of(1))->state == vouch::state::dead);
    CHECK(put(store, keyed(2)) == duplicate(1));
    CHECK(purge(store, {.queue = "q", .before = t0 + tick}) == 1);
    CHECK(put(store, keyed(2)) == inserted(2));
}

TEST_CASE("predecessor: the successor shares the key, and later drafts are duplicates of the newest generation") {
    vouch::memory::store store;
    put(store, keyed(1));
    cancel(store, id_of(1));
    CHECK(put(store, after(1, 2)) == inserted(2));
    CHECK(store.find(id_of(2))->key == "k");
    CHECK(store.find(id_of(2))->generation == 2);
    CHECK(put(store, keyed(9)) == duplicate(2));
    cancel(store, id_of(2));
    CHECK(put(store, keyed(9)) == duplicate(2));
    CHECK(put(store, after(2, 3)) == inserted(3));
    CHECK(put(store, keyed(9)) == duplicate(3));
}

TEST_CASE("predecessor: each dead entry has one successor") {
    vouch::memory::store store;
    put(store, draft_of(1));
    cancel(store, id_of(1));
    const std::vector batch{after(1, 2), after(1, 3)};
    CHECK(vouch::enqueue(store, batch, t0) == std::vector<receipt>{inserted(2), duplicate(2)});
    CHECK(put(store, after(1, 3)) == duplicate(2));
    CHECK(put(store, after(1, 2)) == duplicate(2));
}

TEST_CASE("predecessor: absent, not dead or of another queue, it is refused, and the rest of the batch goes on") {
    vouch::memory::store store;
    put(store, draft_of(1));
    put(store, draft_of(2));
    cancel(store, id_of(2));
    const std::vector batch{after(9, 10), after(1, 11), after(2, 12, "r"), after(13, 13), draft_of(14)};
    CHECK(vouch::enqueue(store, batch, t0) == std::vector<receipt>{refused, refused, refused, refused, inserted(14)});
    CHECK(numbers(store.list(vouch::query::all("q"))) == list{1, 2, 14});
    CHECK(store.counts("r").total() == 0);
}

TEST_CASE("predecessor: one that died in the same transaction will do") {
    vouch::memory::store store;
    auto tx = store.begin();
    const std::vector first{keyed(1)};
    tx.enqueue(first, t0);
    CHECK(tx.cancel(id_of(1), "e", t0) == vouch::verdict::applied);
    const std::vector second{after(1, 2)};
    CHECK(tx.enqueue(second, t0).front() == inserted(2));
    CHECK(tx.list(vouch::query::keyed("q", "k")).size() == 2);
    CHECK(store.list(vouch::query::keyed("q", "k")).empty());
    tx.commit();
    CHECK(numbers(store.list(vouch::query::keyed("q", "k"))) == list{1, 2});
}

TEST_CASE("predecessor: a rolled-back successor never was") {
    vouch::memory::store store;
    put(store, keyed(1));
    cancel(store, id_of(1));
    const auto before = look(store);
    {
        auto tx = store.begin();
        const std::vector batch{after(1, 2)};
        tx.enqueue(batch, t0);
        CHECK(tx.enqueue(std::vector{keyed(9)}, t0).front() == duplicate(2));
        CHECK(look(store) == before);
    }
    CHECK(look(store) == before);
    CHECK(put(store, keyed(9)) == duplicate(1));
    CHECK(put(store, after(1, 3)) == inserted(3));
}

TEST_CASE("sequence: only grows, and a rolled-back one is not used again for something else to be seen") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto first = store.find(id_of(1))->sequence;
    CHECK(first > 0);
    cancel(store, id_of(1));
    purge(store, {.queue = "q", .before = t0 + tick});
    put(store, draft_of(2));
    CHECK(store.find(id_of(2))->sequence > first);
}

} // namespace memory_dedup_test
