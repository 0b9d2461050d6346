// SPDX-License-Identifier: MIT
// Runs eight processes on one server (`soak [SECONDS]`, default 10): three workers for plain entries, lanes and groups, two
// for sagas and their participants, two producers, and one that purges. Every second one of the eight, in turn, is killed
// with SIGKILL and started again. In the end
// 1. every entry whose transaction has committed has ended, and none has ended twice;
// 2. the entries of each lane have ended in the order in which they were stored, and no lane was ever without a head that can
//    be claimed;
// 3. each group without a refused member was completed once, and no group twice;
// 4. every saga has ended and has sent its last message once;
// 5. no entry waited longer, since it could be claimed, than a lease, a poll interval, a second, twice the longest start of a
//    process (both workers of a queue may be starting) and twenty times the longest round trip; and none was claimed more
//    than 100 times, as one would be that is handed back for ever;
// 6. tables do not grow: rows and bytes in the second half of the run are at most half as much again as in the first (and a
//    little), and when everything has ended and is purged, no entry, lane or group is left;
// 7. every process that was asked to stop exited with 0.
//
// Ends are noted in a table by the transaction that settles, and what was produced by the transaction that enqueues.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>

#include "postgres/programs/soak_roles.hpp"
#include "sqlite/programs/child.hpp"

using namespace std::chrono_literals;
using namespace worker_program;

namespace {

constexpr std::size_t processes = 8; ///< that are killed; the watcher is another one
constexpr std::size_t watcher = processes;

/// Processes 5 and 6 are the producers.
[[nodiscard]] constexpr bool is_producer(std::size_t number) { return number == 5 || number == 6; }

[[nodiscard]] int play(std::size_t number, const soak::when_ready& ready) {
    if (number == watcher) {
        return soak::watch(ready);
    }
    if (is_producer(number)) {
        return soak::produce(number - 5, ready);
    }
    if (number == 7) {
        return soak::purge(ready);
    }
    const bool has_sagas = number >= 3;
    return soak::work(
        number, has_sagas ? std::vector<std::string>{"orders", "payment", "mail"} : std::vector<std::string>{"work"},
        ready);
}

/// The processes. One is killed or stopped only when it is ready, so that the longest time of a start is known.
class team {
  public:
    team() {
        for (std::size_t i = 0; i <= watcher; ++i) {
            running_.push_back(start(i));
        }
    }
    void kill(std::size_t number) {
        wait_until_ready(number);
        running_[number].signal(SIGKILL);
        expect(running_[number].wait().signal == SIGKILL, "the process ran until it was killed");
        running_[number] = start(number);
    }
    void stop(std::size_t number) {
        wait_until_ready(number);
        running_[number].signal(SIGTERM);
        const auto ended = running_[number].wait_for(60s);
        expect(ended && ended->code == 0, "a process that is asked to stop exits with 0");
    }
    [[nodiscard]] std::chrono::microseconds longest_start() const { return longest_start_; }

  private:
    using microseconds = std::chrono::microseconds;
    using start_times = std::array<std::atomic<std::int64_t>, processes + 1>;

    [[nodiscard]] child start(std::size_t number) {
        auto& took = took_[number];
        took = 0;
        return child([number, &took, before = std::chrono::steady_clock::now()] {
            return play(number, [&took, before] {
                took = 1 + std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - before).count();
            });
        });
    }
    void wait_until_ready(std::size_t number) {
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (took_[number] == 0 && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(1ms);
        }
        expect(took_[number] != 0, "a process starts within a minute");
        longest_start_ = std::max(longest_start_, microseconds{took_[number].load()});
    }

    start_times& took_ = shared_object<start_times>(); ///< in microseconds; 0: not ready yet
    microseconds longest_start_{};
    std::vector<child> running_{};
};

/// Waits until nothing is stored any more, because everything has ended and was purged.
void wait_for_the_end() {
    const soak::database db;
    const auto left = "SELECT (SELECT count(*) FROM soak.entries) + (SELECT count(*) FROM soak.lanes) + "
                      "(SELECT count(*) FROM soak.groups)";
    const auto until = std::chrono::steady_clock::now() + 120s;
    while (db.number(left) > 0 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(50ms);
    }
    std::printf("%lld entries, %lld lanes and %lld groups are left\n", db.number("SELECT count(*) FROM soak.entries"),
                db.number("SELECT count(*) FROM soak.lanes"), db.number("SELECT count(*) FROM soak.groups"));
    expect(db.number(left) == 0, "everything has ended and is purged");
}

