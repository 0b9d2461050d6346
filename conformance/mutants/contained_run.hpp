// SPDX-License-Identifier: MIT
// A kill search in a child process, so that a store that hangs or crashes ends only that process.
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
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mutants {

/// A clause that killed a store.
struct kill_record {
    std::uint64_t seed = 0;
    std::string clause{};
    std::string layer{};
    std::string profile{};
    double milliseconds = 0; ///< since the first clause started
    std::uint64_t calls = 0;
    std::string how{}; ///< "fails", "hangs", "crashes", "throws"
    std::string what{};
};

/// What a child process reported.
struct child_result {
    std::vector<kill_record> kills{};
    std::string error{};      ///< why the run itself failed; empty: it did not
    bool was_cut_off = false; ///< the last kill ended the child early
};

/// One running child process.
class contained_run {
  public:
    using clock = std::chrono::steady_clock;

    /// Forks, and calls `work(FILE*)` in the child.
    template <class Work>
    explicit contained_run(Work&& work) {
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
            run_child(work, fdopen(ends[1], "w"));
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

    /// Reads the child's output. Returns false at its end.
    bool read() {
        char buffer[4096];
        const auto n = ::read(from_, buffer, sizeof buffer);
        if (n > 0) {
            output_.append(buffer, static_cast<std::size_t>(n));
        }
        return n > 0;
    }

    /// Waits for the child and parses its output. Call it once, after `read` has returned false.
    [[nodiscard]] child_result finish() {
        int status = 0;
        waitpid(std::exchange(child_, 0), &status, 0);
        child_result out;
        kill_record last;
        bool has_ended = false;
        std::istringstream lines(output_);
        for (std::string line; std::getline(lines, line);) {
            const auto words = split(line);
            if (words[0] == "seed") {
                last.seed = std::stoull(words[1]);
            } else if (words[0] == "begin") {
                last = {.seed = last.seed, .clause = words[1], .layer = words[2], .profile = words[3]};
            } else if (words[0] == "fail") {
                out.kills.push_back({last.seed, words[1], words[2], words[3], std::stod(words[4]),
                                     std::stoull(words[5]), "fails", words[6]});
            } else if (words[0] == "thrown") {
                last.how = "throws";
                last.what = words[1];
                out.kills.push_back(last);
                out.was_cut_off = true;
            }
            has_ended = has_ended || words[0] == "end";
        }
        if (!has_ended) {
            record_end(out, last, status);
        }
        return out;
    }

  private:
    template <class Work>
    [[noreturn]] void run_child(Work& work, std::FILE* to) const {
        setenv("TMPDIR", folder_.c_str(), 1);
        if (freopen((folder_ / "stderr").c_str(), "w", stderr) == nullptr) { // discards a broken store's output
            std::_Exit(1);
        }
        try {
            work(to);
        } catch (const std::exception& e) {
            std::fprintf(to, "thrown\t%.1000s\n", e.what());
        }
        std::fprintf(to, "end\n");
        std::fflush(to);
        std::_Exit(0); // does not wait for threads that hang
    }

    void record_end(child_result& out, kill_record last, int status) const {
        constexpr int exit_hangs = 3;
        constexpr int exit_wrong_statement = 5;
        if (WIFEXITED(status) && WEXITSTATUS(status) == exit_wrong_statement) {
            out.error = "the rewritten statement does not run";
            return;
        }
        const bool hangs = WIFEXITED(status) && WEXITSTATUS(status) == exit_hangs;
        last.how = hangs ? "hangs" : "crashes";
        last.what = hangs ? "ended by the watchdog" : "status " + std::to_string(status);
        last.milliseconds = std::chrono::duration<double, std::milli>(clock::now() - started_).count();
        out.kills.push_back(last);
        out.was_cut_off = true;
    }

    [[nodiscard]] static std::vector<std::string> split(const std::string& line) {
        std::vector<std::string> words;
        std::istringstream in(line);
        for (std::string word; std::getline(in, word, '\t');) {
            words.push_back(word);
        }
        constexpr std::size_t words_at_least = 7;
        words.resize(std::max(words.size(), words_at_least));
        return words;
    }

    clock::time_point started_ = clock::now();
    std::filesystem::path folder_{};
    pid_t child_ = 0;
    int from_ = -1;
    std::string output_{};
};

} // namespace mutants
