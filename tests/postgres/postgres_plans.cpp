// SPDX-License-Identifier: MIT
// The server's plan of every statement: no statement reads a whole table, and none sorts more than a call's own rows,
// but for the list of live entries, which sorts those of its queue. With empty tables, with large ones, and with large
// ones whose statistics are missing or from when they were nearly empty; with plans that are made once, perhaps while
// the tables are empty, and with those that are made for the values of a call. On the store's connections, directly or
// behind pgbouncer, and on the application's, by `joined`, which has no settings.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"

namespace postgres_plans_test {

using postgres_test::application;
using postgres_test::fresh_prefix;
namespace postgres = vouch::postgres;
using postgres::detail::sql;

namespace {

template <std::size_t Size>
bool is_among(sql which, const std::array<sql, Size>& all) {
    return std::find(all.begin(), all.end(), which) != all.end();
}

/// Statements without a plan.
bool is_utility(sql which) {
    return is_among(which, std::array{sql::begin, sql::begin_configured, sql::commit, sql::roll_back, sql::savepoint,
                                      sql::release, sql::roll_back_to});
}

/// Statements that sort at most as many rows as the call names or asks for, or as the server has sessions; and the list of
/// live entries, which sorts all of the queue, because no index has only these in their order.
bool may_sort(sql which) {
    return is_among(which, std::array{sql::oldest_snapshot, sql::list_key, sql::list_live, sql::insert, sql::lock_lanes,
                                      sql::lock_entries, sql::purge_lock, sql::lock_groups});
}

/// A value for each type of parameter, such that many rows match where the call does not name them.
const std::map<std::string, std::string, std::less<>> values{
    {"text", "'q1'"},
    {"text[]", "ARRAY['q1', 'l8']"},
    {"uuid", "'00000000-0000-0000-0000-000000000020'::uuid"},
    {"uuid[]", "ARRAY['00000000-0000-0000-0000-000000000020', '00000000-0000-0000-0000-000000000040']::uuid[]"},
    {"bigint", "50"},
    {"bigint[]", "ARRAY[32, 64]"},
    {"smallint", "3::smallint"},
    {"smallint[]", "ARRAY[2, 2]::smallint[]"},
    {"bytea", "'x'::bytea"},
    {"bytea[]", "ARRAY['x', 'y']::bytea[]"},
    {"boolean", "true"},
    {"boolean[]", "ARRAY[false, true]"},
};

/// The value of one parameter. Times are such that everything is due or old.
std::string value_of(sql which, int number, std::string_view type) {
    const bool is_claim = is_among(which, std::array{sql::claim, sql::claim_only, sql::claim_unlapsed});
    if ((is_claim && number == 2) || (which == sql::purge_look && number == 3)) {
        return "1000000000";
    }
    if (which == sql::purge_look && (number == 4 || number == 5)) {
        return "0";
    }
    constexpr std::array lists{sql::list_group, sql::list_parent, sql::list_key,
                               sql::list_dead,  sql::list_live,   sql::list_all};
    if (is_among(which, lists) && number >= 2 && number <= 4) { // after, state, topic: all
        return number == 2 ? "0" : number == 3 ? "NULL" : "''";
    }
    return values.at(std::string(type));
}

/// The values of the parameters, by the types to which the statement casts them: ` (1, 'q1')`.
std::string values_for(sql which, const std::string& text) {
    std::string out;
    for (int n = 1;; ++n) {
        const auto cast = "$" + std::to_string(n) + "::";
        const auto at = text.find(cast);
        if (at == std::string::npos) {
            CHECK(text.find("$" + std::to_string(n)) == std::string::npos); // each is cast
            return out.empty() ? out : out + ')';
        }
        const auto type = text.substr(at + cast.size());
        auto end = std::min(type.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), type.size());
        end += type.compare(end, 2, "[]") == 0 ? std::size_t{2} : std::size_t{0};
        out.append(out.empty() ? " (" : ", ").append(value_of(which, n, type.substr(0, end)));
    }
}

std::string plan_of(const application& app, sql which, const std::string& prefix) {
    const auto text = text_of(which, postgres::detail::table_names(prefix));
    app.execute("PREPARE looked_at AS " + text);
    auto plan = app.lines("EXPLAIN EXECUTE looked_at" + values_for(which, text));
    app.execute("DEALLOCATE looked_at");
    return plan;
}

void expect_good_plans(const application& app, const std::string& prefix, const std::vector<sql>& except = {}) {
    for (const auto& one : postgres::detail::statements) {
        if (is_utility(one.which) || std::find(except.begin(), except.end(), one.which) != except.end()) {
            continue;
        }
        const auto plan = plan_of(app, one.which, prefix);
        CAPTURE(one.text, plan);
        for (const std::string table : {"entries", "lanes", "groups", "meta"}) {
            CHECK(plan.find("Seq Scan on " + table) == std::string::npos);
        }
        // Rows that are named by id are found by id, not searched in a queue.
        CHECK(plan.find("Filter: (id =") == std::string::npos);
        CHECK(plan.find("Filter: (sequence =") == std::string::npos);
        if (!may_sort(one.which)) {
            CHECK(plan.find("Sort Key") == std::string::npos);
        }
    }
}

void fill(const application& app, const std::string& prefix, int first, int last) {
    const auto numbers = " FROM generate_series(" + std::to_string(first) + ", " + std::to_string(last) + ") AS n";
    app.execute("INSERT INTO " + prefix + R"(entries
 SELECT n, ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, CASE WHEN n % 5 < 3 THEN n END, n, 0, 0, 0, 0,
 n, NULL, n, NULL, 0, 1, CASE WHEN n % 7 = 0 THEN n - 1 END, n % 5, false, n % 3 <> 0,
 CASE WHEN n % 4 = 0 THEN ('00000000-0000-0000-0000-' || lpad(to_hex(n / 16), 12, '0'))::uuid END, NULL, 'q' || n % 3, 't',
 CASE WHEN n % 2 = 0 THEN 'k' || n END, CASE WHEN n % 6 = 0 THEN 'g' || n % 100 END,
 CASE WHEN n % 8 = 0 THEN 'l' || n % 1000 END, '', '', NULL, NULL, NULL, NULL, 'payload')" +
                numbers);
    app.execute("INSERT INTO " + prefix + "groups SELECT 'g' || n, 1, 1, 1" + numbers + " WHERE n % 6 = 0");
    app.execute("INSERT INTO " + prefix + "lanes SELECT 'q', 'l' || n" + numbers + " WHERE n % 6 = 0");
}
void analyze(const application& app, const std::string& prefix) {
    app.execute("ANALYZE " + prefix + "entries; ANALYZE " + prefix + "groups; ANALYZE " + prefix + "lanes");
}

