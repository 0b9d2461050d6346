// SPDX-License-Identifier: MIT
// Layer 7: simulation. Days of several runners with crashes, pauses, wrong clocks and faults: first nothing may go
// wrong, then everything has to come to rest.
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

/// A world lasts for some days at most, so that many different ones fit into the budget.
inline constexpr std::size_t days_per_world = 2;

template <class Live>
void worlds(trial& t, std::size_t days, const Live& live) {
    for (std::size_t left = std::max<std::size_t>(days, 1); left > 0;) {
        const auto now = std::min(left, days_per_world);
        live(t.random().roll(), std::chrono::hours{24} * static_cast<int>(now));
        left -= now;
    }
}

inline void safety(trial& t) {
    worlds(t, t.budget().simulated_days / 2, [&](std::uint64_t seed, duration length) {
        conformance::simulation world(t, seed);
        world.storm(length);
    });
}

inline void liveness(trial& t) {
    worlds(t, t.budget().simulated_days * 2 / 5, [&](std::uint64_t seed, duration length) {
        conformance::simulation world(t, seed);
        world.storm(length / 4);
        world.heal();
        world.drain();
    });
}

/// Whether two events differ in nothing but that the transaction of one ended in a conflict.
[[nodiscard]] inline bool is_of_conflict(const std::string& a, const std::string& b) {
    const std::string_view mark = " [rolled back]";
    const auto is_marked = [&](const std::string& longer, const std::string& event) {
        return longer == event + std::string(mark);
    };
    const auto has = [](const std::string& event) { return event.find("conflict") != std::string::npos; };
    return has(a) || has(b) || is_marked(a, b) || is_marked(b, a);
}

inline void determinism(trial& t) {
    worlds(t, t.budget().simulated_days / 20, [&](std::uint64_t seed, duration length) {
        std::array<std::vector<std::string>, 2> traces;
        const auto conflicts = t.on().counts->conflicts.load();
        for (auto& trace : traces) {
            conformance::simulation world(t, seed);
            world.keep_trace();
            world.storm(length);
            trace = world.trace();
        }
        const auto [a, b] = std::mismatch(traces[0].begin(), traces[0].end(), traces[1].begin(), traces[1].end());
        const auto line = [](auto at, auto end) { return at == end ? std::string("nothing more") : *at; };
        if (t.on().counts->conflicts != conflicts &&
            is_of_conflict(line(a, traces[0].end()), line(b, traces[1].end()))) {
            return; // one may come at any time; up to it the two were the same
        }
        if (a != traces[0].end() || b != traces[1].end()) {
            t.fail("the same world once more, event " + std::to_string(a - traces[0].begin()) + " of " +
                       std::to_string(traces[0].size()),
                   line(b, traces[1].end()), line(a, traces[0].end()));
        }
    });
}

/// The runners' own calls fail one after the other, in the same small world each time.
inline void failing_runners(trial& t) {
    const auto seed = t.random().roll();
    for (const auto when : {fault_moment::before, fault_moment::after}) {
        for (const bool persistent : {false, true}) {
            for (std::uint64_t n = 1, struck = 1; struck > 0 && n <= 200; n += persistent ? 7 : 1) {
                conformance::simulation world(t, seed);
                world.calm();
                world.produce(6);
                world.plan().arm({.call = n, .moment = when, .persistent = persistent});
                world.passes(3);
                struck = world.plan().disarm() ? 1 : 0;
                world.heal();
                world.drain();
            }
        }
    }
}

} // namespace simulation_checks

inline constexpr std::array simulation{
    clause{"SIM-01", layer::simulation, level::must, needs::nothing,
           "Whatever runners, clocks and faults do: no ticket twice, no settle but the one that counts, nothing "
           "terminal changes, lanes in order, groups complete once, no entry dies of lapses it shared with others, "
           "nothing disappears.",
           simulation_checks::safety},
    clause{"SIM-02", layer::simulation, level::must, needs::nothing,
           "When faults and crashes stop, everything ends succeeded or dead in a bounded number of passes.",
           simulation_checks::liveness},
    clause{"SIM-03", layer::simulation, level::must, needs::nothing,
           "The same calls at the same times get the same answers: one seed is one world.",
           simulation_checks::determinism},
    clause{"SIM-04", layer::simulation, level::must, needs::nothing,
           "Whichever call of the runners fails, before or after its effect, once or for a while: every entry still "
           "ends, with its emissions, once.",
           simulation_checks::failing_runners},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
