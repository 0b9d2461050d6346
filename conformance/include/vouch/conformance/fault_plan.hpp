// SPDX-License-Identifier: MIT
// Which calls of a `faulty` store fail, and how: the n-th call, before its effect or after it, once or from then on.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

enum class fault_moment : std::uint8_t {
    before, ///< the call throws and has no effect
    after,  ///< the call takes effect and throws; a commit that throws so is in doubt
};

/// One fault to inject.
struct fault {
    std::uint64_t call = 1; ///< which call fails; 1 is the next one
    fault_moment moment = fault_moment::before;
    bool persistent = false; ///< all later calls fail as well
    error_kind kind = error_kind::io;
    bool in_doubt = false; ///< a commit that fails before its effect throws an error that is in doubt, too
};

/// Decides which calls fail, and counts calls and faults. Thread-safe. Several stores may share one plan.
class fault_plan {
  public:
    /// Injects this fault instead of the one armed before. Throws `misuse` for the kind `invalid_argument`.
    void arm(const fault& f) {
        if (f.kind == error_kind::invalid_argument) {
            throw error(error_kind::misuse,
                        "fault_plan: cannot inject invalid_argument, which is a refusal and not a fault");
        }
        const std::lock_guard lock(mutex_);
        armed_ = f;
        left_ = f.call;
        has_fired_ = false;
    }

    /// Injects no further faults. Returns whether the armed fault has occurred.
    bool disarm() {
        const std::lock_guard lock(mutex_);
        armed_.reset();
        return has_fired_;
    }

    /// Whether the fault armed last has occurred.
    [[nodiscard]] bool has_fired() const {
        const std::lock_guard lock(mutex_);
        return has_fired_;
    }
    /// All calls so far.
    [[nodiscard]] std::uint64_t calls() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// All faults so far, including those armed earlier.
    [[nodiscard]] std::uint64_t faults() const {
        const std::lock_guard lock(mutex_);
        return faults_;
    }

    /// Counts a call and returns the fault that it must fail with. Called by `faulty`.
    [[nodiscard]] std::optional<fault> next() {
        const std::lock_guard lock(mutex_);
        ++calls_;
        if (!armed_ || (left_ > 1 && left_-- > 0)) {
            return std::nullopt;
        }
        const auto due = armed_;
        has_fired_ = true;
        ++faults_;
        if (!due->persistent) {
            armed_.reset();
        }
        return due;
    }

  private:
    mutable std::mutex mutex_{};
    std::optional<fault> armed_{};
    std::uint64_t left_ = 0; ///< calls up to and including the one that fails
    std::uint64_t calls_ = 0;
    std::uint64_t faults_ = 0;
    bool has_fired_ = false;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
