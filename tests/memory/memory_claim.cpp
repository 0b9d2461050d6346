// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_claim_test {

using namespace support;
using vouch::state;
using vouch::verdict;

namespace {

vouch::draft due(std::uint64_t n, vouch::time_point at) {
    auto d = draft_of(n);
    d.due_at = at;
    return d;
}

} // namespace

TEST_CASE("claim: gives entries as they are after the claim, payload and all") {
    vouch::memory::store store;
    auto d = draft_of(1);
    d.payload = "payload";
    d.headers = {{"name", "value"}};
    put(store, d);
    const auto before = store.find(id_of(1)).value();
    const auto claimed = vouch::claim(store, {.queue = "q", .now = t0 + 1s, .lease = 5s, .worker = "me"});
    REQUIRE(claimed.size() == 1);
    auto expected = before;
    apply(expected, vouch::claim_request{.queue = "q", .now = t0 + 1s, .lease = 5s, .worker = "me"});
    CHECK(claimed.front() == expected);
    CHECK(store.find(id_of(1)) == expected);
}

TEST_CASE("claim: two workers never hold the same entry") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 10; ++n) {
        put(store, draft_of(n));
    }
    std::set<std::uint64_t> held;
    for (const std::size_t limit : {3U, 4U, 100U}) {
        for (const auto n : numbers(take(store, t0, {.limit = limit}))) {
            CHECK(held.insert(n).second);
        }
    }
    CHECK(held.size() == 10);
    CHECK(take(store, t0 + 1min - tick).empty());
}

TEST_CASE("claim: fresh, retried and lapsed entries come in one operation") {
    vouch::memory::store store;
    put(store, draft_of(1));
    put(store, draft_of(2));
    settle(store, take_one(store, t0, {.only = id_of(1)}), vouch::retry{"e", t0 + 10s});
    const auto lapsing = take_one(store, t0, {.lease = 10s, .only = id_of(2)});
    put(store, due(3, t0 + 10s));
    CHECK(numbers(take(store, t0 + 10s)) == list{2, 1, 3}); // by due_at: 2 was due at t0
    CHECK(settle(store, lapsing, vouch::succeed{}, t0 + 10s).verdict == verdict::stale);
}

TEST_CASE("claim: takes the first by gate, and gives them by due_at") {
    vouch::memory::store store;
    put(store, due(1, t0 + 1s));
    put(store, due(2, t0));
    const auto first = take(store, t0 + 1s, {.limit = 1, .lease = 9s});
    CHECK(numbers(first) == list{2}); // its gate is now t0 + 10 s, its due_at still t0
    put(store, due(3, t0 + 5s));
    // By gate: 1 (1 s), 3 (5 s), 2 (10 s).
    CHECK(numbers(take(store, t0 + 10s, {.limit = 2})) == list{1, 3});
    CHECK(numbers(take(store, t0 + 10s)) == list{2});
}

TEST_CASE("claim: a lapsed entry comes back by its own due_at, before fresher ones") {
    vouch::memory::store store;
    put(store, due(1, t0 - 5s));
    CHECK(numbers(take(store, t0, {.lease = 10s})) == list{1});
    put(store, due(2, t0 - 1s));
    put(store, due(3, t0 - 9s));
    CHECK(numbers(take(store, t0 + 10s)) == list{3, 1, 2});
}

TEST_CASE("claim: entries due at the same time come in sequence") {
    vouch::memory::store store;
    for (const std::uint64_t n : {5U, 3U, 9U, 1U, 7U}) {
        put(store, due(n, t0));
    }
    CHECK(numbers(take(store, t0, {.limit = 2})) == list{5, 3});
    CHECK(numbers(take(store, t0)) == list{9, 1, 7});
}

TEST_CASE("claim: one id only takes that one, past what is due before it") {
    vouch::memory::store store;
    put(store, due(1, t0 - 1h));
    put(store, due(2, t0));
    CHECK(numbers(take(store, t0, {.only = id_of(2)})) == list{2});
    CHECK(store.find(id_of(1))->state == state::pending);
}

TEST_CASE("claim: due exactly now is eligible, a tick later is not") {
    vouch::memory::store store;
    put(store, due(1, t0));
    CHECK(take(store, t0 - tick).empty());
    CHECK(take(store, t0 - tick, {.only = id_of(1)}).empty());
    CHECK(take(store, t0).size() == 1);
}

TEST_CASE("claim: a lease that ends exactly now can be taken over, a tick earlier it cannot") {
    for (const auto only : {vouch::id{}, id_of(1)}) {
        vouch::memory::store store;
        put(store, draft_of(1));
        REQUIRE(take(store, t0, {.lease = 10s, .only = only}).size() == 1);
        CHECK(take(store, t0 + 10s - tick, {.only = only}).empty());
        const auto again = take(store, t0 + 10s, {.only = only});
        REQUIRE(again.size() == 1);
        CHECK(again.front().attempts == 1);
        CHECK(again.front().lapses == 1);
        CHECK(again.front().epoch == 2);
    }
}

