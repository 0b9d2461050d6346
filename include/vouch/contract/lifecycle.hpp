// SPDX-License-Identifier: MIT
// The lifecycle as data and as one pure function. `transitions` lists every move an entry can make, `verdicts` every
// answer to every attempt at one; `apply` carries them out on a value, so a simple store reads an entry, applies, and
// writes it back under the fence.
//
// Lanes are not seen here: that a blocked entry cannot be claimed is the business of whoever keeps the gates.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

enum class verb : std::uint8_t { claim, succeed, retry, bury, release, advance, extend, nudge, cancel };

inline constexpr std::array<verb, 9> all_verbs{verb::claim,   verb::succeed, verb::retry, verb::bury,  verb::release,
                                               verb::advance, verb::extend,  verb::nudge, verb::cancel};

struct transition {
    state from;
    vouch::verb verb;
    state to;
    [[nodiscard]] friend constexpr bool operator==(const transition&, const transition&) noexcept = default;
};

/// Every move there is. A claimed entry may be claimed or cancelled only when its lease is over.
inline constexpr std::array transitions{
    transition{state::pending, verb::claim, state::claimed},
    transition{state::retrying, verb::claim, state::claimed},
    transition{state::claimed, verb::claim, state::claimed},
    transition{state::claimed, verb::succeed, state::succeeded},
    transition{state::claimed, verb::retry, state::retrying},
    transition{state::claimed, verb::bury, state::dead},
    transition{state::claimed, verb::release, state::pending},
    transition{state::claimed, verb::release, state::retrying},
    transition{state::claimed, verb::advance, state::pending},
    transition{state::claimed, verb::extend, state::claimed},
    transition{state::pending, verb::nudge, state::pending},
    transition{state::retrying, verb::nudge, state::retrying},
    transition{state::claimed, verb::nudge, state::claimed},
    transition{state::pending, verb::cancel, state::dead},
    transition{state::retrying, verb::cancel, state::dead},
    transition{state::claimed, verb::cancel, state::dead},
};

[[nodiscard]] constexpr bool is_allowed(state from, verb v, state to) noexcept {
    return std::find(transitions.begin(), transitions.end(), transition{from, v, to}) != transitions.end();
}

/// How an entry stands at a given time.
enum class standing : std::uint8_t { waiting, held, lapsed, succeeded, dead, absent };

[[nodiscard]] constexpr standing standing_of(const life& l, time_point now) noexcept {
    switch (l.state) {
    case state::pending:
    case state::retrying: return standing::waiting;
    case state::claimed: return l.lease_until && *l.lease_until <= now ? standing::lapsed : standing::held;
    case state::succeeded: return standing::succeeded;
    case state::dead: break;
    }
    return standing::dead;
}

/// What is asked, as far as the answer depends on it.
enum class asked : std::uint8_t {
    settle,        ///< settle or extend, with the entry's present epoch
    settle_behind, ///< settle or extend, with any other epoch
    nudge,
    nudge_again, ///< already due, or already marked
    cancel,
};

/// Rows: `asked`. Columns: `standing`.
inline constexpr std::array<std::array<verdict, 6>, 5> verdicts = [] {
    using enum verdict;
    return std::array<std::array<verdict, 6>, 5>{{
        //                 waiting   held      lapsed    succeeded dead      absent
        /* settle        */ {repeated, applied, applied, repeated, repeated, unknown},
        /* settle_behind */ {stale, stale, stale, stale, stale, unknown},
        /* nudge         */ {applied, applied, applied, stale, stale, unknown},
        /* nudge_again   */ {repeated, repeated, repeated, stale, stale, unknown},
        /* cancel        */ {applied, stale, applied, stale, repeated, unknown},
    }};
}();

[[nodiscard]] constexpr verdict verdict_on(asked what, standing at) noexcept {
    return verdicts[static_cast<std::size_t>(what)][static_cast<std::size_t>(at)];
}

namespace detail {

/// What every end of a claim has in common. `due` is when the entry would run next; a nudge that met the claim wins.
inline void end_claim(life& l, state to, time_point due, time_point now) {
    l.due_at = l.woken ? std::min(due, now) : due;
    l.state = to;
}

struct settle_on {
    life& l;
    time_point now;

