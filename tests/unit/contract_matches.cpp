// SPDX-License-Identifier: MIT
// Which entries match a query, by path and by filter.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_matches_test {

using namespace support;
using vouch::query;
using vouch::state;

namespace {

vouch::entry with_everything(state s) {
    auto e = vouch::born(draft_of(1), t0);
    e.state = s;
    e.key = "k";
    e.group = "g";
    e.parent = id_of(9);
    e.sequence = 5;
    return e;
}

query filtered(query q, std::optional<state> s, std::string topic = {}, std::uint64_t after = 0) {
    q.state = s;
    q.topic = std::move(topic);
    q.after = after;
    return q;
}

} // namespace

TEST_CASE("matches: each path selects exactly the entries it names") {
    for (const auto s : vouch::all_states) {
        const auto e = with_everything(s);
        CAPTURE(vouch::name_of(s));
        CHECK(matches(e, query::all("q")));
        CHECK_FALSE(matches(e, query::all("r")));
        CHECK(matches(e, query::live("q")) == vouch::is_live(s));
        CHECK_FALSE(matches(e, query::live("r")));
        CHECK(matches(e, query::dead("q")) == (s == state::dead));
        CHECK_FALSE(matches(e, query::dead("r")));
        CHECK(matches(e, query::keyed("q", "k")));
        CHECK_FALSE(matches(e, query::keyed("q", "l")));
        CHECK_FALSE(matches(e, query::keyed("r", "k")));
        CHECK(matches(e, query::members("g")));
        CHECK_FALSE(matches(e, query::members("h")));
        CHECK(matches(e, query::children(id_of(9))));
        CHECK_FALSE(matches(e, query::children(id_of(8))));
    }
}

TEST_CASE("matches: filters and `after` narrow every path") {
    const auto e = with_everything(state::dead);
    for (const auto& path :
         {query::all("q"), query::dead("q"), query::keyed("q", "k"), query::members("g"), query::children(id_of(9))}) {
        CHECK(matches(e, filtered(path, state::dead, "t", 4)));
        CHECK_FALSE(matches(e, filtered(path, state::succeeded)));
        CHECK_FALSE(matches(e, filtered(path, std::nullopt, "u")));
        CHECK_FALSE(matches(e, filtered(path, std::nullopt, "", 5)));
    }
}

} // namespace contract_matches_test
