// SPDX-License-Identifier: MIT
// Runs four worker processes and a producer on one SQLite file (`soak [SECONDS]`, default 8). Every second one worker
// is killed with SIGKILL, another is stopped by a signal, and both are restarted. In the end
// 1. every committed entry has succeeded, and nothing else is stored;
// 2. the effect of each entry, a row written with its outcome, exists exactly once;
// 3. the first entry of the queue never waited longer than a lease, a poll interval and the disk's time for the turns
//    before, plus one lease for each worker that was killed with it;
// 4. the store reported no error to a worker or the producer, in particular no SQLITE_BUSY;
// 5. every worker that was asked to stop exited with 0 within the limit.
//
// The disk's time is measured during the run, in another file: the longest fdatasync. Writers take turns (see
// turns.cpp), so a worker waits for at most one turn of each other process before its own. A turn syncs at most twice,
// and a worker claims in its third turn at the latest (extend leases, settle, claim). On an idle disk that time is
// negligible. On a busy disk the sum is the limit, and beyond the busy limit errors are expected. The file is in memory
// if the machine has such a folder, because processes are the subject here; `TMPDIR=... soak` selects another folder.
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

#include <fcntl.h>
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
    std::string log;      ///< errors of the store
    std::string produced; ///< how many entries the producer committed
};

/// Commits a row with the outcome of each entry: its id and its lapses so far.
struct with_effect {
    static std::string work(vouch::delivery& d) {
        std::this_thread::sleep_for(6ms);
        return "'" + to_string(d.id()) + "', " + std::to_string(d.entry().lapses);
    }
    static void record(vouch::sqlite::transaction& tx, const std::string& values) {
        const auto sql = "INSERT INTO effects VALUES (" + values + ")";
        if (sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
            throw vouch::failure("no_effect");
        }
    }
};

/// Appends each line at once, because the process may be killed at any moment.
[[nodiscard]] vouch::log_sink to_file(const std::string& path) {
    return [path](vouch::log_level, std::string_view line) {
        std::ofstream(path, std::ios::app) << std::string(line) + '\n';
    };
}

int work(const files& at, std::size_t number) {
    const vouch::stop_signals signals;
    store s(at.database);
    const vouch::outbox outbox(s);
    vouch::router routes(outbox);
    routes.on("t", with_effect{});
    vouch::logger log(vouch::log_level::error, to_file(at.log));
    vouch::worker worker(outbox, {.name = "worker-" + std::to_string(number), .poll_interval = poll_interval});
    worker.serve(routes, {.queue = queue,
                          .concurrency = 2,
                          .lease = lease,
                          .retry = {.backoff = vouch::fixed{10ms}, .attempts_max = 1000}});
    worker.observe(log);
    const auto done = worker.run(signals.token());
    return done.retried + done.dead + done.unsettled + done.abandoned + done.store_errors == 0 ? 0 : 1;
}

int produce(const files& at, std::chrono::seconds how_long) {
    store s(at.database);
    const vouch::outbox outbox(s);
    const auto log = to_file(at.log);
    std::size_t committed = 0;
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until) {
        const std::vector<vouch::emission> some(1 + committed % 7, {.queue = queue, .topic = "t"});
        try {
            committed += outbox.emit(some).size();
        } catch (const vouch::error& e) { // nothing is stored; the next round emits new entries
            log(vouch::log_level::error, "the producer: " + std::string(name_of(e.kind())));
            if (!e.is_transient() || e.is_in_doubt()) {
                throw;
            }
        }
        std::this_thread::sleep_for(4ms);
    }
    std::ofstream(at.produced) << committed;
    return 0;
}

/// How long the head of the queue has been waiting. An entry released after a lapse keeps the due time from before its
/// first claim; the leases of the workers that were killed with it do not count.
[[nodiscard]] vouch::duration waited(const store& s, vouch::time_point head) {
    const auto wait = vouch::system_now() - head;
    if (wait <= lease) {
        return wait;
    }
    for (const auto& e : s.list(vouch::query::live(queue))) {
        if (e.due_at == head && e.state != state::claimed && e.lapses > 0) {
            return wait - e.lapses * lease;
        }
    }
    return wait;
}

/// Watches the head of the queue until it is asked to stop. Writes the longest wait.
int watch(const files& at, const std::string& longest_to) {
    const vouch::stop_signals signals;
    const store s(at.database);
    vouch::duration longest{};
    while (!signals.token().stop_requested()) {
        if (const auto head = s.next_due(queue)) {
            longest = std::max(longest, waited(s, *head));
        }
        std::this_thread::sleep_for(5ms);
    }
    std::ofstream(longest_to) << longest.count();
    return 0;
}

/// Syncs a separate file until it is asked to stop. Writes the longest time of a sync.
int probe_disk(const std::string& file, const std::string& longest_to) {
    const vouch::stop_signals signals;
    const int probe = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::chrono::steady_clock::duration longest{};
    while (!signals.token().stop_requested()) {
        const auto before = std::chrono::steady_clock::now();
        if (pwrite(probe, &before, sizeof before, 0) != sizeof before || fdatasync(probe) != 0) {
            return 1;
        }
        longest = std::max(longest, std::chrono::steady_clock::now() - before);
        std::this_thread::sleep_for(10ms);
    }
    close(probe);
    std::ofstream(longest_to) << std::chrono::duration_cast<vouch::duration>(longest).count();
    return 0;
}

