// SPDX-License-Identifier: MIT
// Sagas, copies and pictures of the operator's tool, on a PostgreSQL store.
#include "catch.hpp"
#include "postgres/operated.hpp"
#include "tool_pictures.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace postgres_tool_test {

TEST_CASE("postgres tool: a compensated saga looks compensated in every list") {
    operated o;
    tool_test::a_compensated_saga_looks_compensated(o);
}

TEST_CASE("postgres tool: saga shows the steps with their times, and a diagram") {
    operated o;
    tool_test::saga_shows_steps_times_and_a_diagram(o);
}

#if __has_include(<nlohmann/json.hpp>)
TEST_CASE("postgres tool: export prints every field of every entry, and it can be read again") {
    operated o;
    tool_test::export_loses_nothing(o);
}
#endif

TEST_CASE("postgres tool: watch draws the queues again and again, and ends by Ctrl-C") {
    operated o;
    tool_test::watch_draws_what_changes(o);
}

TEST_CASE("postgres tool: 100,000 entries are read in pages, and a search says where it stopped") {
    operated o;
    tool_test::many_entries_are_read_in_pages(o);
}

} // namespace postgres_tool_test

#endif
