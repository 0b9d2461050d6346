// SPDX-License-Identifier: MIT
// The verifier on the order saga, random sagas with random faults, and engines with one bug each, which it must catch.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "unit/saga_orders.hpp"
#include "unit/saga_support.hpp"

namespace saga_verify_test {

using namespace saga_support;
using vouch::entry;
using vouch::state;
using vouch::step_state;
using vouch::testing::verification;
using vouch::testing::verify;
using vouch::testing::detail::fault_plan;
using vouch::testing::detail::saga_end;
using vouch::testing::detail::verify_with;

namespace {

enum class bug {
    none,
    undoes_in_forward_order,
    forgets_unknown_steps,
    loses_late_successes,
    repeats_a_step,
    skips_a_step,
    hands_on_no_result,
    hands_on_the_first_result,
    does_not_wait_for_holders,
    never_gives_up,
    ignores_requests_to_cancel,
    dies_at_its_expiry,
    takes_any_death_for_a_rejection,
    takes_a_rejection_for_a_death,
    undoes_what_was_never_claimed,
    forgets_steps_that_used_up_their_attempts,
    forgets_steps_that_crashed,
    takes_a_later_rejection_for_the_first,
    takes_a_participants_later_rejection_for_its_first,
    gives_a_command_sent_again_another_key,
    does_what_is_to_be_skipped,
    skips_what_is_to_be_done,
    undoes_what_was_skipped,
    acts_on_answers_that_are_not_recorded,
};

constexpr std::pair<bug, std::string_view> planted_bugs[] = {
    {bug::undoes_in_forward_order, "undoes in forward order"},
    {bug::forgets_unknown_steps, "forgets unknown steps"},
    {bug::loses_late_successes, "loses late successes"},
    {bug::repeats_a_step, "repeats a step after its checkpoint"},
    {bug::skips_a_step, "skips a step"},
    {bug::hands_on_no_result, "hands no result to compensations"},
    {bug::hands_on_the_first_result, "hands the first step's result to every compensation"},
    {bug::does_not_wait_for_holders, "does not wait for a claimed command"},
    {bug::never_gives_up, "never gives a compensation up"},
    {bug::ignores_requests_to_cancel, "ignores requests to cancel"},
    {bug::dies_at_its_expiry, "dies at its expiry with work done"},
    {bug::takes_any_death_for_a_rejection, "takes any death of a command for a rejection"},
    {bug::takes_a_rejection_for_a_death, "undoes what was rejected"},
    {bug::undoes_what_was_never_claimed, "undoes what was never claimed"},
    {bug::forgets_steps_that_used_up_their_attempts, "forgets steps that used up their attempts"},
    {bug::forgets_steps_that_crashed, "forgets steps that crashed when it begins to compensate"},
    {bug::takes_a_later_rejection_for_the_first, "forgets what was done before a rejection"},
    {bug::takes_a_participants_later_rejection_for_its_first, "forgets what a participant did before a rejection"},
    {bug::gives_a_command_sent_again_another_key, "gives a command that is sent again another key"},
    {bug::does_what_is_to_be_skipped, "does what is to be skipped"},
    {bug::skips_what_is_to_be_done, "skips what is to be done"},
    {bug::undoes_what_was_skipped, "undoes what was skipped"},
    {bug::acts_on_answers_that_are_not_recorded, "acts on a condition's answer that is not recorded"},
};

bug planted = bug::none;

/// The shipped rules with the planted bug. It is one type for all bugs, so that the engine is compiled once.
struct planted_rules : vouch::detail::saga_rules {
    using right = vouch::detail::saga_rules;