void check_ends() {
    const soak::database db;
    db.execute("CREATE INDEX ON soak.ended (id)");
    db.execute("ANALYZE soak.ended");
    const auto produced = db.number("SELECT count(*) FROM soak.produced");
    const auto sagas = db.number("SELECT count(*) FROM soak.produced WHERE is_saga");
    const auto ended = db.number("SELECT count(*) FROM soak.ended WHERE what <> 'group_completed'");
    std::printf("%lld entries produced, %lld of them sagas; %lld entries ended\n", produced, sagas, ended);
    expect(sagas > 0 && produced > sagas, "something was produced; if not, nothing was tested");
    expect(db.number("SELECT count(*) FROM soak.produced p WHERE (SELECT count(*) FROM soak.ended e WHERE e.id = p.id "
                     "AND e.what <> 'group_completed') <> 1") == 0,
           "every entry that was produced has ended once");
    expect(db.number("SELECT count(*) - count(DISTINCT id) FROM soak.ended WHERE what <> 'group_completed'") == 0,
           "no entry has ended twice");
    expect(db.number(
               "SELECT count(*) FROM (SELECT e.at < lag(e.at) OVER (PARTITION BY p.lane ORDER BY p.number) AS "
               "is_early FROM soak.produced p JOIN soak.ended e USING (id) WHERE p.lane <> '') s WHERE is_early") == 0,
           "the entries of a lane have ended in order");
    const auto groups = db.number("SELECT count(DISTINCT \"group\") FROM soak.produced WHERE \"group\" <> ''");
    const auto completed =
        db.number("SELECT count(*) FROM soak.ended WHERE what = 'group_completed' AND \"group\" LIKE "
                  "'group-%'");
    std::printf("%lld groups, completed %lld times\n", groups, completed);
    expect(groups > 0 && groups == completed, "every group was completed");
    expect(db.number("SELECT count(*) - count(DISTINCT \"group\") FROM soak.ended WHERE what = 'group_completed' AND "
                     "\"group\" LIKE 'group-%'") == 0,
           "no group was completed twice");
    expect(db.number("SELECT count(*) FROM soak.ended WHERE queue = 'mail'") == sagas,
           "every saga has sent its last message once");
}

void check_samples(vouch::duration start) {
    const soak::database db;
    const auto longest = db.number("SELECT max(wait) FROM soak.samples");
    const auto trip = db.number("SELECT max(trip) FROM soak.samples");
    const auto limit = (soak::lease + soak::poll_interval + 1s + 2 * start).count() + 20 * trip;
    std::printf(
        "an entry waited at most %lld ms and may wait %lld ms; the longest round trip took %lld ms, the longest "
        "start of a process %lld ms\n",
        longest / 1000, static_cast<long long>(limit) / 1000, trip / 1000,
        static_cast<long long>(start.count()) / 1000);
    expect(longest <= limit, "no entry waits longer than the limit");
    const auto claims = db.number("SELECT max(claims) FROM soak.samples");
    std::printf("an entry was claimed at most %lld times\n", claims);
    expect(claims <= 100, "no entry is handed back for ever");
    expect(db.number("SELECT max(blocked) FROM soak.samples") == 0, "no lane is without a head");
    struct growth {
        const char* what;
        long long little;
    };
    for (const auto& [what, little] :
         {growth{"entries", 500}, growth{"lanes", 50}, growth{"groups", 200}, growth{"bytes", 4'000'000}}) {
        const std::string half = "(SELECT (min(at) + max(at)) / 2 FROM soak.samples)";
        const std::string largest = "SELECT coalesce(max(" + std::string(what) + "), 0) FROM soak.samples WHERE at ";
        const auto first = db.number(largest + "<= " + half);
        const auto second = db.number(largest + "> " + half);
        std::printf("%s: at most %lld in the first half, %lld in the second\n", what, first, second);
        expect(second <= first + first / 2 + little, what); // with steady growth it would be twice as much
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::chrono::seconds how_long{argc > 1 ? std::atoi(argv[1]) : 10};
    in_a_child(soak::create_tables);
    team all;
    std::size_t kills = 0;
    const auto until = std::chrono::steady_clock::now() + how_long;
    for (; std::chrono::steady_clock::now() < until; ++kills) {
        std::this_thread::sleep_for(1s);
        all.kill(kills % processes);
    }
    all.stop(5); // no more work
    all.stop(6);
    all.stop(watcher);
    in_a_child(wait_for_the_end);
    for (std::size_t i = 0; i < processes; ++i) {
        if (!is_producer(i)) {
            all.stop(i);
        }
    }
    in_a_child(check_ends);
    in_a_child([&] { check_samples(all.longest_start()); });
    std::printf("%lld seconds, %zu kills\n%s\n", static_cast<long long>(how_long.count()), kills,
                failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
