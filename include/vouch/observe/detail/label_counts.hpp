// SPDX-License-Identifier: MIT
// Counts by a label that comes from outside, such as an error code. The first `labels_max` labels have a count each;
// all further labels share the count `other`, so the memory is bounded. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

inline constexpr std::string_view other_label = "other";

template <class Count = std::uint64_t>
class label_counts {
  public:
    static constexpr std::size_t labels_max = 100;

    /// The count of the label, or the shared count.
    [[nodiscard]] Count& operator[](std::string_view label) {
        if (const auto found = counts_.find(label); found != counts_.end()) {
            return found->second;
        }
        return counts_[std::string(counts_.size() < labels_max ? label : other_label)];
    }

    [[nodiscard]] auto begin() const noexcept { return counts_.begin(); }
    [[nodiscard]] auto end() const noexcept { return counts_.end(); }

  private:
    std::map<std::string, Count, std::less<>> counts_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
