// SPDX-License-Identifier: MIT
// Claims while an old snapshot is held: they begin where the last one found its first entry, and every entry is found
// all the same.
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/libpq_faults.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_heads_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::faults;
using postgres_test::fresh_prefix;
using vouch::postgres::detail::claim_heads;
namespace postgres = vouch::postgres;

namespace {

using clock = claim_heads::clock;
constexpr clock::time_point start{};

/// A claim that begins `at` and takes as long as `took`.
vouch::time_point look(claim_heads& heads, clock::time_point at, clock::duration took,
                       std::optional<vouch::time_point> first = {}) {
    const auto l = heads.begin("q", at);
    heads.end(l, "q", {.now = t0, .first = first}, at + took);
    return l.from;
}

/// Heads of a process that has seen the same oldest snapshot for a second.
struct beside_snapshot {
    claim_heads heads{start};
    beside_snapshot() {
        heads.note_snapshot("700", start);
        heads.note_snapshot("700", start + claim_heads::ask_interval);
    }
    clock::time_point now = start + claim_heads::ask_interval;

    vouch::time_point look(std::optional<vouch::time_point> first, clock::duration took = 20ms) {
        const auto from = postgres_heads_test::look(heads, now, took, first);
        now += took;
        return from;
    }
};

} // namespace

TEST_CASE("postgres heads: without an old snapshot every claim looks everywhere") {
    claim_heads heads(start);
    CHECK(look(heads, start, 1s, t0 - 1h) == claim_heads::everywhere);
    CHECK(look(heads, start + 1s, 1s, t0 - 1h) == claim_heads::everywhere);
    // A snapshot that is seen once may be a short one.
    heads.note_snapshot("700", start + 2s);
    CHECK(look(heads, start + 2s, 1s, t0 - 1h) == claim_heads::everywhere);
    CHECK(look(heads, start + 3s, 1s, t0 - 1h) == claim_heads::everywhere);
    // A look that began before the snapshot was known says nothing.
    const auto early = heads.begin("q", start + 4s);
    heads.note_snapshot("700", start + 4s);
    heads.end(early, "q", {.now = t0, .first = t0 - 1h}, start + 5s);
    CHECK(heads.of("q", start + 5s) == claim_heads::everywhere);
}

TEST_CASE("postgres heads: the store asks for the oldest snapshot after a slow claim, once a second") {
    claim_heads heads(start);
    const auto asks_after = [&](clock::time_point at, clock::duration took) {
        std::ignore = look(heads, at, took);
        return heads.wants_snapshot(at + took);
    };
    CHECK_FALSE(asks_after(start, claim_heads::slow)); // a process that has just begun
    CHECK(asks_after(start + 1s, claim_heads::slow));
    CHECK_FALSE(asks_after(start + 1500ms, claim_heads::slow));
    CHECK(asks_after(start + 2100ms, claim_heads::slow));
    CHECK_FALSE(asks_after(start + 5s, claim_heads::slow - 1ms));
}

TEST_CASE("postgres heads: while a snapshot is held the store asks every second, so that it notices the end") {
    beside_snapshot b;
    b.now += 1s;
    b.look(t0 - 1h, 1ms);
    CHECK(b.heads.wants_snapshot(b.now));
    b.look(t0 - 1h, 1ms);
    CHECK_FALSE(b.heads.wants_snapshot(b.now));
}

TEST_CASE("postgres heads: beside an old snapshot a claim begins where the last one found its first entry") {
    beside_snapshot b;
    CHECK(b.look(t0 - 1h) == claim_heads::everywhere);
    CHECK(b.heads.of("another", b.now) == claim_heads::everywhere);
    CHECK(b.look(t0 - 30min) == t0 - 1h);
    CHECK(b.look(t0) == t0 - 30min);
    CHECK(b.look(std::nullopt) == t0 - claim_heads::margin); // not closer
    CHECK(b.heads.of("q", b.now) == t0 - claim_heads::margin);
}

TEST_CASE("postgres heads: a claim that fails, or says nothing, changes nothing") {
    beside_snapshot b;
    b.look(t0 - 1h);
    b.heads.drop(b.heads.begin("q", b.now));
    CHECK(b.heads.of("q", b.now) == t0 - 1h);
}

TEST_CASE("postgres heads: a claim looks everywhere again after ten times as long as that took, at most ten seconds") {
    beside_snapshot b;
    b.look(t0 - 1h, 20ms);
    CHECK(b.heads.of("q", b.now + 199ms) == t0 - 1h);
    b.now += 200ms;
    CHECK(b.look(t0 - 1h, 1ms) == claim_heads::everywhere);
    CHECK(b.heads.of("q", b.now + 49ms) == t0 - 1h);
    b.now += claim_heads::blind_min;
    CHECK(b.look(t0 - 1h, 1min) == claim_heads::everywhere);
    CHECK(b.heads.of("q", b.now + 9s) == t0 - 1h);
    CHECK(b.heads.of("q", b.now + claim_heads::blind_max) == claim_heads::everywhere);
}

