// SPDX-License-Identifier: MIT
// The counts and histograms that `metrics` keeps for one queue, made from events. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/histogram.hpp>
#include <vouch/observe/detail/label_counts.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct tally {
    static constexpr std::array outcome_kinds{event_kind::succeeded, event_kind::advanced, event_kind::retried,
                                              event_kind::dead,      event_kind::released, event_kind::stale,
                                              event_kind::unsettled};
    static constexpr std::array death_reasons{death::rejected, death::buried,     death::exhausted,
                                              death::expired,  death::no_handler, death::invalid};

    std::uint64_t enqueued = 0;
    std::uint64_t claimed = 0;
    std::uint64_t lost = 0;
    std::uint64_t purged = 0;
    std::uint64_t groups = 0;
    std::array<std::uint64_t, outcome_kinds.size()> ended{};
    std::array<std::uint64_t, death_reasons.size()> dead{};
    std::uint64_t sagas_dead = 0;
    std::int64_t active = 0;
    label_counts<> failures{};
    label_counts<> store_errors{};
    label_counts<> hook_errors{};
    label_counts<> left{}; ///< released because no handler could continue, by tag
    histogram wait{};
    histogram handler{};
    histogram delay{};
    histogram age{};
    histogram completed{};   ///< age of completed sagas
    histogram compensated{}; ///< age of compensated sagas
    histogram poll{};

    void count(const event& e) {
        switch (e.what) {
        case event_kind::enqueued: enqueued += 1; return;
        case event_kind::claimed:
            claimed += 1;
            active += 1;
            wait.add(e.late);
            return;
        case event_kind::started: return;
        case event_kind::lease_lost:
            lost += 1;
            active -= e.tag == "unstarted" ? 1 : 0; // no outcome follows
            return;
        case event_kind::purged: purged += e.count; return;
        case event_kind::group_completed: groups += 1; return;
        case event_kind::polled: poll.add(e.took.value_or(duration::zero())); return;
        case event_kind::store_error: store_errors[e.error] += 1; return;
        case event_kind::hook_failed: hook_errors[e.error] += 1; return; // the claim is still held
        default: end_claim(e); return;
        }
    }

  private:
    void end_claim(const event& e) {
        for (std::size_t i = 0; i < outcome_kinds.size(); ++i) {
            ended[i] += outcome_kinds[i] == e.what ? 1U : 0U;
        }
        active -= 1;
        if (e.took) {
            handler.add(*e.took);
        }
        if (e.what == event_kind::succeeded) {
            end_well(e);
        } else if (e.what == event_kind::retried) {
            failures[e.error] += 1;
            delay.add(e.delay);
        } else if (e.what == event_kind::released && !e.tag.empty()) {
            left[e.tag] += 1;
        } else if (e.what == event_kind::dead) {
            failures[e.error] += 1;
            for (std::size_t i = 0; i < death_reasons.size(); ++i) {
                dead[i] += death_reasons[i] == e.reason ? 1U : 0U;
            }
            sagas_dead += e.is_saga ? 1U : 0U;
        }
    }

    /// The tags count for sagas only: on any other entry they are the handler's own words.
    void end_well(const event& e) {
        age.add(e.age);
        if (e.is_saga && e.tag == "completed") {
            completed.add(e.age);
        } else if (e.is_saga && e.tag == "compensated") {
            compensated.add(e.age);
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch
