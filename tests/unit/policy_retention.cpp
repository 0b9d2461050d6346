// SPDX-License-Identifier: MIT
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace policy_retention_test {

using namespace support;
using vouch::purge_rule;

namespace {

/// Whether a purge by this rule at `now` removes an entry that ended at `ended`.
bool is_purged(const purge_rule& rule, vouch::time_point ended, vouch::time_point now) {
    vouch::memory::store store;
    put(store, draft_of(1), ended);
    cancel(store, id_of(1), ended);
    if (const auto before = rule.before(now)) {
        purge(store, {.queue = "q", .before = *before});
    }
    return !store.find(id_of(1));
}

} // namespace

TEST_CASE("retention: keeps everything by default") {
    const vouch::retention kept;
    CHECK(!kept.succeeded.before(t0));
    CHECK(!kept.dead.before(t0));
    CHECK(!purge_rule::never().before(vouch::time_point::max()));
    CHECK(!is_purged(purge_rule::never(), t0, t0 + 24h * 365 * 100));
}

TEST_CASE("retention: `immediately` removes entries that have ended by now, and none that end later") {
    CHECK(is_purged(purge_rule::immediately(), t0 - tick, t0));
    CHECK(is_purged(purge_rule::immediately(), t0, t0));
    CHECK(!is_purged(purge_rule::immediately(), t0 + tick, t0));
}

TEST_CASE("retention: `after` removes an entry exactly when it reaches the age") {
    const auto rule = purge_rule::after(1h);
    CHECK(!is_purged(rule, t0, t0 + 1h - tick));
    CHECK(is_purged(rule, t0, t0 + 1h));
    CHECK(is_purged(rule, t0, t0 + 1h + tick));
}

TEST_CASE("retention: the largest age keeps everything without overflow") {
    const auto rule = purge_rule::after(vouch::duration::max());
    CHECK(!is_purged(rule, t0, t0));
    CHECK(rule.before(vouch::time_point::min()) == vouch::time_point::min() + tick);
    CHECK(purge_rule::immediately().before(vouch::time_point::max()) == vouch::time_point::max());
}

} // namespace policy_retention_test
