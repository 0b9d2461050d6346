// SPDX-License-Identifier: MIT
// What the store said of each commit, and the expectations that did not hold.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include <vouch/contract/error.hpp>

namespace fault_program {

inline std::atomic<int> failures = 0;

inline void expect(bool holds, const std::string& what) {
    if (!holds && ++failures <= 20) {
        std::printf("FAILED: %s\n", what.c_str());
    }
}

/// The last line of a program, and its exit code.
[[nodiscard]] inline int finish() {
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? 0 : 1;
}

enum class said : std::uint8_t { stored, absent, in_doubt };

/// How many errors of each kind there were.
class error_counts {
  public:
    /// Runs a transaction. Returns what the store says of it; an error that no fault explains is a failure.
    said run(const std::function<void()>& transaction) {
        try {
            transaction();
            return said::stored;
        } catch (const vouch::error& e) {
            using vouch::error_kind;
            counts_[static_cast<std::size_t>(e.kind())] += 1;
            const bool is_explained = e.kind() == error_kind::io || e.kind() == error_kind::busy ||
                                      e.kind() == error_kind::conflict || e.kind() == expected_;
            expect(is_explained, std::string("an error that the faults do not explain: ") + e.what());
            in_doubt_ += e.is_in_doubt() ? 1 : 0;
            return e.is_in_doubt() ? said::in_doubt : said::absent;
        }
    }
    /// Another kind that the faults explain.
    void set_expected(vouch::error_kind kind) noexcept { expected_ = kind; }

    [[nodiscard]] std::size_t of(vouch::error_kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] std::size_t in_doubt() const { return in_doubt_; }

    [[nodiscard]] std::string text() const {
        std::string out;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) {
                out.append(out.empty() ? "" : ", ").append(name_of(static_cast<vouch::error_kind>(i)));
                out.append(" ").append(std::to_string(counts_[i]));
            }
        }
        return out.empty() ? "none" : out + ", of these in doubt " + std::to_string(in_doubt_);
    }

  private:
    static constexpr std::size_t kinds = 10;
    std::array<std::atomic<std::size_t>, kinds> counts_{};
    std::atomic<std::size_t> in_doubt_ = 0;
    std::atomic<vouch::error_kind> expected_ = vouch::error_kind::io;
};

} // namespace fault_program
