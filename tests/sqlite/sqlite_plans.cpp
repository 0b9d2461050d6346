// SPDX-License-Identifier: MIT
// What the statements cost: no statement the store can issue scans a table or sorts, none is issued that is not in the
// list, and what the operations do does not grow with the rows that do not concern them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_plans_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::query;
using vouch::sqlite::detail::sql;
using vouch::sqlite::detail::statements;
using vouch::sqlite::detail::text_of;
namespace sqlite = vouch::sqlite;

namespace {

// Plans.

std::vector<std::string> plan_of(sqlite3* db, const std::string& text) {
    const sqlite::detail::statement explain(db, "EXPLAIN QUERY PLAN " + text);
    sqlite::detail::run row(explain);
    std::vector<std::string> lines;
    while (row.step()) {
        constexpr int detail = 3;
        lines.emplace_back(row.bytes(detail));
    }
    return lines;
}

/// Whether a line of a plan reads the rows that the statement itself brings, as SQLite before 3.46 and since says it.
bool reads_own_rows(const std::string& line) {
    return line.find("CONSTANT ROW") != std::string::npos || line.find("VALUES CLAUSE") != std::string::npos;
}

/// Lines of a plan that read all of a table or index, sort, or build an index for the occasion.
std::vector<std::string> objections(const std::vector<std::string>& plan) {
    std::vector<std::string> out;
    for (const auto& line : plan) {
        const bool scans = line.find("SCAN") != std::string::npos && !reads_own_rows(line);
        if (scans || line.find("TEMP B-TREE") != std::string::npos || line.find("AUTOMATIC") != std::string::npos) {
            out.push_back(line);
        }
    }
    return out;
}

bool is_any_of(sql which, std::initializer_list<sql> some) {
    return std::find(some.begin(), some.end(), which) != some.end();
}

/// These read no table.
bool has_no_plan(sql which) {
    return is_any_of(which, {sql::begin, sql::begin_reading, sql::commit, sql::roll_back, sql::savepoint, sql::release,
                             sql::roll_back_to, sql::data_version});
}

/// These write to a place that they do not have to find.
bool has_an_empty_plan(sql which) {
    return is_any_of(which, {sql::insert, sql::insert_payload, sql::insert_relations, sql::add_queue, sql::add_dead,
                             sql::group_enter, sql::settle_doubt});
}

// A connection with many rows that no query below concerns.

/// `count` rows of each kind, as the store would have left them: future, claimed, blocked in a lane, succeeded, dead.
void fill(application& app, int count) {
    const auto at = [](vouch::time_point t) { return std::to_string(t.time_since_epoch().count()); };
    const auto now = at(t0);
    const auto later = at(t0 + 24h);
    const auto before = at(t0 - 24h);
    const auto all = std::to_string(count);
    const auto numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + all + ") ";
    int kind = -1;
    const auto rows = [&](const std::string& values, const std::string& relations = {}) {
        const auto first = std::to_string(++kind * count);
        app.execute(
            numbers +
            "INSERT INTO vouch_entries (sequence, id, topic, attempts_max, created_at, attempts, lapses, failures,"
            " woken, worker, last_error, updated_at, payload, state, epoch, due_at, gate, partition, tied) SELECT " +
            first + " + i, CAST(printf('" + std::to_string(kind) + "%015d', i) AS BLOB), 't', 0, " + now +
            ", 1, 0, 0, 0, '', '', " + now + ", x'01', " + values + " FROM n");
        if (!relations.empty()) {
            app.execute(numbers +
                        "INSERT INTO vouch_relations (sequence, queue, generation, is_live, \"key\", \"group\","
                        " lane, parent) SELECT " +
                        first + " + i, 1, 1, 1, " + relations + " FROM n");
        }
    };
    app.execute("BEGIN; INSERT INTO vouch_queues VALUES (1, 'q')");
    rows("0, 0, " + later + " + i, " + later + " + i, 4, 0", "printf('key%6d', i), NULL, NULL, NULL");
    rows("2, 1, " + before + ", " + later + ", 4, 1", "NULL, 'many', NULL, NULL");
    rows("0, 0, " + later + ", CASE WHEN i = 1 THEN " + later + " END, 4, 1",
         "NULL, NULL, 'long', CAST('a parent of many' AS BLOB)");
    rows("3, 1, " + before + ", " + before + " + i, 5, 0");
    rows("4, 1, " + before + ", " + before + " + i, 6, 0");
    app.execute("INSERT INTO vouch_dead SELECT 1, sequence FROM vouch_entries WHERE state = 4");
    app.execute("INSERT INTO vouch_groups VALUES ('many', " + all + ", " + all + ", " + all + ")");
    app.execute("COMMIT");
}

/// A store on a connection that is ours to look into.
struct place {
    explicit place(int rows) {
        app.execute("PRAGMA journal_mode = OFF");
        app.execute("PRAGMA synchronous = OFF");
        app.execute("PRAGMA cache_size = -200000");
        sqlite::migrate(app.connection());
        fill(app, rows);
        app.execute("PRAGMA journal_mode = WAL");
        store = std::make_unique<sqlite::store>(app.connection());
    }

