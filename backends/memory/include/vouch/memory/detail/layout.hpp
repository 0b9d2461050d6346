// SPDX-License-Identifier: MIT
// The rows of a memory store and the index structures that hold them.
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

/// Allows lookup by `std::string_view` without making a string.
struct name_hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept {
        return std::hash<std::string_view>{}(name);
    }
};
template <class T>
using by_name = std::unordered_map<std::string, T, name_hash, std::equal_to<>>;

/// The types for a store with this seam. They are members of a template so that a program that includes the store
/// without using it does not compile them.
template <class Seam>
struct layout {
    struct queue_index;
    struct lane_index;
    struct group_index;
    struct family_index;

    struct row {
        row() = default;
        /// Makes the entry in place: it is large, so a move would cost time.
        template <class Make>
        explicit row(const Make& make) : entry(make()) {}

        vouch::entry entry;

        queue_index* queue = nullptr;
        lane_index* lane = nullptr;     ///< null: none, or the row was terminal before this transaction
        group_index* group = nullptr;   ///< null: none
        family_index* family = nullptr; ///< null: no parent
        row* successor = nullptr;
        timeline_place<row> place;         ///< in the queue's `gates` while live, in `ended_in` while terminal
        timeline<row>* ended_in = nullptr; ///< one of the queue's `ended`
        bool entered = false;              ///< it is in the counts and timelines

        // In relation to the open transaction.
        std::size_t record = nowhere; ///< in the journal, if the transaction touched the row
        bool fresh = false;           ///< the transaction inserted the row: readers do not see it
        bool purged = false;          ///< the transaction purged the row: only readers see it

        row* next_free = nullptr;
    };

    /// Live entries of one (queue, lane). The first, the head, has a gate; the others are blocked and have none.
    struct lane_index {
        sequence_list<row> live;
        row* head = nullptr;  ///< the first row; its gate is in the queue's `gates`
        std::size_t rows = 0; ///< the number of rows that point here
    };

    /// Members of one group, across queues.
    struct group_index {
        sequence_list<row> members;
        std::size_t live = 0;
        /// Members that have not succeeded. A dead member with a successor does not count; its successor does.
        std::size_t unfinished = 0;
    };

    /// The children of one parent.
    struct family_index {
        sequence_list<row> children;
        std::size_t live = 0;
    };

    /// Terminal entries of one state, by (updated_at, sequence). Purges look at them in rounds: an entry that is still
    /// needed is looked at again only after all others.
    struct ended_index {
        [[nodiscard]] timeline<row>& waiting() noexcept { return lines[round]; }    ///< not yet looked at in this round
        [[nodiscard]] timeline<row>& passed() noexcept { return lines[1 - round]; } ///< looked at and still needed

        std::array<timeline<row>, 2> lines;
        std::size_t round = 0;
    };

    struct queue_index {
        sequence_list<row> all;
        timeline<row> gates; ///< what a claim reads: live entries that are not blocked, by (gate, sequence)
        ended_index succeeded;
        ended_index dead;
        by_name<lane_index> lanes;
        state_counts counts;
        std::uint64_t wakes = 0; ///< grows with every commit that may have made work due sooner

        [[nodiscard]] ended_index& ended(state as) noexcept { return as == state::dead ? dead : succeeded; }

        [[nodiscard]] std::optional<time_point> next_due() const noexcept {
            const auto* const first = gates.first();
            return first == nullptr ? std::nullopt : std::optional{first->place.when.at};
        }

        /// The first row that a claim may take, or null.
        [[nodiscard]] row* first_open(time_point now) const noexcept {
            auto* const first = gates.first();
            return first != nullptr && first->place.when.at <= now ? first : nullptr;
        }

        /// The committed values, for readers, while a transaction that touched the queue is open.
        struct snapshot {
            state_counts counts;
            std::optional<time_point> next_due;
        };
        std::optional<snapshot> committed;
        bool is_woken = false; ///< that transaction may have made work due sooner
    };
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
