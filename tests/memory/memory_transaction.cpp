// SPDX-License-Identifier: MIT
// Transactions of the memory store: what is seen by whom and when, what a rollback leaves, and what closes one.
#include <array>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_transaction_test {

using namespace support;
using vouch::error_kind;
using vouch::query;
using vouch::state;
using vouch::verdict;
using transaction = vouch::memory::transaction;

static_assert(vouch::waking_store<vouch::memory::store>);
static_assert(!std::is_copy_constructible_v<transaction>);
static_assert(std::is_nothrow_move_constructible_v<transaction>);
static_assert(std::is_nothrow_move_assignable_v<transaction>);

namespace {

vouch::draft full(std::uint64_t n) {
    auto d = draft_of(n);
    d.payload = "payload";
    d.key = n % 2 == 0 ? "k" : "";
    d.group = "g";
    d.lane = n <= 4 ? "lane" : "";
    d.parent = id_of(20);
    return d;
}

/// Something in every state, in lanes and groups, with children and a successor.
vouch::memory::store furnished() {
    vouch::memory::store store;
    auto parent = draft_of(20);
    parent.due_at = t0 + 1h;
    put(store, parent);
    for (std::uint64_t n = 1; n <= 8; ++n) {
        put(store, full(n));
    }
    settle(store, take_one(store, t0, {.only = id_of(5)}), vouch::retry{"e", t0 + 5s});
    settle(store, take_one(store, t0, {.only = id_of(7)}), vouch::succeed{"result"});
    REQUIRE(take(store, t0, {.only = id_of(1)}).size() == 1);
    put(store, draft_of(21, "r"));
    cancel(store, id_of(21));
    vouch::transact(
        store, [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(21), .successor = id_of(22), .now = t0}); });
    return store;
}

/// Touches everything `furnished` has made.
void disturb(transaction& tx) {
    const std::vector drafts{full(9), full(10), draft_of(11, "r")};
    tx.enqueue(drafts, t0 + 1s);
    settle_in(tx, {id_of(1), 1}, vouch::bury{"buried", "reply"}, t0 + 1s);
    std::ignore = vouch::requeue(tx, {.dead = id_of(21), .successor = id_of(23), .now = t0 + 1s});
    std::ignore = tx.cancel(id_of(22), "cancelled", t0 + 1s);
    std::ignore = vouch::requeue(tx, {.dead = id_of(22), .successor = id_of(24), .now = t0 + 1s});
    std::ignore = tx.nudge(id_of(5), t0 + 2s);
    for (const auto& e : tx.claim(request(t0 + 3s))) {
        settle_in(tx, ticket_of(e),
                  e.id.low % 2 == 0 ? vouch::outcome{vouch::succeed{}} : vouch::outcome{vouch::advance{"p", {}}},
                  t0 + 3s);
    }
    std::ignore = tx.claim(request(t0 + 4s, {.limit = 2}));
    std::ignore = tx.extend(std::array{vouch::ticket{id_of(5), 2}}, t0 + 5s, 1h);
    std::ignore = tx.cancel(id_of(11), "cancelled", t0 + 5s);
    std::ignore = tx.purge({.queue = "r", .before = t0 + 1h});
    std::ignore = tx.purge({.queue = "q", .before = t0 + 1h, .limit = 2});
}

/// Every way to use one.
std::vector<std::optional<error_kind>> kinds_of_uses(transaction& tx) {
    const std::array drafts{draft_of(30)};
    const std::array settles{vouch::settle{}};
    const std::array tickets{vouch::ticket{}};
    return {kind_of([&] { return tx.find(id_of(1)); }),
            kind_of([&] { return tx.list(query::all("q")); }),
            kind_of([&] { return tx.counts("q"); }),
            kind_of([&] { return tx.next_due("q"); }),
            kind_of([&] { return tx.enqueue(drafts, t0); }),
            kind_of([&] { return tx.claim(request(t0)); }),
            kind_of([&] { return tx.settle(settles, t0); }),
            kind_of([&] { return tx.extend(tickets, t0, 1s); }),
            kind_of([&] { return tx.nudge(id_of(1), t0); }),
            kind_of([&] { return tx.cancel(id_of(1), "e", t0); }),
            kind_of([&] { return tx.purge({.queue = "q", .before = t0}); }),
            kind_of([&] { tx.commit(); })};
}

