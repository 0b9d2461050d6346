// SPDX-License-Identifier: MIT
// Four worker processes on one SQLite file, with a producer, for as many seconds as asked (`soak [SECONDS]`, 12 if
// not): every second one of them is killed with SIGKILL, another is stopped by a signal, and both are started again. In
// the end
// 1. every entry that was committed has succeeded, and nothing else is stored;
// 2. the effect of each entry, a row written with its outcome, is there exactly once;
// 3. the first entry of the queue never waited longer than a lease and a poll interval;
// 4. no error of the store reached a worker or the producer, SQLITE_BUSY least of all;
// 5. every worker that was asked to stop exited with 0.
// The file is in memory where the machine has such a folder: processes are the subject here, and a disk that a
// neighbour keeps busy for seconds would be measured instead. What a disk does is for kill, power_loss and trouble to
// show.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sqlite3.h>
#include <unistd.h>

#include <vouch/observe.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

using namespace std::chrono_literals;
using namespace worker_program;
using vouch::state;
using vouch::sqlite::store;

namespace {

constexpr std::size_t workers = 4;
constexpr vouch::duration lease = 1s;
constexpr vouch::duration poll_interval = 200ms;
const std::string queue = "soak";

struct files {
    std::string database;
    std::string log;      ///< errors of the store, as they come
    std::string produced; ///< how many entries the producer committed
};

/// The row that an entry's outcome is committed with.
struct with_effect {
    static std::string work(vouch::delivery& d) {
        std::this_thread::sleep_for(6ms);
        return to_string(d.id());
    }
    static void record(vouch::sqlite::transaction& tx, const std::string& id) {
        const auto sql = "INSERT INTO effects VALUES ('" + id + "')";
        if (sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
            throw vouch::failure("no_effect");
        }
    }
};

/// Appends each line at once, because its process may be killed the next moment.
[[nodiscard]] vouch::log_sink to_file(const std::string& path) {
    return [path](vouch::log_level, std::string_view line) {
        std::ofstream(path, std::ios::app) << std::string(line) + '\n';
    };
}

int work(const files& at, std::size_t number) {
    const vouch::stop_signals signals;
    store s(at.database);
    const vouch::outbox outbox;
    vouch::router<store> routes;
    routes.on("t", with_effect{});
    vouch::logger log(vouch::log_level::error, to_file(at.log));
    vouch::worker worker(s, outbox, {.name = "worker-" + std::to_string(number), .poll_interval = poll_interval});
    worker.serve(routes, {.queue = queue,
                          .concurrency = 2,
                          .lease = lease,
                          .retry = {.backoff = vouch::fixed{10ms}, .attempts_max = 1000}});
    worker.observe(log);
    const auto done = worker.run(signals.token());
    return done.retried + done.dead + done.unsettled + done.abandoned + done.store_errors == 0 ? 0 : 1;
}

int produce(const files& at, std::chrono::seconds how_long) {
    const vouch::outbox outbox;
    store s(at.database);
    std::size_t committed = 0;
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until) {
        const std::vector<vouch::emission> some(1 + committed % 7, {.queue = queue, .topic = "t"});
        committed += outbox.emit(s, some).size();
        std::this_thread::sleep_for(4ms);
    }
    std::ofstream(at.produced) << committed;
    return 0;
}

/// Looks at the head of the queue until it is asked to stop: for how long has it been due? Writes the longest.
int watch(const files& at, const std::string& longest_to) {
    const vouch::stop_signals signals;
    const store s(at.database);
    vouch::duration longest{};
    while (!signals.token().stop_requested()) {
        if (const auto head = s.next_due(queue)) {
            longest = std::max(longest, vouch::system_now() - *head);
        }
        std::this_thread::sleep_for(5ms);
    }
    std::ofstream(longest_to) << longest.count();
    return 0;
}

[[nodiscard]] long long number_in(const std::string& path) {
    long long value = -1;
    std::ifstream(path) >> value;
    return value;
}

