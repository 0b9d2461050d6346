// SPDX-License-Identifier: MIT
// Whether a thread of this process sleeps, whether it sleeps in a call on a socket, and its CPU time. Linux reports all of
// it. On other systems every thread counts as asleep, so that a thread that is slow because of the load may look like one
// that waits.
#pragma once

#include <chrono>

#if defined(__linux__)
#include <array>
#include <charconv>
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
    thread_probe(thread_probe&& other) noexcept
        : state_(std::exchange(other.state_, -1)), call_(std::exchange(other.call_, -1)), clock_(other.clock_) {}
    thread_probe& operator=(thread_probe&& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(call_, other.call_);
        std::swap(clock_, other.clock_);
        return *this;
    }
    ~thread_probe() {
        for (const int file : {state_, call_}) {
            if (file >= 0) {
                close(file);
            }
        }
    }

    [[nodiscard]] static thread_probe current() {
        thread_probe out;
        const auto folder = "/proc/self/task/" + std::to_string(syscall(SYS_gettid));
        out.state_ = open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
        out.call_ = open((folder + "/syscall").c_str(), O_RDONLY | O_CLOEXEC);
        pthread_getcpuclockid(pthread_self(), &out.clock_);
        return out;
    }

    /// Whether it waits for another thread or for time to pass. False if it waits for a processor or a disk. Does not
    /// allocate, because the thread must not wait in the allocator for its observer.
    [[nodiscard]] bool is_asleep() const {
        text_buffer text{}; // "42 (name) S ...", where the name is short
        const auto said = content(state_, text);
        if (said.empty()) {
            return true; // the thread has ended, or the state is not available
        }
        const auto name_end = said.rfind(')');
        return name_end != std::string_view::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

    /// Whether it sleeps in a system call that waits for a socket, so for the answer of a server.
    [[nodiscard]] bool is_in_socket_call() const {
        text_buffer text{}; // "271 0x7f2e...": the number of the call and its arguments, or "running"
        const auto said = content(call_, text);
        long number = -1;
        std::from_chars(said.data(), said.data() + said.size(), number);
        switch (number) {
#if defined(SYS_poll)
        case SYS_poll:
#endif
#if defined(SYS_select)
        case SYS_select:
#endif
#if defined(SYS_epoll_wait)
        case SYS_epoll_wait:
#endif
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_epoll_pwait:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_read:
        case SYS_connect: return true;
        default: return false;
        }
    }

    /// The CPU time that it has used.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const {
        timespec spent{};
        return state_ < 0 || clock_gettime(clock_, &spent) != 0
                   ? std::chrono::nanoseconds{}
                   : std::chrono::seconds{spent.tv_sec} + std::chrono::nanoseconds{spent.tv_nsec};
    }

  private:
    using text_buffer = std::array<char, 256>;

    /// The first part of a file of the system; empty if it cannot be read.
    [[nodiscard]] static std::string_view content(int file, text_buffer& text) {
        const auto size = file < 0 ? -1 : pread(file, text.data(), text.size(), 0);
        return {text.data(), size <= 0 ? 0 : static_cast<std::size_t>(size)};
    }

    int state_ = -1;
    int call_ = -1;
    clockid_t clock_{};
};

#else

class thread_probe {
  public:
    [[nodiscard]] static thread_probe current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
    [[nodiscard]] bool is_in_socket_call() const { return false; }
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const { return {}; }
};

#endif

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
