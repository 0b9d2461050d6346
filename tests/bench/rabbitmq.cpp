// SPDX-License-Identifier: MIT
// Measures a relay to RabbitMQ, on a SQLite file on which every commit waits for the disk (synchronous FULL). Exits with 1
// if a figure misses its floor, and with 2 if the run is not valid.
//
//   tests/rabbitmq/broker run vouch_bench_rabbitmq
//
// 1. A relay that drains a backlog, compared with the bare client, which publishes the same number of messages to the same
//    quorum queue with confirms, in batches of the same size. The bare client stores nothing.
// 2. End to end: emit by 100, relay, RabbitMQ, intake into another file, handler, all at the same time. For reference it
//    prints 3,500 messages per second, which the source of this design measured with one worker and one relay.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/rabbitmq.hpp>
#include <vouch/relay.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "../sqlite/folder.hpp"
#include "rabbitmq_bare.hpp"
#include "ratio.hpp"

namespace {

using namespace std::chrono_literals;
using bench::by;
using bench::rounds;
using bench::table;
using vouch::sqlite::store;

constexpr double source_rate = 3'500;
const std::string payload(200, 'x');
const std::string url = std::getenv("VOUCH_RABBITMQ") == nullptr ? "" : std::getenv("VOUCH_RABBITMQ");
const vouch::rabbitmq::topology shape{.exchange = "shop", .listeners = {{.queue = "mailer", .patterns = {"order.#"}}}};

/// Counts the messages that are confirmed.
class counting_publisher {
  public:
    explicit counting_publisher(vouch::rabbitmq::publisher_options options) : to_(std::move(options)) {}
    [[nodiscard]] std::vector<vouch::confirmation> publish(std::span<const vouch::message> messages) {
        auto out = to_.publish(messages);
        for (const auto& one : out) {
            confirmed_ += one.what == vouch::confirmation::kind::confirmed ? 1 : 0;
        }
        return out;
    }
    [[nodiscard]] std::size_t confirmed() const noexcept { return confirmed_; }

  private:
    vouch::rabbitmq::publisher to_;
    std::atomic<std::size_t> confirmed_ = 0;
};

/// A file whose queue is relayed.
class sender {
  public:
    sender(const std::string& path, std::size_t batch)
        : work_(path), to_({.connection = {.url = url}, .exchange = shape.exchange}), batch_(batch) {
        routes_.on(vouch::relay(to_, {.size_max = batch}));
    }

    void emit(std::size_t messages, std::size_t per_transaction) {
        const std::vector<vouch::emission> some(per_transaction,
                                                {.queue = "out", .topic = "order.placed", .payload = payload});
        for (std::size_t sent = 0; sent < messages; sent += per_transaction) {
            outbox_.emit(some);
        }
    }

    /// So that the time to connect is not measured. The bare client is connected too.
    void connect() {
        const vouch::message first{.id = "first", .topic = "order.first"};
        (void)to_.publish(std::span(&first, 1));
        connected_with_ = 1;
    }

    /// Relays on two threads: one claims and settles while the other publishes.
    void run(const std::stop_token& stop) {
        vouch::worker worker(outbox_);
        worker.serve(routes_, {.queue = "out", .concurrency = 2, .batch_size = 2 * batch_});
        worker.run(stop);
    }

    /// Relays until `messages` are confirmed and recorded.
    void drain(std::size_t messages) {
        std::stop_source stop;
        std::jthread running([&] { run(stop.get_token()); });
        while (to_.confirmed() < messages + connected_with_) {
            std::this_thread::sleep_for(1ms);
        }
        stop.request_stop(); // settles the last batch
        running.join();
        bench::require(work_.counts("out")[vouch::state::succeeded] == messages, "not every message has succeeded");
    }

  private:
    store work_;
    vouch::outbox<store> outbox_{work_};
    counting_publisher to_;
    vouch::router<store> routes_{outbox_};
    std::size_t batch_;
    std::size_t connected_with_ = 0;
};

/// A file that takes in what arrives, and handles it.
class receiver {
  public:
    explicit receiver(const std::string& path) : work_(path) {
        routes_.on("order.#", [this](vouch::delivery&) { ++handled_; });
    }

    void run(const std::stop_token& stop) {
        std::jthread taking([&] {
            vouch::rabbitmq::consumer from(
                {.connection = {.url = url}, .queue = shape.listeners.front().queue, .prefetch = 1000});
            vouch::intake(from, outbox_, {.source = "shop", .queue = "in", .batch_size = 500}).run(stop);
        });
        vouch::worker worker(outbox_);
        worker.serve(routes_, {.queue = "in", .batch_size = 500});
        worker.run(stop);
    }

    [[nodiscard]] std::size_t handled() const noexcept { return handled_; }

  private:
    store work_;
    vouch::outbox<store> outbox_{work_};
    vouch::router<store> routes_{outbox_};
    std::atomic<std::size_t> handled_ = 0;
};

void measure_relay(table& to, const sqlite_test::folder& in, bench::bare_rabbitmq& bare) {
    table::head("messages per second, full, from a backlog", "relay", "bare");
    for (const std::size_t batch : {100U, 500U}) {
        rounds of;
        const std::size_t messages = std::max<std::size_t>(batch * 40, 10'000);
        for (int round = 0; round < 5; ++round) {
            sender one(in.fresh_path(), batch);
            one.emit(messages, batch);
            one.connect();
            const auto ours = bench::seconds_of([&] { one.drain(messages); });
            bare.purge(shape.listeners.front().queue);
            const auto theirs =
                bench::seconds_of([&] { bare.publish(shape.exchange, "order.placed", payload, messages, batch); });
            bare.purge(shape.listeners.front().queue);
            of.add(bench::per_second(messages, ours), bench::per_second(messages, theirs));
        }
        to.row("by " + std::to_string(batch), of, by::clock_alone, {0.7, 0.9});
    }
}

void measure_end_to_end(const sqlite_test::folder& in) {
    std::vector<double> rates;
    constexpr std::size_t messages = 20'000;
    for (int round = 0; round < 3; ++round) {
        sender from(in.fresh_path(), 500);
        receiver to(in.fresh_path());
        std::stop_source stop;
        std::jthread relaying([&] { from.run(stop.get_token()); });
        std::jthread taking([&] { to.run(stop.get_token()); });
        const auto took = bench::seconds_of([&] {
            from.emit(messages, 100);
            while (to.handled() < messages) {
                std::this_thread::sleep_for(1ms);
            }
        });
        stop.request_stop();
        rates.push_back(bench::per_second(messages, took).clock);
    }
    std::printf("\nend to end, emit by 100, one relay, one worker: %.0f messages/s; reference: %.0f\n",
                bench::median(rates), source_rate);
}

[[nodiscard]] bool measure_all() {
    bench::require(!url.empty(), "VOUCH_RABBITMQ is not set; start the program with tests/rabbitmq/broker run");
    const sqlite_test::folder in;
    std::printf("%zu-byte payloads, files in %s\n", payload.size(), in.path().c_str());
    vouch::rabbitmq::declare({.url = url}, shape);
    bench::bare_rabbitmq bare(static_cast<int>(std::strtol(url.c_str() + url.rfind(':') + 1, nullptr, 10)));
    table to;
    measure_relay(to, in, bare);
    measure_end_to_end(in);
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