[[nodiscard]] double milliseconds(vouch::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

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
    expect(counts.total() == produced, "nothing else is stored");

    auto tx = s.begin();
    std::array<long long, 3> effects{}; // rows, different rows, rows of entries that were taken over
    sqlite3_exec(
        tx.connection(), "SELECT count(*), count(DISTINCT id), count(nullif(lapses, 0)) FROM effects",
        [](void* to, int, char** row, char**) {
            *static_cast<std::array<long long, 3>*>(to) = {std::atoll(row[0]), std::atoll(row[1]), std::atoll(row[2])};
            return 0;
        },
        &effects, nullptr);
    expect(effects[0] == static_cast<long long>(produced), "every entry has its effect");
    expect(effects[0] == effects[1], "no effect happened twice");
    const auto taken_over = effects[2];
    std::printf("%zu entries, %lld effects; %lld entries were taken over from a worker that was killed\n", produced,
                effects[0], taken_over);
    expect(taken_over > 0, "some workers were killed during work; if none was, nothing was tested");
}

/// Compares the measured waits with the limits that follow from the disk's time.
void judge(vouch::duration sync, vouch::duration longest_wait, vouch::duration longest_stop, const files& at) {
    constexpr int syncs_per_turn = 2;
    constexpr int turns_per_claim = 3;
    constexpr int turns_per_stop = 4; // the open one, extend leases, settle what ran, release the rest
    const auto others = syncs_per_turn * static_cast<int>(workers) * sync; // the producer and all workers but one
    const auto round = others + syncs_per_turn * sync;
    const auto wait_limit = lease + poll_interval + turns_per_claim * round;
    const auto stop_limit = vouch::duration{10s} + turns_per_stop * round;
    std::printf("longest sync %.1f ms; the head may wait %.0f ms and waited %.0f ms; a stop may take %.0f ms and took "
                "%.0f ms\n",
                milliseconds(sync), milliseconds(wait_limit), milliseconds(longest_wait), milliseconds(stop_limit),
                milliseconds(longest_stop));
    expect(sync >= 0us, "the disk's time is measured");
    expect(longest_wait >= 0us && longest_wait <= wait_limit, "the head of the queue waits no longer than the limit");
    expect(longest_stop <= stop_limit, "a stop takes no longer than the limit");
    if (others >= vouch::sqlite::options{}.busy_limit) {
        std::printf(
            "ERRORS WERE NOT CHECKED: on this disk, waiting for the other writers takes longer than the busy limit\n");
        return;
    }
    expect(!std::filesystem::exists(at.log), "the store reports no error to a worker or the producer");
    std::ifstream log(at.log);
    std::string line;
    for (int i = 0; i < 10 && std::getline(log, line); ++i) {
        std::printf("  %s\n", line.c_str());
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::chrono::seconds how_long{argc > 1 ? std::atoi(argv[1]) : 8};
    if (access("/dev/shm", W_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 0);
    }
    const sqlite_test::folder in;
    std::printf("%lld seconds in %s\n", static_cast<long long>(how_long.count()), in.path().parent_path().c_str());
    const files at{in.file("work.db"), in.file("errors.log"), in.file("produced")};
    const auto longest_at = in.file("longest");
    const auto disk_at = in.file("disk");
    in_a_child([&] {
        store s(at.database);
        auto tx = s.begin();
        expect(sqlite3_exec(tx.connection(), "CREATE TABLE effects (id TEXT, lapses INTEGER)", nullptr, nullptr,
                            nullptr) == SQLITE_OK,
               "the table of effects is created");
        tx.commit();
    });

    child producer([&] { return produce(at, how_long); });
    child watcher([&] { return watch(at, longest_at); });
    child probe([&] { return probe_disk(in.file("probe"), disk_at); });
    std::vector<child> running;
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i] { return work(at, i); });
    }
    int kills = 0;
    int stops = 0;
    vouch::duration longest_stop{};
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
        const auto asked = vouch::system_now();
        const auto ended = running[retiring].wait_for(60s);
        expect(ended && ended->code == 0, "a worker that is asked to stop exits with 0");
        longest_stop = std::max(longest_stop, vouch::system_now() - asked);
        running[retiring] = child([&] { return work(at, retiring); });
        ++stops;
    }
    in_a_child([&] { check_the_end(at); });
    watcher.signal(SIGTERM);
    expect(watcher.wait().code == 0, "the watcher exits with 0");
    for (auto& w : running) {
        w.signal(SIGTERM);
        expect(w.wait().code == 0, "every worker exits with 0 at the end");
    }
    probe.signal(SIGTERM);
    expect(probe.wait().code == 0, "the disk probe exits with 0");
    judge(vouch::duration{number_in(disk_at)}, vouch::duration{number_in(longest_at)}, longest_stop, at);
    std::printf("%d kills, %d stops\n%s\n", kills, stops, failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
