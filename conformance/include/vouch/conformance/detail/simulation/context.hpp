// SPDX-License-Identifier: MIT
// What all parts of a simulation share: the store with its faults and its recording, the true time, the randomness, the
// settings of the runners, and the trace of events.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/call_log.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/simulation/monitor.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/faulty.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/recording.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/policy/backoff.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using simulated_store = faulty<recording<any_store>>;

/// The last events, and all of them on request.
class event_trace {
  public:
    void add(std::string line) {
        constexpr std::size_t lines_max = 40;
        if (keeps_all) {
            all.push_back(line);
        }
        last_.push_back(std::move(line));
        if (last_.size() > lines_max) {
            last_.pop_front();
        }
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& line : last_) {
            out += line + '\n';
        }
        return out;
    }

    bool keeps_all = false;
    std::vector<std::string> all{};

  private:
    std::deque<std::string> last_{};
};

/// A new location. What is stored there is removed at the end, when all handles must be gone.
struct passing_home {
    explicit passing_home(trial& in) : t(in), where(in.fresh_location()) {}
    passing_home(const passing_home&) = delete;
    passing_home& operator=(const passing_home&) = delete;
    ~passing_home() { t.abandon(where); }

    trial& t;
    location where;
};

struct simulation_context {
    simulation_context(trial& in, std::uint64_t with)
        : home(in), t(in), seed(with), random(with), plain(in.open(home.where)) {}
    simulation_context(const simulation_context&) = delete;
    simulation_context& operator=(const simulation_context&) = delete;

    passing_home home; // first: it outlives the handles
    trial& t;
    std::uint64_t seed;
    random_source random;
    any_store plain; ///< without faults and recording, for comparisons
    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    simulation_monitor monitor{};
    event_trace trace{};
    std::optional<failure> broken{}; ///< a failure inside a handler, where it cannot be thrown
    time_point now = start;          ///< the true time; the clocks of runners may be wrong
    bool is_calm = false;            ///< no random faults
    std::uint64_t last_id = 0;

    // The settings of this simulation.
    std::size_t batch_size = 1 + random.below(5);
    duration lease = std::chrono::seconds{30} + seconds(270);
    std::uint32_t attempts_max = 2 + static_cast<std::uint32_t>(random.below(3));
    vouch::backoff backoff =
        random.chance(50) ? vouch::backoff(exponential{}) : vouch::backoff(fixed{std::chrono::seconds{20}, 0.5});
    std::size_t faults_percent = random.one_of<std::size_t>({0, 5, 10, 30});
    std::size_t crashes_permille = random.one_of<std::size_t>({0, 10, 30});

    [[nodiscard]] simulated_store open() const {
        return {recording<any_store>(t.can().shared ? t.open(home.where) : plain, calls), plan};
    }
    [[nodiscard]] id fresh_id() { return id_of(++last_id); }

    /// A random duration below `most` seconds.
    [[nodiscard]] duration seconds(std::size_t most) {
        return duration{static_cast<duration::rep>(random.below(most * 1'000'000))};
    }
    /// A random error of a clock.
    [[nodiscard]] duration skew() { return seconds(600) - std::chrono::seconds{300}; }

    /// A random entry that `wanted` accepts; null if there is none.
    template <class Wanted>
    [[nodiscard]] const simulation_monitor::known* pick(const Wanted& wanted) {
        std::vector<const simulation_monitor::known*> all;
        for (const auto& [i, k] : monitor.stored()) {
            if (wanted(k.entry)) {
                all.push_back(&k);
            }
        }
        return all.empty() ? nullptr : all[random.below(all.size())];
    }
    /// The id of a random entry; nil if there is none.
    [[nodiscard]] id some_id() {
        const auto* const k = pick([](const entry&) { return true; });
        return k == nullptr ? id{} : k->entry.id;
    }

    void note(const std::string& what) { trace.add(show_date(now) + ' ' + what); }

    /// Runs `work`, which may fail by a random or a planned fault, and then checks the calls that it made.
    template <class Work>
    void attempt(const std::string& who, const Work& work) {
        const bool has_fault = !is_calm && random.chance(faults_percent);
        if (has_fault) {
            arm_random_fault();
        }
        try {
            work();
        } catch (const error& e) {
            if (!plan->has_fired()) {
                throw;
            }
            note(who + " receives " + show(e.kind()) + (e.is_in_doubt() ? ", in doubt" : ""));
        }
        if (has_fault) {
            plan->disarm();
        }
        check_calls();
    }

    /// Runs `part`. Adds the last events to a failure.
    template <class Part>
    void with_trace(const Part& part) {
        try {
            part();
        } catch (failure& f) {
            f.transcript = "simulation " + std::to_string(seed) + ", the last events:\n" + trace.text();
            throw;
        }
    }

  private:
    void arm_random_fault() {
        const bool is_conflict = random.chance(25);
        plan->arm({.call = 1 + random.below(8),
                   .moment = random.chance(50) ? fault_moment::before : fault_moment::after,
                   .persistent = random.chance(20),
                   .kind = is_conflict ? error_kind::conflict : random.one_of({error_kind::io, error_kind::busy}),
                   .in_doubt = !is_conflict && random.chance(30)});
    }

    void check_calls() {
        const auto newest = calls->take();
        for (const auto& c : newest) {
            using kind = call::operation;
            if (c.what != kind::begin && c.what != kind::commit && c.what != kind::roll_back) {
                trace.add(to_string(c) + (c.transaction_status == call::status::committed ? "" : " [rolled back]"));
            }
        }
        for (const auto& c : newest) {
            if (c.transaction_status == call::status::committed) {
                monitor.see(c);
            }
        }
        monitor.compare(plain);
        if (broken) {
            throw failure(*broken);
        }
    }
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
