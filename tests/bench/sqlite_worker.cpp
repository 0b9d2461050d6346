// SPDX-License-Identifier: MIT
// Measures a whole worker on a SQLite file on which every commit waits for the disk (synchronous FULL), and whether
// retention slows it down. Exits with 1 if a figure misses its floor, and with 2 if the run is not valid.
//
// 1. End to end, from emit to succeeded, with one worker of one thread: emitting one or many messages per transaction
//    while the worker runs, compared with emitting without a worker; and draining a backlog, compared with a runner
//    without threads. Also: handlers of a millisecond on eight threads, compared with the threads alone; and producers on
//    four threads, which share commits, compared with one. For reference it prints 3,500 messages per second, which the source of this design measured with
//    one worker and one relay on its machine.
// 2. A claim of 50, from begin to commit, while another queue of the same file is purged, compared with the same claim
//    without a purge.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
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

/// A file with a queue, its producer and its worker.
class workload {
  public:
    explicit workload(const std::string& path) : work_(path) {
        routes_.on("t", [this](vouch::delivery&) { ++handled_; });
    }

    void emit(std::size_t messages, std::size_t per_transaction) {
        const std::vector<vouch::emission> some(per_transaction, {.queue = "q", .topic = "t", .payload = payload});
        for (std::size_t sent = 0; sent < messages; sent += per_transaction) {
            outbox_.emit(some);
        }
    }

    /// Runs a worker until all messages have succeeded, and `meanwhile` on this thread.
    template <class Meanwhile>
    void drain(std::size_t messages, const Meanwhile& meanwhile) {
        vouch::worker worker(outbox_);
        worker.serve(routes_, {.queue = "q"});
        std::stop_source stop;
        std::jthread running([&] { worker.run(stop.get_token()); });
        meanwhile();
        while (handled_ < messages) {
            std::this_thread::sleep_for(200us);
        }
        stop.request_stop(); // settles the last batch
        running.join();
        check(messages);
    }

    void drain_without_threads(std::size_t messages) {
        vouch::runner(outbox_, routes_, {.queue = "q"}).run_until_idle();
        check(messages);
    }

  private:
    void check(std::size_t messages) const {
        bench::require(work_.counts("q")[vouch::state::succeeded] == messages, "not every message has succeeded");
    }

    store work_;
    vouch::outbox<store> outbox_{work_};
    vouch::router<store> routes_{outbox_};
    std::atomic<std::size_t> handled_ = 0;
};

void row_of(table& to, const std::string& name, const rounds& of, bench::target t) {
    to.row(name, of, by::clock_alone, t);
    std::printf("    %.0f messages/s end to end; reference: %.0f\n", of.ours(), source_rate);
}

