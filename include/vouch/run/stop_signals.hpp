// SPDX-License-Identifier: MIT
// SIGINT and SIGTERM as a stop token, for workers that are processes:
//
//   vouch::stop_signals signals;
//   worker.run(signals.token());
//
// The first signal requests a stop. After it, the system's default action is restored, so a second signal ends the
// process at once; its claims are left to their leases. There may be one object at a time; its destructor restores the
// signal handlers that were set before.
//
// POSIX only. The signal handler does only what is allowed there: it writes a byte to a pipe. The pipe is created once
// per process and never closed, because a signal handler that was interrupted on another thread may write to it after
// the object is destroyed, when a closed descriptor might already belong to another file.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {

class stop_signals {
  public:
    /// Throws `misuse` if there is one already, and `io` if the system cannot create a pipe.
    stop_signals() {
        if (taken().exchange(true)) {
            throw error(error_kind::misuse, "stop_signals: there is one already in this process");
        }
        try {
            // A forked process has its parent's pipe, and would receive its signals.
            if ((read_end() < 0 || owner() != ::getpid()) && !make_pipe()) {
                throw error(error_kind::io, "stop_signals: the system has no pipe to give", {.code = errno});
            }
            forget_earlier_signals();
            listener_ = std::thread([this] { listen(); });
        } catch (...) {
            taken() = false;
            throw;
        }
        struct sigaction ours {};
        ours.sa_handler = &stop_signals::heard;
        ours.sa_flags = SA_RESTART;
        sigemptyset(&ours.sa_mask);
        for (std::size_t i = 0; i < signals.size(); ++i) {
            ::sigaction(signals[i], &ours, &before_[i]);
        }
    }
    stop_signals(const stop_signals&) = delete;
    stop_signals& operator=(const stop_signals&) = delete;
    ~stop_signals() {
        for (std::size_t i = 0; i < signals.size(); ++i) {
            ::sigaction(signals[i], &before_[i], nullptr);
        }
        const char end = 'e';
        while (::write(write_end(), &end, 1) < 0 && errno == EINTR) {
        }
        listener_.join();
        taken() = false;
    }

    /// A stop is requested with the first signal.
    [[nodiscard]] std::stop_token token() const noexcept { return stop_.get_token(); }

  private:
    static constexpr std::array<int, 2> signals{SIGINT, SIGTERM};

    static std::atomic<bool>& taken() noexcept {
        static std::atomic<bool> is_taken = false;
        return is_taken;
    }
    static pid_t& owner() noexcept {
        static pid_t process = -1;
        return process;
    }
    static int& read_end() noexcept {
        static int end = -1;
        return end;
    }
    static std::atomic<int>& write_end() noexcept {
        static std::atomic<int> end = -1;
        static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may wait for no lock");
        return end;
    }

    [[nodiscard]] static bool make_pipe() noexcept {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
            return false;
        }
        owner() = ::getpid();
        read_end() = ends[0];
        write_end() = ends[1];
        return true;
    }

    /// Removes signals that came after the listener of an earlier object had ended.
    static void forget_earlier_signals() noexcept {
        ::fcntl(read_end(), F_SETFL, O_NONBLOCK);
        char ignored = 0;
        while (::read(read_end(), &ignored, 1) == 1) {
        }
        ::fcntl(read_end(), F_SETFL, 0); // the listener waits; a handler that writes never does
    }

    static void heard(int /*which*/) {
        const int errno_before = errno;
        struct sigaction by_default {};
        by_default.sa_handler = SIG_DFL;
        sigemptyset(&by_default.sa_mask);
        for (const int s : signals) {
            ::sigaction(s, &by_default, nullptr);
        }
        const char stop = 's';
        if (const int end = write_end().load(); end >= 0) {
            [[maybe_unused]] const auto written = ::write(end, &stop, 1);
        }
        errno = errno_before;
    }

    void listen() {
        for (char what = 0; what != 'e';) {
            const auto got = ::read(read_end(), &what, 1);
            if (got == 1 && what == 's') {
                stop_.request_stop();
            } else if (got == 0 || (got < 0 && errno != EINTR)) {
                return;
            }
        }
    }

    std::stop_source stop_{};
    std::array<struct sigaction, 2> before_{};
    std::thread listener_{};
};

} // namespace v0
} // namespace vouch
