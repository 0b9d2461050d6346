// SPDX-License-Identifier: MIT
// Races of drafts with each other and with purges: ids, keys, successors, children and members.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/races.hpp"

namespace postgres_races_drafts_test {

using namespace postgres_races;

namespace {

[[nodiscard]] bool is_duplicate(const vouch::receipt& r, std::uint64_t of) {
    return r.what == kind::duplicate && r.id == id_of(of);
}

/// Interrupts a purge before each of its round trips but the last, which removes. If a draft that needs the dead entry 1 can
/// be stored meanwhile, the purge must leave the entry.
void purge_leaves_what_is_needed(const vouch::draft& dead, const vouch::draft& needs) {
    std::size_t trips = 2;
    std::size_t stored_times = 0;
    for (std::size_t n = 1; n < trips; ++n) {
        CAPTURE(n);
        scene s;
        s.given({dead});
        s.dead(1);
        bool is_stored = false;
        std::size_t removed = 0;
        if (n == 1) {
            auto tx = s.begin();
            trips = interrupted([&] { removed = purge(tx); }, 0, {});
            REQUIRE(removed == 1);
        }
        auto tx = s.begin();
        interrupted([&] { removed = purge(tx); }, n, [&] { is_stored = s.stores_at_once(needs); });
        tx.commit();
        CHECK(removed == (is_stored ? 0 : 1));
        CHECK(s.find(1).has_value() == is_stored);
        stored_times += is_stored ? 1 : 0;
    }
    CHECK(stored_times > 1); // at least before the first look and before the lock
}

} // namespace

TEST_CASE("postgres key race: of two enqueues at once one is stored, and the other is its duplicate") {
    scene s;
    auto a = s.begin();
    auto b = s.begin();
    const bool has_key = GENERATE(true, false); // else they have the same id
    const auto first = with(1, {.key = has_key ? "k" : ""});
    const auto second = with(has_key ? 2 : 1, first);
    CHECK(put(a, first).what == kind::inserted);
    auto stored = s.waits([&] { return put(b, second); });
    SECTION("the first one commits") {
        a.commit();
        CHECK(is_duplicate(stored.get(), 1));
        b.commit();
        CHECK(s.in_order() == list{1});
    }
    SECTION("the first one is undone") {
        std::ignore = transaction(std::move(a));
        CHECK(stored.get().what == kind::inserted);
        b.commit();
        CHECK(s.in_order() == list{second.id.low});
    }
}

TEST_CASE("postgres key race: an enqueue that commits by itself waits for the owner of its key, too") {
    scene s;
    auto a = s.begin();
    CHECK(put(a, with(1, {.key = "k"})).what == kind::inserted);
    auto stored = s.waits([&] { return vouch::enqueue(s.all(), std::array{with(2, {.key = "k"})}, now)[0]; });
    a.commit();
    CHECK(is_duplicate(stored.get(), 1));
    CHECK(s.in_order() == list{1});
}

TEST_CASE("postgres key race: a draft that waits for a transaction of several generations finds the newest") {
    scene s;
    auto a = s.begin();
    auto b = s.begin();
    std::ignore = put(a, with(1, {.key = "k"}));
    auto stored = s.waits([&] { return put(b, with(9, {.key = "k"})); });
    CHECK(cancel(a, 1) == verdict::applied);
    CHECK(put(a, with(2, {.predecessor = id_of(1)})).what == kind::inserted);
    a.commit();
    CHECK(is_duplicate(stored.get(), 2));
}

TEST_CASE("postgres key race: a draft and the requeue of the dead entry with its key") {
    scene s;
    s.given({with(1, {.key = "k"})});
    s.dead(1);
    auto a = s.begin();
    auto b = s.begin();
    SECTION("the requeue is first: the draft is a duplicate of the successor") {
        CHECK(put(a, with(2, {.predecessor = id_of(1)})).what == kind::inserted);
        auto stored = s.waits([&] { return put(b, with(3, {.key = "k"})); });
        a.commit();
        CHECK(is_duplicate(stored.get(), 2));
    }
    SECTION("the requeue is first, and is undone: the draft is a duplicate of the dead entry") {
        CHECK(put(a, with(2, {.predecessor = id_of(1)})).what == kind::inserted);
        auto stored = s.waits([&] { return put(b, with(3, {.key = "k"})); });
        std::ignore = transaction(std::move(a));
        CHECK(is_duplicate(stored.get(), 1));
    }
    SECTION("the draft is first: what it was answered stays true until it commits") {
        CHECK(is_duplicate(put(b, with(3, {.key = "k"})), 1));
        auto stored = s.waits([&] { return put(a, with(2, {.predecessor = id_of(1)})); });
        CHECK(is_duplicate(put(b, with(4, {.key = "k"})), 1));
        b.commit();
        CHECK(stored.get().what == kind::inserted);
    }
}

TEST_CASE("postgres key race: of two requeues at once one is stored, and the other is its duplicate") {
    scene s;
    s.given({with(1, {})});
    s.dead(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(put(a, with(2, {.predecessor = id_of(1)})).what == kind::inserted);
    auto stored = s.waits([&] { return put(b, with(3, {.predecessor = id_of(1)})); });
    a.commit();
    CHECK(is_duplicate(stored.get(), 2));
    b.commit();
    CHECK(s.in_order() == list{1, 2});
}

TEST_CASE("postgres key race: many enqueues on several threads store each of many keys once") {
    constexpr std::uint64_t keys = 40;
    constexpr std::uint64_t threads = 4;
    scene s;
    std::vector<std::vector<vouch::id>> owners(threads, std::vector<vouch::id>(keys));
    {
        std::vector<std::jthread> producers;
        for (std::uint64_t p = 0; p < threads; ++p) {
            producers.emplace_back([&, p] {
                for (std::uint64_t k = 0; k < keys; ++k) {
                    const auto d = with(1 + p * keys + k, {.key = "k" + std::to_string(k)});
                    owners[p][k] = vouch::enqueue(s.all(), std::span(&d, 1), now).front().id;
                }
            });
        }
    }
    CHECK(s.in_order().size() == keys);
    for (std::uint64_t p = 1; p < threads; ++p) {
        CHECK(owners[p] == owners[0]);
    }
}

TEST_CASE("postgres purge race: it leaves an entry of which an uncommitted draft is a duplicate") {
    scene s;
    s.given({with(1, {.key = "k", .result = "r"})});
    auto a = s.begin();
    auto b = s.begin();
    CHECK(is_duplicate(put(a, with(2, {.key = "k"})), 1));
    CHECK(purge(b) == 0);
    b.commit();
    CHECK(is_duplicate(put(a, with(3, {.key = "k"})), 1));
}

TEST_CASE("postgres purge race: what another transaction has locked does not count against the limit") {
    scene s;
    s.given({with(1, {.key = "k", .result = "r"}), with(2, {.result = "r"}), with(3, {.result = "r"})});
    auto a = s.begin();
    CHECK(is_duplicate(put(a, with(9, {.key = "k"})), 1));
    vouch::transact(s.all(), [](auto& tx) { CHECK(tx.purge({.queue = "q", .before = now, .limit = 1}) == 1); });
    CHECK(s.in_order() == list{1, 3});
}

TEST_CASE("postgres purge race: a draft whose key is being purged waits") {
    scene s;
    s.given({with(1, {.key = "k", .result = "r"})});
    auto a = s.begin();
    auto b = s.begin();
    CHECK(purge(b) == 1);
    auto stored = s.waits([&] { return put(a, with(2, {.key = "k"})); });
    SECTION("the purge commits: the draft is stored") {
        b.commit();
        CHECK(stored.get().what == kind::inserted);
        a.commit();
        CHECK(s.in_order() == list{2});
    }
    SECTION("the purge is undone: the draft is a duplicate") {
        std::ignore = transaction(std::move(b));
        CHECK(is_duplicate(stored.get(), 1));
    }
}

TEST_CASE("postgres purge race: a draft whose duplicate is purged before it is found is stored") {
    constexpr std::size_t trips = 2; // one that stores nothing, and one that looks for the duplicate
    for (std::size_t n = 1; n <= trips; ++n) {
        CAPTURE(n);
        scene s;
        s.given({with(1, {.key = "k", .result = "r"})});
        auto a = s.begin();
        vouch::receipt stored;
        const auto needed = interrupted([&] { stored = put(a, with(2, {.key = "k"})); }, n,
                                        [&] { vouch::transact(s.all(), [](auto& tx) { CHECK(purge(tx) == 1); }); });
        CHECK(needed >= n); // else the purge has not happened
        CHECK(stored.what == kind::inserted);
        a.commit();
        CHECK(s.in_order() == list{2});
    }
}

TEST_CASE("postgres purge race: it leaves a parent whose child is stored while it looks") {
    purge_leaves_what_is_needed(with(1, {}), with(2, {.parent = id_of(1)}));
}

TEST_CASE("postgres purge race: it leaves a member of a group that gets another one while it looks") {
    purge_leaves_what_is_needed(with(1, {.group = "g"}), with(2, {.group = "g"}));
}

TEST_CASE("postgres purge race: it leaves a dead entry that gets a successor while it looks") {
    purge_leaves_what_is_needed(with(1, {}), with(2, {.predecessor = id_of(1)}));
}

TEST_CASE("postgres purge race: it leaves a dead entry whose successor is uncommitted") {
    scene s;
    s.given({with(1, {})});
    s.dead(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(put(a, with(2, {.predecessor = id_of(1)})).what == kind::inserted);
    CHECK(purge(b) == 0);
    b.commit();
    a.commit();
    CHECK(s.in_order() == list{1, 2});
}

TEST_CASE("postgres purge race: a group that loses its last member and gets a new one at once counts right") {
    scene s;
    s.given({with(1, {.group = "g"})});
    s.dead(1);
    auto a = s.begin();
    auto b = s.begin();
    SECTION("the enqueue is first") {
        CHECK(put(a, with(2, {.group = "g"})).what == kind::inserted);
        auto removed = s.waits([&] { return purge(b); });
        a.commit();
        CHECK(removed.get() == 1);
        b.commit();
    }
    SECTION("the purge is first") {
        CHECK(purge(b) == 1);
        auto stored = s.waits([&] { return put(a, with(2, {.group = "g"})).what; });
        b.commit();
        CHECK(stored.get() == kind::inserted);
        a.commit();
    }
    CHECK(s.app().text("SELECT members || ' ' || live || ' ' || unfinished FROM " + s.prefix() + "groups") == "1 1 1");
    CHECK(s.app().number("SELECT count(*) FROM " + s.prefix() + "groups") == 1);
    s.held(2, 1h, now);
    vouch::transact(s.all(), [&](auto& tx) { CHECK(end(tx, 2).group_completed); });
}

TEST_CASE("postgres purge race: two at once remove each entry once, and neither waits") {
    scene s;
    s.given({with(1, {.result = "r"}), with(2, {.result = "r"})});
    auto a = s.begin();
    auto b = s.begin();
    CHECK(a.purge({.queue = "q", .before = now, .limit = 1}) == 1);
    CHECK(b.purge({.queue = "q", .before = now, .limit = 1}) == 1);
    a.commit();
    b.commit();
    CHECK(s.in_order().empty());
}

} // namespace postgres_races_drafts_test
