// SPDX-License-Identifier: MIT
// Which of several claimed entries share a call of their handler, and in which order the calls are made.
#pragma once

#include <cstddef>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/run/batch_options.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

inline constexpr auto no_entry = static_cast<std::size_t>(-1);

/// An entry's place in the plan: the entries of one call are linked from the first to the last. A template for the same
/// reason as `claimed_entry`.
template <class Entries>
struct planned_entry {
    std::size_t size = 0; ///< the entries of the call that starts here; 0: the entry belongs to an earlier call
    std::size_t next = no_entry;
};

/// The calls for these entries. `batch_of` returns the same object for all entries that may share a call, and null for
/// an entry that is handled by itself. A call is full with `size_max` entries; the next entry starts another one.
template <class Entries, class BatchOf>
[[nodiscard]] std::vector<planned_entry<Entries>> plan_calls(const Entries& entries, const BatchOf& batch_of) {
    struct open_call {
        const batch_options* batch;
        std::size_t first;
        std::size_t last;
    };
    std::vector<planned_entry<Entries>> out(entries.size());
    std::vector<open_call> open; // one per batch
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const batch_options* const batch = batch_of(entries[i]);
        auto at = open.begin();
        while (at != open.end() && at->batch != batch) {
            ++at;
        }
        if (batch != nullptr && at != open.end() && out[at->first].size < batch->size_max) {
            out[at->first].size += 1;
            out[at->last].next = i;
            at->last = i;
            continue;
        }
        out[i].size = 1;
        if (batch != nullptr && at != open.end()) {
            *at = {batch, i, i};
        } else if (batch != nullptr) {
            open.push_back({batch, i, i});
        }
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch
