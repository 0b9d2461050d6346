// SPDX-License-Identifier: MIT
// What a purge of the SQLite store costs, counted in steps of SQLite's machine: entries that are still needed are
// looked at a bounded number at a time, and hide nothing for good.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_purge_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::state;

namespace {

constexpr std::size_t purge_size = 500;
constexpr auto looks = vouch::detail::purge_looks(purge_size);

/// A store on a connection that is ours to look into, with entries that are copies of a few real ones.
class archive {
  public:
    archive() {
        app.execute("PRAGMA journal_mode = WAL");
        app.execute("PRAGMA synchronous = OFF");
        store = std::make_unique<vouch::sqlite::store>(app.connection());
    }

    folder files{};
    application app{files.fresh_path()};
    std::unique_ptr<vouch::sqlite::store> store{};

    void put(std::uint64_t n, const std::string& group, vouch::id parent = {}, const std::string& queue = "q") {
        auto d = draft_of(n, queue);
        d.group = group;
        d.parent = parent;
        vouch::enqueue(*store, std::array{d}, t0);
    }
    void end(std::uint64_t n, vouch::time_point at) {
        REQUIRE(vouch::transact(*store, [&](auto& tx) { return tx.cancel(id_of(n), "e", at); }) ==
                vouch::verdict::applied);
    }

    /// Copies the ended entry, each copy ended a microsecond later than the one before.
    void multiply(std::uint64_t n, int copies) {
        const auto sequence = std::to_string(store->find(id_of(n))->sequence);
        const auto group = store->find(id_of(n))->group;
        copy_rows("entries", sequence, copies, ", id = randomblob(16), gate = gate + i, updated_at = updated_at + i");
        copy_rows("relations", sequence, copies, "");
        app.execute("INSERT INTO vouch_dead SELECT partition >> 2, sequence FROM vouch_entries e WHERE state = 4"
                    " AND NOT EXISTS (SELECT 1 FROM vouch_dead d WHERE d.sequence = e.sequence)");
        app.execute("UPDATE vouch_groups SET members = members + " + std::to_string(copies) +
                    ", unfinished = unfinished + " + std::to_string(copies) + " WHERE name = '" + group + "'");
    }

    std::size_t purge() {
        return vouch::transact(
            *store, [](auto& tx) { return tx.purge({.queue = "q", .before = t0 + 1h, .limit = purge_size}); });
    }

    /// Hundreds of steps of SQLite's machine that a purge takes; it is rolled back.
    int steps_of_purge() {
        int hundreds = 0;
        auto tx = store->begin();
        sqlite3_progress_handler(
            app.connection(), 100,
            [](void* count) {
                *static_cast<int*>(count) += 1;
                return 0;
            },
            &hundreds);
        std::ignore = tx.purge({.queue = "q", .before = t0 + 1h, .limit = purge_size});
        sqlite3_progress_handler(app.connection(), 0, nullptr, nullptr);
        return hundreds;
    }

    [[nodiscard]] std::size_t ended() const {
        const auto counts = store->counts("q");
        return counts[state::succeeded] + counts[state::dead];
    }

  private:
    void copy_rows(const std::string& table, const std::string& sequence, int copies, const std::string& changes) {
        const auto last = app.text("SELECT max(sequence) FROM vouch_" + table);
        app.execute(
            "CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
            std::to_string(copies) + ") SELECT i FROM n");
        app.execute("CREATE TEMP TABLE copies AS SELECT r.*, i FROM n, (SELECT * FROM vouch_" + table +
                    " WHERE sequence = " + sequence + ") r");
        app.execute("UPDATE copies SET sequence = " + last + " + i" + changes);
        app.execute("ALTER TABLE copies DROP COLUMN i");
        app.execute("INSERT INTO vouch_" + table + " SELECT * FROM copies");
        app.execute("DROP TABLE copies; DROP TABLE n");
    }
};

/// Ended members of a group that has a live one, in another queue.
void put_needed(archive& in, int count) {
    in.put(1, "g");
    in.put(2, "g", {}, "elsewhere");
    in.end(1, t0);
    in.multiply(1, count - 1);
}

} // namespace

