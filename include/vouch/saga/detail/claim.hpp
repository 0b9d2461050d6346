// SPDX-License-Identifier: MIT
// One claim of one saga: where it stands is read from the entry's progress, one thing is done, and the outcome says how
// it goes on. Decisions are in `rules.hpp`.
//
// What is decided without executing an action may be decided anew, so it shares a claim with what comes next; an action
// is followed by a checkpoint, and so is the answer of a condition, which is not the engine's to decide anew. All that
// is read of a command is final once it has ended, and one that ends later wakes the saga, also while it is claimed:
// nothing read outside the settling transaction can be slept through.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/saga/cancel.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/compensation_pass.hpp>
#include <vouch/saga/origin.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

/// One claim of one saga.
template <class Store, class Rules>
class saga_claim : retreat<Store, Rules> {
    using base = retreat<Store, Rules>;
    using base::caught_here, base::checkpoint, base::definition_, base::delivery_, base::entry, base::find_command,
        base::finish;
    using base::forget_command, base::go_back, base::is_expired, base::is_resumed_, base::is_too_large;
    using base::is_undoing_here, base::look_again, base::moved_, base::now_, base::p_, base::record, base::send;
    using base::step, base::store_, base::try_again_or, base::undo_fits;

  public:
    saga_claim(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : base(store, what, std::move(at), d) {
        if (p_.owner != entry().id) {
            p_.origin = p_.origin.is_nil() ? first_entry_of(store_, entry()) : p_.origin;
            is_resumed_ = !p_.owner.is_nil() || p_.origin != entry().id;
            p_.owner = entry().id;
            p_.tries = 0;
            p_.since = now_;
            is_unsaved_ = !is_resumed_; // a checkpoint would hide that it was resumed
        }
        if (p_.steps.empty()) {
            come_to(0);
        }
    }

    [[nodiscard]] saga_ruling go_on() {
        if (p_.direction == saga_direction::back) {
            return go_back();
        }
        if (Rules::heeds_cancel() && store_.find(cancel_mark_of(p_.origin))) {
            return turn_round("cancelled");
        }
        return go_forward();
    }

    /// Time or attempts have run out for the entry as a whole.
    [[nodiscard]] saga_ruling end(ending why) {
        const std::string code = why == ending::expired ? "expired" : "attempts_exhausted";
        if (!Rules::turns_round_at_the_end()) {
            return {bury{.error = code}};
        }
        if (p_.direction == saga_direction::forward) {
            return turn_round(code);
        }
        if (why == ending::exhausted && is_undoing_here()) {
            return {bury{.error = code}};
        }
        return go_back();
    }

  private:
    // Forward.

    [[nodiscard]] saga_ruling go_forward() {
        if (p_.at == definition_.steps.size()) {
            return complete();
        }
        if (p_.is_waiting()) {
            return hear_reply();
        }
        if (record().state == step_state::undecided) {
            return choose();
        }
        return step().is_remote() ? send_forward() : run_forward();
    }

    /// Asks the step's condition. A definition that has lost it does the step.
    [[nodiscard]] saga_ruling choose() {
        bool answer = true;
        try {
            answer = !step().condition || step().condition(delivery_, step_results(p_));
        } catch (...) {
            return try_again_or(caught_here(),
                                [&](const std::string& code) { return fail_step(step_state::failed, code); });
        }
        if (Rules::is_chosen(answer)) {
            record().state = step_state::begun;
        } else {
            record().state = step_state::skipped;
            delivery_.tag("skipped " + step().name);
            come_to(Rules::after(p_.at));
            if (is_too_large()) { // turning round must always fit
                p_.steps.resize(p_.at);
                p_.at -= 1;
                return turn_round("progress_too_large");
            }
        }
        return Rules::records_answers() ? checkpoint(now_) : go_forward();
    }

    [[nodiscard]] saga_ruling run_forward() {
        if (is_unsaved_ && step().timeout > duration::zero()) {
            return checkpoint(now_); // else its time would begin anew with every claim
        }
        const auto& policy = definition_.retry_of(step());
        if (entry().attempts > attempts_max_of(entry(), policy)) {
            return fail_step(Rules::learned_from_failing(), "attempts_exhausted");
        }
        if (is_too_late(now_) && !is_first_try()) {
            return fail_step(Rules::learned_from_failing(), "timed_out");
        }
        try {
            step_call call(delivery_, p_, p_.at, {});
            record().result = step().forward(call);
        } catch (...) {
            const auto why = caught_here();
            if (why.is_permanent) {
                return fail_step(Rules::learned_from_rejecting(is_first_try()), why.code);
            }
            auto next = after_failure(entry(), why.code, policy, delivery_.time());
            const auto* const again = std::get_if<retry>(&next);
            if (again == nullptr) {
                return fail_step(Rules::learned_from_failing(), why.code);
            }
            if (is_expired(again->at)) { // there would be no further try
                return fail_step(Rules::learned_from_failing(), "expired");
            }
            return is_too_late(again->at) ? fail_step(Rules::learned_from_failing(), "timed_out")
                                          : saga_ruling{std::move(next)};
        }
        record().state = step_state::done;
        come_to(Rules::after(p_.at));
        return is_too_large() ? drop_result() : checkpoint(now_);
    }

    [[nodiscard]] saga_ruling send_forward() {
        try {
            step_call call(delivery_, p_, p_.at, {});
            if (!undo_fits(std::nullopt) || !send(step().topic, step().forward(call), Rules::key_of(p_))) {
                return fail_step(step_state::failed, "invalid_command");
            }
        } catch (...) { // nothing has been sent
            return try_again_or(caught_here(),
                                [&](const std::string& code) { return fail_step(step_state::failed, code); });
        }
        return checkpoint(*p_.deadline);
    }

    [[nodiscard]] saga_ruling hear_reply() {
        const auto command = find_command();
        if (command && is_live(command->state)) {
            return now_ < *p_.deadline ? saga_ruling{release{.at = look_again(*command, *p_.deadline)}}
                                       : turn_round("timed_out");
        }
        const auto learned = Rules::learned_from(command ? &*command : nullptr);
        forget_command();
        if (learned != step_state::done) {
            return fail_step(learned, !command ? "reply_lost" : command->last_error);
        }
        record().state = learned;
        record().result = command->result.value_or(std::string{});
        if (!undo_fits(record().result)) {
            record().result.clear();
            return fail_step(step_state::unknown, "result_too_large");
        }
        come_to(Rules::after(p_.at));
        if (is_too_large()) {
            return drop_result();
        }
        const bool executes =
            p_.at < definition_.steps.size() && !step().is_remote() && record().state == step_state::begun;
        return executes ? checkpoint(now_) : go_forward();
    }

    [[nodiscard]] saga_ruling complete() {
        auto out = finish("completed", definition_.options.completed);
        out.completes = std::holds_alternative<succeed>(out.outcome) && Rules::heeds_cancel();
        return out;
    }

    // Turning.

    [[nodiscard]] saga_ruling fail_step(step_state learned, const std::string& code) {
        record().state = learned;
        return turn_round(code);
    }

    [[nodiscard]] saga_ruling turn_round(const std::string& reason) {
        p_.direction = saga_direction::back;
        p_.reason = error_code(reason);
        p_.tries = 0;
        const bool is_at_a_step = p_.at < p_.steps.size() && !p_.is_waiting();
        if (is_at_a_step && record().state == step_state::undecided) {
            record().state = step_state::failed;
        } else if (is_at_a_step && record().state == step_state::begun) {
            const bool may_have_run = !step().is_remote();
            record().state = may_have_run ? Rules::learned_from_claims(is_first_try()) : step_state::failed;
        }
        moved_ = true;
        return go_back();
    }

    /// A result that cannot be kept cannot be handed to its compensation either: the step is undone as an unknown one.
    [[nodiscard]] saga_ruling drop_result() {
        p_.steps.resize(p_.at); // without the step it had come to, of which nothing has begun
        p_.at -= 1;
        record().result.clear();
        return fail_step(step_state::unknown, "progress_too_large");
    }

    void come_to(std::size_t next) {
        p_.at = next;
        p_.since = now_;
        if (next < definition_.steps.size() && p_.steps.size() == next) {
            const auto& coming = definition_.steps[next];
            p_.steps.push_back(
                {.name = coming.name, .state = coming.condition ? step_state::undecided : step_state::begun});
        }
    }

    /// Whether no earlier claim can have called the action whose turn it is. A checkpoint sets attempts and lapses to
    /// 0; since then every claim but this one was handed back untouched, because any other way to end leaves a trace in
    /// one of the two. What the entries did that this one was resumed from is not known.
    [[nodiscard]] bool is_first_try() const noexcept {
        return !is_resumed_ && entry().attempts == 1 && entry().lapses == 0;
    }
    [[nodiscard]] bool is_too_late(time_point at) const {
        return step().timeout > duration::zero() && at >= later(p_.since, step().timeout);
    }

    bool is_unsaved_ = false; ///< there is no checkpoint of this entry's own yet
};

} // namespace detail
} // namespace v0
} // namespace vouch
