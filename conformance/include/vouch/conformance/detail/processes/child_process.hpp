// SPDX-License-Identifier: MIT
// A child process that works with a store, and the memory that it shares with its parent. The child is a fork of the
// program: it opens the location with the fixture, like its parent. It never returns, and destroys nothing when it ends.
//
// Fork before the parent opens the location, because handles must not be used across a fork. POSIX only.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/threads/free_threads.hpp>
#include <vouch/conformance/detail/trial.hpp>

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Messages to and from another process.
class channel {
  public:
    channel(int from, int to) : from_(from), to_(to) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() {
        close(from_);
        close(to_);
    }

    void send(const std::string& message) const {
        const std::uint64_t size = message.size();
        std::string bytes(reinterpret_cast<const char*>(&size), sizeof size); // NOLINT(*-reinterpret-cast): the same
        bytes += message;                                                     // program reads it
        for (std::size_t sent = 0; sent < bytes.size();) {
            const auto n = write(to_, bytes.data() + sent, bytes.size() - sent);
            if (n < 0 && errno != EINTR) {
                return; // the other process has died, which its status tells
            }
            sent += n > 0 ? static_cast<std::size_t>(n) : 0U;
        }
    }
    /// The next message, or nothing if the other process has ended.
    [[nodiscard]] std::optional<std::string> receive() const {
        std::uint64_t size = 0;
        if (!fill(reinterpret_cast<char*>(&size), sizeof size)) { // NOLINT(*-reinterpret-cast)
            return std::nullopt;
        }
        std::string out(size, '\0');
        return fill(out.data(), size) ? std::optional(std::move(out)) : std::nullopt;
    }

    [[nodiscard]] int descriptor() const noexcept { return from_; }

  private:
    [[nodiscard]] bool fill(char* to, std::size_t size) const {
        while (size > 0) {
            const auto n = read(from_, to, size);
            if (n == 0 || (n < 0 && errno != EINTR)) {
                return false;
            }
            to += n > 0 ? n : 0;
            size -= n > 0 ? static_cast<std::size_t>(n) : 0U;
        }
        return true;
    }

    int from_;
    int to_;
};

class child_process {
  public:
    static constexpr std::string_view fails = "failure: "; ///< how the last message of a child that fails begins

    /// Forks, and calls `work(channel)` in the child.
    template <class Work>
    child_process(const trial& t, const Work& work) {
        int down[2];
        int up[2];
        if (pipe(down) != 0 || pipe(up) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        pid_ = fork();
        if (pid_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        const bool is_child = pid_ == 0;
        close(is_child ? down[1] : down[0]);
        close(is_child ? up[0] : up[1]);
        channel_.emplace(is_child ? down[0] : up[0], is_child ? up[1] : down[1]);
        if (is_child) {
            run(t, work);
        }
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;
    ~child_process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    [[nodiscard]] const channel& talk() const noexcept { return *channel_; }
    void kill() const { ::kill(pid_, SIGKILL); }

    /// Waits for the end of the child. Throws the failure that it has found; `last` is its last message so far.
    void join(std::optional<std::string> last = {}) {
        for (auto next = talk().receive(); next; next = talk().receive()) {
            last = std::move(next);
        }
        int status = 0;
        waitpid(std::exchange(pid_, 0), &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == exit_fails) {
            trial::fail("a process works with the store", last.value_or(""), "no failure");
        }
        const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!was_killed && status != 0) {
            trial::fail("a process works with the store", "its status is " + std::to_string(status), "no failure");
        }
    }

  private:
    static constexpr int exit_fails = 90;

    template <class Work>
    [[noreturn]] void run(const trial& t, const Work& work) const {
        std::signal(SIGPIPE, SIG_DFL);
        alarm(static_cast<unsigned>(t.options().seconds_per_clause)); // the watchdog belongs to the parent
        const auto found = failure_of([&] { work(*channel_); });
        if (!found.what.empty()) {
            talk().send(std::string(fails) + found.what + "; seen: " + found.seen + "; expected: " + found.expected);
            _exit(exit_fails);
        }
        _exit(0);
    }

    pid_t pid_ = 0;
    std::optional<channel> channel_{};
};

/// One message from each child, as they come. Calls `one_has_failed` when the first of them ends without success, so that
/// the others need not wait for it.
template <class Children, class OnFailure>
[[nodiscard]] std::vector<std::string> answers_of(const Children& children, const OnFailure& one_has_failed) {
    std::vector<std::string> out(children.size());
    std::vector<pollfd> open;
    for (const auto& c : children) {
        open.push_back({c->talk().descriptor(), POLLIN, 0});
    }
    for (auto left = out.size(); left > 0;) {
        poll(open.data(), open.size(), -1);
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (open[i].fd >= 0 && open[i].revents != 0) {
                out[i] = children[i]->talk().receive().value_or("");
                if (out[i].empty() || out[i].starts_with(child_process::fails)) {
                    one_has_failed();
                }
                open[i].fd = -1; // poll ignores it
                left -= 1;
            }
        }
    }
    return out;
}

/// An object in memory that children share with their parent. Its members are atomic.
template <class T>
class shared_object {
  public:
    template <class... Arguments>
    explicit shared_object(Arguments&&... arguments)
        : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        if (memory_ == MAP_FAILED) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        object_ = new (memory_) T(std::forward<Arguments>(arguments)...);
    }
    shared_object(const shared_object&) = delete;
    shared_object& operator=(const shared_object&) = delete;
    ~shared_object() {
        object_->~T();
        munmap(memory_, sizeof(T));
    }
    [[nodiscard]] T& operator*() const noexcept { return *object_; }
    [[nodiscard]] T* operator->() const noexcept { return object_; }

  private:
    void* memory_;
    T* object_ = nullptr;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch

#endif
