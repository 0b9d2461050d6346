// SPDX-License-Identifier: MIT
// The operator's tool on a PostgreSQL store, run as an operator runs it: what it prints, what it changes, and its exit
// codes. `tests/sqlite/sqlite_tool*.cpp` has what does not depend on the store.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/operated.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace postgres_tool_test {

TEST_CASE("postgres tool: an empty store has no entries, and a database without tables says so") {
    const operated_tables o;
    CHECK(ask_tool("stats " + o.at).said == "no entries\n");
    CHECK(ask_tool("stats --json " + o.at).said == "[]\n");
    CHECK(ask_tool("list " + o.at).said.empty());
    CHECK(ask_tool("list " + o.at).code == 0);
    const auto none = ask_tool("stats " + url() + "--prefix other.");
    CHECK(none.code == 4);
    CHECK(says(none, "the database has no tables with the prefix other."));
    CHECK(o.app.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'other'") == 0); // it creates nothing
}

TEST_CASE("postgres tool: stats, list and show say the same as on a SQLite file") {
    const operated o;
    const auto before = o.contents();
    CHECK(has_row(ask_tool("stats " + o.at), "q 6 0 1 1 1 overdue "));
    CHECK(says(ask_tool("stats --json " + o.at),
               R"([{"queue":"q","entries":{"pending":6,"retrying":0,"claimed":1,"succeeded":1,"dead":1})"));
    const auto dead = ask_tool("list --state dead " + o.at);
    CHECK(has_row(dead, to_string(o.dead) + " q bad dead 1 0."));
    CHECK_FALSE(says(dead, to_string(o.due)));
    CHECK(says(ask_tool("list --topic now --json " + o.at), R"([{"id":")" + to_string(o.due) + '"'));

    const auto show = [&](const vouch::id& id, const std::string& more = "") {
        const auto a = ask_tool("show " + o.at + to_string(id) + more);
        CHECK(a.code == 0);
        return a;
    };
    CHECK(says(show(o.waits), "(in 9 days)"));
    CHECK(says(show(o.due), "; workers are busy with other entries of queue q: w-1. "));
    CHECK(says(show(o.due), "header           from: ada"));
    CHECK_FALSE(says(show(o.due), "a \"payload\""));
    CHECK(says(show(o.due, " --payload"), "a \"payload\"\\x0a"));
    CHECK(says(show(o.dead), " with error no_good; `requeue` gives it a successor"));
    CHECK(says(show(o.blocked), "blocked in lane lane-1 behind " + to_string(o.head) + ", which is pending"));
    CHECK(says(show(o.head), "due 20"));
    CHECK(says(show(o.held), "held by w-1 until 20"));
    CHECK(says(show(o.parent), "waits for the reply of " + to_string(o.command) + " (command, pending)"));
    CHECK(o.contents() == before);
}

TEST_CASE("postgres tool: retry, cancel, requeue and purge change what they say, beside a store that is open") {
    operated o;
    const auto tool = [&](const std::string& verb, const vouch::id& id, const std::string& more = "") {
        return ask_tool(verb + ' ' + o.at + to_string(id) + more);
    };
    CHECK(says(tool("retry", o.waits), "the entry is due now"));
    CHECK(o.store.find(o.waits)->due_at <= o.outbox.now());
    CHECK(tool("retry", o.dead).code == 1);
    CHECK(tool("retry", support::id_of(99)).code == 3);
    CHECK(says(tool("cancel", o.due), "needs --yes"));
    CHECK(o.store.find(o.due)->state == state::pending);
    CHECK(tool("cancel", o.due, " --yes").code == 0);
    CHECK(o.store.find(o.due)->state == state::dead);
    CHECK(says(tool("requeue", o.dead), "the successor is "));
    CHECK(says(tool("requeue", o.dead), "the entry already has a successor: "));
    CHECK(says(ask_tool("requeue " + o.at + "--queue q --error cancelled --yes"), "1 requeued"));
    CHECK(says(ask_tool("purge " + o.at + "--queue q --older-than 0s --state succeeded --yes"), "1 removed"));
    CHECK_FALSE(o.store.find(o.ended).has_value());
}

TEST_CASE("postgres tool: a wrong URL, password, database or schema version is one sentence, without the password") {
    const operated o;
    const auto before = o.contents();
    const std::string folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    const auto no_server = ask_tool("stats postgres://me:secret@127.0.0.1:1/db");
    CHECK(no_server.code == 4);
    CHECK(says(no_server, "no server answers at host 127.0.0.1, port 1"));
    CHECK_FALSE(says(no_server, "secret"));
    const auto no_database = ask_tool("stats 'postgresql://postgres:secret@/nothing?host=" + folder + "'");
    CHECK(no_database.code == 2);
    CHECK(says(no_database, "the database does not exist (SQLSTATE 3D000)"));
    CHECK_FALSE(says(no_database, "secret"));
    const auto no_url = ask_tool("stats 'postgres://postgres@/x?colour=red&password=secret'");
    CHECK(no_url.code == 2);
    CHECK(says(no_url, "conninfo is not valid"));
    CHECK_FALSE(says(no_url, "secret"));
    CHECK(ask_tool("stats " + url() + "--prefix 'a b'").code == 2);

    o.app.execute("UPDATE " + o.prefix + "meta SET value = value + 1 WHERE name = 'schema_version'");
    const auto ours = std::to_string(vouch::postgres::schema_version);
    for (const auto& call : {"stats " + o.at, "list " + o.at, "retry " + o.at + to_string(o.waits), "schema " + o.at,
                             "cancel --yes " + o.at + to_string(o.due)}) {
        const auto newer = ask_tool(call);
        CHECK(newer.code == 4);
        CHECK(says(newer, ", newer than " + ours));
        CHECK(says(newer, "nothing was read or changed"));
    }
    CHECK(o.contents() == before);
}

TEST_CASE("postgres tool: schema and roles print statements; schema with a store compares versions") {
    const operated_tables o;
    CHECK(says(ask_tool("schema --for postgres"), "CREATE TABLE \"public\".vouch_entries"));
    CHECK(says(ask_tool("schema --for postgres --prefix billing."), "CREATE SCHEMA IF NOT EXISTS \"billing\""));
    CHECK(says(ask_tool("schema --for oracle"), "--for must be sqlite or postgres"));
    CHECK(ask_tool("schema " + o.at).code == 0);
    CHECK(ask_tool("schema --json " + o.at).said == R"({"stored":1,"ours":1})"
                                                    "\n");
    CHECK(ask_tool("roles").said == vouch::postgres::roles());
    CHECK(ask_tool("roles --prefix billing.").said == vouch::postgres::roles("billing."));
    CHECK(ask_tool("roles work.db").code == 2);
    CHECK(says(ask_tool("roles work.db"), "roles are for PostgreSQL"));
}

TEST_CASE("postgres tool: names that turn, hide or command a terminal do not reach it") {
    operated o;
    for (const std::string hidden :
         {"\x1b[2J", "\x07", "\r", "\n", "\x7f", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\x8b"}) {
        // By hand: the store refuses some of these names, but a row may come from elsewhere.
        const auto id = o.emit({.topic = "hidden", .headers = {{"h", hidden}}});
        o.app.execute("UPDATE " + o.prefix + "entries SET topic = E'a" + hidden + "b', worker = E'" + hidden +
                      "', last_error = E'" + hidden + "', lane = E'l" + hidden + "' WHERE topic = 'hidden'");
        CAPTURE(id);
        for (const std::string verb : {"list ", "list --json ", "show ", "show --json "}) {
            const bool is_list = verb.starts_with("list");
            const auto a = ask_tool(
                verb + o.at + (is_list ? "--after " + std::to_string(o.store.find(id)->sequence - 1) : to_string(id)));
            CHECK(a.code == 0);
            CHECK(says(a, to_string(id)));
            // A line ends what is printed, so only inside a name is it hidden.
            CHECK(a.said.find("a" + hidden + "b") == std::string::npos);
            if (hidden != "\n") {
                CHECK(a.said.find(hidden) == std::string::npos);
            }
        }
    }
    // A name that the contract refuses is an error, in which the name is not repeated.
    o.app.execute("UPDATE " + o.prefix + "entries SET queue = E'q\x1b[2J' WHERE id = '" + to_string(o.due) + "'");
    const auto stats = ask_tool("stats " + o.at);
    CHECK(stats.said.find('\x1b') == std::string::npos);
    CHECK(stats.code == 2);
}

TEST_CASE("postgres tool: a store of 200,000 entries is answered in pages and without reading all of them") {
    operated o;
    o.app.execute("INSERT INTO " + o.prefix + "entries SELECT nextval('" + o.prefix +
                  "sequence'), md5(i::text)::uuid, 1, 1, 0, 0, 0, 0, 1, NULL, 1, NULL, 0, 1, NULL, 0, false, true, "
                  "NULL, NULL, 'q', 't', NULL, NULL, NULL, '', '', NULL, NULL, NULL, NULL, '' "
                  "FROM generate_series(1, 200000) i");
    o.app.execute("ANALYZE " + o.prefix + "entries");
    CHECK(has_row(ask_tool("stats " + o.at), "q 200006 0 1 1 1"));
    CHECK(says(ask_tool("list --limit 3 --after 6 " + o.at), to_string(o.parent)));
    CHECK(ask_tool("list --limit 3 " + o.at).said.size() < 600);
    // The head of the lane is behind all of them.
    const auto first = o.emit({.topic = "first", .lane = "lane-2"});
    const auto last = o.emit({.topic = "last", .lane = "lane-2"});
    const auto rows_read = [&] {
        while (o.app.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'the_tool'") > 0) {
            std::this_thread::sleep_for(1ms); // a server process reports what it has read when it ends
        }
        return o.app.number("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'entries' AND "
                            "schemaname = '" +
                            o.prefix.substr(0, o.prefix.size() - 1) + "'");
    };
    const auto before = rows_read();
    CHECK(says(ask_tool("show " + o.at + to_string(last)), "blocked in lane lane-2 behind " + to_string(first)));
    const auto read = rows_read() - before;
    CHECK(read > 0);
    CHECK(read < 1000);
}

} // namespace postgres_tool_test

#endif
