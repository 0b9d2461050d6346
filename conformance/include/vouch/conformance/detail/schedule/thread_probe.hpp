// SPDX-License-Identifier: MIT
// Whether a thread of this process sleeps, and its CPU time. Linux reports both. On other systems every thread counts as
// asleep, so that a thread that is slow because of the load may look like one that waits.
#pragma once

#include <chrono>

#if defined(__linux__)
#include <array>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

#if defined(__linux__)

class thread_probe {
  public:
    thread_probe() = default; ///< no thread
    thread_probe(thread_probe&& other) noexcept : file_(std::exchange(other.file_, -1)), clock_(other.clock_) {}
    thread_probe& operator=(thread_probe&& other) noexcept {
        std::swap(file_, other.file_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~thread_probe() {
        if (file_ >= 0) {
            close(file_);
        }
    }

    [[nodiscard]] static thread_probe current() {
        thread_probe out;
        const auto path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/stat";
        out.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread or for time to pass. False if it waits for a processor or a disk. Does not
    /// allocate, because the thread must not wait in the allocator for its observer.
    [[nodiscard]] bool is_asleep() const {
        std::array<char, 256> text{}; // "42 (name) S ...", where the name is short
        const auto size = file_ < 0 ? -1 : pread(file_, text.data(), text.size(), 0);
        if (size <= 0) {
            return true; // the thread has ended, or the state is not available
        }
        const std::string_view said(text.data(), static_cast<std::size_t>(size));
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// The CPU time that it has used.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const {
        timespec spent{};
        return file_ < 0 || clock_gettime(clock_, &spent) != 0
                   ? std::chrono::nanoseconds{}
                   : std::chrono::seconds{spent.tv_sec} + std::chrono::nanoseconds{spent.tv_nsec};
    }

  private:
    int file_ = -1;
    clockid_t clock_{};
};

#else

class thread_probe {
  public:
    [[nodiscard]] static thread_probe current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const { return {}; }
};

#endif

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
