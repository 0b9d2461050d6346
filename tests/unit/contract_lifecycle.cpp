// SPDX-License-Identifier: MIT
// Every state x every verb. What is expected is written here once more, as data, from the tables of the design.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_lifecycle_test {

using namespace support;
using vouch::entry;
using vouch::state;
using vouch::verb;
using vouch::verdict;

namespace {

constexpr auto now = t0;

/// Where an entry stands, as the columns of the design's table of verdicts.
enum class column : std::uint8_t { pending, retrying, running, over, succeeded, dead };
constexpr std::array all_columns{column::pending, column::retrying,  column::running,
                                 column::over,    column::succeeded, column::dead};

using row = std::array<verdict, all_columns.size()>;
constexpr auto applied = verdict::applied;
constexpr auto repeated = verdict::repeated;
constexpr auto stale = verdict::stale;
constexpr auto unknown = verdict::unknown;

//                              pending   retrying  running   over      succeeded dead
constexpr row with_its_ticket{repeated, repeated, applied, applied, repeated, repeated};
constexpr row with_another{stale, stale, stale, stale, stale, stale};
constexpr row nudged{applied, applied, applied, applied, stale, stale};
constexpr row nudged_again{repeated, repeated, repeated, repeated, stale, stale};
constexpr row cancelled{applied, applied, stale, applied, stale, repeated};

/// What differs between two entries that can get different answers.
struct situation {
    column at;
    std::uint32_t attempts;
    std::uint32_t lapses;
    bool woken;      // claimed only
    bool due_passed; // due_at is at `now`, else a tick after it
};

std::vector<situation> all_situations() {
    std::vector<situation> out;
    for (const auto at : all_columns) {
        const bool claimed = at == column::running || at == column::over;
        for (const auto& [attempts, lapses] : {std::pair{1U, 0U}, {1U, 1U}, {2U, 0U}, {2U, 3U}}) {
            for (const bool due_passed : {true, false}) {
                out.push_back({at, attempts, lapses, false, due_passed});
                if (claimed) {
                    out.push_back({at, attempts, lapses, true, due_passed});
                }
            }
        }
    }
    return out;
}

/// Every field has a value of its own, so that one taken for another shows.
entry entry_in(const situation& s) {
    entry e = vouch::born({.id = id_of(1),
                           .queue = "queue",
                           .topic = "topic",
                           .payload = "payload",
                           .key = "key",
                           .group = "group",
                           .lane = "lane",
                           .parent = id_of(2),
                           .predecessor = id_of(3),
                           .due_at = s.due_passed ? now : now + tick,
                           .expires_at = now + 10h,
                           .attempts_max = 9,
                           .trail = {id_of(4), id_of(5)},
                           .headers = {{"name", "value"}},
                           .progress = "progress"},
                          now - 1h);
    constexpr std::array states{state::pending, state::retrying,  state::claimed,
                                state::claimed, state::succeeded, state::dead};
    e.state = states[static_cast<std::size_t>(s.at)];
    e.sequence = 77;
    e.generation = 3;
    e.attempts = s.attempts;
    e.lapses = s.lapses;
    e.failures = 5;
    e.epoch = 11;
    e.woken = s.woken;
    e.last_error = "earlier_error";
    e.result = "earlier result";
    e.worker = "worker";
    e.updated_at = now - 2min;
    e.last_attempt_at = now - 3min;
    if (e.state == state::claimed) {
        e.lease_until = s.at == column::over ? now : now + tick;
    }
    return e;
}

struct attempt {
    std::string_view name;
    vouch::verb verb;
    std::function<verdict(entry&, std::uint64_t epoch)> by;
    std::set<std::string_view> changes; // fields, when applied
};

/// A settle with an outcome of this kind.
template <class Outcome>
attempt settling(std::string_view name, vouch::verb v, Outcome outcome, std::set<std::string_view> changes) {
    changes.insert({"state", "lease_until", "woken", "updated_at"});
    return {name, v,
            [outcome](entry& e, std::uint64_t epoch) {
                return apply(e, vouch::settle{{e.id, epoch}, outcome}, now);
            },
            changes};
}

const std::vector<attempt>& with_tickets() {
    static const std::vector<attempt> all{
        settling("succeed", verb::succeed, vouch::succeed{"new result"}, {"lapses", "result"}),
        settling("retry", verb::retry, vouch::retry{"new_error", now + 1h},
                 {"lapses", "failures", "due_at", "last_error"}),
        settling("bury", verb::bury, vouch::bury{"new_error", {}}, {"lapses", "failures", "last_error", "result"}),
        settling("bury with a result", verb::bury, vouch::bury{"new_error", "reply"},
                 {"lapses", "failures", "last_error", "result"}),
        settling("release", verb::release, vouch::release{}, {"attempts", "due_at"}),
        settling("release at", verb::release, vouch::release{now + 1h}, {"attempts", "due_at"}),
        settling("advance", verb::advance, vouch::advance{"new progress", {}},
                 {"attempts", "lapses", "progress", "due_at"}),
        settling("advance at", verb::advance, vouch::advance{"new progress", now + 1h},
                 {"attempts", "lapses", "progress", "due_at"}),
        {"extend",
         verb::extend,
         [](entry& e, std::uint64_t epoch) {
             return apply(e, vouch::extend{{e.id, epoch}, 1h}, now);
         },
         {"lease_until", "updated_at"}},
    };
    return all;
}

const attempt nudging{"nudge",
                      verb::nudge,
                      [](entry& e, std::uint64_t) { return apply(e, vouch::nudge{}, now); },
                      {"due_at", "woken", "updated_at"}};
const attempt cancelling{"cancel",
                         verb::cancel,
                         [](entry& e, std::uint64_t) { return apply(e, vouch::cancel{"new_error"}, now); },
                         {"state", "epoch", "last_error", "lease_until", "woken", "updated_at"}};
const attempt claiming{
    "claim",
    verb::claim,
    [](entry& e, std::uint64_t) {
        apply(e, vouch::claim_request{.queue = "queue", .now = now, .lease = 1h, .worker = "new worker"});
        return applied;
    },
    {"state", "attempts", "lapses", "epoch", "lease_until", "woken", "worker", "last_attempt_at", "updated_at"}};

/// Calls `f(attempt, situation, epoch, expected verdict)` for all there is, but claims of what has no open gate.
template <class F>
void for_each_case(F&& f) {
    for (const auto& s : all_situations()) {
        const auto at = static_cast<std::size_t>(s.at);
        const bool claimed = s.at == column::running || s.at == column::over;
        for (const auto& a : with_tickets()) {
            f(a, s, 11U, with_its_ticket[at]);
            for (const std::uint64_t other : {0U, 1U, 10U, 12U}) {
                f(a, s, other, with_another[at]);
            }
        }
        f(nudging, s, 0U, (claimed ? s.woken : s.due_passed) ? nudged_again[at] : nudged[at]);
        f(cancelling, s, 0U, cancelled[at]);
        const bool open = s.at == column::over || (s.due_passed && at <= static_cast<std::size_t>(column::retrying));
        if (open) {
            f(claiming, s, 0U, applied);
        }
    }
}

std::set<std::string_view> differences(const entry& a, const entry& b) {
    std::set<std::string_view> out;
    for_each_field(
        [&](std::string_view name, const auto& x, const auto& y) {
            if (x != y) {
                out.insert(name);
            }
        },
        a, b);
    return out;
}

using vouch::condition;
using move = std::tuple<state, verb, state>;

/// The table of the design, written a second time.
const std::set<std::tuple<state, verb, state, condition>>& expected_rows() {
    using enum vouch::verb;
    using enum vouch::condition;
    static const std::set<std::tuple<state, verb, state, condition>> all{
        {state::pending, claim, state::claimed, always},
        {state::retrying, claim, state::claimed, always},
        {state::claimed, claim, state::claimed, lease_over},
        {state::claimed, succeed, state::succeeded, always},
        {state::claimed, retry, state::retrying, always},
        {state::claimed, bury, state::dead, always},
        {state::claimed, release, state::pending, first_attempt},
        {state::claimed, release, state::retrying, later_attempt},
        {state::claimed, advance, state::pending, always},
        {state::claimed, extend, state::claimed, always},
        {state::pending, nudge, state::pending, always},
        {state::retrying, nudge, state::retrying, always},
        {state::claimed, nudge, state::claimed, always},
        {state::pending, cancel, state::dead, always},
        {state::retrying, cancel, state::dead, always},
        {state::claimed, cancel, state::dead, lease_over},
    };
    return all;
}

} // namespace

