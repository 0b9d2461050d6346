// SPDX-License-Identifier: MIT
// Which calls other than enqueue are refused, and which are just allowed.
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "refusal.hpp"
#include "support.hpp"

namespace contract_validate_calls_test {

using namespace support;
using vouch::draft;
using vouch::query;

namespace {

template <class Call>
void check_accepted(Call&& call) {
    vouch::memory::store store;
    auto tx = store.begin();
    const auto e = error_of([&] { call(tx); });
    const std::string message = e ? e->what() : "";
    CHECK(message.empty());
}

} // namespace

TEST_CASE("validate: nothing at all is not an error") {
    vouch::memory::store store;
    auto tx = store.begin();
    CHECK(tx.enqueue({}, t0).empty());
    CHECK(tx.settle({}, t0).empty());
    CHECK(tx.extend({}, t0, 1s).empty());
    CHECK(tx.claim({.queue = "q", .limit = 0, .now = t0}).empty());
    CHECK(tx.purge({.queue = "q", .before = t0, .limit = 0}) == 0);
    CHECK(tx.list({.queue = "q", .limit = 0}).empty());
}

TEST_CASE("validate: the limits themselves are accepted") {
    const auto most = vouch::limits{}.batch_max;
    const auto longest = vouch::limits{}.lease_max;
    CHECK(most == 10'000);
    check_accepted(
        [&](auto& tx) { return tx.claim({.queue = bytes(255), .limit = most, .now = t0, .worker = bytes(255)}); });
    check_accepted([&](auto& tx) { return tx.claim({.queue = "q", .now = t0, .lease = 1us}); });
    check_accepted([&](auto& tx) {
        return tx.claim({.queue = "q", .now = vouch::time_point::max() - longest, .lease = longest});
    });
    check_accepted([&](auto& tx) { return tx.purge({.queue = bytes(255), .before = t0, .limit = most}); });
    check_accepted([&](auto& tx) { return tx.list({.queue = bytes(255), .topic = bytes(255), .limit = most}); });
    check_accepted([&](auto& tx) { return tx.cancel(id_of(1), bytes(100), t0); });
    check_accepted([&](auto& tx) { return settle_in(tx, {id_of(1), 1}, vouch::retry{bytes(100), t0}, t0); });
    check_accepted([&](auto& tx) { return settle_in(tx, {id_of(1), 1}, vouch::bury{bytes(100), bytes(1048576)}, t0); });
    check_accepted([&](auto& tx) { return settle_in(tx, {id_of(1), 1}, vouch::succeed{bytes(1048576)}, t0); });
    check_accepted([&](auto& tx) { return settle_in(tx, {id_of(1), 1}, vouch::advance{bytes(1048576), {}}, t0); });
    const std::vector<vouch::ticket> tickets(most);
    check_accepted([&](auto& tx) { return tx.extend(tickets, t0, longest); });
    const std::vector<vouch::settle> settles(most);
    check_accepted([&](auto& tx) { return tx.settle(settles, t0); });
    const std::vector<draft> drafts(most, draft_of(1));
    check_accepted([&](auto& tx) { return tx.enqueue(drafts, t0); });
}

TEST_CASE("validate: a batch over the limit is refused") {
    const std::vector<draft> drafts(10'001, draft_of(3));
    check_refused("enqueue: drafts", {"10001 items", "10000"}, [&](auto& tx) { return tx.enqueue(drafts, t0); });
    const std::vector<vouch::settle> settles(10'001);
    check_refused("settle: settles", {"10001 items", "10000"}, [&](auto& tx) { return tx.settle(settles, t0); });
    const std::vector<vouch::ticket> tickets(10'001);
    check_refused("extend: tickets", {"10001 items", "10000"}, [&](auto& tx) { return tx.extend(tickets, t0, 1s); });
}

TEST_CASE("validate: a bad settle rejects its whole batch") {
    const std::pair<vouch::outcome, std::vector<std::string>> cases[] = {
        {vouch::succeed{bytes(1048577)}, {"result", "1048577 bytes", "1048576"}},
        {vouch::retry{bytes(101), t0}, {"error", "101 bytes", "100"}},
        {vouch::retry{with_control('\n'), t0}, {"error", "control", "byte 6"}},
        {vouch::bury{bytes(101), {}}, {"error", "101 bytes", "100"}},
        {vouch::bury{with_control('\0'), {}}, {"error", "control", "byte 6"}},
        {vouch::bury{"e", bytes(1048577)}, {"result", "1048577 bytes", "1048576"}},
        {vouch::advance{bytes(1048577), {}}, {"progress", "1048577 bytes", "1048576"}},
    };
    for (const auto& [outcome, says] : cases) {
        const std::array batch{vouch::settle{held, vouch::succeed{}}, vouch::settle{held, outcome}};
        check_refused("settle 1: ", says, [&](auto& tx) { return tx.settle(batch, t0); });
    }
}

TEST_CASE("validate: a bad claim is refused") {
    const std::pair<vouch::claim_request, std::vector<std::string>> cases[] = {
        {{.now = t0}, {"queue", "empty"}},
        {{.queue = bytes(256), .now = t0}, {"queue", "256 bytes", "255"}},
        {{.queue = with_control('\n'), .now = t0}, {"queue", "control", "byte 6"}},
        {{.queue = "q", .now = t0, .worker = bytes(256)}, {"worker", "256 bytes", "255"}},
        {{.queue = "q", .now = t0, .worker = with_control('\x1b')}, {"worker", "control", "byte 6"}},
        {{.queue = "q", .limit = 10'001, .now = t0}, {"limit", "10001 items", "10000"}},
        {{.queue = "q", .limit = static_cast<std::size_t>(-1), .now = t0}, {"limit", "10000"}},
        {{.queue = "q", .now = t0, .lease = 0us}, {"lease", "0 us", "1 ", "31622400000000 us"}},
        {{.queue = "q", .now = t0, .lease = -1us}, {"lease", "-1 us"}},
        {{.queue = "q", .now = t0, .lease = vouch::limits{}.lease_max + tick},
         {"lease", "31622400000001 us", "31622400000000 us"}},
        {{.queue = "q", .now = t0, .lease = vouch::duration::max()}, {"lease"}},
        {{.queue = "q", .now = vouch::time_point::max(), .lease = 1us}, {"now", "too late"}},
    };
    for (const auto& [bad, says] : cases) {
        check_refused("claim: ", says, [&, &r = bad](auto& tx) { return tx.claim(r); });
    }
}

TEST_CASE("validate: a bad extension is refused") {
    const std::array tickets{held};
    const auto late = vouch::time_point::max();
    check_refused("extend: lease", {"0 us"}, [&](auto& tx) { return tx.extend(tickets, t0, 0us); });
    check_refused("extend: lease", {"-5 us"}, [&](auto& tx) { return tx.extend(tickets, t0, -5us); });
    check_refused("extend: lease", {" us"}, [&](auto& tx) { return tx.extend(tickets, t0, vouch::duration::max()); });
    check_refused("extend: now", {"too late"}, [&](auto& tx) { return tx.extend(tickets, late, 1us); });
}

TEST_CASE("validate: a bad cancel is refused") {
    check_refused("cancel: error", {"101 bytes", "100"}, [](auto& tx) { return tx.cancel(id_of(30), bytes(101), t0); });
    check_refused("cancel: error", {"control", "byte 6"},
                  [](auto& tx) { return tx.cancel(id_of(30), with_control('\n'), t0); });
}

TEST_CASE("validate: a bad purge is refused") {
    const std::pair<vouch::purge_request, std::vector<std::string>> cases[] = {
        {{.before = t0}, {"queue", "empty"}},
        {{.queue = bytes(256), .before = t0}, {"queue", "256 bytes", "255"}},
        {{.queue = with_control('\n'), .before = t0}, {"queue", "control"}},
        {{.queue = "q", .before = t0, .limit = 10'001}, {"limit", "10001 items", "10000"}},
        {{.queue = "q", .before = t0, .state = vouch::state::pending}, {"state", "pending"}},
        {{.queue = "q", .before = t0, .state = vouch::state::retrying}, {"state", "retrying"}},
        {{.queue = "q", .before = t0, .state = vouch::state::claimed}, {"state", "claimed"}},
    };
    for (const auto& [bad, says] : cases) {
        check_refused("purge: ", says, [&, &r = bad](auto& tx) { return tx.purge(r); });
    }
}

TEST_CASE("validate: a query names what its path wants and nothing else") {
    using path = query::path;
    const std::pair<query, std::vector<std::string>> cases[] = {
        {{.by = path::all}, {"queue", "empty"}},
        {{.by = path::live}, {"queue", "empty"}},
        {{.by = path::dead}, {"queue", "empty"}},
        {{.by = path::key, .queue = "q"}, {"key", "empty"}},
        {{.by = path::key, .key = "k"}, {"queue", "empty"}},
        {{.by = path::group}, {"group", "empty"}},
        {{.by = path::parent}, {"parent", "nil"}},
        {{.by = path::group, .queue = "q", .group = "g"}, {"queue", "not part of this query's path"}},
        {{.by = path::parent, .queue = "q", .parent = id_of(1)}, {"queue", "not part of this query's path"}},
        {{.by = path::all, .queue = "q", .key = "k"}, {"key", "not part of this query's path"}},
        {{.by = path::live, .queue = "q", .group = "g"}, {"group", "not part of this query's path"}},
        {{.by = path::dead, .queue = "q", .parent = id_of(1)}, {"parent", "not part of this query's path"}},
        {{.by = path::all, .queue = bytes(256)}, {"queue", "256 bytes", "255"}},
        {{.by = path::group, .group = bytes(256)}, {"group", "256 bytes", "255"}},
        {{.by = path::key, .queue = "q", .key = with_control('\n')}, {"key", "control", "byte 6"}},
        {{.by = path::all, .queue = "q", .topic = bytes(256)}, {"topic", "256 bytes", "255"}},
        {{.by = path::all, .queue = "q", .limit = 10'001}, {"limit", "10001 items", "10000"}},
    };
    for (const auto& [bad, says] : cases) {
        check_refused("query: ", says, [&, &q = bad](auto& tx) { return tx.list(q); });
        const vouch::memory::store store;
        const auto e = error_of([&, &q = bad] { return store.list(q); });
        REQUIRE(e);
        check_words(*e, "query: ", says);
    }
}

TEST_CASE("validate: the queue of counts, next_due and wakes is a name") {
    vouch::memory::store store;
    const std::pair<std::string, std::vector<std::string>> cases[] = {{"", {"queue", "empty"}},
                                                                      {bytes(256), {"queue", "256 bytes", "255"}},
                                                                      {with_control('\n'), {"queue", "control"}}};
    for (const auto& [queue, says] : cases) {
        const auto& name = queue;
        check_refused("read: ", says, [&](auto& tx) { return tx.counts(name); });
        check_refused("read: ", says, [&](auto& tx) { return tx.next_due(name); });
        CHECK(kind_of([&] { return store.counts(name); }) == vouch::error_kind::invalid_argument);
        CHECK(kind_of([&] { return store.next_due(name); }) == vouch::error_kind::invalid_argument);
        CHECK(kind_of([&] { return store.wakes(name); }) == vouch::error_kind::invalid_argument);
        CHECK(kind_of([&] { return store.wait(name, 1, 0s, {}); }) == vouch::error_kind::invalid_argument);
    }
}

} // namespace contract_validate_calls_test