    static step_state state_from_reply(const entry* c) {
        if (planted == bug::takes_any_death_for_a_rejection && c != nullptr && c->state == state::dead) {
            return step_state::failed;
        }
        if (planted == bug::takes_a_rejection_for_a_death && c != nullptr && c->state == state::dead) {
            return c->epoch == 0 ? step_state::failed : step_state::unknown;
        }
        if (planted == bug::undoes_what_was_never_claimed && c != nullptr && c->state == state::dead) {
            return c->result && c->epoch == 1 ? step_state::failed : step_state::unknown;
        }
        if (planted == bug::takes_a_participants_later_rejection_for_its_first && c != nullptr && c->result &&
            c->state == state::dead) {
            return step_state::failed;
        }
        return right::state_from_reply(c);
    }
    static step_state state_from_late_reply(const entry* c) {
        const auto learned = state_from_reply(c);
        return planted == bug::loses_late_successes && learned == step_state::done ? step_state::failed : learned;
    }
    static step_state state_after_failure() {
        return planted == bug::forgets_steps_that_used_up_their_attempts ? step_state::failed
                                                                         : right::state_after_failure();
    }
    static step_state state_after_reject(bool is_first_attempt) {
        return right::state_after_reject(is_first_attempt || planted == bug::takes_a_later_rejection_for_the_first);
    }
    static step_state state_after_interruption(bool is_first_attempt) {
        return right::state_after_interruption(is_first_attempt || planted == bug::forgets_steps_that_crashed);
    }
    static bool runs_step(bool answer) {
        return (answer && planted != bug::skips_what_is_to_be_done) || planted == bug::does_what_is_to_be_skipped;
    }
    static bool records_answers() { return planted != bug::acts_on_answers_that_are_not_recorded; }
    static std::size_t next_step(std::size_t step) {
        return planted == bug::repeats_a_step && step == 1 ? step
               : planted == bug::skips_a_step && step == 0 ? step + 2
                                                           : right::next_step(step);
    }
    static bool must_wait_for(const entry& c) {
        return planted != bug::does_not_wait_for_holders && right::must_wait_for(c);
    }
    static std::optional<std::size_t> next_to_undo(const vouch::saga_progress& p) {
        const auto found = right::next_to_undo(p);
        for (std::size_t i = p.steps.size(); planted == bug::undoes_what_was_skipped && i-- > found.value_or(0);) {
            if (p.steps[i].state == step_state::skipped) {
                return i;
            }
        }
        for (std::size_t i = 0; planted == bug::undoes_in_forward_order && i < p.steps.size(); ++i) {
            if (p.steps[i].state == step_state::done || p.steps[i].state == step_state::unknown) {
                return i;
            }
        }
        if (planted == bug::forgets_unknown_steps && found && p.steps[*found].state == step_state::unknown) {
            auto without = p;
            without.steps[*found].state = step_state::failed;
            return right::next_to_undo(without);
        }
        return found;
    }
    static std::string_view result_for_undo(const vouch::saga_progress& p, std::size_t step) {
        return planted == bug::hands_on_no_result          ? std::string_view{}
               : planted == bug::hands_on_the_first_result ? right::result_for_undo(p, 0)
                                                           : right::result_for_undo(p, step);
    }
    static vouch::id command_key(const vouch::saga_progress& p) {
        const auto key = right::command_key(p);
        return planted == bug::gives_a_command_sent_again_another_key ? derive(key, std::to_string(p.tries)) : key;
    }
    static bool gives_up(std::uint32_t tries, std::uint32_t tries_max) {
        return planted != bug::never_gives_up && right::gives_up(tries, tries_max);
    }
    static bool honours_cancel() { return planted != bug::ignores_requests_to_cancel; }
    static bool compensates_at_end() { return planted != bug::dies_at_its_expiry; }
};

/// A saga without actions of its own.
vouch::saga_definition shape(const std::vector<int>& steps, std::uint32_t attempts) {
    auto d = define({.completed = "completed", .compensated = "compensated", .retry = times(attempts)});
    bool has_condition = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto name = "s" + std::to_string(i);
        const auto act = [] {};
        const auto always = [](const std::string&) { return true; };
        switch (steps[i]) {
        case 0: d.step(name, act, act); break;
        case 1: d.step(name, act); break;
        case 2: d.step(name, act, act, {.timeout = 20s}); break;
        case 3: d.command(name, {.queue = "p", .topic = "do", .undo = "undo", .timeout = 10s}); break;
        case 4: d.command(name, {.queue = "q" + name, .topic = "do", .undo = "undo", .timeout = 1h}); break;
        case 5: d.command(name, {.queue = "p", .topic = "do", .timeout = 10s}); break;
        case 6: d.step(name, act, act).when(always); break;
        case 7: d.command(name, {.queue = "p", .topic = "do", .undo = "undo", .timeout = 10s}).when(always); break;
        default: d.step(name, act, act);
        }
        if (steps[i] == 8 && has_condition) {
            d.otherwise();
        }
        has_condition = steps[i] == 6 || steps[i] == 7 || (steps[i] == 8 && has_condition);
    }
    return d.build();
}

} // namespace

TEST_CASE("verify: a saga of one step is sound, as the header's comment shows") {
    const auto order_saga = define()
                                .step(
                                    "one", [] {}, [] {})
                                .build();

    CHECK(vouch::testing::verify(order_saga).is_sound());
}

TEST_CASE("verify: the order saga is sound on every path, and there are hundreds") {
    saga_orders::services w;
    for (const auto& d : {saga_orders::in_process(w), saga_orders::with_participants()}) {
        const auto found = verify(d); // how long it may take, optimised, is bench.saga_verify's subject
        INFO(to_string(found));
        CHECK(found.is_sound());
        CHECK(found.paths >= 500);
        CHECK(found.completed > 50);
        CHECK(found.compensated > 50);
        CHECK(found.dead > 20);
        std::printf("order saga, %s: %s\n", d.has_commands() ? "with participants" : "in process",
                    to_string(found).c_str());
    }
    CHECK(w.trace.empty()); // verify does not call the definition's own actions
}

