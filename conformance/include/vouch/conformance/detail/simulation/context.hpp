// SPDX-License-Identifier: MIT
// What everybody in a simulated world shares: the store with its faults and its recording, the true time, the dice, the
// rules runners go by, and the story of what happened.
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
namespace conformance {

using simulated_store = faulty<recording<any_store>>;

/// The last lines of what happened, and all of them if somebody wants to compare.
class simulation_story {
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

struct simulation_ground {
    simulation_ground(trial& in, std::uint64_t with)
        : t(in), seed(with), random(with), here(in.fresh_place()), truth(in.open(here)) {}
    simulation_ground(const simulation_ground&) = delete;
    simulation_ground& operator=(const simulation_ground&) = delete;

    trial& t;
    std::uint64_t seed;
    dice random;
    place here;
    any_store truth; ///< for looking on, without faults and unrecorded
    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    simulation_watch watch{};
    simulation_story story{};
    std::optional<failure> broken{}; ///< seen where it could not be thrown
    time_point now = start;          ///< the true one; clocks may be off
    bool is_calm = false;            ///< nothing goes wrong by chance
    std::uint64_t last_id = 0;

    // The rules of this world.
    std::size_t batch_size = 1 + random.below(5);
    duration lease = std::chrono::seconds{30} + seconds(270);
    std::uint32_t attempts_max = 2 + static_cast<std::uint32_t>(random.below(3));
    vouch::backoff backoff =
        random.chance(50) ? vouch::backoff(exponential{}) : vouch::backoff(fixed{std::chrono::seconds{20}, 0.5});
    std::size_t faults_percent = random.one_of<std::size_t>({0, 5, 10, 30});
    std::size_t crashes_permille = random.one_of<std::size_t>({0, 10, 30});

    [[nodiscard]] simulated_store open() const {
        return {recording<any_store>(t.can().shared ? t.open(here) : truth, calls), plan};
    }
    [[nodiscard]] id fresh_id() { return id_of(++last_id); }

    /// Less than so many, to the microsecond.
    [[nodiscard]] duration seconds(std::size_t most) {
        return duration{static_cast<duration::rep>(random.below(most * 1'000'000))};
    }
    /// How far a clock may be off.
    [[nodiscard]] duration skew() { return seconds(600) - std::chrono::seconds{300}; }

    /// One of the entries that are as wanted, or null.
    template <class Wanted>
    [[nodiscard]] const simulation_watch::known* pick(const Wanted& wanted) {
        std::vector<const simulation_watch::known*> all;
        for (const auto& [i, k] : watch.stored()) {
            if (wanted(k.entry)) {
                all.push_back(&k);
            }
        }
        return all.empty() ? nullptr : all[random.below(all.size())];
    }
    /// Of any entry; nil if there is none.
    [[nodiscard]] id some_id() {
        const auto* const k = pick([](const entry&) { return true; });
        return k == nullptr ? id{} : k->entry.id;
    }

    void note(const std::string& what) { story.add(show_date(now) + ' ' + what); }

    /// Does something with the store that may fail, by chance or by plan; then holds it against the rules.
    template <class Work>
    void attempt(const std::string& who, const Work& work) {
        const bool is_shaken = !is_calm && random.chance(faults_percent);
        if (is_shaken) {
            shake();
        }
        try {
            work();
        } catch (const error& e) {
            if (!plan->has_struck()) {
                throw;
            }
            note(who + " gets " + show(e.kind()) + (e.is_in_doubt() ? ", in doubt" : ""));
        }
        if (is_shaken) {
            plan->disarm();
        }
        look();
    }

    /// Runs `part`; if something does not hold, the story is what happened last.
    template <class Part>
    void told(const Part& part) {
        try {
            part();
        } catch (failure& f) {
            f.story = "world " + std::to_string(seed) + ", what happened last:\n" + story.text();
            throw;
        }
    }

  private:
    void shake() {
        const bool is_conflict = random.chance(25);
        plan->arm({.call = 1 + random.below(8),
                   .moment = random.chance(50) ? fault_moment::before : fault_moment::after,
                   .persistent = random.chance(20),
                   .kind = is_conflict ? error_kind::conflict : random.one_of({error_kind::io, error_kind::busy}),
                   .in_doubt = !is_conflict && random.chance(30)});
    }

    void look() {
        const auto newest = calls->take();
        for (const auto& c : newest) {
            using kind = call::operation;
            if (c.what != kind::begin && c.what != kind::commit && c.what != kind::roll_back) {
                story.add(to_string(c) + (c.became == call::fate::committed ? "" : " [rolled back]"));
            }
        }
        for (const auto& c : newest) {
            if (c.became == call::fate::committed) {
                watch.see(c);
            }
        }
        watch.compare(truth);
        if (broken) {
            throw failure(*broken);
        }
    }
};

} // namespace conformance
} // namespace v0
} // namespace vouch
