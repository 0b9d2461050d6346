// SPDX-License-Identifier: MIT
// Child processes that may be killed. The parent must have no connection open when it forks: SQLite connections must
// not be carried across a fork.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlite/programs/kill_hooks.hpp"
#include "sqlite/programs/kill_points.hpp"

namespace kill_test {

enum class ending : std::uint8_t { finished, killed, failed };

class process {
  public:
    /// Runs `work` in a child process with the hooks installed, until it is done or its plan kills it.
    template <class Work>
    process(kill_plan when, Work&& work) : id_(fork()) {
        if (id_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (id_ == 0) {
            _exit(run(when, std::forward<Work>(work))); // skips the destructors of the parent's objects
        }
    }
    process(process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    process& operator=(process&&) = delete;
    ~process() {
        if (id_ > 0) {
            kill();
            wait();
        }
    }

    void kill() const noexcept { ::kill(id_, SIGKILL); }

    ending wait() noexcept {
        int status = 0;
        while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
        }
        id_ = -1;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            return ending::killed;
        }
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ending::finished : ending::failed;
    }

  private:
    template <class Work>
    static int run(kill_plan when, Work&& work) noexcept {
        try {
            own_plan = when;
            install_hooks();
            work();
            return 0;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "a child process failed: %s\n", e.what());
            return 1;
        }
    }

    pid_t id_;
};

/// A point where a child waits until its parent releases it.
class rendezvous {
  public:
    rendezvous() {
        if (pipe(there_.data()) != 0 || pipe(back_.data()) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
    }
    rendezvous(const rendezvous&) = delete;
    rendezvous& operator=(const rendezvous&) = delete;
    ~rendezvous() {
        for (const int end : {there_[0], there_[1], back_[0], back_[1]}) {
            close(end);
        }
    }

    // The child's side.
    void arrive_and_wait() {
        send(there_[1]);
        receive(back_[0]);
    }
    /// For a child that will not wait, so that the parent does not wait for it.
    void arrive() { send(there_[1]); }

    // The parent's side.
    void wait_for_child() { receive(there_[0]); }
    void release() { send(back_[1]); }

  private:
    static void send(int to) {
        if (write(to, "!", 1) != 1) {
            throw std::runtime_error("cannot write to a pipe");
        }
    }
    static void receive(int from) {
        char heard = 0;
        while (read(from, &heard, 1) < 0 && errno == EINTR) {
        }
    }

    std::array<int, 2> there_{};
    std::array<int, 2> back_{};
};

} // namespace kill_test