TEST_CASE("lifecycle: every verb in every situation gets the verdict of the table") {
    std::size_t cases = 0;
    for_each_case([&](const attempt& a, const situation& s, std::uint64_t epoch, verdict expected) {
        auto e = entry_in(s);
        const auto got = a.by(e, epoch);
        ++cases;
        if (got != expected) {
            CAPTURE(a.name, e.state, s.attempts, s.lapses, s.woken, s.due_passed, epoch);
            CHECK(got == expected);
        }
    });
    CHECK(cases == 64 * (9 * 5 + 2) + 24);
}

TEST_CASE("lifecycle: whatever is not applied changes nothing, updated_at included") {
    for_each_case([](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        const auto before = entry_in(s);
        auto after = before;
        if (a.by(after, epoch) != applied && after != before) {
            CAPTURE(a.name, before.state, epoch);
            CHECK(differences(before, after).empty());
        }
    });
}

TEST_CASE("lifecycle: a verb changes its own fields and no other") {
    for (const auto& one : {with_tickets(), std::vector{nudging, cancelling, claiming}}) {
        for (const auto& a : one) {
            std::set<std::string_view> seen;
            for_each_case([&](const attempt& b, const situation& s, std::uint64_t epoch, verdict) {
                const auto before = entry_in(s);
                auto after = before;
                if (a.name == b.name && b.by(after, epoch) == applied) {
                    seen.merge(differences(before, after));
                }
            });
            CAPTURE(a.name);
            CHECK(seen == a.changes);
        }
    }
}

