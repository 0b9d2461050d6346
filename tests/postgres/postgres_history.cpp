// SPDX-License-Identifier: MIT
// The history of attempts in a PostgreSQL database.
#include <string>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "history_scenarios.hpp"
#include "postgres/operated.hpp"
#include "postgres/server.hpp"

namespace postgres_history_test {

namespace {

struct place {
    std::string prefix = postgres_test::fresh_prefix();
#ifdef VOUCH_TOOL
    std::string at = postgres_tool_test::url() + "--prefix " + prefix + ' ';
#endif
    vouch::postgres::store store{postgres_test::conninfo(), {.prefix = prefix}};
    postgres_test::application app{};

    [[nodiscard]] vouch::postgres::history_options options() const { return {.prefix = prefix}; }
    [[nodiscard]] std::vector<vouch::attempt_line> history_of(const vouch::id& which) {
        return vouch::postgres::history_of(app.connection(), which, prefix);
    }
};
using table = vouch::postgres::history_table;

} // namespace

TEST_CASE("postgres history: a line per outcome, in the commit of the outcome") {
    place p;
    history_test::lines_are_committed_with_outcomes<place, table>(p);
}

TEST_CASE("postgres history: old lines, and lines beyond the limit of an entry, are removed") {
    place p;
    history_test::the_table_stays_bounded<place, table>(p);
}

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off
TEST_CASE("postgres tool: show prints the attempts, if the application records them") {
    place p;
    history_test::show_prints_the_attempts<place, table>(p);
}
#endif

} // namespace postgres_history_test
