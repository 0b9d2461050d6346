// SPDX-License-Identifier: MIT
// Compares at the end of a history what entries do not show: gates, the order of lanes, the counters of groups, and the
// owners of keys. One transaction does all work that is left, at the end of time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Later than all times in the schedules.
inline constexpr time_point end_of_time = start + std::chrono::hours{24 * 3000};

/// Claims everything, lets it succeed and looks again, until nothing is left. Changes `expected`.
template <class Writer>
void compare_rest(Writer& tx, model& expected, const std::string& queue) {
    const auto everything = request(end_of_time, {.limit = 1000, .queue = queue, .lease = std::chrono::hours{1}});
    for (;;) {
        const auto claimed = tx.claim(everything);
        trial::equal(claimed, expected.claim(everything), "a last claim takes all entries that have a gate");
        if (claimed.empty()) {
            return;
        }
        std::vector<vouch::settle> settles;
        std::vector<settlement> settlements;
        for (const auto& e : claimed) {
            settles.push_back({ticket_of(e), succeed{}});
            settlements.push_back(expected.settle(settles.back(), end_of_time));
        }
        trial::equal(tx.settle(settles, end_of_time), settlements, "all entries that are left succeed");
    }
}

/// Requires that the store, which holds the entries of `state`, also behaves as it does. Afterwards all entries of these
/// queues have ended.
inline void compare_hidden_state(any_store& store, const model& state, const std::vector<std::string>& queues) {
    for (const auto& queue : queues) {
        trial::equal(store.next_due(queue), state.next_due(queue), "next_due of queue " + queue + " at the end");
    }
    from_begin(store, [&](auto& tx) {
        auto expected = state;
        std::vector<draft> drafts;
        std::vector<receipt> receipts;
        std::uint64_t number = 1000; // unused so far
        for (const auto& queue : queues) {
            compare_rest(tx, expected, queue);
            for (const std::string key : {"k", "l"}) {
                drafts.push_back(draft_of(number++, {.queue = queue, .key = key, .result = "ended"}));
                receipts.push_back(expected.enqueue(drafts.back(), end_of_time));
            }
        }
        trial::equal(tx.enqueue(drafts, end_of_time), receipts, "the owners of all keys at the end");
        tx.commit();
    });
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
