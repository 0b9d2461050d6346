// SPDX-License-Identifier: MIT
// Where new ids come from. An id source is any callable that returns a new id. Runners and outboxes have one; stores do
// not.
#pragma once

// <random> takes long to compile, so it is not used where the system call exists.
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#include <unistd.h>
#else
#include <random>
#endif

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <vouch/contract/detail/mix.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/clock.hpp>

namespace vouch {
inline namespace v0 {

/// Must be callable from several threads if its user is.
using id_source = std::function<id()>;

namespace detail {

/// 64 random bits from the operating system.
[[nodiscard]] inline std::uint64_t system_seed() {
#if __has_include(<sys/random.h>)
    std::uint64_t seed = 0;
    if (getentropy(&seed, sizeof seed) != 0) {
        throw error(error_kind::io, "id_source: the operating system returned no random bits (getentropy failed)");
    }
    return seed;
#else
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
#endif
}

/// Differs between a process and its forked child; 0 where that cannot be known.
[[nodiscard]] inline std::int64_t process_id() noexcept {
#if __has_include(<sys/random.h>)
    return getpid();
#else
    return 0;
#endif
}

} // namespace detail

/// UUIDv7: 48 bits of milliseconds, a 12-bit count within the millisecond, and 62 random bits. Each id of a source is
/// greater than the one before, even if the clock stands still or runs backwards. Copies share one state. Thread-safe.
class uuid7_source {
  public:
    /// Random bits come from the operating system. A forked child gets bits of its own.
    explicit uuid7_source(clock now = system_now)
        : shared_(std::make_shared<shared>(std::move(now), detail::system_seed(), detail::process_id())) {}
    /// Repeatable: the same clock and seed give the same ids.
    uuid7_source(clock now, std::uint64_t seed)
        : shared_(std::make_shared<shared>(std::move(now), seed, std::int64_t{0})) {}

    [[nodiscard]] id operator()() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->next();
    }

  private:
    struct shared {
        shared(clock c, std::uint64_t seed, std::int64_t p) : now(std::move(c)), state(seed), process(p) {}

        [[nodiscard]] id next() {
            const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch()).count();
            // A count that overflows runs into the milliseconds. The order is kept, and the time catches up.
            const auto tick = static_cast<std::uint64_t>(since > 0 ? since : 0) << 12;
            last = tick > last ? tick : last + 1;
            return {.high = ((last >> 12) << 16) | 0x7000U | (last & 0x0fffU),
                    .low = 0x8000000000000000U | (random() >> 2)};
        }

        /// SplitMix64. Ids must differ; they need not be secret.
        [[nodiscard]] std::uint64_t random() {
            if (process != 0 && process != detail::process_id()) {
                process = detail::process_id();
                state = detail::system_seed();
            }
            return detail::mix(state += 0x9e3779b97f4a7c15U);
        }

        std::mutex mutex;
        clock now;
        std::uint64_t state;
        std::int64_t process; ///< 0: the caller gave the seed
        std::uint64_t last = 0;
    };

    std::shared_ptr<shared> shared_;
};

/// Ids for tests: 1, 2, 3 and so on. Copies share one count. Thread-safe.
class counting_ids {
  public:
    explicit counting_ids(std::uint64_t first = 1)
        : next_(std::make_shared<std::atomic<std::int64_t>>(static_cast<std::int64_t>(first))) {}
    [[nodiscard]] id operator()() const noexcept {
        return {.high = 0, .low = static_cast<std::uint64_t>(next_->fetch_add(1))};
    }

  private:
    std::shared_ptr<std::atomic<std::int64_t>> next_; // as in manual_clock: a second type takes longer to compile
};

} // namespace v0
} // namespace vouch
