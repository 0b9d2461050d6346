// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include <vouch/vouch.hpp>

#include "property.hpp"
#include "support.hpp"

namespace policy_backoff_test {

using namespace support;
using vouch::delay_after;
using vouch::duration;
using vouch::exponential;
using vouch::fixed;
using vouch::schedule;

namespace {

constexpr auto last = std::numeric_limits<std::uint32_t>::max();

vouch::entry claimed_for(std::uint32_t attempts) {
    auto e = vouch::born(draft_of(1), t0);
    e.state = vouch::state::claimed;
    e.attempts = attempts;
    return e;
}

} // namespace

TEST_CASE("exponential: doubles from 30 seconds to an hour, and stays there") {
    const std::vector<duration> expected{30s, 1min, 2min, 4min, 8min, 16min, 32min, 1h, 1h, 1h};
    for (std::uint32_t n = 1; n <= expected.size(); ++n) {
        CAPTURE(n);
        CHECK(delay_after(exponential{}, id_of(1), n) == expected[n - 1]);
    }
    CHECK(delay_after(exponential{}, id_of(1), last) == 1h);
}

TEST_CASE("exponential: the delay is min(base * 2^(n-1), max) for every attempt, without overflow") {
    const duration bases[] = {1us, 3us, 1s, 30s, 24h, duration::max() / 2, duration::max()};
    const duration maxima[] = {1us, 1h, duration::max() / 2, duration::max() - tick, duration::max()};
    for (const auto base : bases) {
        for (const auto max : maxima) {
            duration previous{0};
            for (const std::uint32_t n : {1U, 2U, 3U, 10U, 31U, 32U, 33U, 62U, 63U, 64U, 65U, 1000U, last - 1, last}) {
                CAPTURE(base.count(), max.count(), n);
                const auto got = delay_after(exponential{.base = base, .max = max}, id_of(1), n).value();
                const bool fits = n <= 63 && base.count() <= (duration::max().count() >> (n - 1));
                const auto expected = fits ? std::min(base * (std::int64_t{1} << (n - 1)), max) : max;
                CHECK(got == expected);
                CHECK(got >= previous);
                previous = got;
            }
        }
    }
}

TEST_CASE("exponential: a base or maximum of zero or less gives no delay") {
    for (const std::uint32_t n : {1U, 2U, 64U, last}) {
        CHECK(delay_after(exponential{.base = 0us}, id_of(1), n) == 0us);
        CHECK(delay_after(exponential{.base = -1s}, id_of(1), n) == 0us);
        CHECK(delay_after(exponential{.max = -1s}, id_of(1), n) == 0us);
        CHECK(delay_after(exponential{.base = duration::min(), .jitter = 1}, id_of(1), n) == 0us);
    }
}

TEST_CASE("schedule: gives its delays in order, then no further attempt") {
    const schedule s{1s, 10s, 60s, 300s};
    CHECK(delay_after(s, id_of(1), 1) == 1s);
    CHECK(delay_after(s, id_of(1), 2) == 10s);
    CHECK(delay_after(s, id_of(1), 3) == 60s);
    CHECK(delay_after(s, id_of(1), 4) == 300s);
    CHECK(!delay_after(s, id_of(1), 5));
    CHECK(!delay_after(s, id_of(1), last));
    CHECK(!delay_after(schedule{}, id_of(1), 1));
    CHECK(!delay_after(schedule(std::vector<duration>{}), id_of(1), 1));
    CHECK(delay_after(schedule{-1s}, id_of(1), 1) == 0us);
}

TEST_CASE("fixed: the delay is always the same") {
    for (const std::uint32_t n : {1U, 2U, 1000U, last}) {
        CHECK(delay_after(fixed{7s}, id_of(1), n) == 7s);
    }
    CHECK(delay_after(fixed{}, id_of(1), 1) == 0us);
}

TEST_CASE("backoff: attempts count from 1, and attempt 0 is an error") {
    for (const vouch::backoff& policy :
         {vouch::backoff{exponential{}}, vouch::backoff{schedule{1s}}, vouch::backoff{fixed{}}}) {
        CHECK(kind_of([&] { return delay_after(policy, id_of(1), 0); }) == vouch::error_kind::invalid_argument);
    }
}

TEST_CASE("jitter: takes off at most its share, and is the same for the same entry and attempt") {
    check_property("within [d * (1 - j), d]", [](std::uint64_t high, std::uint64_t low, std::uint32_t attempt) {
        const vouch::id id{.high = high, .low = low};
        const auto n = std::max(attempt, 1U);
        for (const double share : {0.1, 0.25, 0.5, 0.9, 1.0}) {
            for (const duration d : {duration{1us}, duration{3us}, duration{1s}, duration{1h}, duration{24h * 365}}) {
                const auto got = delay_after(fixed{d, share}, id, n).value();
                const auto least = static_cast<double>(d.count()) * (1 - share);
                if (got > d || got < 0us || static_cast<double>(got.count()) < least - 1e-3 ||
                    got != delay_after(fixed{d, share}, id, n)) {
                    return false;
                }
            }
        }
        return true;
    });
}

TEST_CASE("jitter: spreads the delays of different entries and attempts") {
    const auto spread = [](auto&& delay_of) {
        std::set<duration> seen;
        std::vector<int> quarters(4);
        for (std::uint32_t n = 1; n <= 400; ++n) {
            const auto d = delay_of(n);
            seen.insert(d);
            quarters[static_cast<std::size_t>(std::min<std::int64_t>(3, (d - 50s) / 12'500ms))] += 1;
        }
        CHECK(seen.size() > 390);
        for (const auto in_quarter : quarters) {
            CHECK(in_quarter > 60); // 100 expected
        }
    };
    const fixed policy{100s, 0.5};
    spread([&](std::uint32_t n) { return delay_after(policy, id_of(n), 1).value(); });
    spread([&](std::uint32_t n) { return delay_after(policy, {.high = n, .low = 1}, 1).value(); });
    spread([&](std::uint32_t n) { return delay_after(policy, id_of(1), n).value(); });
}

TEST_CASE("jitter: is valid at 0 and 1, beyond them, and for the longest delays") {
    const auto with = [](double share, duration d = 10s) { return delay_after(fixed{d, share}, id_of(1), 1).value(); };
    CHECK(with(0) == 10s);
    CHECK(with(-3) == 10s);
    CHECK(with(std::numeric_limits<double>::quiet_NaN()) == 10s);
    CHECK(with(17) == with(1));
    CHECK(with(std::numeric_limits<double>::infinity()) == with(1));
    CHECK(with(1) < 10s);
    CHECK(with(1) >= 0s);
    CHECK(with(1, duration::max()) >= 0s);
    CHECK(with(1e-9, duration::max()) > duration::max() / 2);
    CHECK(delay_after(exponential{.jitter = 0.5}, id_of(1), last).value() >= 30min);
    CHECK(delay_after(schedule({10s}, 0.5), id_of(1), 1).value() >= 5s);
    CHECK(delay_after(schedule({10s}, 0.5), id_of(1), 1).value() < 10s);
}

TEST_CASE("attempts_max: the entry's value overrides the policy's, then the schedule's, then the default of 8") {
    auto e = claimed_for(1);
    const schedule three{1s, 2s, 3s};
    CHECK(attempts_max_of(e, {}) == 8);
    CHECK(attempts_max_of(e, {.backoff = fixed{1s}}) == 8);
    CHECK(attempts_max_of(e, {.backoff = three}) == 4);
    CHECK(attempts_max_of(e, {.backoff = schedule{}}) == 1);
    CHECK(attempts_max_of(e, {.backoff = three, .attempts_max = 2}) == 2);
    CHECK(attempts_max_of(e, {.backoff = three, .attempts_max = 20}) == 20);
    e.attempts_max = 5;
    CHECK(attempts_max_of(e, {.backoff = three, .attempts_max = 2}) == 5);
    e.attempts_max = last;
    CHECK(attempts_max_of(e, {}) == last);
}

TEST_CASE("after_failure: retries after the backoff until the attempts are used up") {
    const vouch::retry_policy policy{.backoff = exponential{}, .attempts_max = 3};
    for (const std::uint32_t n : {1U, 2U}) {
        CHECK(after_failure(claimed_for(n), "why", policy, t0) == vouch::outcome{vouch::retry{"why", t0 + 30s * n}});
    }
    CHECK(after_failure(claimed_for(3), "why", policy, t0) == vouch::outcome{vouch::bury{"why", {}}});
    CHECK(after_failure(claimed_for(4), "why", policy, t0) == vouch::outcome{vouch::bury{"why", {}}});
}

TEST_CASE("after_failure: buries at the end of the schedule, even if attempts are left") {
    const vouch::retry_policy policy{.backoff = schedule{1s}, .attempts_max = 9};
    CHECK(after_failure(claimed_for(1), "e", policy, t0) == vouch::outcome{vouch::retry{"e", t0 + 1s}});
    CHECK(after_failure(claimed_for(2), "e", policy, t0) == vouch::outcome{vouch::bury{"e", {}}});
    CHECK(after_failure(claimed_for(1), "e", {.backoff = schedule{}}, t0) == vouch::outcome{vouch::bury{"e", {}}});
}

TEST_CASE("after_failure: a delay beyond the largest time gives the largest time") {
    const vouch::retry_policy policy{.backoff = fixed{duration::max()}};
    const auto got = after_failure(claimed_for(1), "e", policy, t0);
    REQUIRE(std::holds_alternative<vouch::retry>(got));
    CHECK(std::get<vouch::retry>(got).at == vouch::time_point::max());
}

TEST_CASE("presets: each preset has its documented delays and attempts") {
    using delays = std::vector<duration>;
    const auto delays_of = [](const vouch::retry_policy& policy) {
        delays out;
        for (std::uint32_t n = 1;; ++n) {
            const auto next = after_failure(claimed_for(n), "e", policy, t0);
            const auto* const again = std::get_if<vouch::retry>(&next);
            if (again == nullptr) {
                return out;
            }
            out.push_back(again->at - t0);
        }
    };
    using vouch::retry_policy;
    CHECK(delays_of(retry_policy::external_call()) == delays{30s, 1min, 2min, 4min, 8min, 16min, 32min});
    CHECK(delays_of(retry_policy::external_call()) == delays_of({}));
    CHECK(delays_of(retry_policy::listener()) == delays{1s, 10s, 60s, 300s});
    CHECK(delays_of(retry_policy::webhook(10s, 4)) == delays{10s, 20s, 40s});
    CHECK(delays_of(retry_policy::compensation()) == delays{1s, 2s, 4s, 8s, 16s});
    CHECK(delays_of(retry_policy::none()).empty());
}

} // namespace policy_backoff_test
