// SPDX-License-Identifier: MIT
// Which fault happens at each decision point of one simulated run. Option 0 is the normal course; every other option is
// a fault. The same plan gives the same run, so all plans can be tried in turn and a failing one can be repeated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class fault_plan {
  public:
    /// Takes these options in order, and the normal course after their end. At most `faults_max` faults happen.
    explicit fault_plan(std::vector<std::size_t> options, std::size_t faults_max) noexcept
        : options_(std::move(options)), faults_left_(faults_max) {}

    /// A decision point: returns the index of one of `names`, and remembers it by its name if it is a fault.
    [[nodiscard]] std::size_t choose(std::string_view where, const std::vector<std::string_view>& names) {
        if (faults_left_ == 0 || names.size() < 2) {
            return 0;
        }
        const auto option = taken_.size() < options_.size() ? options_[taken_.size()] % names.size() : 0;
        taken_.push_back({option, names.size()});
        if (option != 0) {
            faults_left_ -= 1;
            path_ += std::string(path_.empty() ? "" : "; ") + std::string(where) + ": " + std::string(names[option]);
        }
        return option;
    }
    /// No more faults from now on.
    void stop() noexcept { faults_left_ = 0; }

    /// The faults that happened, as text.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// The options of the next plan, in an order that tries all of them; empty after the last one.
    [[nodiscard]] std::vector<std::size_t> next() const {
        auto last = taken_.size();
        while (last > 0 && taken_[last - 1].option + 1 == taken_[last - 1].count) {
            --last;
        }
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < last; ++i) {
            out.push_back(taken_[i].option + (i + 1 == last ? 1 : 0));
        }
        return out;
    }

  private:
    struct decision {
        std::size_t option;
        std::size_t count;
    };
    std::vector<std::size_t> options_;
    std::vector<decision> taken_{};
    std::size_t faults_left_;
    std::string path_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
