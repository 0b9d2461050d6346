// SPDX-License-Identifier: MIT
// Simulation: several runners work for days, with crashes, pauses, wrong clocks and faults. The contract must hold all
// the time, and all work must end after the faults stop.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/simulation/simulation.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/faulty.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace simulation_checks {

/// A simulation is short, so that many different ones fit into the budget.
inline constexpr std::size_t days_per_simulation = 2;

template <class Run>
void simulate(trial& t, std::size_t days, const Run& run) {
    for (std::size_t left = std::max<std::size_t>(days, 1); left > 0;) {
        const auto now = std::min(left, days_per_simulation);
        run(t.random().roll(), std::chrono::hours{24} * static_cast<int>(now));
        left -= now;
    }
}

inline void safety(trial& t) {
    simulate(t, t.budget().simulated_days / 2, [&](std::uint64_t seed, duration length) {
        detail::simulation simulated(t, seed);
        simulated.run_with_faults(length);
    });
}

inline void liveness(trial& t) {
    simulate(t, t.budget().simulated_days * 2 / 5, [&](std::uint64_t seed, duration length) {
        detail::simulation simulated(t, seed);
        simulated.run_with_faults(length / 4);
        simulated.heal();
        simulated.drain();
    });
}

/// Whether two events differ only because the transaction of one ended in a conflict.
[[nodiscard]] inline bool is_of_conflict(const std::string& a, const std::string& b) {
    const std::string_view mark = " [rolled back]";
    const auto is_marked = [&](const std::string& longer, const std::string& event) {
        return longer == event + std::string(mark);
    };
    const auto has = [](const std::string& event) { return event.find("conflict") != std::string::npos; };
    return has(a) || has(b) || is_marked(a, b) || is_marked(b, a);
}

inline void determinism(trial& t) {
    simulate(t, t.budget().simulated_days / 20, [&](std::uint64_t seed, duration length) {
        std::array<std::vector<std::string>, 2> traces;
        const auto conflicts = t.context().counts->conflicts.load();
        for (auto& trace : traces) {
            detail::simulation simulated(t, seed);
            simulated.keep_trace();
            simulated.run_with_faults(length);
            trace = simulated.trace();
        }
        const auto [a, b] = std::mismatch(traces[0].begin(), traces[0].end(), traces[1].begin(), traces[1].end());
        const auto line = [](auto at, auto end) { return at == end ? std::string("nothing more") : *at; };
        if (t.context().counts->conflicts != conflicts &&
            is_of_conflict(line(a, traces[0].end()), line(b, traces[1].end()))) {
            return; // conflicts may occur at any time; before it, the traces were the same
        }
        if (a != traces[0].end() || b != traces[1].end()) {
            t.fail("the same simulation repeated, event " + std::to_string(a - traces[0].begin()) + " of " +
                       std::to_string(traces[0].size()),
                   line(b, traces[1].end()), line(a, traces[0].end()));
        }
    });
}

/// Repeats one small simulation and fails another call of its runners each time. The other clauses about faults have more
/// teeth, so a smaller budget tells here most.
inline void failing_runners(trial& t) {
    const auto seed = t.random().roll();
    for (const auto when : {fault_moment::before, fault_moment::after}) {
        for (const bool persistent : {false, true}) {
            const auto some = t.budget().point_stride == 1 ? 1 : 3 * t.budget().point_stride;
            for (std::uint64_t n = 1 + t.random().below(some), fired = 1; fired > 0 && n <= 200;
                 n += persistent ? 7 * some : some) {
                detail::simulation simulated(t, seed);
                simulated.calm();
                simulated.produce(6);
                simulated.plan().arm({.call = n, .moment = when, .persistent = persistent});
                simulated.passes(3);
                fired = simulated.plan().disarm() ? 1 : 0;
                simulated.heal();
                simulated.drain();
            }
        }
    }
}

} // namespace simulation_checks

inline constexpr std::array simulation{
    clause{"SIM-01", layer::simulation, level::must, needs::nothing,
           "With crashing runners, wrong clocks and faults, no ticket is given out twice, only the current ticket "
           "settles, terminal entries do not change, lanes run in order, groups complete once, no entry dies only of "
           "lapses that it shared with other entries, and no entry disappears.",
           simulation_checks::safety},
    clause{"SIM-02", layer::simulation, level::must, needs::nothing,
           "When faults and crashes stop, every entry becomes terminal within a bounded number of passes.",
           simulation_checks::liveness},
    clause{"SIM-03", layer::simulation, level::must, needs::nothing,
           "The same calls with the same times return the same answers, so that a seed determines the simulation.",
           simulation_checks::determinism},
    clause{"SIM-04", layer::simulation, level::must, needs::nothing,
           "If any call of the runners fails, before or after its effect, once or repeatedly, every entry still ends "
           "once, together with its emissions.",
           simulation_checks::failing_runners},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