TEST_CASE("claim: the shortest lease is over after a tick") {
    vouch::memory::store store;
    put(store, draft_of(1));
    CHECK(take(store, t0, {.lease = tick}).size() == 1);
    CHECK(take(store, t0, {.lease = tick}).empty());
    CHECK(take(store, t0 + tick, {.lease = tick}).size() == 1);
}

TEST_CASE("claim: a limit is never exceeded, and 0 takes nothing") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put(store, draft_of(n));
    }
    CHECK(take(store, t0, {.limit = 0}).empty());
    CHECK(take(store, t0, {.limit = 0, .only = id_of(1)}).empty());
    CHECK(store.counts("q")[state::claimed] == 0);
    CHECK(take(store, t0, {.limit = 1}).size() == 1);
    CHECK(take(store, t0, {.limit = 3}).size() == 3);
    CHECK(store.counts("q")[state::claimed] == 4);
    CHECK(take(store, t0, {.limit = 3}).size() == 1);
    CHECK(take(store, t0, {.limit = 3}).empty());
}

TEST_CASE("claim: sees its own queue only") {
    vouch::memory::store store;
    put(store, draft_of(1, "q"));
    put(store, draft_of(2, "r"));
    CHECK(take(store, t0, {.queue = "nobody's"}).empty());
    CHECK(take(store, t0, {.queue = "q", .only = id_of(2)}).empty());
    CHECK(numbers(take(store, t0, {.queue = "r"})) == list{2});
    CHECK(numbers(take(store, t0, {.queue = "q"})) == list{1});
}

TEST_CASE("claim: terminal, absent and held entries are not taken, also by id") {
    vouch::memory::store store;
    put(store, draft_of(1));
    put(store, draft_of(2));
    put(store, draft_of(3));
    cancel(store, id_of(1));
    settle(store, take_one(store, t0, {.only = id_of(2)}), vouch::succeed{});
    REQUIRE(take(store, t0, {.only = id_of(3)}).size() == 1);
    for (const std::uint64_t n : {1U, 2U, 3U, 4U}) {
        CHECK(take(store, t0, {.only = id_of(n)}).empty());
    }
    CHECK(take(store, t0).empty());
}

TEST_CASE("claim: one that is rolled back never happened") {
    vouch::memory::store store;
    put(store, draft_of(1));
    const auto before = look(store);
    {
        auto tx = store.begin();
        CHECK(tx.claim(request(t0)).size() == 1);
        CHECK(tx.claim(request(t0)).empty());
        CHECK(look(store) == before);
    }
    CHECK(look(store) == before);
    const auto ticket = take_one(store, t0);
    CHECK(ticket.epoch == 1);
}

TEST_CASE("claim: what a transaction enqueues or releases it can claim itself") {
    vouch::memory::store store;
    auto tx = store.begin();
    const auto d = draft_of(1);
    tx.enqueue(std::span(&d, 1), t0);
    const auto first = tx.claim(request(t0));
    REQUIRE(first.size() == 1);
    settle_in(tx, ticket_of(first.front()), vouch::release{}, t0);
    const auto second = tx.claim(request(t0));
    REQUIRE(second.size() == 1);
    CHECK(second.front().epoch == 2);
    CHECK(second.front().attempts == 1);
    tx.commit();
    CHECK(store.find(id_of(1)) == second.front());
}

TEST_CASE("claim: a thousand entries of mixed times come out in order, whatever was taken out between") {
    vouch::memory::store store;
    std::uint64_t random = 12345;
    for (std::uint64_t n = 1; n <= 1000; ++n) {
        random = vouch::detail::mix(random + n);
        put(store, due(n, t0 + vouch::duration{static_cast<std::int64_t>(random % 500)}));
        if (n % 3 == 0) {
            cancel(store, id_of(n - 1));
        }
    }
    std::vector<vouch::entry> all;
    for (;;) {
        const auto some = take(store, t0 + 1s, {.limit = 37});
        if (some.empty()) {
            break;
        }
        all.insert(all.end(), some.begin(), some.end());
    }
    CHECK(all.size() == 667);
    for (std::size_t i = 1; i < all.size(); ++i) {
        const auto& [a, b] = std::tie(all[i - 1], all[i]);
        if (std::tie(a.due_at, a.sequence) >= std::tie(b.due_at, b.sequence)) {
            FAIL("out of order at " << i);
        }
    }
}

} // namespace memory_claim_test
