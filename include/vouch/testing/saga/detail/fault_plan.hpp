// SPDX-License-Identifier: MIT
// Where a trial may go one way or another. Way 0 is the ordinary one; every other is trouble. The same choices lead to
// the same trial, so all ways can be gone through, and one that went wrong can be gone again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

class choices {
  public:
    /// Ways to take, in order; after their end the ordinary one. At most so much trouble.
    explicit choices(std::vector<std::size_t> ways, std::size_t troubles_max) noexcept
        : ways_(std::move(ways)), troubles_left_(troubles_max) {}

    /// One of `names`. What was taken out of the ordinary is remembered by its name.
    [[nodiscard]] std::size_t choose(std::string_view where, const std::vector<std::string_view>& names) {
        if (troubles_left_ == 0 || names.size() < 2) {
            return 0;
        }
        const auto way = taken_.size() < ways_.size() ? ways_[taken_.size()] % names.size() : 0;
        taken_.push_back({way, names.size()});
        if (way != 0) {
            troubles_left_ -= 1;
            path_ += std::string(path_.empty() ? "" : "; ") + std::string(where) + ": " + std::string(names[way]);
        }
        return way;
    }
    /// From now on everything is ordinary.
    void end_of_trouble() noexcept { troubles_left_ = 0; }

    /// The trouble there was, readable.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Ways for the next trial, when all are gone through in turn; empty: there is none.
    [[nodiscard]] std::vector<std::size_t> next() const {
        auto last = taken_.size();
        while (last > 0 && taken_[last - 1].way + 1 == taken_[last - 1].of) {
            --last;
        }
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < last; ++i) {
            out.push_back(taken_[i].way + (i + 1 == last ? 1 : 0));
        }
        return out;
    }

  private:
    struct taken {
        std::size_t way;
        std::size_t of;
    };
    std::vector<std::size_t> ways_;
    std::vector<taken> taken_{};
    std::size_t troubles_left_;
    std::string path_{};
};

} // namespace testing
} // namespace v0
} // namespace vouch
