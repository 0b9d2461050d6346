// SPDX-License-Identifier: MIT
// Measures the SQLite store, as ratios within one run, on the disk of the temporary folder (TMPDIR). Exits with 1 if a
// ratio misses its floor, and with 2 if the run is not valid. The goal is what we aim for; `to goal` is the distance.
//
// 1. Enqueue and drain, compared with the hand-written `sqlite_bare.hpp` and `sqlite_same_schema.hpp`: 200-byte
//    payloads, ids ordered by time, drained in batches of 50 by a whole runner with an empty handler. The sides run
//    alternately, each on a new file. With `full` a commit waits for the disk, with `normal` for the operating system.
// 2. Two processes that drain one file, compared with one process.
// 3. A claim of 50, from begin to commit, among more and more pending or ended entries; all sizes alternate.
//
// Rates are by the wall clock. The ratio with the star is compared with the floor: the wall clock where commits wait
// for the disk or processes for each other; otherwise CPU time, because the machine may be busy and only checkpoints
// wait for the disk.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <sqlite3.h>
#include <sys/vfs.h>

#include "../sqlite/folder.hpp"
#include "ratio.hpp"
#include "sqlite_sides.hpp"

namespace {

using bench::by;
using bench::rounds;
using bench::table;
using bench::target;
using sides::batch;
using sides::synchronous;

constexpr int rounds_max = 11;

void describe_disk(const sqlite_test::folder& in) {
    struct statfs disk {};
    bench::require(statfs(in.path().c_str(), &disk) == 0, "cannot read the file system of the temporary folder");
    constexpr auto tmpfs = 0x01021994;
    constexpr auto ext4 = 0xef53;
    bench::require(disk.f_type != tmpfs, "the temporary folder is in memory; set TMPDIR to a folder on a disk");
    std::printf("SQLite %s, batches of %zu, %zu-byte payloads, median of %d rounds or more, files in %s (%s)\n",
                sqlite3_libversion(), batch, sides::payload.size(), rounds_max, in.path().c_str(),
                disk.f_type == ext4 ? "ext4" : "neither ext4 nor tmpfs");
}

/// What a commit waits for, and how many commits a side makes in a round.
struct pace {
    synchronous how = synchronous::full;
    std::size_t commits = 0;

