// SPDX-License-Identifier: MIT
// How fast a whole worker is on a SQLite file whose every commit waits for the disk (synchronous FULL), and whether
// retention gets in its way. Exits with 1 if a figure is on the wrong side of its floor, with 2 if the run says
// nothing.
//
// 1. End to end, from emitting to succeeded, with one worker of one thread: emitted one per transaction or many, while
//    the worker works, or before it starts. Beside them stands what the source of this design measured for one worker
//    and one relay on its machine, 3,500 messages a second.
// 2. What a claim of 50 takes, begin to commit, while another queue of the same file is being purged, beside what it
//    takes when it is not.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "../sqlite/folder.hpp"
#include "ratio.hpp"

namespace {

using namespace std::chrono_literals;
using bench::by;
using bench::measure;
using bench::rounds;
using bench::table;
using vouch::sqlite::store;

constexpr double source_rate = 3'500;
const std::string payload(200, 'x');

/// How messages come.
struct pattern {
    std::size_t messages = 0;
    std::size_t per_transaction = 1;
    bool before = false; ///< all before the worker starts
};

/// Messages per second, from the first that is emitted (or from the start of the worker) to the last that succeeded.
[[nodiscard]] measure end_to_end(const std::string& path, const pattern& p) {
    store work(path);
    const vouch::outbox outbox;
    std::atomic<std::size_t> handled = 0;
    vouch::router<store> routes;
    routes.on("t", [&](vouch::delivery&) { ++handled; });
    vouch::worker worker(work, outbox);
    worker.serve(routes, {.queue = "q"});
    const std::vector<vouch::emission> some(p.per_transaction, {.queue = "q", .topic = "t", .payload = payload});
    const auto emit_all = [&] {
        for (std::size_t sent = 0; sent < p.messages; sent += p.per_transaction) {
            outbox.emit(work, some);
        }
    };
    if (p.before) {
        emit_all();
    }
    std::stop_source stop;
    const auto taken = bench::seconds_of([&] {
        std::jthread at_work([&] { worker.run(stop.get_token()); });
        if (!p.before) {
            emit_all();
        }
        while (handled < p.messages) {
            std::this_thread::sleep_for(200us);
        }
        stop.request_stop(); // which settles the last
        at_work.join();
    });
    bench::require(work.counts("q")[vouch::state::succeeded] == p.messages, "not every message has succeeded");
    return bench::per_second(p.messages, taken);
}

void measure_rates(table& to, const sqlite_test::folder& in) {
    struct row {
        const char* name;
        pattern how;
        bench::target t;
    };
    const std::vector<row> rows{
        {"emitted one per transaction, meanwhile", {.messages = 4'000}, {0.4, 1.0}},
        {"emitted 10 per transaction, meanwhile", {.messages = 20'000, .per_transaction = 10}, {1.0, 4.0}},
        {"emitted 100 per transaction, meanwhile", {.messages = 50'000, .per_transaction = 100}, {1.0, 8.0}},
        {"emitted before", {.messages = 50'000, .per_transaction = 1000, .before = true}, {2.0, 10.0}}};
    for (const auto& r : rows) {
        rounds of;
        for (int round = 0; round < 3; ++round) {
            of.add(end_to_end(in.fresh_path(), r.how), {source_rate, 1});
        }
        to.row(r.name, of, by::clock_alone, r.t);
    }
}

/// Pending entries to claim, and a queue of ended ones to purge.
class crowd {
  public:
    explicit crowd(const std::string& path) : work_(path, {.synchronous = vouch::sqlite::synchronous::normal}) {
        fill("q", 20'000);
    }

    void fill(const std::string& queue, std::size_t count) {
        const std::vector<vouch::emission> some(1000, {.queue = queue, .topic = "t", .payload = payload});
        for (std::size_t i = 0; i < count; i += some.size()) {
            outbox_.emit(work_, some);
        }
    }

    /// Microseconds of claims and their release, in ascending order.
    [[nodiscard]] std::vector<double> claim_for(std::chrono::milliseconds how_long) {
        std::vector<double> out;
        const auto until = std::chrono::steady_clock::now() + how_long;
        while (std::chrono::steady_clock::now() < until) {
            std::vector<vouch::entry> got;
            out.push_back(1e6 * bench::seconds_of([&] {
                                    got = vouch::claim(work_,
                                                       {.queue = "q", .limit = 50, .now = outbox_.now(), .lease = 1h});
                                }).clock);
            bench::require(got.size() == 50, "there were not 50 to claim");
            std::vector<vouch::settle> back;
            for (const auto& e : got) {
                back.push_back({ticket_of(e), vouch::release{}});
            }
            vouch::transact(work_, [&](auto& tx) { return tx.settle(back, outbox_.now()); });
            std::this_thread::sleep_for(500us);
        }
        std::sort(out.begin(), out.end());
        return out;
    }

    /// The same while the queue `old` is swept.
    [[nodiscard]] std::vector<double> claim_while_purging(std::chrono::milliseconds how_long) {
        fill("old", 20'000);
        vouch::router<store> routes;
        routes.on("t", [](vouch::delivery&) {});
        vouch::runner(work_, outbox_, routes, {.queue = "old", .batch_size = 1000}).run_until_idle();
        vouch::worker worker(work_, outbox_);
        worker.serve(routes, {.queue = "old", .retention = {.succeeded = vouch::purge_rule::immediately()}});
        std::stop_source stop;
        vouch::worker_report done;
        std::jthread sweeping([&] { done = worker.run(stop.get_token()); });
        auto out = claim_for(how_long);
        stop.request_stop();
        sweeping.join();
        bench::require(done.purged > 1'000, "hardly anything was purged meanwhile");
        return out;
    }

  private:
    store work_;
    vouch::outbox outbox_{};
};

void measure_purge(table& to, const sqlite_test::folder& in) {
    crowd c(in.fresh_path());
    rounds middle;
    rounds late;
    for (int round = 0; round < 5; ++round) {
        const auto quiet = c.claim_for(300ms);
        const auto busy = c.claim_while_purging(300ms);
        const auto at = [](const std::vector<double>& sorted, double share) {
            return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
        };
        middle.add({at(busy, 0.5), 1}, {at(quiet, 0.5), 1});
        late.add({at(busy, 0.99), 1}, {at(quiet, 0.99), 1});
    }
    to.row("median", middle, by::clock_alone, {2.0, 1.2, bench::direction::at_most});
    to.row("99 of 100", late, by::clock_alone, {40, 10, bench::direction::at_most});
}

[[nodiscard]] bool measure_all() {
    const sqlite_test::folder in;
    std::printf("SQLite %s, %zu-byte payloads, files in %s\n", sqlite3_libversion(), payload.size(), in.path().c_str());
    table to;
    table::head("messages per second end to end, full", "vouch", "source");
    measure_rates(to, in);
    table::head("claim of 50, normal, microseconds", "purging", "quiet");
    measure_purge(to, in);
    return to.is_good();
}

} // namespace

int main() {
    try {
        return measure_all() ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "this run says nothing: %s\n", e.what());
        return 2;
    }
}
