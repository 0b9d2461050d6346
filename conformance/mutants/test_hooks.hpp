// SPDX-License-Identifier: MIT
// The hooks that a plain store offers to the suite: pauses between its steps, a step that fails, and conflicts at
// regular intervals. A fixture has one; all its stores share it. Safe for concurrent use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>

namespace mutants {

class test_hooks {
  public:
    using callback = std::function<void(std::string_view)>;

    void set_seam(callback f) {
        const std::lock_guard lock(mutex_);
        seam_ = f ? std::make_shared<callback>(std::move(f)) : nullptr;
    }
    /// Calls the seam between two steps. Other transactions may run meanwhile.
    void pause(std::string_view step) {
        std::shared_ptr<callback> f;
        {
            const std::lock_guard lock(mutex_);
            f = seam_;
        }
        if (f) {
            (*f)(step);
        }
    }

    bool fail_at(std::size_t n) {
        left_ = n;
        return failed_.exchange(false);
    }
    /// Throws `io` if this is the step that must fail.
    void step(std::string_view what, bool in_doubt = false) {
        auto left = left_.load();
        while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
        }
        if (left == 1) {
            failed_ = true;
            throw vouch::error(vouch::error_kind::io, "plain: injected failure at " + std::string(what),
                               {.in_doubt = in_doubt});
        }
    }

    /// True at regular intervals, for stores with random conflicts. The next transaction is then spared.
    bool conflict_is_due() {
        constexpr std::uint64_t often = 53;
        const bool is = ++calls_ % often == 0;
        spares_ = is || spares_;
        return is;
    }
    bool take_spared() { return spares_.exchange(false); }

    /// True with this chance, for stores with many conflicts. Each call draws the next number of one series.
    bool draw(std::uint64_t percent) { return vouch::detail::mix(++draws_) % 100 < percent; }

  private:
    std::atomic<std::uint64_t> calls_ = 0;
    std::atomic<std::uint64_t> draws_ = 0;
    std::atomic<bool> spares_ = false;
    std::mutex mutex_{};
    std::shared_ptr<callback> seam_{};
    std::atomic<std::size_t> left_ = 0;
    std::atomic<bool> failed_ = false;
};

} // namespace mutants