void check_the_end(const files& at) {
    store s(at.database);
    const auto produced = static_cast<std::size_t>(number_in(at.produced));
    for (int i = 0; i < 3000 && s.counts(queue).live() > 0; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    const auto counts = s.counts(queue);
    expect(produced > 0 && counts[state::succeeded] == produced, "every committed entry has succeeded");
    expect(counts.total() == produced, "and nothing else is stored");

    auto tx = s.begin();
    std::array<long long, 2> effects{}; // rows, different rows
    sqlite3_exec(
        tx.connection(), "SELECT count(*), count(DISTINCT id) FROM effects",
        [](void* to, int, char** row, char**) {
            *static_cast<std::array<long long, 2>*>(to) = {std::atoll(row[0]), std::atoll(row[1])};
            return 0;
        },
        &effects, nullptr);
    expect(effects[0] == static_cast<long long>(produced), "each effect is there");
    expect(effects[0] == effects[1], "and none is there twice");
    std::size_t taken_over = 0;
    auto page = vouch::query::all(queue);
    page.limit = 1000;
    for (auto found = tx.list(page); !found.empty(); page.after = found.back().sequence, found = tx.list(page)) {
        taken_over += static_cast<std::size_t>(
            std::count_if(found.begin(), found.end(), [](const auto& e) { return e.attempts > 1; }));
    }
    std::printf("%zu entries, %lld effects; %zu entries were taken over from a worker that was killed\n", produced,
                effects[0], taken_over);
    expect(taken_over > 0, "somebody was killed in mid-work, or this shows nothing");
}

} // namespace

int main(int argc, char** argv) {
    const std::chrono::seconds how_long{argc > 1 ? std::atoi(argv[1]) : 12};
    if (access("/dev/shm", W_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 0);
    }
    const sqlite_test::folder in;
    std::printf("%lld seconds in %s\n", static_cast<long long>(how_long.count()), in.path().parent_path().c_str());
    const files at{in.file("work.db"), in.file("errors.log"), in.file("produced")};
    const auto longest_at = in.file("longest");
    in_a_child([&] {
        store s(at.database);
        auto tx = s.begin();
        expect(sqlite3_exec(tx.connection(), "CREATE TABLE effects (id TEXT)", nullptr, nullptr, nullptr) == SQLITE_OK,
               "a table for the effects");
        tx.commit();
    });

    child producer([&] { return produce(at, how_long); });
    child watcher([&] { return watch(at, longest_at); });
    std::vector<child> running;
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i] { return work(at, i); });
    }
    int kills = 0;
    int stops = 0;
    for (std::size_t second = 0; !producer.wait_for(0ms); ++second) {
        const auto victim = second % workers;
        const auto retiring = (second + 2) % workers;
        std::this_thread::sleep_for(500ms);
        running[victim].signal(SIGKILL);
        running[victim].wait();
        running[victim] = child([&] { return work(at, victim); });
        ++kills;
        std::this_thread::sleep_for(500ms);
        running[retiring].signal(second % 2 == 0 ? SIGTERM : SIGINT);
        const auto ended = running[retiring].wait_for(10s);
        expect(ended && ended->code == 0, "a worker asked to stop exits with 0");
        running[retiring] = child([&] { return work(at, retiring); });
        ++stops;
    }
    in_a_child([&] { check_the_end(at); });
    watcher.signal(SIGTERM);
    expect(watcher.wait().code == 0, "the watcher ends");
    for (auto& w : running) {
        w.signal(SIGTERM);
        expect(w.wait().code == 0, "every worker stops in the end, without errors");
    }
    const auto longest = vouch::duration{number_in(longest_at)};
    std::printf("%d kills, %d stops; the head of the queue waited %.0f ms at most\n", kills, stops,
                std::chrono::duration<double, std::milli>(longest).count());
    expect(longest >= 0us && longest <= lease + poll_interval, "the head never waits longer than a lease and a poll");
    expect(!std::filesystem::exists(at.log), "no error of the store reached a worker");
    if (std::ifstream log(at.log); log) {
        std::string line;
        for (int i = 0; i < 10 && std::getline(log, line); ++i) {
            std::printf("  %s\n", line.c_str());
        }
    }
    std::printf("%s\n", failures == 0 ? "all holds" : "NOT all holds");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
