// SPDX-License-Identifier: MIT
// Repeats access to a store that fails: reports the error, waits a little longer each time, and tries again. An error
// that no repeat can cure is rethrown.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/run/detail/event_reporter.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class store_retry {
  public:
    using steady = std::chrono::steady_clock;

    struct source {
        std::string_view queue{};
        std::string_view worker{};
        bool exception_text = false;
    };

    /// `now`, `events` and the names in `of` must outlive it.
    store_retry(const exponential& waits, const clock& now, const event_reporter& events, const source& of)
        : waits_(waits), clock_(now), events_(events), source_(of),
          seed_(mix(static_cast<std::uint64_t>(steady::now().time_since_epoch().count()) ^
                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)))) {}

    /// Runs `work`, which writes to the store. Returns whether it succeeded; rethrows what no repeat can cure.
    template <class Work>
    bool attempt(Work&& work) {
        const bool fine = read(work);
        row_ = fine ? 0 : row_;
        return fine;
    }

    /// The same for work that only reads. Its success does not end the waits: a full disk can still be read.
    template <class Work>
    bool read(Work&& work) {
        try {
            work();
            return true;
        } catch (const error& e) {
            note(name_of(e.kind()), e.what());
            if (!e.is_transient()) {
                throw;
            }
        } catch (const std::bad_alloc&) {
            note("full");
        } catch (...) {
            note("unknown_exception");
            throw;
        }
        return false;
    }

    /// Whether the store may be used again.
    [[nodiscard]] bool is_due(steady::time_point now) const noexcept { return row_ == 0 || now >= until_; }
    [[nodiscard]] steady::time_point next() const noexcept { return until_; }
    [[nodiscard]] std::size_t total() const noexcept { return total_; }

  private:
    void note(std::string_view error, std::string_view text = {}) {
        row_ += 1;
        total_ += 1;
        // Workers that failed together, in one process or in several, should not return together.
        const id whose{.high = seed_, .low = total_};
        until_ = steady::now() + *delay_after(waits_, whose, row_);
        events_.on({.what = event_kind::store_error,
                    .at = clock_(),
                    .queue = source_.queue,
                    .worker = source_.worker,
                    .error = error,
                    .text = source_.exception_text ? text : std::string_view{},
                    .attempt = row_});
    }

    backoff waits_;
    const clock& clock_;
    const event_reporter& events_;
    source source_;
    std::uint64_t seed_;    ///< of the jitter
    std::uint32_t row_ = 0; ///< failures in a row
    std::size_t total_ = 0;
    steady::time_point until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
