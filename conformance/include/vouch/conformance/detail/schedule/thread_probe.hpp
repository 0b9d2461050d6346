// SPDX-License-Identifier: MIT
// A thread of this process that can be asked whether it sleeps, and how long it has been at work. Linux tells;
// elsewhere every thread is taken for asleep, so that there a busy machine may look like a waiting thread.
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
namespace conformance {

#if defined(__linux__)

class sleeper {
  public:
    sleeper() = default; ///< no thread
    sleeper(sleeper&& other) noexcept : file_(std::exchange(other.file_, -1)), clock_(other.clock_) {}
    sleeper& operator=(sleeper&& other) noexcept {
        std::swap(file_, other.file_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~sleeper() {
        if (file_ >= 0) {
            close(file_);
        }
    }

    [[nodiscard]] static sleeper current() {
        sleeper out;
        const auto path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/stat";
        out.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread, or for time to pass; not if it merely waits for a processor or a disk.
    /// Allocates nothing: threads wait for each other in the allocator, and it must not wait for who asks.
    [[nodiscard]] bool is_asleep() const {
        std::array<char, 256> text{}; // "42 (name) S ...", and a name is short
        const auto size = file_ < 0 ? -1 : pread(file_, text.data(), text.size(), 0);
        if (size <= 0) {
            return true; // it is gone, or nobody tells
        }
        const std::string_view said(text.data(), static_cast<std::size_t>(size));
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// What it has had of a processor so far.
    [[nodiscard]] std::chrono::nanoseconds worked() const {
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

class sleeper {
  public:
    [[nodiscard]] static sleeper current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] std::chrono::nanoseconds worked() const { return {}; }
};

#endif

} // namespace conformance
} // namespace v0
} // namespace vouch
