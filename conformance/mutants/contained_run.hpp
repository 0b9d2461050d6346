// SPDX-License-Identifier: MIT
// Runs the suite against one broken store in a process of its own, clause by clause, so that one that hangs or crashes
// ends nothing but itself. The child says line by line what it begins and what came of it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/conformance/clauses.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/conformance/suite.hpp>

namespace mutants {

/// How far a run goes after the first failure.
enum class until : std::uint8_t { first_failure, first_failure_of_each_layer, end };

struct outcome {
    struct death {
        std::string clause{};
        std::string layer{};
        double milliseconds = 0;
        std::string how{}; ///< "fails", "hangs", "crashes"
        std::string what{};
    };
    std::vector<death> deaths{};
    std::string trouble{}; ///< the run itself went wrong
    double milliseconds = 0;
    std::pair<double, std::string> slowest{}; ///< clause, with its milliseconds

    [[nodiscard]] bool is_killed() const noexcept { return !deaths.empty(); }
};

namespace detail {

namespace suite = vouch::conformance;

[[nodiscard]] inline std::string one_line(std::string text) {
    for (auto& c : text) {
        c = c == '\n' || c == '\t' ? ' ' : c;
    }
    return text;
}

/// The child's part.
template <class Fixture>
void run_clauses(Fixture& fixture, suite::options how, until stop, std::FILE* to) {
    const auto only = how.layer;
    std::set<suite::layer> failed;
    for (const auto& c : suite::all_clauses()) {
        if (only && *only != c.layer) {
            continue;
        }
        if (failed.contains(c.layer) && stop == until::first_failure_of_each_layer) {
            continue;
        }
        how.clause = c.id;
        how.layer = c.layer;
        std::fprintf(to, "begin\t%s\t%s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str());
        std::fflush(to);
        const auto r = suite::check(fixture, how);
        for (const auto& one : r.clauses) {
            if (one.clause.id != c.id) {
                continue;
            }
            std::fprintf(to, "took\t%s\t%.0f\n", std::string(c.id).c_str(), one.milliseconds);
            if (one.result != suite::result::fail) {
                continue;
            }
            failed.insert(c.layer);
            const auto what = one_line(one.failure.what + ": " + one.failure.seen + " / " + one.failure.expected + " " +
                                       one.failure.story);
            std::fprintf(to, "fail\t%s\t%s\t%.0f\t%s\n", std::string(c.id).c_str(),
                         std::string(name_of(c.layer)).c_str(), one.milliseconds, what.substr(0, 6000).c_str());
        }
        std::fflush(to);
        if (!failed.empty() && stop == until::first_failure) {
            return;
        }
    }
}

} // namespace detail

/// One child at work.
class contained_run {
  public:
    using clock = std::chrono::steady_clock;

    /// `work(FILE*)` is run in the child.
    template <class Work>
    contained_run(Work&& work, std::chrono::seconds patience) : deadline_(clock::now() + patience) {
        auto pattern = (std::filesystem::temp_directory_path() / "vouch-mutant-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), "mkdtemp");
        }
        folder_ = pattern;
        int ends[2];
        if (pipe(ends) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe");
        }
        std::fflush(nullptr);
        child_ = fork();
        if (child_ < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (child_ == 0) {
            close(ends[0]);
            setenv("TMPDIR", folder_.c_str(), 1);
            auto* const to = fdopen(ends[1], "w");
            try {
                work(to);
            } catch (const std::exception& e) {
                std::fprintf(to, "thrown\t%s\n", detail::one_line(e.what()).c_str());
            }
            std::fprintf(to, "end\n");
            std::fflush(to);
            std::_Exit(0); // threads that hang are left behind
        }
        close(ends[1]);
        from_ = ends[0];
    }
    contained_run(const contained_run&) = delete;
    contained_run& operator=(const contained_run&) = delete;
    ~contained_run() {
        if (child_ > 0) {
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
        }
        close(from_);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    [[nodiscard]] int descriptor() const noexcept { return from_; }
    [[nodiscard]] bool is_late() const noexcept { return clock::now() > deadline_; }

    /// Takes in what the child has said. Says whether it may say more.
    bool read() {
        char some[4096];
        const auto n = ::read(from_, some, sizeof some);
        if (n > 0) {
            said_.append(some, static_cast<std::size_t>(n));
        }
        return n > 0;
    }

    /// When nothing more is to come, or it has taken too long.
    [[nodiscard]] outcome finish() {
        const bool late = is_late();
        if (late) {
            kill(child_, SIGKILL);
        }
        int status = 0;
        waitpid(std::exchange(child_, 0), &status, 0);
        outcome out;
        out.milliseconds = std::chrono::duration<double, std::milli>(clock::now() - begun_).count();
        outcome::death last;
        bool has_ended = false;
        std::istringstream lines(said_);
        for (std::string line; std::getline(lines, line);) {
            const auto words = split(line);
            if (words[0] == "begin" && words.size() > 2) {
                last = {words[1], words[2], 0, {}, {}};
            } else if (words[0] == "fail" && words.size() > 3) {
                out.deaths.push_back({words[1], words[2], std::strtod(words[3].c_str(), nullptr), "fails",
                                      words.size() > 4 ? words[4] : std::string{}});
            } else if (words[0] == "thrown") {
                out.deaths.push_back({last.clause, last.layer, 0, "throws", words.size() > 1 ? words[1] : ""});
            }
            if (words[0] == "took" && words.size() > 2) {
                out.slowest = std::max(out.slowest, {std::strtod(words[2].c_str(), nullptr), words[1]});
            }
            has_ended = has_ended || words[0] == "end";
        }
        constexpr int suite_says_hanging = 3;
        constexpr int wrong_statement = 5;
        if (WIFEXITED(status) && WEXITSTATUS(status) == wrong_statement) {
            out.trouble = "the rewritten statement does not run";
        } else if (!has_ended) {
            const bool hangs = late || (WIFEXITED(status) && WEXITSTATUS(status) == suite_says_hanging);
            last.how = hangs ? "hangs" : "crashes";
            last.what = hangs ? "ended by the watchdog" : "status " + std::to_string(status);
            last.milliseconds = out.milliseconds;
            out.deaths.push_back(last);
        }
        return out;
    }

  private:
    [[nodiscard]] static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> words;
        std::istringstream in(line);
        for (std::string word; std::getline(in, word, '\t');) {
            words.push_back(word);
        }
        words.resize(std::max<std::size_t>(words.size(), 1));
        return words;
    }

    clock::time_point begun_ = clock::now();
    clock::time_point deadline_;
    std::filesystem::path folder_{};
    pid_t child_ = 0;
    int from_ = -1;
    std::string said_{};
};

} // namespace mutants
