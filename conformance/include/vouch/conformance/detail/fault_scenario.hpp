// SPDX-License-Identifier: MIT
// A short scenario that uses every operation, to be repeated with a fault at each of its calls. Its tickets are known in
// advance, so that it can continue after a claim whose commit was in doubt.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/faulty.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// One transaction of the scenario. Repeating it after it took effect changes nothing, unless it claims.
struct fault_step {
    std::string_view name;
    bool claims;
    void (*run)(any_store&, const capabilities&);
};

[[nodiscard]] inline std::vector<draft> scenario_drafts(const capabilities& can) {
    const std::string group = can.groups ? "g" : "";
    const std::string lane = can.lanes ? "a" : "";
    return {draft_of(1, {.key = "k", .group = group}),
            draft_of(2, {.group = group}),
            draft_of(3, {.lane = lane}),
            draft_of(4, {.lane = lane}),
            draft_of(5, {.payload = "five", .due_at = at(50)}),
            draft_of(6, {.parent = id_of(5)})};
}

[[nodiscard]] inline vouch::settle settle_of(std::uint64_t n, std::uint64_t epoch, outcome o) {
    return {{id_of(n), epoch}, std::move(o)};
}

template <std::size_t N>
void settle_all(any_store& store, const std::array<vouch::settle, N>& settles, time_point now) {
    transact(store, [&](auto& tx) { std::ignore = tx.settle(settles, now); });
}

inline constexpr std::array fault_scenario{
    fault_step{"enqueue six", false,
               [](any_store& s, const capabilities& can) {
                   transact(s, [&](auto& tx) { tx.enqueue(scenario_drafts(can), at(0)); });
               }},
    fault_step{"claim three", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(1), {.limit = 3}); }},
    fault_step{"extend two", false,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       const std::array tickets{ticket{id_of(1), 1}, ticket{id_of(2), 1}};
                       std::ignore = tx.extend(tickets, at(2), duration{500});
                   });
               }},
    fault_step{"nudge one that waits", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(3)); }},
    fault_step{"emit, settle three and claim the next in one", true,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       const std::array drafts{draft_of(7, {.queue = "r"})};
                       tx.enqueue(drafts, at(4));
                       const std::array settles{settle_of(1, 1, retry{"e", at(10)}), settle_of(2, 1, succeed{"r"}),
                                                settle_of(3, 1, bury{"b", "reply"})};
                       std::ignore = tx.settle(settles, at(4));
                       std::ignore = tx.claim(request(at(4), {.limit = 2}));
                   });
               }},
    fault_step{
        "release one, advance another", false,
        [](any_store& s, const capabilities&) {
            settle_all(s, std::array{settle_of(4, 1, release{at(20)}), settle_of(6, 1, advance{"p", {}})}, at(5));
        }},
    fault_step{"claim two", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(6), {.limit = 2}); }},
    fault_step{"nudge one that is claimed", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(7)); }},
    fault_step{"retry the one that was nudged", false,
               [](any_store& s, const capabilities&) {
                   settle_all(s, std::array{settle_of(5, 1, retry{"late", at(1000)})}, at(8));
               }},
    fault_step{"cancel", false, [](any_store& s, const capabilities&) { std::ignore = cancel(s, id_of(4), at(9)); }},
    fault_step{"requeue", false,
               [](any_store& s, const capabilities&) {
                   transact(s, [](auto& tx) {
                       std::ignore = vouch::requeue(tx, {.dead = id_of(3), .successor = id_of(8), .now = at(10)});
                   });
               }},
    fault_step{"claim the rest", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(30), {.limit = 10}); }},
    fault_step{"complete a group", false,
               [](any_store& s, const capabilities&) {
                   settle_all(s, std::array{settle_of(1, 2, succeed{"x"}), settle_of(8, 1, succeed{"y"})}, at(31));
               }},
    fault_step{"purge", false,
               [](any_store& s, const capabilities&) { purge(s, {.queue = "q", .before = at(40), .limit = 100}); }},
    fault_step{
        "end a child", false,
        [](any_store& s, const capabilities&) { settle_all(s, std::array{settle_of(6, 2, succeed{})}, at(41)); }},
    fault_step{"bury the parent", false,
               [](any_store& s, const capabilities&) {
                   settle_all(s, std::array{settle_of(5, 2, bury{"end", {}})}, at(42));
               }},
};

/// A snapshot with sequences replaced by their rank, because a rolled-back transaction may leave a gap.
[[nodiscard]] inline snapshot ranked_snapshot_of(const any_store& store) {
    auto out = snapshot_of(store);
    std::vector<std::uint64_t> sequences;
    for (const auto& e : out.found) {
        sequences.push_back(e.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    const auto rank = [&](entry& e) {
        const auto position = std::lower_bound(sequences.begin(), sequences.end(), e.sequence) - sequences.begin();
        e.sequence = static_cast<std::uint64_t>(position) + 1;
    };
    std::for_each(out.found.begin(), out.found.end(), rank);
    for (auto& list : out.listed) {
        std::for_each(list.begin(), list.end(), rank);
    }
    return out;
}

/// The snapshots before the first step and after each step, without faults.
[[nodiscard]] inline std::vector<snapshot> scenario_snapshots(trial& t) {
    auto store = t.open(t.fresh_location());
    std::vector<snapshot> out{ranked_snapshot_of(store)};
    for (const auto& step : fault_scenario) {
        step.run(store, t.can());
        out.push_back(ranked_snapshot_of(store));
        t.expect(out.back() != out[out.size() - 2],
                 "a step of the scenario (" + std::string(step.name) + ") has an effect");
    }
    return out;
}

/// Injects the faults of a scenario. `begin` is called before each step. `fired` is called when a step has failed and at
/// the end; it returns whether a fault has occurred and stops faults until the next `begin`.
struct fault_control {
    std::function<void()> begin;
    std::function<bool()> fired;
};

/// Runs the scenario on `shaky` and reads through `plain`. A step that fails must have no effect, or its whole effect if
/// its commit was in doubt. Repeating it must do everything once.
inline void play_scenario(trial& t, const std::vector<snapshot>& snapshots, any_store& plain, any_store& shaky,
                          const fault_control& faults) {
    const auto same = [&](std::size_t i, const snapshot& wanted, std::string_view what) {
        if (const auto now = ranked_snapshot_of(plain); now != wanted) {
            auto [a, b] = show_difference(now, wanted);
            t.fail(std::string(fault_scenario[i].name) + ": " + std::string(what), std::move(a), std::move(b));
        }
    };
    for (std::size_t i = 0; i < fault_scenario.size(); ++i) {
        const auto& step = fault_scenario[i];
        faults.begin();
        bool in_doubt = false; // from a commit in doubt until the step is known to have taken effect
        for (bool is_done = false; !is_done;) {
            try {
                step.run(shaky, t.can());
                is_done = true;
            } catch (const error& e) {
                in_doubt = in_doubt || e.is_in_doubt();
                if (!faults.fired()) {
                    throw;
                }
                const auto now = ranked_snapshot_of(plain);
                const bool took_effect = now == snapshots[i + 1];
                t.expect(!took_effect || in_doubt,
                         std::string(step.name) + ": an error that is not in doubt means that there was no effect");
                same(i, took_effect ? snapshots[i + 1] : snapshots[i], "the state after a fault");
                is_done = took_effect && step.claims; // a repetition would claim other entries
            }
        }
    }
    faults.fired(); // a fault that no step has noticed
    same(fault_scenario.size() - 1, snapshots.back(), "the state after all steps were repeated");
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