    folder files{};
    application app{files.fresh_path()};
    std::unique_ptr<sqlite::store> store{};
};

struct cost {
    int steps = 0;      ///< instructions of SQLite's machine
    int full_scans = 0; ///< rows read in loops without a bound
    int sorts = 0;
    int indexes = 0; ///< built for the occasion
};

/// What the connection's statements have cost since the last call.
cost spent(sqlite3* db) {
    cost out;
    for (auto* s = sqlite3_next_stmt(db, nullptr); s != nullptr; s = sqlite3_next_stmt(db, s)) {
        out.steps += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
        out.full_scans += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
        out.sorts += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_SORT, 1);
        out.indexes += sqlite3_stmt_status(s, SQLITE_STMTSTATUS_AUTOINDEX, 1);
    }
    return out;
}

struct operation {
    std::string_view name;
    std::function<void(sqlite::transaction&)> prepare;
    std::function<void(sqlite::transaction&)> measure;
};

constexpr std::uint64_t some = 10;

std::vector<vouch::draft> due(std::uint64_t count) {
    std::vector<vouch::draft> out;
    for (std::uint64_t n = 1; n <= count; ++n) {
        out.push_back(draft_of(n));
        out.back().key = "mine" + std::to_string(n);
        out.back().group = n % 2 == 0 ? "few" : "many";
        out.back().lane = n % 3 == 0 ? "short" + std::to_string(n) : "";
        out.back().parent = n > 1 ? id_of(1) : vouch::id{};
    }
    return out;
}

/// The operations of a worker's and a producer's day, each on ten due entries beside all the others.
std::vector<operation> operations() {
    const auto enqueue = [](sqlite::transaction& tx) { tx.enqueue(due(some), t0); };
    const auto claim = [=](sqlite::transaction& tx) {
        enqueue(tx);
        REQUIRE(tx.claim(request(t0, {.limit = some})).size() == some);
    };
    const auto settle = [](const vouch::outcome& outcome) {
        return [=](sqlite::transaction& tx) {
            for (std::uint64_t n = 1; n <= some; ++n) {
                REQUIRE(settle_in(tx, {id_of(n), 1}, outcome, t0).verdict == vouch::verdict::applied);
            }
        };
    };
    const auto list = [](query q) {
        q.limit = some;
        return [=](sqlite::transaction& tx) { REQUIRE(!tx.list(q).empty()); };
    };
    const auto buried = [=](sqlite::transaction& tx) {
        claim(tx);
        settle(vouch::bury{"e"})(tx);
    };
    return {
        {"enqueue", {}, enqueue},
        {"enqueue again", enqueue, enqueue},
        {"enqueue behind the longest lane",
         {},
         [](auto& tx) {
             auto d = draft_of(1);
             d.lane = "long";
             tx.enqueue(std::array{d}, t0);
         }},
        {"claim", enqueue, [](auto& tx) { REQUIRE(tx.claim(request(t0, {.limit = some})).size() == some); }},
        {"claim more than there is", enqueue,
         [](auto& tx) { REQUIRE(tx.claim(request(t0, {.limit = 1000})).size() == some); }},
        {"claim nothing", {}, [](auto& tx) { REQUIRE(tx.claim(request(t0, {.limit = 1000})).empty()); }},
        {"claim one id", enqueue, [](auto& tx) { REQUIRE(tx.claim(request(t0, {.only = id_of(5)})).size() == 1); }},
        {"succeed", claim, settle(vouch::succeed{"r"})},
        {"retry", claim, settle(vouch::retry{"e", t0 + 1h})},
        {"bury", claim, settle(vouch::bury{"e"})},
        {"release", claim, settle(vouch::release{})},
        {"advance", claim, settle(vouch::advance{"p", t0})},
        {"extend", claim,
         [](auto& tx) {
             std::ignore = tx.extend(std::array{vouch::ticket{id_of(3), 1}}, t0, 1h);
         }},
        {"nudge", claim, [](auto& tx) { REQUIRE(tx.nudge(id_of(3), t0) == vouch::verdict::applied); }},
        {"cancel", enqueue, [](auto& tx) { REQUIRE(tx.cancel(id_of(3), "e", t0) == vouch::verdict::applied); }},
        {"requeue", buried,
         [](auto& tx) {
             REQUIRE(vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(30), .now = t0}).what ==
                     vouch::receipt::kind::inserted);
         }},
        {"purge", buried, [](auto& tx) { REQUIRE(tx.purge({.queue = "q", .before = t0, .limit = some}) == some); }},
        {"next_due", enqueue, [](auto& tx) { REQUIRE(tx.next_due("q") == t0); }},
        {"find", enqueue, [](auto& tx) { REQUIRE(tx.find(id_of(3))); }},
        {"list by group", enqueue, list(query::members("few"))},
        {"list by parent", enqueue, list(query::children(id_of(1)))},
        {"list by key", enqueue, list(query::keyed("q", "mine3"))},
        {"list the dead", {}, list(query::dead("q"))},
        {"list the living", {}, list(query::live("q"))},
        {"list all", {}, list(query::all("q"))},
    };
}

