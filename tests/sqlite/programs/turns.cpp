// SPDX-License-Identifier: MIT
// Four processes want to write all the time, each holding the write lock as long as a commit takes on a slow disk, and
// each back at once for the next turn. Every turn leaves its process's number in the file, in order.
// 1. While a process waits, none of the others has more than two turns, whoever asks again soonest (one is fair; one
//    more is for a process that was not let run).
// 2. When one of those who wait is stopped (SIGSTOP), the others go on; when it is killed, its place is free.
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

/// The most turns that one process had between two of another.
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
        expect(one.wait().code == 0, "a process has all its turns");
    }
    in_a_child([&] {
        auto taken = turns_taken(path);
        expect(taken.size() == processes * turns_each, "every turn left its number");
        const auto most = most_passed_by(taken);
        std::printf("%zu turns; while one process waited, another had %zu at most\n", taken.size(), most);
        expect(most <= 2, "whoever waits is not passed by");
    });
}

void past_one_that_is_stopped(const std::string& path) {
    child stopped([&] { return take_turns(path, 0, 100'000); });
    child other([&] { return take_turns(path, 1, 100'000); });
    std::this_thread::sleep_for(300ms); // both are at it
    other.signal(SIGKILL);              // now and then with a place, or with the lock
    other.wait();
    child third([&] { return take_turns(path, 2, 20); });
    const auto before = std::chrono::steady_clock::now();
    int stops = 0;
    while (
        !third.wait_for(2ms)) { // stopped again and again, so that it is stopped while it waits; it may hold the lock
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
    expect(took < 20s, "one that is stopped does not stop the others");
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
               "a table for the turns");
        tx.commit();
    });
    in_turn(path);
    past_one_that_is_stopped(path);
    std::printf("%s\n", failures == 0 ? "all holds" : "NOT all holds");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
