// SPDX-License-Identifier: MIT
// Runs a function in a child process. The parent must have no connection open and no other thread running.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace worker_program {

/// How a process ended.
struct ending {
    int code = -1;   ///< if it exited
    int signal = -1; ///< if a signal ended it
};

class child {
  public:
    /// Forks, and calls `work` in the child; it returns the exit code.
    template <class Work>
    explicit child(Work&& work) : id_(fork_flushed()) {
        if (id_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (id_ == 0) {
            int code = 99;
            try {
                code = work();
            } catch (const std::exception& e) {
                std::fprintf(stderr, "a child process failed: %s\n", e.what());
            }
            std::fflush(nullptr);
            _exit(code);
        }
    }
    child(child&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    child& operator=(child&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    ~child() {
        if (id_ > 0) {
            signal(SIGKILL);
            wait();
        }
    }

    void signal(int which) const noexcept { ::kill(id_, which); }

    ending wait() {
        int status = 0;
        while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
        }
        id_ = -1;
        return of(status);
    }

    /// Nothing if the process is still running after `at_most`.
    [[nodiscard]] std::optional<ending> wait_for(std::chrono::milliseconds at_most) {
        const auto until = std::chrono::steady_clock::now() + at_most;
        for (;;) {
            int status = 0;
            if (waitpid(id_, &status, WNOHANG) == id_) {
                id_ = -1;
                return of(status);
            }
            if (std::chrono::steady_clock::now() >= until) {
                return std::nullopt;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }

  private:
    /// Flushes first: buffered output would otherwise be written twice.
    [[nodiscard]] static pid_t fork_flushed() {
        std::fflush(nullptr);
        return fork();
    }

    [[nodiscard]] static ending of(int status) noexcept {
        return WIFEXITED(status) ? ending{.code = WEXITSTATUS(status)} : ending{.signal = WTERMSIG(status)};
    }
    pid_t id_;
};

/// A new object in memory that this process and its children share. It is never destroyed.
template <class T>
[[nodiscard]] T& shared_object() {
    void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), "mmap");
    }
    return *new (memory) T{};
}

/// The number of expectations of this process that did not hold.
inline int failures = 0;

inline void expect(bool holds, const char* what) {
    if (!holds) {
        failures += 1;
        std::printf("FAILED: %s\n", what);
    }
}

/// Runs `work` in a child process, so that this process opens no file.
template <class Work>
void in_a_child(Work&& work) {
    child alone([&] {
        work();
        return failures == 0 ? 0 : 1;
    });
    expect(alone.wait().code == 0, "the checks in a child process pass");
}

} // namespace worker_program
