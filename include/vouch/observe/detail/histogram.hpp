// SPDX-License-Identifier: MIT
// A histogram of durations, in buckets from 0.1 ms to a day. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class histogram {
  public:
    struct bound {
        duration at_most;
        std::string_view name; ///< in seconds, as text
    };
    static constexpr std::array<bound, 14> bounds{{{duration{100}, "0.0001"},
                                                   {duration{1'000}, "0.001"},
                                                   {duration{5'000}, "0.005"},
                                                   {duration{10'000}, "0.01"},
                                                   {duration{50'000}, "0.05"},
                                                   {duration{100'000}, "0.1"},
                                                   {duration{500'000}, "0.5"},
                                                   {duration{1'000'000}, "1"},
                                                   {duration{5'000'000}, "5"},
                                                   {duration{30'000'000}, "30"},
                                                   {duration{60'000'000}, "60"},
                                                   {duration{300'000'000}, "300"},
                                                   {duration{3'600'000'000}, "3600"},
                                                   {duration{86'400'000'000}, "86400"}}};

    void add(duration took) noexcept {
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            buckets_[i] += took <= bounds[i].at_most ? 1U : 0U;
        }
        count_ += 1;
        sum_ += took;
    }

    [[nodiscard]] std::uint64_t up_to(std::size_t which) const noexcept { return buckets_[which]; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] duration sum() const noexcept { return sum_; }

  private:
    std::array<std::uint64_t, bounds.size()> buckets_{}; ///< cumulative
    std::uint64_t count_ = 0;
    duration sum_{};
};

/// A number of seconds, exact to the microsecond.
[[nodiscard]] inline std::string seconds_text(duration d) {
    const auto negative = d < duration::zero();
    const auto micros = negative ? -d.count() : d.count();
    const auto fraction = std::to_string(micros % 1'000'000);
    std::string text = negative ? "-" : "";
    text += std::to_string(micros / 1'000'000);
    text += '.';
    text.append(6 - fraction.size(), '0');
    text += fraction;
    return text;
}

} // namespace detail
} // namespace v0
} // namespace vouch