TEST_CASE("sqlite purge: it costs the same beside five thousand needed entries and a hundred thousand") {
    archive few;
    archive many;
    put_needed(few, 5'000);
    put_needed(many, 100'000);
    for (int i = 0; i < 3; ++i) { // from the front, and from wherever it has come to
        CAPTURE(i);
        const auto beside_few = few.steps_of_purge();
        const auto beside_many = many.steps_of_purge();
        CAPTURE(beside_few, beside_many);
        CHECK(beside_few > 0);
        CHECK(beside_many <= 2 * beside_few);             // the few may have been all
        CHECK(beside_many < 2 * static_cast<int>(looks)); // less than a hundred steps for each
        CHECK(many.purge() == 0);
    }
}

TEST_CASE("sqlite purge: however many needed entries are in front, those behind them go") {
    archive in;
    constexpr int many = 20'000;
    put_needed(in, many);
    in.put(3, "");
    in.end(3, t0 + 1min);
    std::size_t calls = 1;
    while (in.purge() == 0 && calls < 100) {
        calls += 1;
    }
    CHECK(calls > 2);
    CHECK(calls <= many / looks + 2);
    CHECK_FALSE(in.store->find(id_of(3)));
    CHECK(in.ended() == many);
}

TEST_CASE("sqlite purge: entries that are needed no longer go, oldest first, wherever the purges have come to") {
    archive in;
    constexpr int many = 10'000;
    put_needed(in, many);
    for (int i = 0; i < 3; ++i) {
        CHECK(in.purge() == 0);
    }
    in.end(2, t0);
    std::size_t gone = 0;
    for (std::size_t calls = 0; calls < many / purge_size; ++calls) {
        gone += in.purge();
        const auto oldest = in.app.number("SELECT min(gate) FROM vouch_entries WHERE partition >> 2 = 1");
        CHECK(oldest == (gone == many ? 0 : t0.time_since_epoch().count() + static_cast<std::int64_t>(gone)));
    }
    CHECK(gone == many);
}

TEST_CASE("sqlite purge: the middle of the needed entries is looked at again, too") {
    archive in;
    put_needed(in, 6'000);
    in.put(3, "h");
    in.put(4, "h", {}, "elsewhere");
    in.end(3, t0 + 6ms);
    in.put(5, "g");
    in.end(5, t0 + 7ms);
    in.multiply(5, 6'000);
    for (int i = 0; i < 4; ++i) {
        CHECK(in.purge() == 0); // past it
    }
    in.end(4, t0);
    std::size_t calls = 1;
    while (in.purge() == 0 && calls < 100) {
        calls += 1;
    }
    CHECK_FALSE(in.store->find(id_of(3)));
    CHECK(calls <= 12'000 / looks + 2);
}

TEST_CASE("sqlite purge: what was replaced by a successor costs no more than the limit allows either") {
    archive few;
    archive many;
    for (auto* const in : {&few, &many}) {
        in->put(1, "");
        in->end(1, t0);
        in->multiply(1, in == &few ? 5'000 : 50'000);
        in->app.execute("INSERT INTO vouch_relations (sequence, queue, generation, is_live, replaces)"
                        " SELECT 1000000 + sequence, 1, 2, 1, sequence FROM vouch_entries WHERE sequence > 1");
    }
    for (int i = 0; i < 2; ++i) {
        CHECK(many.steps_of_purge() <= 2 * few.steps_of_purge());
    }
}

TEST_CASE("sqlite purge: the ended children of a parent cost its purge nothing") {
    archive in;
    in.put(1, "");
    in.put(2, "", id_of(1), "elsewhere");
    in.end(2, t0);
    in.end(1, t0);
    const auto without = in.steps_of_purge();
    in.multiply(2, 50'000);
    CHECK(in.steps_of_purge() <= without + 5);
    CHECK(in.purge() == 1);
}

} // namespace sqlite_purge_test
