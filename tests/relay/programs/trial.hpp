// SPDX-License-Identifier: MIT
// Messages go from one SQLite store through a broker into another, while something is killed, cut or stopped. Afterwards
// every message must be in the other store exactly once, and the messages of each lane in order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "relay/programs/roles.hpp"
#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

namespace relay_program {

/// What a trial does to the two processes: it is called again and again, and returns how many times it has done harm.
using harm = std::function<std::size_t(role& relaying, role& taking)>;

class trial {
  public:
    trial(std::string_view name, std::size_t count) : name_(name), count_(count) {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const counters& all() const noexcept { return all_; }

    /// Each function makes a client and calls `relay_to` or `take_from`, in a process of its own.
    void run(const std::function<int()>& relaying_process, const std::function<int()>& taking_process,
             const harm& inflict) {
        worker_program::in_a_child([&] { fill(from_, count_); });
        const auto begin = std::chrono::steady_clock::now();
        role relaying([&] { return worker_program::child(relaying_process); });
        role taking([&] { return worker_program::child(taking_process); });
        std::size_t harms = 0;
        const auto deadline = begin + 240s;
        while (!relaying.is_done() || !taking.is_done()) {
            harms += inflict(relaying, taking);
            relaying.tend(5ms);
            taking.tend(5ms);
            if (std::chrono::steady_clock::now() > deadline) {
                expect(false, "everything arrives within four minutes");
                break;
            }
        }
        const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        worker_program::in_a_child([&] { compare(from_, to_, count_); });
        report(took, harms);
        expect(harms > 0, "something was killed, cut or stopped");
    }

    template <class Publisher>
    [[nodiscard]] int relay_to(Publisher& to) {
        return relay(from_, to, all_);
    }
    template <class Consumer>
    [[nodiscard]] int take_from(Consumer& from) {
        return take_in(to_, from, all_, count_);
    }

  private:
    void report(double seconds, std::size_t harms) const {
        std::printf(
            "%s: %zu messages in %.1f s; %zu kills, cuts or stops, %zu sent, %zu received, %zu redelivered, %zu "
            "duplicates refused, "
            "%zu errors of the intake\n",
            name_.c_str(), count_, seconds, harms, all_.sent.load(), all_.received.load(), all_.redelivered.load(),
            all_.duplicates.load(), all_.errors.load());
    }

    std::string name_;
    std::size_t count_;
    sqlite_test::folder files_{};
    std::string from_ = files_.file("shop.db");
    std::string to_ = files_.file("mailer.db");
    counters& all_ = worker_program::shared_object<counters>();
};

/// Kills a process again and again, each time at a random moment after it has begun to send or to receive: on a slow
/// machine, kills at random times alone would leave no process the time to begin.
class killer {
  public:
    enum class victim { relay, intake };
    /// `progress` counts what the victim has sent or received. There are at most `kills_max` kills, so that the trial ends.
    killer(victim of, const std::atomic<std::size_t>& progress, std::size_t kills_max)
        : of_(of), progress_(progress), left_(kills_max) {}

    std::size_t operator()(role& relaying, role& taking) {
        auto& process = of_ == victim::relay ? relaying : taking;
        const auto now = std::chrono::steady_clock::now();
        if (process.is_done() || left_ == 0 || progress_ <= seen_) {
            return 0;
        }
        if (!due_) {
            due_ = now + std::chrono::milliseconds(random_() % 60);
        }
        if (now < *due_) {
            return 0;
        }
        process.kill();
        left_ -= 1;
        due_.reset();
        seen_ = progress_;
        return 1;
    }

  private:
    victim of_;
    const std::atomic<std::size_t>& progress_;
    std::size_t left_;
    std::size_t seen_ = 0;
    std::optional<std::chrono::steady_clock::time_point> due_{};
    std::mt19937 random_{3};
};

} // namespace relay_program
