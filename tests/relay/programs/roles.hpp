// SPDX-License-Identifier: MIT
// The processes of a relay test: one fills a store, one relays it to a broker, one takes the messages into another store,
// one compares the stores. Any of them may be killed at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "sqlite/programs/child.hpp"

namespace relay_program {

using namespace std::chrono_literals;
using vouch::sqlite::store;
using worker_program::expect;

/// Kept in memory that all processes share, so that a kill does not lose it.
struct counters {
    std::atomic<bool> is_relayed = false;
    std::atomic<std::size_t> sent = 0; ///< given to the publisher, repetitions included
    std::atomic<std::size_t> received = 0;
    std::atomic<std::size_t> redelivered = 0; ///< as the broker says
    std::atomic<std::size_t> duplicates = 0;  ///< refused by the store
    std::atomic<std::size_t> errors = 0;
};

/// Half of the messages are in one of 50 lanes.
inline void fill(const std::string& path, std::size_t count) {
    store s(path);
    const vouch::outbox outbox(s);
    std::vector<vouch::emission> some;
    for (std::size_t n = 0; n < count; ++n) {
        some.push_back({.queue = "out",
                        .topic = "order.placed",
                        .payload = std::to_string(n),
                        .lane = n % 2 == 0 ? "lane " + std::to_string(n / 2 % 50) : ""});
        if (some.size() == 1000 || n + 1 == count) {
            outbox.emit(some);
            some.clear();
        }
    }
}

/// Counts what a relay sends.
template <class Publisher>
class counting_publisher {
  public:
    counting_publisher(Publisher& to, counters& all) : to_(to), all_(all) {}
    [[nodiscard]] std::vector<vouch::confirmation> publish(std::span<const vouch::message> messages) {
        all_.sent += messages.size();
        return to_.publish(messages);
    }

  private:
    Publisher& to_;
    counters& all_;
};

/// Returns 0 when everything is relayed. Half of the relays end in order before that, as a deployment does.
template <class Publisher>
int relay(const std::string& path, Publisher& broker, counters& all) {
    store s(path);
    counting_publisher to(broker, all);
    const vouch::outbox outbox(s);
    vouch::router router(outbox);
    router.on(vouch::relay(to, {.size_max = 100, .retry = {.backoff = vouch::fixed{50ms}, .attempts_max = 1'000'000}}));
    vouch::worker worker(outbox, {.log = vouch::log_level::off, .poll_interval = 50ms});
    worker.serve(router, {.queue = "out", .concurrency = 2, .batch_size = 200, .lease = 1s});
    std::stop_source stop;
    const std::jthread watch([&] {
        while (s.counts("out").live() > 0) {
            std::this_thread::sleep_for(20ms);
        }
        stop.request_stop();
    });
    worker.run(stop.get_token());
    all.is_relayed = true;
    return 0;
}

/// Counts what passes through to the intake.
template <class Consumer>
class counting_consumer {
  public:
    counting_consumer(Consumer& from, counters& all) : from_(from), all_(all) {}
    std::vector<vouch::received> receive(std::size_t limit, vouch::duration at_most, const std::stop_token& stop) {
        auto out = from_.receive(limit, at_most, stop);
        for (const auto& r : out) {
            all_.received += 1;
            all_.redelivered += r.is_redelivered ? 1 : 0;
        }
        return out;
    }
    void acknowledge(std::span<const vouch::received> some) { from_.acknowledge(some); }
    void give_back(std::span<const vouch::received> some) { from_.give_back(some); }
    void set_aside(std::span<const vouch::received> some) { from_.set_aside(some); }
    void cancel() { from_.cancel(); }

  private:
    Consumer& from_;
    counters& all_;
};

/// Returns 0 when the relay has ended, `count` messages are stored and no more arrive.
template <class Consumer>
int take_in(const std::string& path, Consumer& broker, counters& all, std::size_t count) {
    store s(path);
    const vouch::outbox outbox(s);
    counting_consumer from(broker, all);
    vouch::intake intake(from, outbox, {.source = "shop", .queue = "in", .batch_size = 100, .wait = 300ms});
    for (;;) {
        const bool was_relayed = all.is_relayed;
        try {
            const auto done = intake.run_once();
            all.duplicates += done.duplicates;
            if (was_relayed && done.received == 0 && s.counts("in").total() >= count) {
                return 0;
            }
        } catch (const vouch::error& e) {
            if (!e.is_transient()) {
                throw;
            }
            all.errors += 1;
            std::this_thread::sleep_for(20ms);
        }
    }
}

/// Every message is in the other store exactly once, and those of one lane in order.
inline void compare(const std::string& from, const std::string& to, std::size_t count) {
    const store out(from);
    const store in(to);
    expect(out.counts("out")[vouch::state::succeeded] == count, "every entry of the first store has succeeded");
    expect(in.counts("in").total() == count, "the second store has as many entries");
    std::vector<std::size_t> seen(count);
    std::map<std::string, std::size_t> last;
    bool is_ordered = true;
    auto page = vouch::query::all("in");
    page.limit = 1000;
    page.payloads = true;
    for (auto found = in.list(page); !found.empty(); found = in.list(page)) {
        page.after = found.back().sequence;
        for (const auto& e : found) {
            const auto n = static_cast<std::size_t>(std::stoul(e.payload));
            seen.at(n) += 1;
            if (!e.lane.empty()) {
                const auto [before, is_first] = last.try_emplace(e.lane, n);
                is_ordered = is_ordered && (is_first || before->second < n);
                before->second = n;
            }
        }
    }
    const auto missing = std::count(seen.begin(), seen.end(), std::size_t{0});
    const auto once = std::count(seen.begin(), seen.end(), std::size_t{1});
    expect(missing == 0, "no message is missing");
    expect(static_cast<std::size_t>(once) == count, "no message is there twice");
    expect(is_ordered && last.size() == 50, "the messages of each lane are in order");
}

/// Starts a role again whenever it has been killed. Its work is done when it returns 0.
class role {
  public:
    using start = std::function<worker_program::child()>;
    explicit role(start how) : start_(std::move(how)), one_(start_()) {}

    [[nodiscard]] bool is_done() const noexcept { return done_; }

    /// Looks after the process for a short time.
    void tend(std::chrono::milliseconds at_most) {
        if (done_) {
            std::this_thread::sleep_for(at_most);
            return;
        }
        if (const auto how = one_.wait_for(at_most)) {
            done_ = how->code == 0;
            expect(done_ || how->signal == SIGKILL, "a process ends by a kill, or with its work done");
            if (!done_) {
                one_ = start_();
            }
        }
    }
    void kill() {
        if (!done_) {
            one_.signal(SIGKILL);
        }
    }

  private:
    start start_;
    worker_program::child one_;
    bool done_ = false;
};

} // namespace relay_program