    [[nodiscard]] std::string name() const { return how == synchronous::full ? "full" : "normal"; }
    [[nodiscard]] by ratio() const { return how == synchronous::full ? by::clock : by::cpu; }
};

/// The commits of about a third of a second.
[[nodiscard]] pace find_pace(const sqlite_test::folder& in, synchronous how) {
    const auto rate = sides::enqueue_bare(in.fresh_path(), how, {.entries = 100, .at_once = 1}).clock;
    pace p{how, std::clamp<std::size_t>(static_cast<std::size_t>(rate / 3), 100, 2'000)};
    std::printf("a commit, %s: %.2f ms\n", p.name().c_str(), 1000 / rate);
    return p;
}

void measure_enqueue(table& to, const sqlite_test::folder& in, const pace& p, sides::amount of, target t) {
    rounds r;
    // The wall clock of commits that wait for the disk varies most, so it is read more often.
    const auto count = p.ratio() == by::clock ? 3 * rounds_max : rounds_max;
    for (int round = 0; round < count; ++round) {
        const auto ours = [&] { return sides::enqueue(in.fresh_path(), p.how, of); };
        const auto bare = [&] { return sides::enqueue_bare(in.fresh_path(), p.how, of); };
        if (round % 2 == 0) { // in turn, so that neither side always finds the disk as the other one left it
            const auto first = ours();
            r.add(first, bare());
        } else {
            const auto first = bare();
            r.add(ours(), first);
        }
    }
    to.row("enqueue by " + std::to_string(of.at_once) + ", " + p.name() + " / bare", r, p.ratio(), t);
}

struct drain_targets {
    target bare{};
    target same_schema{};
    double batching = 0; ///< the known speed-up of the bare baseline by batches, by the wall clock
};

void measure_drain(table& to, const sqlite_test::folder& in, const pace& p, const drain_targets& t) {
    const auto entries = batch * std::min<std::size_t>(p.commits, 400);
    const auto few = batch * std::max<std::size_t>(p.commits / (2 * batch), 1);
    rounds beside_bare;
    rounds beside_same_schema;
    rounds batching;
    for (int round = 0; round < rounds_max; ++round) {
        const auto ours = sides::drain(in.fresh_path(), p.how, entries);
        const auto bare = sides::drain_bare(in.fresh_path(), p.how, {.entries = entries}, entries);
        beside_bare.add(ours, bare);
        beside_same_schema.add(ours, sides::drain_same_schema(in.fresh_path(), p.how, entries));
        batching.add(bare, sides::drain_bare(in.fresh_path(), p.how, {.entries = few, .at_once = 1}, entries));
    }
    to.row("drain by runner, " + p.name() + " / bare", beside_bare, p.ratio(), t.bare);
    to.row("drain by runner, " + p.name() + " / same schema, fused", beside_same_schema, p.ratio(), t.same_schema);
    const target valid{0.8 * t.batching, t.batching};
    to.row("  valid if: drain by 50 / by 1, bare, " + p.name(), batching, by::clock, valid);
    bench::require(batching.ratio().clock >= valid.floor,
                   "batches speed up the bare baseline too little for a comparison");
}

void measure_processes(table& to, const sqlite_test::folder& in, const pace& p) {
    const auto entries = batch * std::clamp<std::size_t>(2 * p.commits, 200, 1'000);
    rounds rate;
    rounds share;
    for (int round = 0; round < rounds_max / 2; ++round) {
        const auto one = sides::drain_together(in.fresh_path(), p.how, entries, 1);
        const auto two = sides::drain_together(in.fresh_path(), p.how, entries, 2);
        rate.add(two.rate, one.rate);
        share.add({static_cast<double>(two.least), 1}, {static_cast<double>(two.most), 1});
    }
    to.row("rate of two processes / of one, " + p.name(), rate, by::clock_alone, {0.6, 0.75});
    to.row("smaller / larger share of two processes, " + p.name(), share, by::clock_alone, {0.5, 0.8});
}

void measure_claims(table& to, const sqlite_test::folder& in) {
    constexpr std::size_t few = 1'000;
    std::vector<std::unique_ptr<sides::filled_file>> files;
    const auto add = [&](sides::filled_file::shape of) {
        files.push_back(std::make_unique<sides::filled_file>(in.fresh_path(), of));
    };
    for (std::size_t many = few; many <= 1000 * few; many *= 10) {
        add({.pending = many});
    }
    for (std::size_t many = few; many <= 1000 * few; many *= 10) {
        add({.pending = few, .ended = many});
    }
    std::vector<rounds> seconds(files.size());
    for (int round = 0; round < 8 * rounds_max; ++round) {
        const auto first = files.front()->claim();
        for (std::size_t i = 1; i < files.size(); ++i) {
            const auto claim = files[i]->claim();
            seconds[i].add({claim.clock * 1e6, claim.cpu}, {first.clock * 1e6, first.cpu});
        }
    }
    for (std::size_t i = 1; i < files.size(); ++i) {
        const auto of = files[i]->of();
        to.row(std::to_string(of.pending) + " pending, " + std::to_string(of.ended) + " ended", seconds[i], by::cpu,
               {1.5, 1.2, bench::direction::at_most});
    }
}

/// Returns whether every floor was reached.
[[nodiscard]] bool measure_all() {
    const sqlite_test::folder in;
    describe_disk(in);
    const auto full = find_pace(in, synchronous::full);
    const auto normal = find_pace(in, synchronous::normal);
    table to;

    table::head("entries per second", "vouch", "by hand");
    const sides::amount bulk{.entries = 20'000, .at_once = 1'000};
    measure_enqueue(to, in, full, {.entries = full.commits, .at_once = 1}, {0.90, 0.97});
    measure_enqueue(to, in, normal, {.entries = normal.commits, .at_once = 1}, {0.75, 0.90});
    measure_enqueue(to, in, full, bulk, {0.65, 0.85});
    measure_enqueue(to, in, normal, bulk, {0.65, 0.85});
    measure_drain(to, in, full, {.bare = {0.70, 1.0}, .same_schema = {0.85, 0.95}, .batching = 25});
    measure_drain(to, in, normal, {.bare = {0.60, 0.85}, .same_schema = {0.80, 0.92}, .batching = 7.9});

    table::head("processes, entries per second, or entries", "two", "one");
    measure_processes(to, in, full);
    measure_processes(to, in, normal);

    table::head("claim of 50, normal, microseconds", "claim", "of 1000");
    measure_claims(to, in);
    return to.is_good();
}

} // namespace

int main() {
    try {
        return measure_all() ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "the benchmark is not valid: %s\n", e.what());
        return 2;
    }
}
