// SPDX-License-Identifier: MIT
// Reading: every path, filters, pages, payloads on request, counts and next_due.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_query_test {

using namespace support;
using vouch::query;
using vouch::state;

namespace {

/// 1 pending, 2 retrying, 3 claimed, 4 succeeded, 5 dead in "q"; 6 in "r". Odd ones in group "g"; children of 9: 2
/// and 6.
vouch::memory::store one_of_each() {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 6; ++n) {
        auto d = draft_of(n, n == 6 ? "r" : "q");
        d.topic = n <= 3 ? "early" : "late";
        d.payload = "payload " + std::to_string(n);
        d.group = n % 2 == 1 ? "g" : "";
        d.parent = n == 2 || n == 6 ? id_of(9) : vouch::id{};
        d.key = n == 4 ? "k" : "";
        put(store, d);
    }
    settle(store, take_one(store, t0, {.only = id_of(2)}), vouch::retry{"e", t0 + 10s});
    REQUIRE(take(store, t0, {.only = id_of(3)}).size() == 1);
    settle(store, take_one(store, t0, {.only = id_of(4)}), vouch::succeed{});
    cancel(store, id_of(5));
    return store;
}

/// All pages of this size, put together.
std::vector<vouch::entry> in_pages(const vouch::memory::store& store, query q, std::size_t size) {
    std::vector<vouch::entry> out;
    q.limit = size;
    for (;;) {
        const auto page = store.list(q);
        out.insert(out.end(), page.begin(), page.end());
        if (page.size() < size) {
            return out;
        }
        q.after = page.back().sequence;
    }
}

} // namespace

TEST_CASE("list: each path gives its entries by ascending sequence") {
    const auto store = one_of_each();
    CHECK(numbers(store.list(query::all("q"))) == list{1, 2, 3, 4, 5});
    CHECK(numbers(store.list(query::all("r"))) == list{6});
    CHECK(numbers(store.list(query::live("q"))) == list{1, 2, 3});
    CHECK(numbers(store.list(query::dead("q"))) == list{5});
    CHECK(numbers(store.list(query::keyed("q", "k"))) == list{4});
    CHECK(numbers(store.list(query::members("g"))) == list{1, 3, 5});
    CHECK(numbers(store.list(query::children(id_of(9)))) == list{2, 6});
}

TEST_CASE("list: what is not there is an empty list") {
    const auto store = one_of_each();
    CHECK(store.list(query::all("nobody's")).empty());
    CHECK(store.list(query::dead("r")).empty());
    CHECK(store.list(query::keyed("q", "l")).empty());
    CHECK(store.list(query::keyed("r", "k")).empty());
    CHECK(store.list(query::keyed("nobody's", "k")).empty());
    CHECK(store.list(query::members("h")).empty());
    CHECK(store.list(query::children(id_of(1))).empty());
}

TEST_CASE("list: filters by state and topic narrow every path") {
    const auto store = one_of_each();
    const std::vector<query> paths{query::all("q"),     query::live("q"),          query::dead("q"),
                                   query::members("g"), query::children(id_of(9)), query::keyed("q", "k")};
    for (const auto& path : paths) {
        const auto everything = store.list(path);
        for (const auto wanted : vouch::all_states) {
            for (const std::string topic : {"", "early", "late", "ear", "never"}) {
                auto q = path;
                q.state = wanted;
                q.topic = topic;
                auto expected = everything;
                std::erase_if(expected,
                              [&](const auto& e) { return e.state != wanted || (!topic.empty() && e.topic != topic); });
                CHECK(store.list(q) == expected);
            }
        }
    }
}

TEST_CASE("list: payloads come on request, everything else always") {
    const auto store = one_of_each();
    for (auto q : {query::all("q"), query::keyed("q", "k"), query::members("g")}) {
        const auto without = store.list(q);
        q.payloads = true;
        const auto with = store.list(q);
        REQUIRE(with.size() == without.size());
        for (std::size_t i = 0; i < with.size(); ++i) {
            CHECK(with[i] == store.find(with[i].id));
            CHECK(with[i].payload == "payload " + std::to_string(with[i].id.low));
            auto expected = with[i];
            expected.payload.clear();
            CHECK(without[i] == expected);
        }
    }
}