constexpr int large = 30'000;

/// The states of statistics for large tables.
enum class statistics { none, stale, fresh };

std::string filled_tables(const application& app, statistics known) {
    const auto prefix = fresh_prefix();
    postgres::migrate(app.connection(), prefix);
    app.execute("ALTER TABLE " + prefix + "entries SET (autovacuum_enabled = false)");
    if (known == statistics::stale) {
        fill(app, prefix, 1, 20);
        analyze(app, prefix);
    }
    fill(app, prefix, known == statistics::stale ? 21 : 1, large);
    if (known == statistics::fresh) {
        analyze(app, prefix);
    }
    return prefix;
}

constexpr std::array plan_kinds{"force_generic_plan", "force_custom_plan"};
constexpr std::array all_statistics{statistics::none, statistics::stale, statistics::fresh};

void use_plans(const application& app, const std::string& kind) { app.execute("SET plan_cache_mode = " + kind); }

void configure(const application& app) {
    app.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
                "SET enable_bitmapscan = off; SET jit = off"); // as the pool sets them
}

} // namespace

TEST_CASE("postgres plans: on the store's connections, with empty tables") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::migrate(app.connection(), prefix);
    configure(app);
    for (const auto* const kind : plan_kinds) {
        CAPTURE(kind);
        use_plans(app, kind);
        expect_good_plans(app, prefix);
    }
    analyze(app, prefix);
    use_plans(app, plan_kinds[0]);
    expect_good_plans(app, prefix);
}

