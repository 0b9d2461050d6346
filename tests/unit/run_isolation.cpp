// SPDX-License-Identifier: MIT
// Entries that may have killed their process are handled alone: splitting a claim, runners that crash in the middle of
// a batch, and how the queues of a worker wait for each other.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace run_isolation_test {

using namespace support;
using vouch::state;
using vouch::detail::claim_plan;
using vouch::detail::exclusion;
using vouch::testing::sandbox;
using access = exclusion::access;

namespace {

/// Claimed entries 1, 2, 3 ... with these lapses.
[[nodiscard]] std::vector<vouch::entry> claimed_with(const std::vector<std::uint32_t>& lapses) {
    std::vector<vouch::entry> out;
    for (const auto n : lapses) {
        auto& e = out.emplace_back();
        e.id = id_of(out.size());
        e.lapses = n;
    }
    return out;
}

struct parts {
    list kept;
    list handed_back;
    [[nodiscard]] friend bool operator==(const parts&, const parts&) = default;
};

[[nodiscard]] parts split(const std::vector<std::uint32_t>& lapses, claim_plan::lapsed rule) {
    auto claimed = claimed_with(lapses);
    const auto rest = vouch::detail::split_lapsed(claimed, rule);
    return {numbers(claimed), numbers(rest)};
}

/// A process with a runner that crashes when it handles `poison` and leaves its unsettled entries to their leases.
struct crashing_process {
    sandbox& box;
    vouch::id poison;
    int poison_calls = 0;

    /// Runs one pass. Returns whether the process has survived it.
    bool pass(std::size_t batch_size) {
        vouch::router routes(box.outbox());
        routes.on("t", [](vouch::delivery&) {});
        vouch::runner runner(box.outbox(), routes, {.queue = "test", .batch_size = batch_size, .lease = 5min});
        for (auto entries = runner.claim(); !entries.empty();) {
            decltype(runner)::batch done;
            for (auto& e : entries) {
                if (e.id == poison && e.attempts <= vouch::default_attempts_max) {
                    ++poison_calls;
                    return false;
                }
                done.push_back(runner.handle(std::move(e)));
            }
            entries = runner.settle_and_claim(done).second;
        }
        return true;
    }
};

constexpr exclusion::steady::time_point start{std::chrono::hours{1}};

} // namespace

TEST_CASE("isolation: a claim keeps the entries before the first one with a lapse, or that one alone") {
    const auto alone = claim_plan::lapsed::alone;
    CHECK(split({}, alone) == parts{{}, {}});
    CHECK(split({0, 0, 0}, alone) == parts{{1, 2, 3}, {}});
    CHECK(split({1, 0, 2}, alone) == parts{{1}, {2, 3}});
    CHECK(split({0, 0, 1, 0}, alone) == parts{{1, 2}, {3, 4}});
    CHECK(split({7}, alone) == parts{{1}, {}});
}

TEST_CASE(
    "isolation: a claim beside running handlers hands back every entry with a lapse and keeps the others in order") {
    const auto handed_back = claim_plan::lapsed::handed_back;
    CHECK(split({}, handed_back) == parts{{}, {}});
    CHECK(split({0, 0}, handed_back) == parts{{1, 2}, {}});
    CHECK(split({1, 0, 2, 0}, handed_back) == parts{{2, 4}, {1, 3}});
    CHECK(split({1, 1}, handed_back) == parts{{}, {1, 2}});
}

TEST_CASE("isolation: an entry that kills its process ends dead, and the other entries of its batch succeed") {
    for (const std::uint64_t place : {1U, 17U, 41U}) {
        for (const std::size_t batch_size : {50U, 7U, 1U}) {
            sandbox box;
            for (std::uint64_t n = 1; n <= 41; ++n) {
                auto d = draft_of(n, "test");
                put(box.store(), d, box.clock()());
            }
            crashing_process process{box, id_of(place)};
            int crashes = 0;
            while (!process.pass(batch_size) && crashes < 100) {
                ++crashes;
                box.pass(5min);
            }
            CAPTURE(place, batch_size, crashes);
            CHECK(box.store().counts("test")[state::succeeded] == 40);
            const auto dead = box.find(id_of(place));
            CHECK(dead->state == state::dead);
            CHECK(dead->last_error == "attempts_exhausted");
            // Once with the others of its batch, which costs no attempt, then once per attempt.
            CHECK(process.poison_calls == 1 + static_cast<int>(vouch::default_attempts_max));
            for (const auto& e : box.entries()) {
                CHECK((e.id == dead->id || e.attempts == 1));
            }
        }
    }
}

