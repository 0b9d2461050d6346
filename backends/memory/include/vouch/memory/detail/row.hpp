// SPDX-License-Identifier: MIT
// A stored entry with its places in the indexes, and the indexes it has places in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/memory/detail/sequence_list.hpp>
#include <vouch/memory/detail/timeline.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// Looks up by `std::string_view` without making a string.
struct name_hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept {
        return std::hash<std::string_view>{}(name);
    }
};
template <class T>
using by_name = std::unordered_map<std::string, T, name_hash, std::equal_to<>>;

/// The rows and indexes of a store with this seam: one template, so that who includes the store without using it does
/// not pay for it.
template <class Seam>
struct shelf {
    struct queue_index;
    struct lane_index;
    struct group_index;
    struct family_index;

    struct row {
        row() = default;
        /// The entry comes into being where it stays: it is too large to be moved for nothing.
        template <class Make>
        explicit row(const Make& make) : entry(make()) {}

        vouch::entry entry;

        queue_index* queue = nullptr;
        lane_index* lane = nullptr;     ///< null: none, or terminal since an earlier commit
        group_index* group = nullptr;   ///< null: none
        family_index* family = nullptr; ///< null: no parent
        row* successor = nullptr;
        timeline_place<row> place;         ///< in the queue's `gates` while live, in `ended_in` while terminal
        timeline<row>* ended_in = nullptr; ///< one of the queue's `ended`
        bool entered = false;              ///< counts and timelines know of it

        // Towards the open transaction.
        std::size_t record = nowhere; ///< in the journal, if it touched the row
        bool fresh = false;           ///< it inserted the row: readers do not see it
        bool purged = false;          ///< it purged the row: it does not see it, readers do

        row* next_free = nullptr;
    };

    /// Live entries of one (queue, lane). The first is the head and has a gate; the others are blocked and have none.
    struct lane_index {
        sequence_list<row> live;
        row* head = nullptr;  ///< the first, whose gate is in the queue's `gates`
        std::size_t rows = 0; ///< that point here
    };

    /// Members of one group, across queues.
    struct group_index {
        sequence_list<row> members;
        std::size_t live = 0;
        /// Not yet succeeded; a dead member with a successor does not count, its successor does.
        std::size_t unfinished = 0;
    };

    /// Entries with the same parent.
    struct family_index {
        sequence_list<row> children;
        std::size_t live = 0;
    };

    /// Terminal entries of one state, by (updated_at, sequence). Purges look at them in rounds, so that those which are
    /// still needed are not looked at again before all others were.
    struct ended_index {
        [[nodiscard]] timeline<row>& waiting() noexcept { return lines[round]; }    ///< to be looked at in this round
        [[nodiscard]] timeline<row>& passed() noexcept { return lines[1 - round]; } ///< looked at, and needed

        std::array<timeline<row>, 2> lines;
        std::size_t round = 0;
    };

    struct queue_index {
        sequence_list<row> all;
        timeline<row> gates; ///< what a claim looks at: live entries that are not blocked, by (gate, sequence)
        ended_index succeeded;
        ended_index dead;
        by_name<lane_index> lanes;
        state_counts counts;
        std::uint64_t wakes = 0; ///< grows with every commit that may have brought work nearer

        [[nodiscard]] ended_index& ended(state as) noexcept { return as == state::dead ? dead : succeeded; }

        [[nodiscard]] std::optional<time_point> next_due() const noexcept {
            const auto* const first = gates.first();
            return first == nullptr ? std::nullopt : std::optional{first->place.when.at};
        }

        /// The first row a claim may take, or null.
        [[nodiscard]] row* first_open(time_point now) const noexcept {
            auto* const first = gates.first();
            return first != nullptr && first->place.when.at <= now ? first : nullptr;
        }

        /// What readers see while a transaction that touched the queue is open.
        struct snapshot {
            state_counts counts;
            std::optional<time_point> next_due;
        };
        std::optional<snapshot> committed;
        bool stirred = false; ///< that transaction may have brought work nearer
    };
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