TEST_CASE("postgres plans: on the store's connections, with large tables") {
    const application app;
    for (const auto known : all_statistics) {
        const auto prefix = filled_tables(app, known);
        configure(app);
        for (const auto* const kind : plan_kinds) {
            CAPTURE(static_cast<int>(known), kind);
            use_plans(app, kind);
            expect_good_plans(app, prefix);
        }
    }
}

TEST_CASE("postgres plans: on the application's connections, with large tables") {
    const application app;
    use_plans(app, "force_custom_plan"); // as the server makes for statements that are not prepared
    for (const auto known : {statistics::stale, statistics::fresh}) {
        CAPTURE(static_cast<int>(known));
        // Two read a whole queue by their nature.
        expect_good_plans(app, filled_tables(app, known), {sql::counts, sql::list_live});
    }
    // An application may prepare a statement itself, and the server then makes one plan for all values.
    use_plans(app, "force_generic_plan");
    expect_good_plans(app, filled_tables(app, statistics::fresh), {sql::counts, sql::list_live});
    use_plans(app, "force_custom_plan");
    // Until the first ANALYZE the server knows nothing, and may sort; but it reads no whole table.
    const auto prefix = filled_tables(app, statistics::none);
    for (const auto& one : postgres::detail::statements) {
        if (!is_utility(one.which)) {
            CAPTURE(one.text);
            CHECK(plan_of(app, one.which, prefix).find("Seq Scan on entries") == std::string::npos);
        }
    }
}

TEST_CASE("postgres plans: a claim reads its rows from the index of gates, in order") {
    const application app;
    configure(app);
    for (const auto known : all_statistics) {
        const auto prefix = filled_tables(app, known);
        for (const auto* const kind : plan_kinds) {
            use_plans(app, kind);
            for (const auto which : {sql::claim, sql::claim_unlapsed, sql::next_due}) {
                const auto plan = plan_of(app, which, prefix);
                CAPTURE(static_cast<int>(known), kind, plan);
                CHECK(plan.find("entries_gate") != std::string::npos);
                CHECK(plan.find("Sort Key") == std::string::npos);
            }
        }
    }
}

TEST_CASE("postgres plans: the store's connections have these settings, and one that it shares only in a transaction") {
    const auto shown = [](PGconn* c, const std::string& setting) {
        PGresult* const r = PQexec(c, ("SHOW " + setting).c_str());
        const std::string value = PQgetvalue(r, 0, 0);
        PQclear(r);
        return value;
    };
    const std::vector<std::string> settings{"enable_seqscan", "enable_hashjoin", "enable_mergejoin",
                                            "enable_bitmapscan", "jit"};
    for (const bool prepare : {true, false}) {
        CAPTURE(prepare);
        postgres::store store(postgres_test::conninfo(),
                              {.prefix = fresh_prefix(), .connections_max = 1, .prepare = prepare});
        auto tx = store.begin();
        PGconn* const c = tx.connection();
        for (const auto& setting : settings) {
            CHECK(shown(c, setting) == "off");
        }
        CHECK(shown(c, "transaction_isolation") == "read committed");
        CHECK((shown(c, "plan_cache_mode") == "force_generic_plan") == prepare);
        tx.commit();
        auto kept = store.begin();
        std::ignore = kept.find({});
        PGconn* const again = kept.connection(); // the same, in another transaction
        static_cast<void>(PQclear(PQexec(again, "ROLLBACK")));
        for (const auto& setting : settings) {
            CHECK((shown(again, setting) == "off") == prepare);
        }
    }
}

} // namespace postgres_plans_test