cost cost_of(place& in, const operation& what) {
    auto tx = in.store->begin();
    if (what.prepare) {
        what.prepare(tx);
    }
    std::ignore = spent(in.app.connection());
    what.measure(tx);
    return spent(in.app.connection()); // and rolled back
}

// The texts that reach SQLite.

std::set<std::string>& traced() {
    static std::set<std::string> texts;
    return texts;
}

int remember(unsigned, void*, void* statement, void*) {
    traced().insert(sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
    return 0;
}

int trace(sqlite3* db, const char**, const struct sqlite3_api_routines*) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, remember, nullptr);
}

/// Every connection opened while it lives notes what it runs.
struct tracing {
    tracing() {
        traced().clear();
        sqlite3_auto_extension(reinterpret_cast<void (*)()>(trace));
    }
    tracing(const tracing&) = delete;
    tracing& operator=(const tracing&) = delete;
    ~tracing() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(trace)); }
};

/// What opening a store runs besides: settings, the version, the migrations one by one.
std::set<std::string> texts_of_opening() {
    std::set<std::string> out{
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        "PRAGMA journal_size_limit = 8388608",
        "PRAGMA query_only = 1",
        "PRAGMA encoding",
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE",
        "SELECT value FROM vouch_meta WHERE name = 'schema_version'",
    };
    auto left = sqlite::schema();
    for (auto end = left.find(";\n"); end != std::string::npos; end = left.find(";\n")) {
        out.insert(left.substr(0, end + 1));
        left.erase(0, end + 2);
    }
    return out;
}

/// Everything a store can be asked, in a file of its own, at least once.
void use_everything(const std::string& path) {
    sqlite::store store(path);
    std::ignore = store.wakes("q");
    vouch::transact(store, [](auto& tx) { tx.enqueue(std::array{draft_of(99)}, t0); });
    sqlite::detail::connection reader(path, sqlite::detail::connection::role::reader, {});
    CHECK(sqlite::detail::find_head(reader, "q", 0).first); // as a thread does that waits for work
    vouch::transact(store, [](auto& tx) {
        tx.enqueue(due(20), t0);
        std::ignore = tx.claim(request(t0, {.limit = 10}));
        std::ignore = tx.claim(request(t0, {.only = id_of(11)}));
        for (std::uint64_t n = 1; n <= 11; ++n) {
            const std::array<vouch::outcome, 5> outcomes{vouch::succeed{"r"}, vouch::retry{"e", t0}, vouch::bury{"e"},
                                                         vouch::release{}, vouch::advance{"p", t0}};
            std::ignore = tx.extend(std::array{vouch::ticket{id_of(n), 1}}, t0, 1h);
            settle_in(tx, {id_of(n), 1}, outcomes[n % outcomes.size()], t0);
        }
        std::ignore = tx.nudge(id_of(12), t0);
        std::ignore = tx.cancel(id_of(15), "e", t0);
        auto alone = draft_of(21);
        alone.group = "alone";
        tx.enqueue(std::array{alone}, t0);
        std::ignore = tx.cancel(id_of(21), "e", t0);
        std::ignore = vouch::requeue(tx, {.dead = id_of(21), .successor = id_of(22), .now = t0});
        std::ignore = tx.cancel(id_of(22), "e", t0);
        std::ignore = tx.purge({.queue = "q", .before = t0 + 1h});
    });
    vouch::transact(store, [](auto& tx) {
        std::vector<vouch::draft> plain;
        for (std::uint64_t n = 40; n < 50; ++n) {
            plain.push_back(draft_of(n));
            plain.back().queue = "plain";
        }
        plain.back().payload.assign(5'000, 'x');
        tx.enqueue(plain, t0);
        std::vector<vouch::settle> settles;
        for (const auto& e : tx.claim(request(t0, {.limit = 10, .queue = "plain"}))) {
            settles.push_back({vouch::ticket_of(e), vouch::succeed{}});
        }
        std::ignore = tx.settle(settles, t0);
        std::ignore = tx.purge({.queue = "plain", .before = t0 + 1h});
    });
    std::ignore = look(store);
    std::ignore = look(store.begin()); // and rolled back

    {
        faulty_vfs vfs("faulty");
        sqlite::store failing(path, {.vfs = vfs.name()});
        auto tx = failing.begin();
        tx.enqueue(std::array{draft_of(60)}, t0);
        vfs.matters = [](faulty_vfs::call which, std::string_view) { return which == faulty_vfs::call::sync; };
        vfs.next = {.nth = 1};
        const auto e = error_of([&] { tx.commit(); });
        CHECK((e && e->is_in_doubt()));
    }

    application app(path);
    sqlite::joined joined(app.connection());
    app.execute("BEGIN IMMEDIATE");
    auto lost = draft_of(30);
    lost.group = "lost";
    joined.enqueue(std::array{lost}, t0);
    app.execute("DELETE FROM vouch_groups WHERE name = 'lost'");
    CHECK(kind_of([&] { std::ignore = joined.cancel(id_of(30), "e", t0); }) == vouch::error_kind::corrupt);
    app.execute("ROLLBACK");
}

} // namespace

TEST_CASE("plans: no statement scans a table, sorts, or needs an index it does not have") {
    for (const bool with_statistics : {false, true}) {
        place in(with_statistics ? 500 : 1);
        if (with_statistics) {
            in.app.execute("ANALYZE");
        }
        for (const auto& one : statements) {
            if (has_no_plan(one.which)) {
                continue;
            }
            const auto text = text_of(one.which, sqlite::default_prefix);
            CAPTURE(with_statistics, text);
            const auto plan = plan_of(in.app.connection(), text);
            CHECK(plan.empty() == has_an_empty_plan(one.which));
            CHECK(objections(plan) == std::vector<std::string>{});
        }
    }
}

TEST_CASE("plans: a statement that scans, sorts, or lacks an index is objected to") {
    place in(1);
    const auto objected = [&](const std::string& text, std::string_view because) {
        CAPTURE(text);
        const auto lines = objections(plan_of(in.app.connection(), text));
        return std::any_of(lines.begin(), lines.end(),
                           [&](const std::string& line) { return line.find(because) != std::string::npos; });
    };
    CHECK(objected("SELECT id FROM vouch_entries WHERE topic = 't'", "SCAN"));
    CHECK(objected("SELECT count(*) FROM vouch_entries", "SCAN"));
    CHECK(objected("SELECT e.id FROM vouch_entries e WHERE e.gate <= 1", "SCAN"));
    CHECK(objected("UPDATE vouch_entries SET woken = 0 WHERE worker = 'w'", "SCAN"));
    CHECK(objected("SELECT id FROM vouch_entries WHERE partition = 4 ORDER BY topic", "TEMP B-TREE"));
    CHECK(objected("SELECT DISTINCT topic FROM vouch_entries WHERE partition = 4", "TEMP B-TREE"));
    CHECK(objected("SELECT a.id FROM vouch_entries a, vouch_entries b WHERE a.topic = b.worker", "AUTOMATIC"));
}

TEST_CASE("plans: the store issues the listed statements, all of them and no others") {
    const folder files;
    {
        const tracing on;
        use_everything(files.fresh_path());
    }
    auto known = texts_of_opening();
    for (const auto& one : statements) {
        const auto text = text_of(one.which, sqlite::default_prefix);
        CAPTURE(text);
        CHECK(traced().count(text) == 1);
        known.insert(text);
    }
    const std::set<std::string> of_the_application{"DELETE FROM vouch_groups WHERE name = 'lost'"};
    for (const auto& text : traced()) {
        CAPTURE(text);
        CHECK(known.count(text) + of_the_application.count(text) == 1);
    }
}

TEST_CASE("plans: what an operation does is the same beside a hundred rows of each kind and a hundred thousand") {
    place few(100);
    place many(100'000);
    for (const auto& one : operations()) {
        const auto name = one.name;
        const auto beside_few = cost_of(few, one);
        const auto beside_many = cost_of(many, one);
        CAPTURE(name, beside_few.steps, beside_many.steps, beside_few.full_scans, beside_many.full_scans);
        CHECK(beside_few.steps > 0);
        CHECK(beside_many.steps <= beside_few.steps + beside_few.steps / 50);
        CHECK(beside_many.full_scans <= beside_few.full_scans);
        CHECK(beside_many.sorts == 0);
        CHECK(beside_many.indexes == 0);
    }

    // The measure itself: a scan shows in it.
    const auto scan = [](place& in) {
        const sqlite::detail::statement counting(in.app.connection(),
                                                 "SELECT count(*) FROM vouch_entries WHERE worker = 'nobody'");
        std::ignore = spent(in.app.connection());
        sqlite::detail::run(counting).step();
        return spent(in.app.connection());
    };
    CHECK(scan(many).steps > 100 * scan(few).steps);
    CHECK(scan(many).full_scans > 100 * scan(few).full_scans);
}

} // namespace sqlite_plans_test
