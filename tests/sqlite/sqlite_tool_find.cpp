// SPDX-License-Identifier: MIT
// Finding, explaining and changing many entries with the operator's tool, on a SQLite file.
#include "catch.hpp"
#include "sqlite/operated.hpp"
#include "tool_scenarios.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

TEST_CASE("tool: every command answers for an empty store") {
    const operated_file o;
    tool_test::an_empty_store_is_answered(o.at);
}

TEST_CASE("tool: every filter selects exactly what it says") {
    operated o;
    tool_test::filters_select_exactly(o);
}

TEST_CASE("tool: --older-than, --newer-than and ages go by time") {
    operated o;
    tool_test::ages_are_those_of_the_last_change(o);
}

TEST_CASE("tool: the beginning of an id is enough if no other begins so") {
    operated o;
    tool_test::prefixes_of_ids_are_enough(o);
}

TEST_CASE("tool: why names every reason") {
    operated o;
    tool_test::why_names_the_reason(o);
}

TEST_CASE("tool: running shows who holds what, since when, and the rest of the lease") {
    operated o;
    tool_test::running_shows_who_holds_what(o);
}

TEST_CASE("tool: acts on many entries count first, ask, and change what matches") {
    operated o;
    tool_test::bulk_acts_count_first_and_change_what_matches(o);
}

TEST_CASE("tool: an act that was interrupted is finished by the same command, and does nothing twice") {
    operated o;
    tool_test::an_interrupted_act_is_finished_by_another(o, 20'000);
}

} // namespace sqlite_tool_test

#endif