TEST_CASE("verify: sagas of one step, without compensations, and of mixed steps are sound") {
    for (const auto& steps : std::vector<std::vector<int>>{{0}, {1}, {3}, {5}, {3, 2}, {6}, {7}}) {
        const auto found = verify(shape(steps, 2));
        INFO(to_string(found));
        CHECK(found.is_sound());
    }
}

TEST_CASE("verify: participants that recognise a command by its id undo twice; those that use its key do not") {
    const auto with_participants = shape({3, 0}, 2);
    const auto by_id = verify(with_participants, {.dedup = vouch::testing::dedup_by::command_id});
    INFO(to_string(by_id));
    CHECK(by_id.violation == "step s0 is undone twice, under two keys");
    CHECK(verify(with_participants).is_sound());
}

TEST_CASE("verify: both answers of every condition are tried, with every fault in each") {
    for (const auto& steps : std::vector<std::vector<int>>{{6, 8}, {7, 8}, {0, 7}, {6, 3}}) {
        const auto with = verify(shape(steps, 2));
        INFO(to_string(with));
        CHECK(with.is_sound());
        auto never_skipped = steps;
        for (auto& s : never_skipped) {
            s = s == 6 ? 0 : s == 7 ? 3 : s;
        }
        CHECK(with.runs > verify(shape(never_skipped, 2)).runs);
    }
    planted = bug::does_what_is_to_be_skipped;
    const auto found = verify_with<planted_rules>(shape({0, 6}, 1));
    planted = bug::none;
    CHECK(found.violation == "step s1 runs although its condition is false");
    CHECK(found.path == "skips s1");
}

TEST_CASE("verify: it names the path that went wrong, and ends after runs_max") {
    planted = bug::undoes_in_forward_order;
    const auto found = verify_with<planted_rules>(shape({0, 0, 0}, 1));
    planted = bug::none;
    CHECK(!found.is_sound());
    CHECK(to_string(found).find("not sound: step s0 is undone before a later step") != std::string::npos);
    CHECK(!found.path.empty());
    CHECK(!verify(shape({0}, 1), {.runs_max = 3}).is_sound());
}

TEST_CASE("verify: every planted bug of the engine is caught, and the correct engine passes") {
    for (const auto& [what, name] : planted_bugs) {
        planted = what;
        std::string caught;
        for (const auto& steps : {std::vector{0, 3}, std::vector{3, 0, 3}, std::vector{6, 7}, std::vector{7, 0}}) {
            const auto found = caught.empty() ? verify_with<planted_rules>(shape(steps, 2)) : verification{};
            caught = caught.empty() && !found.is_sound() ? found.violation + " [" + found.path + "]" : caught;
        }
        planted = bug::none;
        CAPTURE(name);
        CHECK(!caught.empty());
        std::printf("caught: it %s: %s\n", std::string(name).c_str(), caught.c_str());
    }
    CHECK(verify_with<planted_rules>(shape({0, 3}, 2)).is_sound());
}

TEST_CASE("saga: any steps with any faults") {
    std::size_t completed = 0;
    std::size_t compensated = 0;
    std::size_t dead = 0;
    check_property("a saga ends completed, compensated or dead, with all undone that should be, in reverse", [&] {
        const auto steps = *rc::gen::mapcat(rc::gen::element<std::size_t>(1, 2, 3, 4, 5, 6, 7, 8), [](std::size_t n) {
            return rc::gen::container<std::vector<int>>(n, rc::gen::element(0, 1, 2, 3, 4, 5, 6, 7, 8));
        });
        const auto skipped = *rc::gen::container<std::vector<bool>>(8, rc::gen::arbitrary<bool>());
        const auto attempts = *rc::gen::element<std::uint32_t>(1, 2, 3);
        const auto option = rc::gen::weightedElement<std::size_t>(
            {{60, 0}, {2, 1}, {2, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 9}, {2, 10}});
        const auto plans = *rc::gen::container<std::vector<std::vector<std::size_t>>>(
            20, rc::gen::container<std::vector<std::size_t>>(100, option));
        for (const auto& options : plans) {
            fault_plan faults(options, 8);
            const auto result =
                vouch::testing::detail::saga_run<>(shape(steps, attempts), faults, {.skipped = skipped}).run();
            completed += result.end == saga_end::completed ? 1U : 0U;
            compensated += result.end == saga_end::compensated ? 1U : 0U;
            dead += result.end == saga_end::dead ? 1U : 0U;
            if (!result.violation.empty()) {
                RC_FAIL(result.violation + " [" + result.path + "]");
            }
        }
    });
    std::printf("sagas with faults: %zu completed, %zu compensated, %zu dead\n", completed, compensated, dead);
    CHECK(completed > 100);
    CHECK(compensated > 300);
    CHECK(dead > 50);
}

} // namespace saga_verify_test
