// SPDX-License-Identifier: MIT
// The operator's tool and databases of other schema versions.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

TEST_CASE("tool: schema prints the tables, and a file's version beside ours") {
    const operated o;
    CHECK(says(ask_tool("schema"), "CREATE TABLE vouch_entries"));
    CHECK(ask_tool("schema " + o.path).code == 0);
    const auto version = std::to_string(vouch::sqlite::schema_version);
    CHECK(says(ask_tool("schema --json " + o.path), R"({"stored":)" + version + R"(,"ours":)" + version + "}"));
}

namespace {

/// A database that says it is of another version.
struct of_another_schema : operated {
    explicit of_another_schema(std::int64_t version) : operated() {
        auto tx = store.begin();
        const auto sql = "UPDATE vouch_meta SET value = " + std::to_string(version) + " WHERE name = 'schema_version'";
        REQUIRE(sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
        tx.commit();
        before = bytes();
    }
    /// Of every row there is.
    [[nodiscard]] std::string bytes() {
        std::string out;
        for (const auto& e : store.list(vouch::query::all("q"))) {
            vouch::for_each_field(
                [&](std::string_view, const auto& field) {
                    if constexpr (requires { std::string(field); }) {
                        out += field;
                    } else if constexpr (requires { std::to_string(field); }) {
                        out += std::to_string(field);
                    }
                },
                e);
            out += std::string(name_of(e.state)) + '\n';
        }
        return out;
    }
    /// The verbs that change something, each on an entry it would change.
    [[nodiscard]] std::vector<std::string> changes() const {
        return {"retry " + path + ' ' + to_string(waits), "cancel --yes " + path + ' ' + to_string(due),
                "requeue " + path + ' ' + to_string(dead), "purge --yes --queue q --older-than 0s " + path};
    }
    std::string before{};
};

} // namespace

TEST_CASE("tool: a database of an older schema can be looked at, is never changed, and every answer says why") {
    const auto ours = std::to_string(vouch::sqlite::schema_version);
    const auto stored = std::to_string(vouch::sqlite::schema_version - 1);
    of_another_schema o(vouch::sqlite::schema_version - 1);
    const auto is_explained = [&](const answer& a) {
        return says(a, "has schema version " + stored + ", older than " + ours) && says(a, "but not changed") &&
               says(a, "vouch::sqlite::migrate");
    };
    const auto stats = ask_tool("stats " + o.path);
    CHECK(stats.code == 0);
    CHECK(is_explained(stats));
    CHECK(has_row(stats, "q 6 0 1 1 1"));
    CHECK_FALSE(has_row(ask_tool("stats --queue other " + o.path), "q 6"));

    const auto list = ask_tool("list --state dead " + o.path);
    CHECK(list.code == 0);
    CHECK(is_explained(list));
    CHECK(has_row(list, to_string(o.dead) + " q bad dead 1 0."));
    CHECK_FALSE(says(list, to_string(o.due)));
    CHECK(says(ask_tool("list --limit 1 --topic now --json " + o.path), R"([{"id":")" + to_string(o.due) + '"'));

    CHECK(ask_tool("list --error no_good " + o.path).code == 1); // it cannot, and does not print others instead

    const auto show = ask_tool("show " + o.path + ' ' + to_string(o.due));
    CHECK(show.code == 0);
    CHECK(is_explained(show));
    CHECK(says(show, "topic            now\n"));
    CHECK_FALSE(says(show, "a \"payload")); // as stored, and without what is the handler's
    CHECK(says(ask_tool("show --json " + o.path + ' ' + to_string(o.due)), R"("topic":"now")"));
    CHECK(ask_tool("show " + o.path + " 00000000-0000-0000-0000-000000000001").code == 3);

    const auto schema = ask_tool("schema " + o.path);
    CHECK(schema.code == 4);
    CHECK(is_explained(schema));
    for (const auto& change : o.changes()) {
        const auto refused = ask_tool(change);
        CHECK(refused.code == 4);
        CHECK(is_explained(refused));
    }
    CHECK(o.bytes() == o.before);
}

TEST_CASE("tool: a database of a newer schema is left alone, and every answer says why") {
    of_another_schema o(vouch::sqlite::schema_version + 1);
    auto all = o.changes();
    for (const auto* const verb : {"stats ", "list ", "schema "}) {
        all.push_back(verb + o.path);
    }
    all.push_back("show " + o.path + ' ' + to_string(o.due));
    for (const auto& one : all) {
        const auto refused = ask_tool(one);
        CHECK(refused.code == 4);
        CHECK(says(refused, "has schema version " + std::to_string(vouch::sqlite::schema_version + 1) +
                                ", newer than " + std::to_string(vouch::sqlite::schema_version)));
        CHECK(says(refused, "nothing was read or changed"));
    }
    CHECK(o.bytes() == o.before);
}

} // namespace sqlite_tool_test

#endif
