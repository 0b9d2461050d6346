// SPDX-License-Identifier: MIT
// Measures the PostgreSQL store, as ratios within one run, on a server of its own whose commits wait for the disk. Exits
// with 1 if a ratio misses its floor, and with 2 if the run is not valid. The goal is what we aim for; `to goal` is the
// distance.
//
// 1. Enqueue and drain, compared with the hand-written `postgres_by_hand.hpp` on a bare table and on the store's own:
//    200-byte payloads, ids ordered by time, drained by whole runners with an empty handler. The sides run alternately.
// 2. A claim of 50, from begin to commit, beside 10^6 entries that cannot be claimed, compared with 10^3.
// 3. The time from an emit in one process to the start of the handler in another, which is only printed.
//
// Rates are by the wall clock. The ratio with the star is compared with the floor. CPU time is that of this process and
// the server.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postgres_server.hpp"
#include "postgres_sides.hpp"
#include "postgres_wake.hpp"
#include "ratio.hpp"

namespace {

using bench::by;
using bench::measure;
using bench::rounds;
using bench::table;
using bench::target;

int rounds_max = 9;

using run = std::function<measure()>;

/// In turn, so that no side always finds the disk as another one left it.
[[nodiscard]] std::vector<rounds> alternate(const run& ours, const std::vector<run>& others) {
    std::vector<rounds> out(others.size());
    for (int round = 0; round < rounds_max; ++round) {
        std::vector<measure> theirs;
        const auto run_others = [&] {
            for (const auto& other : others) {
                theirs.push_back(other());
            }
        };
        if (round % 2 == 0) {
            run_others();
        }
        const auto mine = ours();
        if (round % 2 != 0) {
            run_others();
        }
        for (std::size_t i = 0; i < others.size(); ++i) {
            out[i].add(mine, theirs[i]);
        }
    }
    return out;
}

void measure_enqueue(table& to, sides::side& with, const sides::amount& of, const target& t) {
    const auto all =
        alternate([&] { return with.enqueue(of); }, {[&] { return with.enqueue_by_hand(with.same(), of); },
                                                     [&] { return with.enqueue_by_hand(with.bare(), of); }});
    const auto name = "enqueue by " + std::to_string(of.at_once) + ", " + std::to_string(of.connections) + " conn.";
    to.row(name + " / same schema", all[0], by::clock, t);
    to.row(name + " / bare (not judged)", all[1], by::clock, {0, t.goal});
}

void measure_drain(table& to, sides::side& with, const sides::amount& of) {
    const auto all = alternate([&] { return with.drain(of); }, {[&] { return with.drain_by_hand(with.same(), of); },
                                                                [&] { return with.drain_by_hand(with.bare(), of); }});
    const auto name = "drain by " + std::to_string(of.at_once) + ", " + std::to_string(of.connections) + " conn.";
    to.row(name + " / same schema", all[0], by::clock, {0.90, 0.97});
    to.row(name + " / bare", all[1], by::clock, {0.60, 0.90});
}

/// Old row versions stay while a snapshot is held, so this is slower, but not with the square of the backlog.
void measure_held_snapshot(table& to, sides::side& with) {
    const sides::amount of{.entries = 100'000, .at_once = 50};
    rounds r;
    for (int round = 0; round < 3; ++round) {
        const auto without = with.drain(of);
        r.add(with.drain_beside_snapshot(of), without);
    }
    to.row("drain by 50, 10^5, snapshot held / not held", r, by::clock, {0.50, 0.80});
}

void measure_claims(table& to, const std::string& conninfo) {
    using crowd = sides::crowded_table::crowd;
    const std::vector<std::pair<crowd, std::string>> kinds{
        {crowd::future, "future"}, {crowd::blocked, "blocked"}, {crowd::claimed, "claimed"}, {crowd::ended, "ended"}};
    for (const auto& [kind, name] : kinds) {
        sides::crowded_table few(conninfo, kind, 1'000);
        sides::crowded_table many(conninfo, kind, 1'000'000);
        rounds r;
        for (int round = 0; round < 20 * rounds_max; ++round) {
            const auto least = few.claim();
            const auto most = many.claim();
            r.add({most.clock * 1e6, most.cpu}, {least.clock * 1e6, least.cpu});
        }
        to.row("beside 10^6 " + name + " / 10^3", r, by::clock_alone, {1.5, 1.2, bench::direction::at_most});
    }
}

void print_wake_ups(const std::string& conninfo) {
    const auto times = bench::wake_up_times(conninfo, 200);
    std::printf("\nwake-up across processes: p50 %.2f ms, p99 %.2f ms (goal on an idle machine: 2 ms, 10 ms)\n",
                times[times.size() / 2], times[times.size() * 99 / 100]);
    std::fflush(stdout);
}

/// Returns whether every floor was reached. `only` names the parts to run; empty: all.
[[nodiscard]] bool measure_all(const std::string& only) {
    const auto wants = [&](const char* part) { return only.empty() || only.find(part) != std::string::npos; };
    const bench::postgres_server server;
    std::printf("PostgreSQL in %s, fsync on, %zu-byte payloads, median of %d rounds\n", server.folder().c_str(),
                sides::payload.size(), rounds_max);
    if (wants("wake")) {
        print_wake_ups(server.conninfo()); // first: it forks, and nothing is open yet
    }
    table to;
    {
        sides::side with(server);
        table::head("entries per second", "vouch", "by hand");
        if (wants("enqueue")) {
            measure_enqueue(to, with, {.entries = 300}, {0.85, 0.97});
            measure_enqueue(to, with, {.entries = 800, .connections = 4}, {0.80, 0.95});
            measure_enqueue(to, with, {.entries = 20'000, .at_once = 1'000}, {0.90, 1.0});
        }
        if (wants("drain")) {
            for (const std::size_t connections : {1U, 2U}) {
                measure_drain(to, with, {.entries = 10'000, .at_once = 50, .connections = connections});
                measure_drain(to, with, {.entries = 20'000, .at_once = 500, .connections = connections});
            }
        }
        if (wants("snapshot")) {
            measure_held_snapshot(to, with);
        }
    }
    if (wants("claim")) {
        table::head("claim of 50, microseconds, commits not synced", "10^6", "10^3");
        measure_claims(to, server.conninfo());
    }
    return to.is_good();
}

} // namespace

/// bench [PARTS [ROUNDS]]
int main(int argc, char** argv) {
    try {
        rounds_max = argc > 2 ? std::atoi(argv[2]) : rounds_max;
        return measure_all(argc > 1 ? argv[1] : "") ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "the benchmark is not valid: %s\n", e.what());
        return 2;
    }
}