TEST_CASE("list: pages of any size put together are the whole") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 25; ++n) {
        auto d = draft_of(n);
        d.group = "g";
        d.parent = id_of(99);
        d.topic = n % 3 == 0 ? "third" : "other";
        put(store, d);
        if (n % 4 == 0) {
            cancel(store, id_of(n));
        }
    }
    auto thirds = query::live("q");
    thirds.topic = "third";
    for (const auto& path : {query::all("q"), query::live("q"), query::dead("q"), query::members("g"),
                             query::children(id_of(99)), thirds}) {
        const auto whole = store.list(path);
        CHECK(!whole.empty());
        for (const std::size_t size : {1U, 2U, 3U, 7U, 25U, 26U}) {
            CHECK(in_pages(store, path, size) == whole);
        }
    }
}

TEST_CASE("list: generations of a key page too") {
    vouch::memory::store store;
    auto d = draft_of(1);
    d.key = "k";
    put(store, d);
    for (std::uint64_t n = 1; n <= 4; ++n) {
        cancel(store, id_of(n));
        vouch::transact(store, [&](auto& tx) {
            return vouch::requeue(tx, {.dead = id_of(n), .successor = id_of(n + 1), .now = t0});
        });
    }
    const auto whole = store.list(query::keyed("q", "k"));
    CHECK(numbers(whole) == list{1, 2, 3, 4, 5});
    for (const std::size_t size : {1U, 2U, 4U, 5U}) {
        CHECK(in_pages(store, query::keyed("q", "k"), size) == whole);
    }
    auto dead = query::keyed("q", "k");
    dead.state = state::dead;
    CHECK(numbers(store.list(dead)) == list{1, 2, 3, 4});
}

TEST_CASE("list: a page is not disturbed by what came before it being purged, nor by what comes after it") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 9; ++n) {
        put(store, draft_of(n));
    }
    auto q = query::all("q");
    q.limit = 4;
    const auto first = store.list(q);
    CHECK(numbers(first) == list{1, 2, 3, 4});
    for (std::uint64_t n = 1; n <= 6; ++n) {
        cancel(store, id_of(n));
    }
    purge(store, {.queue = "q", .before = t0 + tick});
    put(store, draft_of(10));
    q.after = first.back().sequence;
    CHECK(numbers(store.list(q)) == list{7, 8, 9, 10});
}

TEST_CASE("list: limit 0 finds nothing, after the last nothing is left") {
    const auto store = one_of_each();
    auto q = query::all("q");
    q.limit = 0;
    CHECK(store.list(q).empty());
    q.limit = 10'000;
    q.after = store.find(id_of(5))->sequence;
    CHECK(store.list(q).empty());
    q.after = ~std::uint64_t{0};
    CHECK(store.list(q).empty());
    auto by_key = query::keyed("q", "k");
    by_key.limit = 0;
    CHECK(store.list(by_key).empty());
}

TEST_CASE("counts: every state is there, zero too") {
    const auto store = one_of_each();
    const auto counts = store.counts("q");
    for (const auto s : vouch::all_states) {
        CHECK(counts[s] == 1);
        CHECK(store.counts("nobody's")[s] == 0);
    }
    CHECK(counts.live() == 3);
    CHECK(counts.total() == 5);
    CHECK(store.counts("r")[state::pending] == 1);
    CHECK(store.counts("r").total() == 1);
}

TEST_CASE("next_due: the smallest gate, claimed entries by their lease, the past too") {
    vouch::memory::store store;
    CHECK(!store.next_due("q"));
    auto d = draft_of(1);
    d.due_at = t0 + 1h;
    put(store, d);
    CHECK(store.next_due("q") == t0 + 1h);
    d = draft_of(2);
    d.due_at = t0 - 1h;
    put(store, d);
    CHECK(store.next_due("q") == t0 - 1h);
    const auto t = take_one(store, t0, {.lease = 30min});
    CHECK(store.next_due("q") == t0 + 30min);
    extend(store, t, t0, 2h);
    CHECK(store.next_due("q") == t0 + 1h);
    cancel(store, id_of(1));
    CHECK(store.next_due("q") == t0 + 2h);
    settle(store, t, vouch::succeed{});
    CHECK(!store.next_due("q"));
    CHECK(!store.next_due("r"));
}

TEST_CASE("find: nothing for an id that is not stored, nor for nil") {
    const auto store = one_of_each();
    CHECK(!store.find(id_of(7)));
    CHECK(!store.find(vouch::id{}));
    CHECK(store.find(id_of(6))->queue == "r");
}

} // namespace memory_query_test
