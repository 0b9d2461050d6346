// SPDX-License-Identifier: MIT
// Six processes, then six threads, open the same new file at the same moment, and repeat that with the next file: 2,000
// opens by processes and 600 by threads. Each open creates the file and the tables or finds them. None may fail.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <vouch/sqlite.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

using namespace worker_program;
using vouch::sqlite::store;

namespace {

constexpr int openers = 6;

/// Releases all openers when the last one has arrived.
class start_line {
  public:
    void wait(int round) {
        here_ += 1;
        while (here_ < openers * (round + 1)) {
            std::this_thread::yield();
        }
    }

  private:
    std::atomic<int> here_ = 0;
};

/// Returns the number of failed opens.
int open_all(const sqlite_test::folder& in, const std::string& name, start_line& start, int rounds) {
    int failed = 0;
    for (int round = 0; round < rounds; ++round) {
        start.wait(round);
        try {
            const store opened(in.file(name + std::to_string(round)),
                               {.synchronous = vouch::sqlite::synchronous::normal});
            failed += opened.counts("q").total() == 0 ? 0 : 1;
        } catch (const vouch::error& e) {
            failed += 1;
            std::printf("%s\n", e.what());
        }
    }
    return failed;
}

void by_processes(const sqlite_test::folder& in) {
    constexpr int rounds = 334;
    auto& start = shared_object<start_line>();
    std::vector<child> all;
    for (int i = 0; i < openers; ++i) {
        all.emplace_back([&] { return open_all(in, "process-", start, rounds) == 0 ? 0 : 1; });
    }
    for (auto& one : all) {
        expect(one.wait().code == 0, "every process opens every new file");
    }
    std::printf("%d opens by %d processes\n", openers * rounds, openers);
}

void by_threads(const sqlite_test::folder& in) {
    constexpr int rounds = 100;
    auto& start = shared_object<start_line>();
    std::atomic<int> failed = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < openers; ++i) {
        all.emplace_back([&] { failed += open_all(in, "thread-", start, rounds); });
    }
    for (auto& one : all) {
        one.join();
    }
    expect(failed == 0, "every thread opens every new file");
    std::printf("%d opens by %d threads\n", openers * rounds, openers);
}

} // namespace

int main() {
    const sqlite_test::folder in;
    by_processes(in);
    by_threads(in);
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