TEST_CASE("lifecycle: an applied verb always sets updated_at to now") {
    for_each_case([](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        auto e = entry_in(s);
        if (a.by(e, epoch) == applied && e.updated_at != now) {
            CAPTURE(a.name);
            CHECK(e.updated_at == now);
        }
    });
}

TEST_CASE("lifecycle: a first lapse in a row is no attempt, and every outcome but a release sets lapses back") {
    for_each_case([](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        auto e = entry_in(s);
        if (a.by(e, epoch) != applied) {
            return;
        }
        const bool is_claim = a.verb == verb::claim;
        const bool is_takeover = is_claim && s.at == column::over;
        const bool is_outcome = std::set{verb::succeed, verb::retry, verb::bury, verb::advance}.contains(a.verb);
        CAPTURE(a.name, s.attempts, s.lapses);
        CHECK(e.lapses == (is_outcome ? 0U : s.lapses + (is_takeover ? 1U : 0U)));
        if (is_claim) {
            CHECK(e.attempts == s.attempts + (is_takeover && s.lapses == 0 ? 0U : 1U));
        }
    });
}

TEST_CASE("lifecycle: `transitions` is the table of the design") {
    std::set<std::tuple<state, verb, state, condition>> rows;
    for (const auto& t : vouch::transitions) {
        rows.insert({t.from, t.verb, t.to, t.when});
    }
    CHECK(rows.size() == vouch::transitions.size());
    CHECK(rows == expected_rows());
}

TEST_CASE("lifecycle: `apply` makes every transition of the table, and no other") {
    std::set<move> seen;
    for_each_case([&](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        auto e = entry_in(s);
        const auto from = e.state;
        if (a.by(e, epoch) == applied) {
            seen.insert({from, a.verb, e.state});
        }
    });
    std::set<move> listed;
    for (const auto& [from, v, to, when] : expected_rows()) {
        listed.insert({from, v, to});
    }
    CHECK(seen == listed);
}

TEST_CASE("lifecycle: a transition with a condition happens exactly when its condition holds") {
    for_each_case([&](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        auto e = entry_in(s);
        const auto from = e.state;
        if (a.by(e, epoch) != applied) {
            return;
        }
        const auto holds = [&](condition when) {
            switch (when) {
            case condition::always: return true;
            case condition::lease_over: return s.at == column::over;
            case condition::first_attempt: return s.attempts == 1;
            case condition::later_attempt: return s.attempts > 1;
            }
            return false;
        };
        std::size_t rows = 0;
        for (const auto& t : vouch::transitions) {
            rows += t.from == from && t.verb == a.verb && t.to == e.state && holds(t.when) ? 1U : 0U;
        }
        if (rows != 1) {
            CAPTURE(a.name, from, e.state, s.attempts);
            CHECK(rows == 1);
        }
    });
}

TEST_CASE("lifecycle: the table of verdicts is the table of the design") {
    using vouch::detail::verdict_column;
    using vouch::detail::verdict_row;
    const auto expected = [](const row& r) { return std::array<verdict, 6>{r[0], r[2], r[3], r[4], r[5], unknown}; };
    const vouch::detail::verdict_table table{expected(with_its_ticket), expected(with_another), expected(nudged),
                                             expected(nudged_again), expected(cancelled)};
    CHECK(vouch::detail::verdict_cells == table);
    CHECK(vouch::detail::verdict_on(verdict_row::settle_other_epoch, verdict_column::held) == stale);
}

TEST_CASE("lifecycle: every verb has a name of its own") {
    std::set<std::string_view> names;
    for (const auto v : vouch::all_verbs) {
        names.insert(name_of(v));
    }
    CHECK(names.size() == vouch::all_verbs.size());
    CHECK(!names.contains("?"));
}

TEST_CASE("lifecycle: terminal entries are frozen") {
    for_each_case([](const attempt& a, const situation& s, std::uint64_t epoch, verdict) {
        auto e = entry_in(s);
        if (is_terminal(e.state)) {
            const auto before = e;
            const auto got = a.by(e, epoch);
            if (got == applied || e != before) {
                CAPTURE(a.name, before.state);
                FAIL("a terminal entry changed");
            }
        }
    });
    CHECK(is_terminal(state::succeeded));
    CHECK(is_terminal(state::dead));
    CHECK(!is_terminal(state::claimed));
}

} // namespace contract_lifecycle_test