TEST_CASE("postgres heads: an entry that this process stores below the head lowers it, during a look as well") {
    beside_snapshot b;
    b.look(t0 - 1h);
    b.heads.lower("q", t0 - 2h);
    b.heads.lower("another", t0 - 3h);
    CHECK(b.heads.of("q", b.now) == t0 - 2h);
    b.heads.lower("q", t0);
    CHECK(b.heads.of("q", b.now) == t0 - 2h);

    const auto from_head = b.heads.begin("q", b.now);
    b.heads.lower("q", t0 - 3h);
    b.heads.end(from_head, "q", {.now = t0, .first = t0 - 1h}, b.now);
    CHECK(b.heads.of("q", b.now) == t0 - 3h);

    b.now += claim_heads::blind_max;
    const auto everywhere = b.heads.begin("q", b.now);
    REQUIRE(everywhere.from == claim_heads::everywhere);
    b.heads.lower("q", t0 - 4h);
    b.heads.end(everywhere, "q", {.now = t0, .first = t0 - 1h}, b.now);
    CHECK(b.heads.of("q", b.now) == t0 - 4h);
}

TEST_CASE("postgres heads: what a rollback unlocks is looked for everywhere, though a look was under way") {
    beside_snapshot b;
    b.look(t0 - 1h);
    const auto passes_over = b.heads.begin("q", b.now);
    b.heads.forget();
    b.heads.end(passes_over, "q", {.now = t0, .first = t0 - 1h}, b.now);
    CHECK(b.heads.of("q", b.now) == claim_heads::everywhere);
}

TEST_CASE("postgres heads: another oldest snapshot, or none that can be seen, ends it") {
    for (const std::string other : {"701", ""}) {
        beside_snapshot b;
        b.look(t0 - 1h);
        b.heads.note_snapshot(other, b.now);
        CHECK(b.heads.of("q", b.now) == claim_heads::everywhere);
        b.look(t0 - 1h);
        CHECK(b.heads.of("q", b.now) == claim_heads::everywhere);
    }
}

TEST_CASE("postgres heads: the earliest times there are do not overflow") {
    beside_snapshot b;
    b.heads.end(b.heads.begin("q", b.now), "q", {.now = vouch::time_point::min()}, b.now);
    CHECK(b.heads.of("q", b.now) == claim_heads::everywhere);
}

TEST_CASE(
    "postgres heads: the oldest snapshot of a server stays the same while it is held, for a role without rights") {
    const application reader;
    const application app;
    const auto oldest = [&] {
        return app.lines(text_of(postgres::detail::sql::oldest_snapshot, postgres::detail::table_names("vouch_")));
    };
    app.execute("CREATE ROLE no_rights; SET ROLE no_rights");
    CHECK(oldest().empty()); // its own does not count
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    const auto held = oldest();
    const application writer;
    writer.execute("SELECT txid_current()");
    writer.execute("SELECT txid_current()");
    CHECK(oldest() == held);
    reader.execute("COMMIT");
    CHECK(oldest() != held);
    app.execute("RESET ROLE; DROP ROLE no_rights");
}

TEST_CASE("postgres heads: beside an old snapshot no entry is lost; one of another process is found within a limit") {
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    postgres::store other_process(conninfo(), {.prefix = prefix});
    const auto put = [](postgres::store& to, std::uint64_t n, vouch::time_point due) {
        auto d = draft_of(n);
        d.due_at = due;
        vouch::enqueue(to, std::span(&d, 1), t0);
    };
    const vouch::claim_request request{.queue = "q", .limit = 10, .now = t0, .lease = 1h, .worker = "w"};
    const auto claim = [&] { return vouch::claim(store, request).size(); };
    const application reader;
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    struct slow_server {
        slow_server() {
            faults::all().set_seam([](std::string_view) { std::this_thread::sleep_for(50ms); });
        }
        ~slow_server() { faults::all().set_seam({}); }
    };
    {
        const slow_server slow;
        for (int i = 0; i < 3; ++i) { // asks after a second, again after another one, and knows
            std::this_thread::sleep_for(claim_heads::ask_interval);
            CHECK(claim() == 0);
        }
        put(store, 1, t0 - 1h);
        std::this_thread::sleep_for(1s); // so that it looks everywhere
        CHECK(claim() == 1);
    }
    // For half a second now. What this process stores is found at once.
    put(other_process, 2, t0 - 3h);
    CHECK(claim() == 0);
    put(store, 3, t0 - 2h);
    CHECK(claim() == 1);
    vouch::transact(store, [&](auto& tx) {
        auto d = draft_of(4);
        d.due_at = t0 - 4h;
        tx.enqueue(std::span(&d, 1), t0);
        CHECK(tx.claim(request).size() == 2); // and what lies above it
    });
    put(other_process, 5, t0 - 5h);
    CHECK(claim() == 0);
    CHECK(store.next_due("q") > t0);
    std::this_thread::sleep_for(1s);
    CHECK(claim() == 1);
    // An entry whose lease is over is refused by the claim in one round trip, which must not hide it from the next one.
    auto later = request;
    later.now = t0 + 2h;
    CHECK(vouch::claim(store, later).size() == 5);
}

} // namespace postgres_heads_test
