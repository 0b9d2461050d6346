// SPDX-License-Identifier: MIT
// Which messages of one partition are acknowledged, and how far its offset may be committed: to the first message that is
// delivered and not acknowledged, never beyond it. Offsets may have gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

/// A delivered message of one partition.
struct ledger_place {
    std::int64_t offset = 0;
    std::uint64_t cuts = 0; ///< how often the partition had been cut by then: offsets are used again
};

class offset_ledger {
  public:
    /// The message at this offset goes to the application. Offsets grow, unless the partition was cut and begins anew:
    /// then nothing of what was delivered before can be committed any more.
    ledger_place deliver(std::int64_t offset) {
        if ((!slots_.empty() && offset <= slots_.back().offset) || (next_ && offset < *next_)) {
            slots_.clear();
            next_.reset();
            ++cuts_;
        }
        slots_.push_back({offset, false});
        return {offset, cuts_};
    }

    void acknowledge(const ledger_place& place) {
        if (place.cuts != cuts_) {
            return;
        }
        const auto offset = place.offset;
        const auto at = std::lower_bound(slots_.begin(), slots_.end(), offset,
                                         [](const slot& s, std::int64_t wanted) { return s.offset < wanted; });
        if (at == slots_.end() || at->offset != offset) {
            return;
        }
        at->is_acknowledged = true;
        while (!slots_.empty() && slots_.front().is_acknowledged) {
            next_ = slots_.front().offset + 1;
            slots_.pop_front();
        }
    }

    /// The offset of the next message to read after a restart, if it has to be committed.
    [[nodiscard]] const std::optional<std::int64_t>& to_commit() const noexcept { return next_; }
    void committed(std::int64_t next) noexcept {
        if (next_ && *next_ <= next) {
            next_.reset();
        }
    }

  private:
    struct slot {
        std::int64_t offset = 0;
        bool is_acknowledged = false;
    };
    std::deque<slot> slots_; // by offset; the first is not acknowledged
    std::optional<std::int64_t> next_;
    std::uint64_t cuts_ = 0;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