void measure_rates(table& to, const sqlite_test::folder& in) {
    const auto commits_per_second = [&] {
        workload b(in.fresh_path());
        return bench::per_second(100, bench::seconds_of([&] { b.emit(100, 1); })).clock;
    }();
    std::printf("a commit takes %.2f ms\n", 1000 / commits_per_second);
    const auto commits = std::clamp<std::size_t>(static_cast<std::size_t>(commits_per_second / 2), 50, 2'000);
    table::head("messages per second, full, while emitting", "worker", "no worker");
    for (const std::size_t at_once : {1U, 10U, 100U}) {
        rounds of;
        const auto messages = commits * at_once;
        for (int round = 0; round < 3; ++round) {
            workload alone(in.fresh_path());
            const auto emitting = bench::seconds_of([&] { alone.emit(messages, at_once); });
            workload both(in.fresh_path());
            const auto all = bench::seconds_of([&] { both.drain(messages, [&] { both.emit(messages, at_once); }); });
            of.add(bench::per_second(messages, all), bench::per_second(messages, emitting));
        }
        const auto target = at_once == 1    ? bench::target{0.60, 0.80}
                            : at_once == 10 ? bench::target{0.50, 0.60}
                                            : bench::target{0.28, 0.32};
        row_of(to, "by " + std::to_string(at_once), of, target);
    }
    table::head("messages per second, full, from a backlog", "worker", "runner");
    rounds of;
    constexpr std::size_t batch = 50;
    const auto messages = batch * std::min<std::size_t>(commits, 400);
    for (int round = 0; round < 3; ++round) {
        workload one(in.fresh_path());
        one.emit(messages, batch);
        const auto threaded = bench::seconds_of([&] { one.drain(messages, [] {}); });
        workload other(in.fresh_path());
        other.emit(messages, batch);
        const auto plain = bench::seconds_of([&] { other.drain_without_threads(messages); });
        of.add(bench::per_second(messages, threaded), bench::per_second(messages, plain));
    }
    row_of(to, "worker of one thread / runner", of, {0.85, 0.92});
}

/// Handlers that take a millisecond, on eight threads, compared with eight threads that do nothing else.
void measure_slow_handlers(table& to, const sqlite_test::folder& in) {
    static constexpr std::size_t threads = 8;
    static constexpr std::size_t messages = 2'000;
    rounds of;
    for (int round = 0; round < 3; ++round) {
        store work(in.fresh_path());
        const vouch::outbox outbox(work);
        std::atomic<std::size_t> handled = 0;
        vouch::router routes(outbox);
        routes.on("t", [&](vouch::delivery&) {
            std::this_thread::sleep_for(1ms);
            ++handled;
        });
        outbox.emit(std::vector<vouch::emission>(messages, {.queue = "q", .topic = "t", .payload = payload}));
        const auto ours = bench::seconds_of([&] {
            vouch::worker worker(outbox);
            worker.serve(routes, {.queue = "q", .concurrency = threads});
            std::stop_source stop;
            const std::jthread running([&] { worker.run(stop.get_token()); });
            while (handled < messages) {
                std::this_thread::sleep_for(200us);
            }
            stop.request_stop();
        });
        const auto theirs = bench::seconds_of([&] {
            std::vector<std::jthread> all;
            for (std::size_t i = 0; i < threads; ++i) {
                all.emplace_back([] {
                    for (std::size_t n = 0; n < messages / threads; ++n) {
                        std::this_thread::sleep_for(1ms);
                    }
                });
            }
        });
        of.add(bench::per_second(messages, ours), bench::per_second(messages, theirs));
    }
    to.row("worker of eight threads / eight threads", of, by::clock_alone, {0.9, 0.95});
}

/// Several threads that each commit one message at a time, compared with one such thread.
void measure_shared_commits(table& to, const sqlite_test::folder& in) {
    constexpr std::size_t threads = 4;
    constexpr std::size_t messages = 1'000; // of each thread
    rounds of;
    for (int round = 0; round < 3; ++round) {
        workload one(in.fresh_path());
        const auto alone = bench::seconds_of([&] { one.emit(messages, 1); });
        workload all(in.fresh_path());
        const auto together = bench::seconds_of([&] {
            std::vector<std::jthread> emitting;
            for (std::size_t i = 0; i < threads; ++i) {
                emitting.emplace_back([&] { all.emit(messages, 1); });
            }
        });
        of.add(bench::per_second(threads * messages, together), bench::per_second(messages, alone));
    }
    to.row("by 1, four threads / one thread", of, by::clock_alone, {1.3, 2.0});
}

/// A file with pending entries to claim and a queue of ended entries to purge.
class filled_file {
  public:
    explicit filled_file(const std::string& path) : work_(path, {.synchronous = vouch::sqlite::synchronous::normal}) {
        fill("q", 20'000);
    }

    void fill(const std::string& queue, std::size_t count) {
        const std::vector<vouch::emission> some(1000, {.queue = queue, .topic = "t", .payload = payload});
        for (std::size_t i = 0; i < count; i += some.size()) {
            outbox_.emit(some);
        }
    }

    /// Claims and releases for a while. Returns the microseconds of the claims, in ascending order.
    [[nodiscard]] std::vector<double> claim_for(std::chrono::milliseconds how_long) {
        std::vector<double> out;
        const auto until = std::chrono::steady_clock::now() + how_long;
        while (std::chrono::steady_clock::now() < until) {
            std::vector<vouch::entry> got;
            out.push_back(1e6 * bench::seconds_of([&] {
                                    got = vouch::claim(work_,
                                                       {.queue = "q", .limit = 50, .now = outbox_.now(), .lease = 1h});
                                }).clock);
            bench::require(got.size() == 50, "fewer than 50 entries were claimed");
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

    /// The same while a worker purges the queue `old`.
    [[nodiscard]] std::vector<double> claim_while_purging(std::chrono::milliseconds how_long) {
        fill("old", 20'000);
        vouch::router routes(outbox_);
        routes.on("t", [](vouch::delivery&) {});
        vouch::runner(outbox_, routes, {.queue = "old", .batch_size = 1000}).run_until_idle();
        vouch::worker worker(outbox_);
        worker.serve(routes, {.queue = "old", .retention = {.succeeded = vouch::purge_rule::immediately()}});
        std::stop_source stop;
        vouch::worker_report done;
        std::jthread sweeping([&] { done = worker.run(stop.get_token()); });
        auto out = claim_for(how_long);
        stop.request_stop();
        sweeping.join();
        bench::require(done.purged > 1'000, "fewer than 1,000 entries were purged during the claims");
        return out;
    }

  private:
    store work_;
    vouch::outbox<store> outbox_{work_};
};

void measure_purge(table& to, const sqlite_test::folder& in) {
    filled_file c(in.fresh_path());
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
    to.row("99th percentile", late, by::clock_alone, {20, 5, bench::direction::at_most});
}

[[nodiscard]] bool measure_all() {
    const sqlite_test::folder in;
    std::printf("SQLite %s, %zu-byte payloads, files in %s\n", sqlite3_libversion(), payload.size(), in.path().c_str());
    table to;
    measure_rates(to, in);
    table::head("messages per second, full", "ours", "compared");
    measure_slow_handlers(to, in);
    measure_shared_commits(to, in);
    table::head("claim of 50, normal, microseconds", "purging", "quiet");
    measure_purge(to, in);
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