TEST_CASE("isolation: entries handed back in a claim keep their due time and their attempts") {
    sandbox box;
    box.on("t", [] {});
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(box.store(), draft_of(n, "test"), box.clock()());
    }
    REQUIRE(box.runner().claim().size() == 3); // then the process crashes
    box.pass(5min);
    const auto claimed = box.runner().claim();
    CHECK(numbers(claimed) == list{1});
    const auto second = box.find(id_of(2));
    CHECK(second->state == state::pending);
    CHECK(second->attempts == 0);
    CHECK(second->lapses == 1);
    CHECK(second->due_at == box.start());
}

TEST_CASE("exclusion: a queue that wants to run alone does so once no other queue holds a claim") {
    exclusion all;
    int woken = 0;
    const auto a = all.join([&] { ++woken; });
    const auto b = all.join([] {});
    CHECK(all.ask(a, false, start).access == access::open);
    CHECK(all.ask(b, true, start).access == access::open);
    all.want(a, start);
    CHECK(all.ask(a, false, start).access == access::closed); // b holds claims
    CHECK(all.ask(b, true, start).access == access::closed);
    woken = 0;
    CHECK(all.ask(b, false, start).access == access::closed);
    CHECK(woken == 1);
    CHECK(all.ask(a, false, start).access == access::alone);
    CHECK(all.ask(b, false, start).access == access::closed);
    all.leave(a, start + 1s);
    CHECK(all.ask(b, false, start + 1s).access == access::open);
}

TEST_CASE("exclusion: a queue that was allowed to claim counts as holding claims until it asks again") {
    exclusion all;
    const auto a = all.join([] {});
    const auto b = all.join([] {});
    CHECK(all.ask(b, false, start).access == access::open); // it may be claiming
    all.want(a, start);
    CHECK(all.ask(a, false, start).access == access::closed);
    CHECK(all.ask(b, false, start).access == access::closed);
    CHECK(all.ask(a, false, start).access == access::alone);
}

TEST_CASE("exclusion: a queue that wants to run alone wakes the idle queues, so that they ask again") {
    exclusion all;
    int woken = 0;
    const auto a = all.join([] {});
    const auto b = all.join([&] { ++woken; });
    CHECK(all.ask(b, false, start).access == access::open);
    all.want(a, start);
    CHECK(woken == 1);
    CHECK(all.ask(b, false, start).access == access::closed);
    CHECK(all.ask(a, false, start).access == access::alone);
}

TEST_CASE("exclusion: after alone_max the other queues may claim again") {
    exclusion all;
    const auto a = all.join([] {});
    const auto b = all.join([] {});
    all.want(a, start);
    REQUIRE(all.ask(a, false, start).access == access::alone);
    const auto closed = all.ask(b, false, start + 1s);
    CHECK(closed.access == access::closed);
    CHECK(closed.until == start + exclusion::alone_max);
    CHECK(all.ask(b, false, start + exclusion::alone_max).access == access::open);
    CHECK(all.ask(a, true, start + exclusion::alone_max).access == access::open);
}

TEST_CASE("exclusion: after a queue ran alone, the others run for the same time before it may run alone again") {
    exclusion all;
    const auto a = all.join([] {});
    const auto b = all.join([] {});
    all.want(a, start);
    REQUIRE(all.ask(a, false, start).access == access::alone);
    all.want(a, start); // it has another entry with a lapse
    all.leave(a, start + 10s);
    CHECK(all.ask(b, false, start + 11s).access == access::open);
    const auto mine = all.ask(a, false, start + 11s);
    CHECK(mine.access == access::open);
    CHECK(mine.until == start + 20s);
    all.want(a, start + 12s);
    CHECK(all.ask(b, false, start + 19s).access == access::open);
    all.want(a, start + 20s);
    CHECK(all.ask(b, false, start + 20s).access == access::closed);
    CHECK(all.ask(a, false, start + 20s).access == access::alone);
}

TEST_CASE("exclusion: the only queue of a worker runs alone without a pause") {
    exclusion all;
    const auto a = all.join([] {});
    all.want(a, start);
    REQUIRE(all.ask(a, false, start).access == access::alone);
    all.want(a, start);
    all.leave(a, start + 10s);
    CHECK(all.ask(a, false, start + 10s).access == access::alone);
    all.leave(a, start + 11s);
    CHECK(all.ask(a, false, start + 11s).access == access::open);
}

TEST_CASE("exclusion: a handler that hangs closes the queues for less than a third of the time") {
    exclusion all;
    const auto a = all.join([] {});
    const auto b = all.join([] {});
    auto now = start;
    std::chrono::nanoseconds closed{};
    std::chrono::nanoseconds open{};
    CHECK(all.ask(b, true, now).access == access::open);
    for (int tick = 0; tick < 3'600; ++tick, now += 1s) {
        const auto b_may = all.ask(b, true, now); // its handler never returns
        (b_may.access == access::open ? open : closed) += 1s;
        if (all.ask(a, false, now).access == access::open) {
            all.want(a, now); // finds its entry with a lapse
        }
    }
    CHECK(closed > 0s);
    CHECK(open > 2 * closed);
}

} // namespace run_isolation_test