const std::vector<std::optional<error_kind>> all_misuse(12, error_kind::misuse);

} // namespace

TEST_CASE("transaction: sees its own writes; readers see them after the commit") {
    auto store = furnished();
    const auto before = look(store);
    auto tx = store.begin();
    CHECK(look(tx) == before);
    disturb(tx);
    const auto own = look(tx);
    CHECK(own != before);
    CHECK(look(store) == before);
    tx.commit();
    CHECK(look(store) == own);
}

TEST_CASE("transaction: without a commit nothing of it remains") {
    auto store = furnished();
    const auto before = look(store);
    {
        auto tx = store.begin();
        disturb(tx);
    }
    CHECK(look(store) == before);
    auto tx = store.begin();
    disturb(tx);
    const auto own = look(tx);
    tx.commit();

    // What came before left no trace in what comes after, but for the gaps in the sequence.
    auto untouched = furnished();
    auto second = untouched.begin();
    disturb(second);
    auto expected = look(second);
    CHECK(own.counts == expected.counts);
    CHECK(own.due == expected.due);
    REQUIRE(own.found.size() == expected.found.size());
    for (std::size_t i = 0; i < own.found.size(); ++i) {
        expected.found[i].sequence = own.found[i].sequence;
        CHECK(own.found[i] == expected.found[i]);
    }
}

TEST_CASE("transaction: a second handle is a copy and sees the same") {
    auto store = furnished();
    auto copy = store;
    put(copy, draft_of(30));
    CHECK(store.find(id_of(30)));
    CHECK(look(store) == look(copy));
    CHECK(look(store) != look(vouch::memory::store{}));
}

TEST_CASE("store: one that was moved from is still a handle to the same work") {
    auto store = furnished();
    const auto before = look(store);
    const auto other = std::move(store);
    CHECK(look(store) == before); // NOLINT(bugprone-use-after-move): that this is defined is the point
    CHECK(look(other) == before);
}

TEST_CASE("transaction: outlives the handle it came from") {
    std::optional<vouch::memory::store> store(std::in_place);
    auto kept = *store;
    auto tx = store->begin();
    store.reset();
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    tx.commit();
    CHECK(kept.find(id_of(1)));
}

TEST_CASE("transaction: moves, and only the one moved to is open") {
    vouch::memory::store store;
    auto first = store.begin();
    const std::array drafts{draft_of(1)};
    first.enqueue(drafts, t0);
    auto second = std::move(first);
    CHECK(kinds_of_uses(first) == all_misuse); // NOLINT(bugprone-use-after-move)
    CHECK(second.find(id_of(1)));
    second.commit();
    CHECK(store.find(id_of(1)));
}

TEST_CASE("transaction: assigning over an open one rolls that one back") {
    vouch::memory::store store;
    vouch::memory::store other;
    auto tx = store.begin();
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    tx = other.begin();
    CHECK(!store.find(id_of(1)));
    CHECK(put(store, draft_of(2)).what == vouch::receipt::kind::inserted);
    tx.enqueue(drafts, t0);
    tx.commit();
    CHECK(other.find(id_of(1)));
    auto& same = tx;
    tx = std::move(same);
    CHECK(kinds_of_uses(tx) == all_misuse);
}

TEST_CASE("transaction: a move onto itself leaves it open") {
    vouch::memory::store store;
    auto tx = store.begin();
    auto& same = tx;
    tx = std::move(same);
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    tx.commit();
    CHECK(store.find(id_of(1)));
}

