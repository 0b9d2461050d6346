// SPDX-License-Identifier: MIT
// What to do when the store fails: report it, wait a little longer each time, try again; unless trying again makes no
// sense, then let the error through. One thread's.
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
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/backoff.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class store_trouble {
  public:
    using steady = std::chrono::steady_clock;

    /// All but `waits` outlive it.
    store_trouble(const exponential& waits, const outbox& from, const observer_list& observers, std::string_view queue,
                  std::string_view worker, bool exception_text = false)
        : waits_(waits), outbox_(from), observers_(observers), queue_(queue), worker_(worker),
          exception_text_(exception_text),
          seed_(mix(static_cast<std::uint64_t>(steady::now().time_since_epoch().count()) ^
                    static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)))) {}

    /// Runs `work`, which goes to the store. Says whether it went through; rethrows what no repeat can cure.
    template <class Work>
    bool attempt(Work&& work) {
        const bool fine = listen(work);
        row_ = fine ? 0 : row_;
        return fine;
    }

    /// The same for what only reads: that goes well does not mean that the trouble is over. A full disk can be read.
    template <class Work>
    bool listen(Work&& work) {
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

    /// Whether it is time to go to the store again.
    [[nodiscard]] bool is_over(steady::time_point now) const noexcept { return row_ == 0 || now >= until_; }
    [[nodiscard]] steady::time_point until() const noexcept { return until_; }
    [[nodiscard]] std::size_t total() const noexcept { return total_; }

  private:
    void note(std::string_view error, std::string_view text = {}) {
        row_ += 1;
        total_ += 1;
        // Workers that failed together, in one process or in several, should not come back together.
        const id whose{.high = seed_, .low = total_};
        until_ = steady::now() + *delay_after(waits_, whose, row_);
        observers_.on({.what = event_kind::store_error,
                       .at = outbox_.now(),
                       .queue = queue_,
                       .worker = worker_,
                       .error = error,
                       .text = exception_text_ ? text : std::string_view{},
                       .attempt = row_});
    }

    backoff waits_;
    const outbox& outbox_;
    const observer_list& observers_;
    std::string_view queue_;
    std::string_view worker_;
    bool exception_text_;
    std::uint64_t seed_; ///< of the jitter
    std::uint32_t row_ = 0;
    std::size_t total_ = 0;
    steady::time_point until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
