// SPDX-License-Identifier: MIT
// A claimed saga on its way back: what was done or may have been done is undone in reverse, by an action here or by a
// compensating command, until nothing is left or a compensation is stuck. And the ways in which any claim of a saga
// ends.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/command_channel.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>

namespace vouch {
inline namespace v0 {

/// What a claim of a saga comes to.
struct saga_ruling {
    vouch::outcome outcome{};
    bool completes = false; ///< then no request to cancel may have come in the meantime
    id origin{};

    operator vouch::outcome() const { return outcome; } // NOLINT: implicit, as a handler's result
};

namespace detail {

template <class Store, class Rules>
class retreat : protected commanding<Store> {
    using base = commanding<Store>;

  protected:
    using base::call_back, base::caught_here, base::definition_, base::delivery_, base::entry, base::find_command,
        base::forget_command;
    using base::look_again, base::moved_, base::now_, base::p_, base::record, base::send, base::step, base::store_;
    using base::undo_fits;

    retreat(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : base(store, what, std::move(at), d) {}

    [[nodiscard]] saga_ruling go_back() {
        if (p_.is_waiting()) {
            const bool is_forward = record().state == step_state::begun;
            if (auto waiting = is_forward ? hear_late() : hear_undo()) {
                return std::move(*waiting);
            }
        }
        auto next = Rules::next_to_undo(p_);
        while (next && !definition_.steps[*next].has_undo()) {
            p_.steps[*next].state = step_state::kept;
            next = Rules::next_to_undo(p_);
        }
        if (!next) {
            // That it has turned round is kept before anything that may have to wait for its topic to be bound.
            const bool must_wait = moved_ && !definition_.options.compensated.empty();
            return must_wait ? checkpoint(now_) : finish("compensated", definition_.options.compensated);
        }
        if (p_.at != *next) {
            p_.at = *next;
            p_.tries = 0;
            moved_ = true;
        }
        if (step().is_remote()) {
            return send_undo();
        }
        return moved_ ? checkpoint(now_) : run_undo();
    }

    /// The forward command that was live when the saga turned round: it is called back, and waited for if somebody
    /// holds it. Nothing, when it is known what became of it.
    [[nodiscard]] std::optional<saga_ruling> hear_late() {
        const auto command = call_back(p_.reason);
        if (command && Rules::must_wait_for(*command)) {
            return wait_until(look_again(*command, command->lease_until.value_or(now_)));
        }
        record().state = Rules::learned_late(command ? &*command : nullptr);
        if (record().state == step_state::done) {
            record().result = command->result.value_or(std::string{});
            if (is_too_large() || !undo_fits(record().result)) {
                record().result.clear();
                record().state = step_state::unknown;
            }
        }
        forget_command();
        return std::nullopt;
    }

    /// Nothing, when the compensating command has succeeded.
    [[nodiscard]] std::optional<saga_ruling> hear_undo() {
        auto command = find_command();
        if (command && is_live(command->state) && now_ < *p_.deadline) {
            return wait_until(look_again(*command, *p_.deadline));
        }
        command = call_back("timed_out");
        if (command && is_live(command->state)) {
            return wait_until(look_again(*command, command->lease_until.value_or(now_)));
        }
        if (command && command->state == state::succeeded) {
            record().state = step_state::undone;
            forget_command();
            return std::nullopt;
        }
        if (is_resumed_) { // what the dead one gave up over is not held against this one
            p_.tries = 0;
            forget_command();
            return std::nullopt;
        }
        const auto code = !command ? std::string("reply_lost") : command->last_error;
        const auto& policy = definition_.retry_of(step());
        const bool has_rejected = command && command->result;
        p_.tries += 1;
        const auto delay = delay_after(policy, entry().id, p_.tries);
        if (has_rejected || Rules::gives_up(p_.tries, attempts_max_of(entry(), policy)) || !delay) {
            return saga_ruling{bury{.error = code}};
        }
        forget_command();
        return checkpoint(later(now_, *delay));
    }

    /// If it cannot be sent, what has been learned is kept first, so that a dead saga shows where it is stuck.
    [[nodiscard]] saga_ruling send_undo() {
        try {
            step_call call(delivery_, p_, p_.at, Rules::handed_to_undo(p_, p_.at));
            if (!send(step().undo_topic, step().undo(call), Rules::key_of(p_))) {
                return moved_ ? checkpoint(now_) : saga_ruling{bury{.error = "invalid_command"}};
            }
        } catch (...) {
            const auto why = caught_here();
            return moved_ ? checkpoint(now_)
                          : try_again_or(why, [](const std::string& code) { return saga_ruling{bury{.error = code}}; });
        }
        return checkpoint(*p_.deadline);
    }

    [[nodiscard]] saga_ruling run_undo() {
        const auto stuck = [](const std::string& code) { return saga_ruling{bury{.error = code}}; };
        if (entry().attempts + p_.tries > attempts_max_of(entry(), definition_.retry_of(step()))) {
            return stuck("attempts_exhausted");
        }
        try {
            step_call call(delivery_, p_, p_.at, Rules::handed_to_undo(p_, p_.at));
            static_cast<void>(step().undo(call));
        } catch (...) {
            return try_again_or(caught_here(), stuck);
        }
        record().state = step_state::undone;
        return checkpoint(now_);
    }

    [[nodiscard]] bool is_undoing_here() const {
        return !p_.is_waiting() && p_.at < definition_.steps.size() && !definition_.steps[p_.at].is_remote();
    }

    // Ways to end a claim.

    [[nodiscard]] saga_ruling wait_until(time_point at) {
        return moved_ ? checkpoint(at) : saga_ruling{release{.at = at}};
    }

    template <class Else>
    [[nodiscard]] saga_ruling try_again_or(const caught& why, Else&& otherwise) {
        if (why.is_permanent) {
            return otherwise(why.code);
        }
        const auto& policy = definition_.retry_of(step());
        const auto attempts = entry().attempts + p_.tries;
        const auto delay = delay_after(policy, entry().id, attempts);
        if (attempts >= attempts_max_of(entry(), policy) || !delay) {
            return otherwise(why.code);
        }
        const auto at = later(delivery_.time(), *delay);
        if (p_.direction == saga_direction::back && now_ < at && is_expired(at) && !is_expired(now_)) {
            // A compensation goes on after the expiry; a retry would be the runner's last.
            p_.tries = attempts;
            return checkpoint(at);
        }
        return {retry{.error = why.code, .at = at}};
    }

    [[nodiscard]] saga_ruling checkpoint(time_point at) { return {advance{.progress = encode_progress(p_), .at = at}}; }

    /// On the way forward some room is left, so that turning round always fits.
    [[nodiscard]] bool is_too_large() const {
        constexpr std::size_t room = 512;
        return encode_progress(p_).size() + room > store_.capabilities().limits.progress_max;
    }

    [[nodiscard]] saga_ruling finish(const std::string& how, const std::string& topic) {
        if (!topic.empty()) {
            header_list headers{{std::string(saga_header), to_string(p_.origin)}};
            if (!p_.reason.empty()) {
                headers.emplace_back("saga-reason", p_.reason);
            }
            delivery_.emit({.queue = definition_.options.queue,
                            .topic = topic,
                            .payload = delivery_.payload(),
                            .headers = std::move(headers)});
            try {
                validate(delivery_.emitted(), store_.capabilities());
            } catch (const error& e) { // work is done: it waits for somebody to bind the topic
                delivery_.tag(e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission");
                return {release{.at = later(now_, saga_look_again)}};
            }
        }
        delivery_.tag(how);
        return {succeed{.result = last_words()}, false, p_.origin};
    }

    /// The progress as it is at the end, without results if they are too much.
    [[nodiscard]] std::string last_words() {
        auto bytes = encode_progress(p_);
        if (bytes.size() > store_.capabilities().limits.result_max) {
            for (auto& s : p_.steps) {
                s.result.clear();
            }
            bytes = encode_progress(p_);
        }
        return bytes;
    }

    [[nodiscard]] bool is_expired(time_point at) const noexcept {
        return entry().expires_at && at >= *entry().expires_at;
    }

    bool is_resumed_ = false; ///< by this entry, from one that is dead
};

} // namespace detail
} // namespace v0
} // namespace vouch