TEST_CASE("transaction: may be finished on another thread") {
    vouch::memory::store store;
    auto tx = store.begin();
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    std::thread([moved = std::move(tx)]() mutable {
        std::ignore = moved.claim(request(t0));
        moved.commit();
    }).join();
    CHECK(store.find(id_of(1))->state == state::claimed);
    CHECK(put(store, draft_of(2)).what == vouch::receipt::kind::inserted);
}

TEST_CASE("transaction: an empty one commits") {
    vouch::memory::store store;
    auto tx = store.begin();
    tx.commit();
    CHECK(look(store) == look(vouch::memory::store{}));
}

TEST_CASE("transaction: after commit every use is misuse, and harms nothing") {
    auto store = furnished();
    auto tx = store.begin();
    tx.commit();
    const auto before = look(store);
    CHECK(kinds_of_uses(tx) == all_misuse);
    CHECK(look(store) == before);
    CHECK(put(store, draft_of(30)).what == vouch::receipt::kind::inserted);
}

TEST_CASE("transaction: a closed one says misuse whatever it is asked") {
    vouch::memory::store store;
    auto tx = store.begin();
    tx.commit();
    const std::array bad{vouch::draft{}};
    CHECK(kind_of([&] { return tx.enqueue(bad, t0); }) == error_kind::misuse);
    CHECK(kind_of([&] { return tx.claim({}); }) == error_kind::misuse);
    CHECK(kind_of([&] { return tx.list({}); }) == error_kind::misuse);
    CHECK(kind_of([&] { return tx.purge({}); }) == error_kind::misuse);
    CHECK(kind_of([&] { return tx.counts(""); }) == error_kind::misuse);
    CHECK(kind_of([&] { return tx.cancel(id_of(1), std::string(101, 'e'), t0); }) == error_kind::misuse);
}

TEST_CASE("begin: on the thread that has a transaction open it is misuse, not a wait for ever") {
    vouch::memory::store store;
    const auto kind = in_time([store]() mutable {
        auto copy = store;
        auto tx = store.begin();
        const std::array drafts{draft_of(1)};
        tx.enqueue(drafts, t0);
        const std::pair nested{kind_of([&] { return store.begin(); }), kind_of([&] { return copy.begin(); })};
        tx.commit(); // the one that was open has not suffered
        return nested;
    });
    REQUIRE(kind);
    CHECK(kind->first == error_kind::misuse);
    CHECK(kind->second == error_kind::misuse);
    CHECK(store.find(id_of(1)));
}

TEST_CASE("begin: other stores do not mind") {
    vouch::memory::store one;
    vouch::memory::store two;
    auto first = one.begin();
    auto second = two.begin();
    second.commit();
    first.commit();
}

TEST_CASE("begin: waits for the transaction of another thread, and sees what it committed") {
    vouch::memory::store store;
    auto tx = store.begin();
    std::promise<void> started;
    auto waiting = std::async(std::launch::async, [&started, store]() mutable {
        started.set_value();
        return store.begin().find(id_of(1)).has_value();
    });
    started.get_future().wait();
    CHECK(waiting.wait_for(0s) != std::future_status::ready);
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    tx.commit();
    CHECK(waiting.get());
}

TEST_CASE("reads: on the store they see what is committed and never wait for a transaction") {
    auto store = furnished();
    const auto before = look(store);
    auto tx = store.begin();
    disturb(tx);
    const auto seen = in_time([store] { return look(store); });
    REQUIRE(seen);
    CHECK(*seen == before);
    const auto wakes = in_time([store] { return store.wakes("q"); });
    CHECK(wakes == store.wakes("q"));
    tx.commit();
    CHECK(look(store) != before);
}

TEST_CASE("transaction: an invalid argument leaves it open, as validate's tests say of every call") {
    vouch::memory::store store;
    auto tx = store.begin();
    CHECK(kind_of([&] { return tx.claim({}); }) == error_kind::invalid_argument);
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    tx.commit();
    CHECK(store.find(id_of(1)));
}

} // namespace memory_transaction_test
