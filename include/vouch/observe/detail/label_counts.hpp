// SPDX-License-Identifier: MIT
// Counts by a label that comes from outside, such as an error code: the first so many labels have a count of their own,
// all others share `other`, so that no stream of new names can grow without end. Not thread-safe by itself.
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

    /// The count of a label, or the shared one.
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
