// SPDX-License-Identifier: MIT
// Tells when the files of a database are written, by this process or by another one. On Linux the kernel says so
// (inotify); elsewhere, and if the kernel has no more watches to give, a wait only ends after its time.
//
// One thread waits at a time; any thread may interrupt it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#if defined(__linux__)
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class file_events {
  public:
    using clock = std::chrono::steady_clock;

#if defined(__linux__)
    explicit file_events(std::string database)
        : database_(std::move(database)), log_(database_ + "-wal"), interrupts_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
          writes_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}
    file_events(const file_events&) = delete;
    file_events& operator=(const file_events&) = delete;
    ~file_events() {
        for (const int one : {interrupts_, writes_}) {
            if (one >= 0) {
                ::close(one);
            }
        }
    }

    /// Whether the next `wait` ends when another process commits. Asks for the files that are at the paths now.
    [[nodiscard]] bool begin() noexcept {
        if (writes_ < 0 || interrupts_ < 0) {
            return false;
        }
        ::inotify_add_watch(writes_, database_.c_str(), IN_MODIFY); // commits without a log
        return ::inotify_add_watch(writes_, log_.c_str(), IN_MODIFY) >= 0;
    }

    /// Waits until a file is written, `interrupt` is called, or `until`. May also end earlier.
    void wait(clock::time_point until) noexcept {
        // Every commit of this process is an event, too. One look in a millisecond is enough for all of them.
        if (const auto pause = std::min(last_event_ + shortest_pause, until); clock::now() < pause) {
            if (poll_until(pause, false)) {
                return;
            }
        }
        poll_until(until, true);
    }

    /// How long ago `wait` has noticed that a file was written.
    [[nodiscard]] clock::duration since_write() const noexcept { return clock::now() - last_event_; }

    /// Ends the present wait, or the next one.
    void interrupt() noexcept {
        if (interrupts_ >= 0) {
            ::eventfd_write(interrupts_, 1);
        }
    }

  private:
    static constexpr std::chrono::milliseconds shortest_pause{1};

    /// Returns whether it was interrupted.
    bool poll_until(clock::time_point until, bool hears_writes) noexcept {
        const auto left = std::chrono::ceil<std::chrono::nanoseconds>(until - clock::now());
        const auto wait = std::clamp<std::chrono::nanoseconds>(left, {}, std::chrono::hours{1});
        const timespec at_most{static_cast<time_t>(wait.count() / 1'000'000'000), wait.count() % 1'000'000'000};
        std::array<pollfd, 2> on{{{interrupts_, POLLIN, 0}, {hears_writes ? writes_ : -1, POLLIN, 0}}};
        if (::ppoll(on.data(), on.size(), &at_most, nullptr) <= 0) {
            return false;
        }
        if (on[1].revents != 0) {
            last_event_ = clock::now();
            std::array<char, 4096> events{};
            while (::read(writes_, events.data(), events.size()) > 0) {
            }
        }
        eventfd_t count = 0;
        return on[0].revents != 0 && ::eventfd_read(interrupts_, &count) == 0;
    }

    std::string database_;
    std::string log_;
    int interrupts_;
    int writes_;
    clock::time_point last_event_{};
#else
    explicit file_events(const std::string& /*database*/) {}
    [[nodiscard]] bool begin() const noexcept { return false; }
    [[nodiscard]] clock::duration since_write() const noexcept { return clock::duration::max(); }
    void wait(clock::time_point until) {
        std::unique_lock lock(mutex_);
        interrupted_.wait_until(lock, until, [&] { return is_interrupted_; });
        is_interrupted_ = false;
    }
    void interrupt() noexcept {
        {
            const std::lock_guard lock(mutex_);
            is_interrupted_ = true;
        }
        interrupted_.notify_one();
    }

  private:
    std::mutex mutex_{};
    std::condition_variable interrupted_{};
    bool is_interrupted_ = false;
#endif
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
