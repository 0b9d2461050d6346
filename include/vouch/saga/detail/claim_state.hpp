// SPDX-License-Identifier: MIT
// The state of one claim of one saga, and the ways in which a claim ends. The forward pass, the compensation pass and
// the command channel all work on it.
//
// A claim is handled by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/detail/caught_exception.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// How long a saga that cannot continue now, or that waits for a command that does not wake it, waits before it is
/// claimed again.
inline constexpr duration saga_recheck_interval = std::chrono::minutes{1};

template <class Store>
class claim_state {
  public:
    claim_state(Store& in, const saga_definition& what, saga_progress at, vouch::delivery& d)
        : store(in), definition(what), delivery(d), now(d.now()), progress(std::move(at)) {
        if (progress.owner != entry().id) {
            take_over();
        }
        if (progress.steps.empty()) {
            begin_step(0);
        }
    }
    claim_state(const claim_state&) = delete;
    claim_state& operator=(const claim_state&) = delete;

    Store& store;
    const saga_definition& definition;
    vouch::delivery& delivery;
    time_point now;
    saga_progress progress;
    bool is_changed = false; ///< what has been learned since the last checkpoint must be kept before an action runs
    bool is_resumed = false; ///< this entry resumes a dead one and has written no checkpoint yet
    bool is_unsaved = false; ///< this entry is the saga's first and has written no checkpoint yet

    [[nodiscard]] const vouch::entry& entry() const noexcept { return delivery.entry(); }
    [[nodiscard]] const saga_step& step() const { return definition.steps[progress.at]; }
    [[nodiscard]] step_record& record() { return progress.steps[progress.at]; }
    [[nodiscard]] const retry_policy& policy() const { return definition.retry_of(step()); }

    /// Makes `next` the current step.
    void begin_step(std::size_t next) {
        progress.at = next;
        progress.since = now;
        if (next < definition.steps.size() && progress.steps.size() == next) {
            const auto& begun = definition.steps[next];
            progress.steps.push_back(
                {.name = begun.name, .state = begun.condition ? step_state::undecided : step_state::begun});
        }
    }

    /// Whether no earlier claim can have called the current action. A checkpoint sets attempts and lapses to 0; since
    /// then every claim but this one was released unhandled, because any other end leaves a trace in one of the two.
    /// What the entries before a resume did is not known.
    [[nodiscard]] bool is_first_attempt() const noexcept {
        return !is_resumed && entry().attempts == 1 && entry().lapses == 0;
    }
    [[nodiscard]] bool is_expired(time_point at) const noexcept {
        return entry().expires_at && at >= *entry().expires_at;
    }
    /// Whether the progress is too large to continue forward. Some room is reserved, so that compensating always fits.
    [[nodiscard]] bool is_too_large() const {
        constexpr std::size_t room = 512;
        return encode_progress(progress).size() + room > store.capabilities().limits.progress_max;
    }

    /// The exception being handled. Call it inside a catch clause.
    [[nodiscard]] caught_exception current_exception() {
        auto why = caught_exception::current();
        delivery.explain(why.text);
        return why;
    }

    // Ways to end a claim.

    [[nodiscard]] saga_outcome checkpoint(time_point due_at) {
        return {advance{.progress = encode_progress(progress), .at = due_at}};
    }

    [[nodiscard]] saga_outcome wait_until(time_point at) {
        return is_changed ? checkpoint(at) : saga_outcome{release{.at = at}};
    }

    /// Retries the current action if the step's policy allows it; otherwise calls `give_up(code)`.
    template <class GiveUp>
    [[nodiscard]] saga_outcome retry_or(const caught_exception& why, GiveUp&& give_up) {
        if (why.is_permanent) {
            return give_up(why.code);
        }
        const auto attempts = entry().attempts + progress.tries;
        const auto delay = delay_after(policy(), entry().id, attempts);
        if (attempts >= attempts_max_of(entry(), policy()) || !delay) {
            return give_up(why.code);
        }
        const auto at = later(delivery.time(), *delay);
        if (progress.direction == saga_direction::back && now < at && is_expired(at) && !is_expired(now)) {
            // Compensation continues after the expiry; the runner would turn a retry at that time into `expired`.
            progress.tries = attempts;
            return checkpoint(at);
        }
        return {retry{.error = why.code, .at = at}};
    }

    /// Ends the saga with the tag `how`, and emits `topic` unless it is empty.
    [[nodiscard]] saga_outcome finish(const std::string& how, const std::string& topic) {
        if (!topic.empty()) {
            header_list headers{{std::string(saga_header), to_string(progress.origin)}};
            if (!progress.reason.empty()) {
                headers.emplace_back("saga-reason", progress.reason);
            }
            delivery.emit({.queue = definition.options.queue,
                           .topic = topic,
                           .payload = delivery.payload(),
                           .headers = std::move(headers)});
            try {
                validate(delivery.emitted(), store.capabilities());
            } catch (const error& e) { // the steps' work is done, so the saga waits until the topic is bound
                delivery.tag(e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission");
                return {release{.at = later(now, saga_recheck_interval)}};
            }
        }
        delivery.tag(how);
        return {succeed{.result = final_progress()}, false, progress.origin};
    }

  private:
    void take_over() {
        progress.origin = progress.origin.is_nil() ? first_entry_of(store, entry()) : progress.origin;
        is_resumed = !progress.owner.is_nil() || progress.origin != entry().id;
        progress.owner = entry().id;
        progress.tries = 0;
        progress.since = now;
        is_unsaved = !is_resumed; // a checkpoint would hide that the saga was resumed
    }

    /// The progress at the end, without the steps' results if it is larger than a result may be.
    [[nodiscard]] std::string final_progress() {
        auto bytes = encode_progress(progress);
        if (bytes.size() > store.capabilities().limits.result_max) {
            for (auto& s : progress.steps) {
                s.result.clear();
            }
            bytes = encode_progress(progress);
        }
        return bytes;
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch
