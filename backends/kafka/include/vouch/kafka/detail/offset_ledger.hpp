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

class offset_ledger {
  public:
    /// The message at this offset goes to the application. Offsets grow, unless the partition was cut and begins anew:
    /// then nothing of what was delivered before can be committed any more.
    void deliver(std::int64_t offset) {
        if (!slots_.empty() && offset <= slots_.back().offset) {
            slots_.clear();
            next_.reset();
        }
        slots_.push_back({offset, false});
    }

    void acknowledge(std::int64_t offset) {
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
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