    void operator()(const succeed& o) const {
        l.state = state::succeeded;
        l.lapses = 0;
        l.result = o.result;
    }
    void operator()(const retry& o) const {
        end_claim(l, state::retrying, o.at, now);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
    }
    void operator()(const bury& o) const {
        l.state = state::dead;
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
        l.result = o.result;
    }
    void operator()(const release& o) const {
        l.attempts -= 1;
        end_claim(l, l.attempts == 0 ? state::pending : state::retrying, o.at.value_or(l.due_at), now);
    }
    void operator()(const advance& o) const {
        l.attempts = 0;
        l.lapses = 0;
        l.progress = o.progress;
        end_claim(l, state::pending, o.at.value_or(now), now);
    }
};

[[nodiscard]] inline verdict verdict_on_ticket(const life& l, std::uint64_t epoch, time_point now) noexcept {
    return verdict_on(epoch == l.epoch ? asked::settle : asked::settle_behind, standing_of(l, now));
}

} // namespace detail

/// The gate of an entry that is not blocked in a lane: when a claim may take it; none if it is terminal.
[[nodiscard]] constexpr std::optional<time_point> gate_of(const life& l) noexcept {
    if (is_terminal(l.state)) {
        return std::nullopt;
    }
    return l.state == state::claimed ? l.lease_until : l.due_at;
}

/// Carries out a claim. Requires that the entry's gate is at or before `request.now`.
///
/// A claim counts as an attempt, except one that takes over after a first lapse: the process may have died of another
/// entry it held, so that lapse is not held against this one. Later lapses in a row are: a runner handles an entry with
/// a lapse alone, so an entry that kills its process every time still runs out of attempts.
inline void apply(life& l, const claim_request& request) {
    const bool is_takeover = l.state == state::claimed;
    l.attempts += is_takeover && l.lapses == 0 ? 0U : 1U;
    l.lapses += is_takeover ? 1U : 0U;
    l.state = state::claimed;
    l.epoch += 1;
    l.lease_until = request.now + request.lease;
    l.woken = false;
    l.worker = request.worker;
    l.last_attempt_at = request.now;
    l.updated_at = request.now;
}

/// Settles by ticket alone, never by time: a lease that is over but not taken over still settles.
[[nodiscard]] inline verdict apply(life& l, const settle& s, time_point now) {
    const auto v = detail::verdict_on_ticket(l, s.ticket.epoch, now);
    if (v == verdict::applied) {
        visit_outcome(detail::settle_on{l, now}, s.outcome);
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

/// Prolongs a claim; never shortens it.
struct extend {
    vouch::ticket ticket{};
    duration lease{};
};

[[nodiscard]] inline verdict apply(life& l, const extend& x, time_point now) {
    const auto v = detail::verdict_on_ticket(l, x.ticket.epoch, now);
    if (v == verdict::applied) {
        l.lease_until = std::max(*l.lease_until, now + x.lease);
        l.updated_at = now;
    }
    return v;
}

/// Makes an entry due now; one that is claimed is marked, and becomes due when its claim ends.
struct nudge {};

[[nodiscard]] inline verdict apply(life& l, nudge, time_point now) {
    const bool is_claimed = l.state == state::claimed;
    const bool again = is_claimed ? l.woken : l.due_at <= now;
    const auto v = verdict_on(again ? asked::nudge_again : asked::nudge, standing_of(l, now));
    if (v == verdict::applied) {
        if (is_claimed) {
            l.woken = true;
        } else {
            l.due_at = now;
        }
        l.updated_at = now;
    }
    return v;
}

/// Ends an entry nobody holds. The epoch moves on if it was claimed, so that the lapsed ticket is stale.
struct cancel {
    std::string_view error{};
};

[[nodiscard]] inline verdict apply(life& l, const cancel& c, time_point now) {
    const auto v = verdict_on(asked::cancel, standing_of(l, now));
    if (v == verdict::applied) {
        l.epoch += l.state == state::claimed ? 1U : 0U;
        l.state = state::dead;
        l.last_error = c.error;
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

} // namespace v0
} // namespace vouch
