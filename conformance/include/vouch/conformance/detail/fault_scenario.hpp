// SPDX-License-Identifier: MIT
// A short life of a store in which every operation occurs, to be repeated with a fault at each of its calls. Its
// tickets are known beforehand, so that it can go on after a claim whose commit was in doubt.
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
namespace conformance {

/// One transaction of the scenario. Repeated when it has landed already it changes nothing, unless it claims.
struct fault_step {
    std::string_view name;
    bool claims;
    void (*run)(any_store&, const capabilities&);
};

namespace detail {

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

} // namespace detail

inline constexpr std::array fault_scenario{
    fault_step{"enqueue six", false,
               [](any_store& s, const capabilities& can) {
                   transact(s, [&](auto& tx) { tx.enqueue(detail::scenario_drafts(can), at(0)); });
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
                       const std::array settles{detail::settle_of(1, 1, retry{"e", at(10)}),
                                                detail::settle_of(2, 1, succeed{"r"}),
                                                detail::settle_of(3, 1, bury{"b", "reply"})};
                       std::ignore = tx.settle(settles, at(4));
                       std::ignore = tx.claim(request(at(4), {.limit = 2}));
                   });
               }},
    fault_step{"release one, advance another", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(
                       s,
                       std::array{detail::settle_of(4, 1, release{at(20)}), detail::settle_of(6, 1, advance{"p", {}})},
                       at(5));
               }},
    fault_step{"claim two", true,
               [](any_store& s, const capabilities&) { std::ignore = take(s, at(6), {.limit = 2}); }},
    fault_step{"nudge one that is claimed", false,
               [](any_store& s, const capabilities&) { std::ignore = nudge(s, id_of(5), at(7)); }},
    fault_step{"retry the one that was nudged", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(5, 1, retry{"late", at(1000)})}, at(8));
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
                   detail::settle_all(
                       s, std::array{detail::settle_of(1, 2, succeed{"x"}), detail::settle_of(8, 1, succeed{"y"})},
                       at(31));
               }},
    fault_step{"purge", false,
               [](any_store& s, const capabilities&) { purge(s, {.queue = "q", .before = at(40), .limit = 100}); }},
    fault_step{"end a child", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(6, 2, succeed{})}, at(41));
               }},
    fault_step{"bury the parent", false,
               [](any_store& s, const capabilities&) {
                   detail::settle_all(s, std::array{detail::settle_of(5, 2, bury{"end", {}})}, at(42));
               }},
};

/// What is seen, with sequences by rank: a transaction that was rolled back may leave a gap.
[[nodiscard]] inline sight look_ranked(const any_store& store) {
    auto out = look(store);
    std::vector<std::uint64_t> sequences;
    for (const auto& e : out.found) {
        sequences.push_back(e.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    const auto rank = [&](entry& e) {
        const auto place = std::lower_bound(sequences.begin(), sequences.end(), e.sequence) - sequences.begin();
        e.sequence = static_cast<std::uint64_t>(place) + 1;
    };
    std::for_each(out.found.begin(), out.found.end(), rank);
    for (auto& list : out.listed) {
        std::for_each(list.begin(), list.end(), rank);
    }
    return out;
}

/// What is seen before the first step and after each, when nothing fails.
[[nodiscard]] inline std::vector<sight> scenario_sights(trial& t) {
    auto store = t.open(t.fresh_place());
    std::vector<sight> out{look_ranked(store)};
    for (const auto& step : fault_scenario) {
        step.run(store, t.can());
        out.push_back(look_ranked(store));
        t.expect(out.back() != out[out.size() - 2], "a step of the scenario (" + std::string(step.name) + ") does it");
    }
    return out;
}

/// What a scenario is played with: `begin` is called before each step, `struck` when a step has failed or was the last,
/// says whether a fault was due, and lets nothing else fail until the next `begin`.
struct fault_script {
    std::function<void()> begin;
    std::function<bool()> struck;
};

/// Plays the scenario through `shaky`, looking through `plain`: a step that fails is wholly out, or, if its commit was
/// in doubt, wholly in; repeated it does all, and nothing twice.
inline void play_scenario(trial& t, const std::vector<sight>& sights, any_store& plain, any_store& shaky,
                          const fault_script& faults) {
    const auto same = [&](std::size_t i, const sight& wanted, std::string_view what) {
        if (const auto now = look_ranked(plain); now != wanted) {
            auto [a, b] = show_difference(now, wanted);
            t.fail(std::string(fault_scenario[i].name) + ": " + std::string(what), std::move(a), std::move(b));
        }
    };
    for (std::size_t i = 0; i < fault_scenario.size(); ++i) {
        const auto& step = fault_scenario[i];
        faults.begin();
        bool in_doubt = false; // once a commit was, until the step is known to have landed
        for (bool is_done = false; !is_done;) {
            try {
                step.run(shaky, t.can());
                is_done = true;
            } catch (const error& e) {
                in_doubt = in_doubt || e.is_in_doubt();
                if (!faults.struck()) {
                    throw;
                }
                const auto now = look_ranked(plain);
                const bool has_landed = now == sights[i + 1];
                t.expect(!has_landed || in_doubt,
                         std::string(step.name) + ": an error that is not in doubt means that nothing happened");
                same(i, has_landed ? sights[i + 1] : sights[i], "half done after a fault");
                is_done = has_landed && step.claims; // what it claimed is known here, and nowhere else
            }
        }
    }
    faults.struck(); // one that no step has noticed
    same(fault_scenario.size() - 1, sights.back(), "what is stored after all was repeated");
}

} // namespace conformance
} // namespace v0
} // namespace vouch
