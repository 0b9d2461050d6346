// SPDX-License-Identifier: MIT
// The history of attempts in a SQLite file.
#include <string>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "history_scenarios.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace sqlite_history_test {

namespace {

struct place {
    sqlite_test::folder in{};
    std::string path = in.fresh_path();
    std::string at = path + ' ';
    vouch::sqlite::store store{path};

    [[nodiscard]] vouch::sqlite::history_options options() const { return {}; }
    [[nodiscard]] std::vector<vouch::attempt_line> history_of(const vouch::id& which) {
        const auto tx = store.begin();
        return vouch::sqlite::history_of(tx.connection(), which);
    }
};
using table = vouch::sqlite::history_table;

} // namespace

TEST_CASE("sqlite history: a line per outcome, in the commit of the outcome") {
    place p;
    history_test::lines_are_committed_with_outcomes<place, table>(p);
}

TEST_CASE("sqlite history: old lines, and lines beyond the limit of an entry, are removed") {
    place p;
    history_test::the_table_stays_bounded<place, table>(p);
}

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off
TEST_CASE("tool: show prints the attempts, if the application records them") {
    place p;
    history_test::show_prints_the_attempts<place, table>(p);
}
#endif

} // namespace sqlite_history_test
