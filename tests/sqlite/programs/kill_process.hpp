// SPDX-License-Identifier: MIT
// Child processes. The parent has no connection open when it makes one, because SQLite's must not be carried across a
// fork.
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
    /// Runs `work` in a process of its own, through the hooks, until it is done or its appointment comes.
    template <class Work>
    process(appointment when, Work&& work) : id_(fork()) {
        if (id_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (id_ == 0) {
            _exit(live(when, std::forward<Work>(work))); // past all destructors of the parent's things
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
    static int live(appointment when, Work&& work) noexcept {
        try {
            mine = when;
            install_hooks();
            work();
            return 0;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "a child failed: %s\n", e.what());
            return 1;
        }
    }

    pid_t id_;
};

/// A place where a child waits until its parent lets it go on.
class gate {
  public:
    gate() {
        if (pipe(there_.data()) != 0 || pipe(back_.data()) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
    }
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    ~gate() {
        for (const int end : {there_[0], there_[1], back_[0], back_[1]}) {
            close(end);
        }
    }

    // The child's side.
    void wait_to_be_let_go() {
        tell(there_[1]);
        hear(back_[0]);
    }
    /// So that nobody waits for a child that does not come by.
    void pass_by() { tell(there_[1]); }

    // The parent's side.
    void wait_for_child() { hear(there_[0]); }
    void let_go() { tell(back_[1]); }

  private:
    static void tell(int to) {
        if (write(to, "!", 1) != 1) {
            throw std::runtime_error("a pipe takes no byte");
        }
    }
    static void hear(int from) {
        char heard = 0;
        while (read(from, &heard, 1) < 0 && errno == EINTR) {
        }
    }

    std::array<int, 2> there_{};
    std::array<int, 2> back_{};
};

} // namespace kill_test
