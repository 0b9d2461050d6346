// SPDX-License-Identifier: MIT
// Races over what the end of an entry reaches: its parent, its lane and its group; and races of claims.
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/races.hpp"

namespace postgres_races_test {

using namespace postgres_races;

// Parents: an end nudges the parent, and no claim or settle of the parent may come between the nudge and its commit.

TEST_CASE("postgres parent race: one that is due is not claimed while the end of its child is uncommitted") {
    // The nudge is `repeated` and writes nothing. If another worker took the parent now, it would see the child live, and
    // nothing would wake the parent again.
    scene s;
    s.given({with(1, {}), with(2, {.parent = id_of(1), .due_at = later})});
    auto a = s.begin();
    auto b = s.begin();
    CHECK(cancel(a, 2) == verdict::applied);
    CHECK(claim(b).empty());
    a.commit();
    CHECK(claim(b) == list{1});
    CHECK(b.find(id_of(2))->state == vouch::state::dead);
}

TEST_CASE("postgres parent race: one that is claimed and advances is due at once if a child ends first") {
    scene s;
    s.given({with(1, {}), with(2, {.parent = id_of(1), .due_at = later})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(cancel(a, 2) == verdict::applied);
    auto settled = s.waits([&] { return end(b, 1, vouch::advance{"p", end_of_time}).verdict; });
    a.commit();
    CHECK(settled.get() == verdict::applied);
    b.commit();
    CHECK(s.claimable() == list{1});
}

TEST_CASE("postgres parent race: one that is claimed and advances is due at once if a child ends after it") {
    scene s;
    s.given({with(1, {}), with(2, {.parent = id_of(1), .due_at = later})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(end(b, 1, vouch::advance{"p", end_of_time}).verdict == verdict::applied);
    auto cancelled = s.waits([&] { return cancel(a, 2); });
    b.commit();
    CHECK(cancelled.get() == verdict::applied);
    a.commit();
    CHECK(s.claimable() == list{1});
}

TEST_CASE("postgres parent race: it is nudged if its child can end only after a wait") {
    // When the cancel first looks, the child is held under a lease, and the cancel would be stale.
    scene s;
    s.given({with(1, {.due_at = end_of_time}), with(2, {.parent = id_of(1)})});
    s.held(2);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(end(b, 2, vouch::release{later}).verdict == verdict::applied);
    auto cancelled = s.waits([&] { return cancel(a, 2); });
    b.commit();
    CHECK(cancelled.get() == verdict::applied);
    a.commit();
    CHECK(s.claimable() == list{1});
}

// Lanes: an enqueue behind an entry and the end of that entry exclude each other.

TEST_CASE("postgres lane race: an entry stored while the one before it ends is claimable") {
    scene s;
    s.given({with(1, {.lane = "x"})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    SECTION("the enqueue is first") {
        CHECK(put(a, with(2, {.lane = "x"})).what == kind::inserted);
        auto settled = s.waits([&] { return end(b, 1).verdict; });
        a.commit();
        CHECK(settled.get() == verdict::applied);
        b.commit();
    }
    SECTION("the end is first") {
        CHECK(end(b, 1).verdict == verdict::applied);
        auto stored = s.waits([&] { return put(a, with(2, {.lane = "x"})).what; });
        b.commit();
        CHECK(stored.get() == kind::inserted);
        a.commit();
    }
    SECTION("the end is first, and the enqueue commits by itself") {
        CHECK(end(b, 1).verdict == verdict::applied);
        auto stored = s.waits([&] { return vouch::enqueue(s.all(), std::array{with(2, {.lane = "x"})}, now)[0].what; });
        b.commit();
        CHECK(stored.get() == kind::inserted);
    }
    SECTION("the end is first, and is undone") {
        CHECK(end(b, 1).verdict == verdict::applied);
        auto stored = s.waits([&] { return put(a, with(2, {.lane = "x"})).what; });
        std::ignore = transaction(std::move(b));
        CHECK(stored.get() == kind::inserted);
        a.commit();
        CHECK(s.claimable().empty());
        vouch::transact(s.all(), [&](auto& tx) { CHECK(end(tx, 1).verdict == verdict::applied); });
    }
    CHECK(s.claimable() == list{2});
}

TEST_CASE("postgres lane race: a cancelled entry in the middle does not block those behind it") {
    scene s;
    s.given({with(1, {.lane = "x"}), with(2, {.lane = "x"}), with(3, {.lane = "x"})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(cancel(a, 2) == verdict::applied);
    auto settled = s.waits([&] { return end(b, 1).verdict; });
    a.commit();
    CHECK(settled.get() == verdict::applied);
    b.commit();
    CHECK(s.claimable() == list{3});
}

TEST_CASE("postgres lane race: the next entry keeps a nudge that was uncommitted when its turn came") {
    scene s;
    s.given({with(1, {.lane = "x"}), with(2, {.lane = "x", .due_at = end_of_time})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(a.nudge(id_of(2), now) == verdict::applied);
    auto settled = s.waits([&] { return end(b, 1).verdict; });
    a.commit();
    CHECK(settled.get() == verdict::applied);
    b.commit();
    CHECK(s.claimable() == list{2});
}

TEST_CASE("postgres lane race: sequences follow the order of commits") {
    scene s;
    auto a = s.begin();
    auto b = s.begin();
    std::ignore = put(a, with(1, {.lane = "x"}));
    auto stored = s.waits([&] { return put(b, with(2, {.lane = "x"})).what; });
    std::ignore = put(a, with(3, {.lane = "x"}));
    a.commit();
    CHECK(stored.get() == kind::inserted);
    b.commit();
    CHECK(s.in_order() == list{1, 3, 2});
    CHECK(s.claimable() == list{1});
}

TEST_CASE("postgres lane race: a cancel of an entry that has moved to another lane does not block that lane") {
    // The id 1 is used again in another lane, while a cancel of 1 waits for the lane in which it saw it.
    scene s;
    s.given({with(1, {.lane = "old"}), with(2, {.lane = "old"})});
    s.dead(1);
    auto a = s.begin();
    auto b = s.begin();
    auto c = s.begin();
    std::ignore = put(b, with(3, {.lane = "old"}));
    auto cancelled = s.waits([&] { return kind_of([&] { std::ignore = cancel(a, 1); }); });
    vouch::transact(s.all(), [](auto& tx) { CHECK(purge(tx) == 1); });
    s.given({with(1, {.lane = "new"})});
    std::ignore = put(c, with(4, {.lane = "new"}));
    b.commit();
    if (cancelled.wait_for(200ms) == std::future_status::ready) { // it has to be repeated from the beginning
        CHECK(cancelled.get() == vouch::error_kind::conflict);
        c.commit();
        vouch::transact(s.all(), [](auto& tx) { CHECK(cancel(tx, 1) == verdict::applied); });
    } else {
        c.commit();
        CHECK_FALSE(cancelled.get());
        a.commit();
    }
    CHECK(s.claimable() == list{2, 4});
}

// Groups: exactly one settle completes a group.

TEST_CASE("postgres group race: two settles at once complete it once") {
    scene s;
    s.given({with(1, {.group = "g"}), with(2, {.group = "g"})});
    s.held(1);
    s.held(2);
    auto a = s.begin();
    auto b = s.begin();
    CHECK_FALSE(end(a, 1).group_completed);
    auto settled = s.waits([&] { return end(b, 2).group_completed; });
    SECTION("the first one commits") {
        a.commit();
        CHECK(settled.get());
        b.commit();
    }
    SECTION("the first one is undone and repeated") {
        std::ignore = transaction(std::move(a));
        CHECK_FALSE(settled.get());
        b.commit();
        vouch::transact(s.all(), [&](auto& tx) { CHECK(end(tx, 1).group_completed); });
    }
}

TEST_CASE("postgres group race: a member that is stored while the last one ends keeps it open") {
    scene s;
    s.given({with(1, {.group = "g"})});
    s.held(1);
    auto a = s.begin();
    auto b = s.begin();
    std::ignore = put(a, with(2, {.group = "g"}));
    auto settled = s.waits([&] { return end(b, 1).group_completed; });
    a.commit();
    CHECK_FALSE(settled.get());
    b.commit();
    s.held(2, 1h, now);
    vouch::transact(s.all(), [&](auto& tx) { CHECK(end(tx, 2).group_completed); });
}

TEST_CASE("postgres group race: many settles on several threads complete each of many groups once") {
    constexpr std::uint64_t groups = 20;
    constexpr std::uint64_t members = 6;
    scene s;
    std::vector<vouch::draft> drafts;
    for (std::uint64_t n = 0; n < groups * members; ++n) {
        drafts.push_back(with(1 + n, {.group = "g" + std::to_string(n % groups)}));
    }
    s.given(drafts);
    REQUIRE(vouch::claim(s.all(), request(t0, {.limit = 1000, .lease = 1h})).size() == drafts.size());
    std::array<std::atomic<int>, groups> completed{};
    {
        std::vector<std::jthread> workers;
        for (std::uint64_t w = 0; w < members; ++w) {
            workers.emplace_back([&, w] {
                for (std::uint64_t g = 0; g < groups; ++g) {
                    const bool is_last =
                        vouch::transact(s.all(), [&](auto& tx) { return end(tx, 1 + w * groups + g).group_completed; });
                    completed[g] += is_last ? 1 : 0;
                }
            });
        }
    }
    for (const auto& times : completed) {
        CHECK(times == 1);
    }
}

// Claims.

TEST_CASE("postgres claim race: two at once take different entries, and neither waits") {
    scene s;
    s.given({with(1, {}), with(2, {})});
    auto a = s.begin();
    auto b = s.begin();
    CHECK(claim(a, 1) == list{1});
    CHECK(claim(b) == list{2});
    a.commit();
    CHECK(claim(b).empty());
}

TEST_CASE("postgres claim race: one that commits by itself takes the same, with and without expired leases") {
    scene s;
    s.given({with(1, {}), with(2, {})});
    if (GENERATE(true, false)) {
        s.held(1, tick);
        s.held(2, tick);
    }
    auto a = s.begin();
    CHECK(claim(a, 1) == list{1});
    CHECK(numbers(vouch::claim(s.all(), request(now))) == list{2});
}

TEST_CASE("postgres claim race: the settle of a lapsed claim is stale if another one takes over first") {
    scene s;
    s.given({with(1, {})});
    s.held(1, tick);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(claim(b) == list{1});
    auto settled = s.waits([&] { return end(a, 1).verdict; });
    b.commit();
    CHECK(settled.get() == verdict::stale);
    a.commit();
    CHECK(s.find(1)->state == vouch::state::claimed);
}

TEST_CASE("postgres claim race: what is being settled is passed over") {
    scene s;
    s.given({with(1, {})});
    s.held(1, tick);
    auto a = s.begin();
    auto b = s.begin();
    CHECK(end(a, 1).verdict == verdict::applied);
    CHECK(claim(b).empty());
    a.commit();
    CHECK(claim(b).empty());
}

} // namespace postgres_races_test
