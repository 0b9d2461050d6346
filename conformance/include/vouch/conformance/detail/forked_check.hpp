// SPDX-License-Identifier: MIT
// `check` in a child process, which tells its parent about every clause. If a clause hangs or ends the process, that is
// its result, and a new child runs the rest. All clauses run in one child as long as nothing happens, so a run costs one
// fork. Only for a process with one thread.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <vouch/conformance/check.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/detail/gaps.hpp>
#include <vouch/conformance/detail/wire.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>

#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// How a process ended, in words.
[[nodiscard]] inline std::string end_of_process(int status) {
    if (WIFSIGNALED(status)) {
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    }
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

/// A child process that runs `work(send)`, where `send(message)` is safe to call from any one thread at a time.
class suite_process {
  public:
    template <class Work>
    explicit suite_process(Work&& work) {
        int ends[2];
        if (pipe(ends) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        std::fflush(nullptr); // or the child would print the parent's text again
        id_ = fork();
        if (id_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (id_ == 0) {
            close(ends[0]);
            fcntl(ends[1], F_SETFD, FD_CLOEXEC);
            work([to = ends[1]](const message& m) { write_all(to, encoded(m)); });
            std::exit(0); // not _exit: sanitizers report at exit
        }
        close(ends[1]);
        from_ = ends[0];
    }
    suite_process(const suite_process&) = delete;
    suite_process& operator=(const suite_process&) = delete;
    ~suite_process() {
        close(from_);
        if (!status_) {
            waitpid(id_, nullptr, 0);
        }
    }

    /// The next message; nothing when the child has ended.
    [[nodiscard]] std::optional<message> read() {
        for (;;) {
            if (auto found = take_message(received_)) {
                return found;
            }
            // A process that the store has started may hold the pipe open, so its end says nothing about the child.
            pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
            constexpr int milliseconds = 200;
            if (poll(&ready, 1, milliseconds) > 0) {
                char buffer[65'536];
                const auto count = ::read(from_, buffer, sizeof buffer);
                if (count <= 0) {
                    return std::nullopt;
                }
                received_.append(buffer, static_cast<std::size_t>(count));
            } else if (has_ended()) {
                return std::nullopt;
            }
        }
    }

    /// Waits for the end of the child and returns its status.
    [[nodiscard]] int wait() {
        if (int status = 0; !status_ && waitpid(id_, &status, 0) == id_) {
            status_ = status;
        }
        return status_.value_or(0);
    }

  private:
    [[nodiscard]] bool has_ended() {
        if (int status = 0; !status_ && waitpid(id_, &status, WNOHANG) == id_) {
            status_ = status;
        }
        return status_.has_value();
    }

    static void write_all(int to, std::string_view text) {
        while (!text.empty()) {
            const auto count = write(to, text.data(), text.size());
            if (count < 0 && errno != EINTR) {
                std::_Exit(1); // the parent is gone
            }
            text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0U);
        }
    }

    pid_t id_ = 0;
    int from_ = -1;
    std::string received_{};
    std::optional<int> status_{};
};

/// Runs the clauses in child processes and collects their reports.
template <class Fixture>
class forked_check {
  public:
    forked_check(const options& how, const identity& whose) : report_{.identity = whose, .options = how} {
        for (const auto& c : all_clauses()) {
            report_.clauses.push_back({.clause = c});
        }
    }

    /// The report. Throws if the fixture cannot open a store.
    [[nodiscard]] report run() {
        constexpr std::size_t hangs_max = 3; // each takes the whole patience
        do {
            run_child();
            if (has_more() && report_.count(result::hangs) >= hangs_max) {
                report_.gaps.push_back("the run ended after " + std::to_string(hangs_max) +
                                       " clauses without an answer");
                break;
            }
        } while (has_more());
        for (const auto& c : report_.clauses) {
            report_.tally += c.tally;
        }
        for (auto& gap : gaps_of(report_.tally, report_.can)) {
            report_.gaps.push_back(std::move(gap));
        }
        return std::move(report_);
    }

  private:
    /// What the child does: all clauses from `first_` on.
    template <class Send>
    void work(const std::filesystem::path& folder, const Send& send) const {
        std::size_t next = 0;
        check_callbacks callbacks;
        callbacks.opened = [&](const report& r) { send(opened_message(r)); };
        callbacks.begins = [&](const clause& c) {
            next = static_cast<std::size_t>(&c - all_clauses().data());
            if (next >= first_) {
                send({"begins", bytes_of(next)});
            }
            return next >= first_;
        };
        callbacks.ended = [&](const clause_report& c) {
            send(ended_message(c));
            return true;
        };
        callbacks.hangs = [&](const report&) { send({"hangs"}); };
        try {
            Fixture fixture{};
            std::ignore = check_in(folder, fixture, report_.options, report_.identity, callbacks);
            send({"done"});
        } catch (const std::exception& e) {
            send({"throws", e.what()});
        }
    }

    /// Whether there are clauses that the last child did not come to.
    [[nodiscard]] bool has_more() const {
        const auto& all = all_clauses();
        return !is_done_ && std::any_of(all.begin() + static_cast<std::ptrdiff_t>(first_), all.end(),
                                        [&](const clause& c) { return is_chosen(c, report_.options); });
    }

    void run_child() {
        const auto folder = fresh_folder();
        current_.reset();
        has_hung_ = false;
        const auto first = first_;
        {
            suite_process child([&](const auto& send) { work(folder, send); });
            while (auto m = child.read()) {
                receive(std::move(*m));
            }
            judge(child.wait(), first);
        }
        std::error_code ignored; // what a child leaves behind that could not clean up
        std::filesystem::remove_all(folder, ignored);
    }

    void receive(message m) {
        word_reader from(std::move(m));
        const auto kind = from.text();
        if (kind == "opened") {
            read_opened(from, report_);
        } else if (kind == "begins") {
            current_ = from.template value<std::size_t>();
            first_ = *current_ + 1;
        } else if (kind == "ended") {
            read_ended(from, report_.clauses.at(current_.value()));
            current_.reset();
        } else if (kind == "hangs") {
            has_hung_ = true;
        } else if (kind == "throws") {
            throw std::runtime_error(from.text());
        } else if (kind == "done") {
            is_done_ = true;
        }
    }

    /// The child has ended with this status; it had begun with the clause `first`.
    void judge(int status, std::size_t first) {
        if (is_done_ && status != 0) { // a sanitizer's report, for instance
            report_.gaps.push_back("after the last clause the process ended with " + end_of_process(status));
        } else if (current_) {
            auto& c = report_.clauses[*current_];
            c = hanging(c.clause, report_.options);
            if (!has_hung_) {
                c.result = result::crashes;
                c.failure.what = "the process ended with " + end_of_process(status);
            }
        } else if (!is_done_ && has_hung_) {
            throw open_hangs("no answer for " + std::to_string(report_.options.seconds_per_clause) + " s");
        } else if (!is_done_ && first_ == first) { // a new child would do the same
            throw std::runtime_error("the process ended with " + end_of_process(status));
        }
    }

    report report_;
    std::size_t first_ = 0; ///< the first clause that has not begun
    std::optional<std::size_t> current_{};
    bool has_hung_ = false;
    bool is_done_ = false;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
#endif
