// SPDX-License-Identifier: MIT
// Four processes compete for the write lock. Each holds it as long as a commit takes on a slow disk and asks for the
// next turn at once. Every turn appends the number of its process to a table.
// 1. While a process waits, no other process gets more than two turns (one is fair; one more if the waiting process was
//    not scheduled in time).
// 2. When a waiting process is stopped (SIGSTOP) or killed, the others continue.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

using namespace std::chrono_literals;
using namespace worker_program;
using vouch::sqlite::store;

namespace {

constexpr std::size_t processes = 4;
constexpr int turns_each = 60;
constexpr auto commit_takes = 10ms;

int take_turns(const std::string& path, std::size_t number, int turns) {
    store s(path);
    const auto sql = "INSERT INTO turns (process) VALUES (" + std::to_string(number) + ")";
    for (int i = 0; i < turns; ++i) {
        auto tx = s.begin();
        if (sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
            return 1;
        }
        std::this_thread::sleep_for(commit_takes);
        tx.commit();
    }
    return 0;
}

[[nodiscard]] std::vector<std::size_t> turns_taken(const std::string& path) {
    std::vector<std::size_t> taken;
    store s(path);
    auto tx = s.begin();
    sqlite3_exec(
        tx.connection(), "SELECT process FROM turns ORDER BY number",
        [](void* to, int, char** row, char**) {
            static_cast<std::vector<std::size_t>*>(to)->push_back(static_cast<std::size_t>(std::atoi(row[0])));
            return 0;
        },
        &taken, nullptr);
    return taken;
}

/// The largest number of turns that one process had between two turns of another.
[[nodiscard]] std::size_t most_passed_by(const std::vector<std::size_t>& taken) {
    std::size_t most = 0;
    for (std::size_t who = 0; who < processes; ++who) {
        std::array<std::size_t, processes> since{};
        for (auto at = std::find(taken.begin(), taken.end(), who); at != taken.end(); ++at) {
            if (*at == who) {
                most = std::max(most, *std::max_element(since.begin(), since.end()));
                since = {};
            } else {
                since.at(*at) += 1;
            }
        }
    }
    return most;
}

void in_turn(const std::string& path) {
    std::vector<child> all;
    for (std::size_t i = 0; i < processes; ++i) {
        all.emplace_back([&, i] { return take_turns(path, i, turns_each); });
    }
    for (auto& one : all) {
        expect(one.wait().code == 0, "every process gets all its turns");
    }
    in_a_child([&] {
        auto taken = turns_taken(path);
        expect(taken.size() == processes * turns_each, "every turn is recorded");
        const auto most = most_passed_by(taken);
        std::printf("%zu turns; while one process waited, another had %zu at most\n", taken.size(), most);
        expect(most <= 2, "no process gets more than two turns while another waits");
    });
}

void past_one_that_is_stopped(const std::string& path) {
    child stopped([&] { return take_turns(path, 0, 100'000); });
    child other([&] { return take_turns(path, 1, 100'000); });
    std::this_thread::sleep_for(300ms); // both take turns by now
    other.signal(SIGKILL);              // it may be waiting, or hold the lock
    other.wait();
    child third([&] { return take_turns(path, 2, 20); });
    const auto before = std::chrono::steady_clock::now();
    int stops = 0;
    while (!third.wait_for(2ms)) { // stops it often, so that it is sometimes stopped while it waits
        stopped.signal(SIGSTOP);
        std::this_thread::sleep_for(150ms);
        stopped.signal(SIGCONT);
        stops += 1;
        if (std::chrono::steady_clock::now() - before > 20s) {
            break;
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    std::printf("20 turns beside a process that was stopped %d times took %.1f s\n", stops, took.count());
    expect(took < 20s, "a stopped process does not block the others");
}

} // namespace

int main() {
    const sqlite_test::folder in;
    const auto path = in.fresh_path();
    in_a_child([&] {
        store s(path);
        auto tx = s.begin();
        expect(sqlite3_exec(tx.connection(), "CREATE TABLE turns (number INTEGER PRIMARY KEY, process INTEGER)",
                            nullptr, nullptr, nullptr) == SQLITE_OK,
               "the table of turns is created");
        tx.commit();
    });
    in_turn(path);
    past_one_that_is_stopped(path);
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
