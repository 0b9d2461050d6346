// SPDX-License-Identifier: MIT
// The delivery reports that one call waits for. Every message of a publisher has a number that no other message gets. A
// late report of an earlier call has a number outside the current range and is dropped. No pointer to a call ever reaches
// librdkafka. Used by one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class reports {
  public:
    /// Begins to wait for the reports of `count` messages, and drops all others from now on.
    void open(std::size_t count) {
        first_ += errors_.size();
        errors_.assign(count, std::nullopt);
        waiting_ = 0;
    }

    /// What librdkafka carries with the message.
    [[nodiscard]] void* number_of(std::size_t index) const noexcept {
        return std::bit_cast<void*>(static_cast<std::uintptr_t>(first_ + index));
    }
    void sent() noexcept { ++waiting_; }

    void arrive(const void* number, rd_kafka_resp_err_t error) noexcept {
        const auto index = std::bit_cast<std::uintptr_t>(number) - first_; // of an earlier call: wraps around
        if (index < errors_.size() && !errors_[index]) {
            errors_[index] = error;
            --waiting_;
        }
    }

    [[nodiscard]] bool has_success() const noexcept {
        return std::find(errors_.begin(), errors_.end(), RD_KAFKA_RESP_ERR_NO_ERROR) != errors_.end();
    }
    [[nodiscard]] bool is_complete() const noexcept { return waiting_ == 0; }
    [[nodiscard]] const std::optional<rd_kafka_resp_err_t>& operator[](std::size_t index) const noexcept {
        return errors_[index];
    }

  private:
    std::uintptr_t first_ = 1;
    std::vector<std::optional<rd_kafka_resp_err_t>> errors_;
    std::size_t waiting_ = 0;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
