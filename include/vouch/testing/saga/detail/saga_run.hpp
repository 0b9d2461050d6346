// SPDX-License-Identifier: MIT
// One simulated run of one saga, on the shipped runner and engine, step by step through the runner's phases and in
// simulated time. Processes crash and restart on the same store, participants are unavailable, replies are late,
// cancellation is requested at any moment, time jumps past the expiry, and whatever may be purged is purged at once.
//
// The same definition and fault plan give the same run. Whatever a saga must never do is reported as a violation.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/memory.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/rules.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/route.hpp>
#include <vouch/testing/saga/detail/crashing_store.hpp>
#include <vouch/testing/saga/detail/end_check.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>
#include <vouch/testing/saga/detail/held_batches.hpp>
#include <vouch/testing/saga/detail/simulated_steps.hpp>
#include <vouch/testing/saga/detail/step_effects.hpp>
#include <vouch/testing/saga/detail/stored_saga.hpp>
#include <vouch/testing/saga/detail/violation.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

struct run_result {
    saga_end end = saga_end::none; ///< before any resume
    std::string path{};            ///< the faults that happened
    std::string violation{};       ///< empty: there was none
    std::uint64_t calls = 0;       ///< a hash of the store calls
};

template <class Rules = vouch::detail::saga_rules>
class saga_run {
  public:
    saga_run(const saga_definition& given, fault_plan& faults, run_options how = {})
        : how_(complete(std::move(how), given)), faults_(faults),
          process_(std::make_shared<simulated_process>(simulated_process{.faults = faults})), given_(given),
          effects_(given_, *process_, how_.skipped, wrong_), steps_(given_, how_, effects_, saga_, wrong_),
          definition_(steps_.definition()), outbox_(store_, options_) {
        restart();
        for (const auto& s : given_.steps) {
            if (s.is_remote()) {
                queues_.insert(s.queue);
                timeout_max_ = std::max(timeout_max_, s.timeout);
            }
        }
        lease_ = std::max<duration>(std::chrono::minutes{5}, 4 * timeout_max_);
    }
    saga_run(const saga_run&) = delete;
    saga_run& operator=(const saga_run&) = delete;

    [[nodiscard]] run_result run() {
        auto begun = definition_.begin(outbox_, {.queue = saga_queue}, std::string{});
        const bool is_short = faults_.choose("expiry", {"", "before any retry"}) == 1;
        begun.expires_at = clock_() + (is_short ? duration{1} : lifetime);
        saga_.add(outbox_.emit(begun).front().id);
        const auto end = run_to_end();
        if (end == saga_end::dead && wrong_.text().empty()) {
            repair_and_resume();
        }
        return {end, path(), wrong_.text(), process_->calls};
    }

  private:
    using store_type = crashing_store;
    using runner_type = runner<store_type>;
    static constexpr const char* saga_queue = "sagas";
    static constexpr duration lifetime = std::chrono::hours{24 * 365};
    static constexpr duration moment = std::chrono::seconds{1};
    static constexpr std::size_t turns_max = 2000;

    /// The store handle and the routes of one process, from its start to its crash.
    struct process_life {
        process_life(store_type in, const emitter_options& options) : store(std::move(in)), outbox(store, options) {}
        store_type store;
        vouch::outbox<store_type> outbox;
        router<store_type> sagas{outbox};
        router<store_type> participants{outbox};
    };

    /// Starts another process on the same work. Earlier lives are kept: runners that hold a batch refer to them.
    void restart() {
        process_->has_crashed = false;
        lives_.push_back(std::make_unique<process_life>(store_type(store_, process_), options_));
        auto& life = *lives_.back();
        vouch::detail::add_saga<Rules>(life.sagas, {definition_});
        life.participants.on(
            "#", [this](delivery& d) { return steps_.handle_command(d); }, retry_policy{.backoff = fixed{}});
    }

    /// Runs until the saga has ended and no batch is held, and checks the end.
    [[nodiscard]] saga_end run_to_end() {
        for (std::size_t turns = 0; turns < turns_max; ++turns) {
            bool busy = settle_held() || serve(saga_queue);
            for (const auto& queue : queues_) {
                busy = busy || (!is_unavailable(queue) && serve(queue));
            }
            if (const auto end = find_end(); end != saga_end::none && held_.empty()) {
                end_check(given_, effects_, store_, wrong_).run(*ended_, is_cancelled_);
                return end;
            }
            purge_all();
            if (!busy && !advance_clock()) {
                break;
            }
        }
        wrong_.report("the saga never ends");
        return saga_end::none;
    }

    /// Claims, handles and settles what is due in a queue; the process may crash anywhere in between. Returns false if
    /// nothing is due.
    bool serve(const std::string& queue) {
        const auto due = store_.next_due(queue);
        if (!due || *due > clock_()) {
            return false;
        }
        const bool serves_sagas = queue == saga_queue;
        if (serves_sagas) {
            maybe_interfere("before a claim");
        } else if (faults_.choose(queue, {"", "participant unavailable"}) == 1) {
            unavailable_until_[queue] = clock_() + timeout_max_ + moment;
            return true;
        }
        auto& life = *lives_.back();
        auto by = std::make_unique<runner_type>(life.outbox, serves_sagas ? life.sagas : life.participants,
                                                runner_options{.queue = queue, .batch_size = 1, .lease = lease_});
        std::vector<entry> claimed;
        try {
            claimed = by->claim();
            auto batch = by->handle_all(claimed);
            if (const auto until = serves_sagas ? saga_held_until(batch) : reply_held_until(batch)) {
                effects_.lose_claims(claimed);
                held_.add({std::move(by), std::move(batch), *until});
                return true;
            }
            static_cast<void>(by->settle(batch));
        } catch (const error&) { // the only error of this store is that its process has crashed
        }
        if (process_->has_crashed) {
            effects_.lose_claims(claimed.empty() ? claimed_in(queue) : claimed);
            restart();
        }
        return true;
    }

    /// A runner of sagas that is slower than its lease. Cancellation may also be requested just before the settle.
    [[nodiscard]] std::optional<time_point> saga_held_until(const typename runner_type::batch& batch) {
        if (batch.empty() || process_->has_crashed) {
            return std::nullopt;
        }
        maybe_interfere("before a settle");
        const bool is_slow = faults_.choose("saga's runner", {"", "slower than its lease"}) == 1;
        return is_slow ? std::optional{clock_() + lease_ + moment} : std::nullopt;
    }
    [[nodiscard]] std::optional<time_point> reply_held_until(const typename runner_type::batch& batch) {
        const auto reply = effects_.take_reply_time();
        if (batch.empty() || process_->has_crashed || reply == reply_time::at_once) {
            return std::nullopt;
        }
        return clock_() + (reply == reply_time::after_timeout ? timeout_max_ : lease_) + moment;
    }
    bool settle_held() {
        auto due = held_.take_due(clock_());
        if (!due) {
            return false;
        }
        try {
            static_cast<void>(due->by->settle(due->batch));
        } catch (const error&) {
            restart();
        }
        return true;
    }

    /// An operator or the clock interferes: at most twice in a run.
    void maybe_interfere(std::string_view when) {
        enum : std::size_t { nothing, cancelled, expired, abandoned };
        if (interferences_left_ == 0) {
            return;
        }
        const auto what = faults_.choose(when, {"", "cancel requested", "expired", "abandoned and resumed"});
        interferences_left_ -= what == nothing ? 0 : 1;
        if (what == cancelled) {
            const auto answer =
                transact(store_, [&](auto& tx) { return request_cancel(tx, saga_.current(), clock_()); });
            is_cancelled_ = is_cancelled_ || answer == verdict::applied || answer == verdict::repeated;
        } else if (what == expired) {
            clock_.pass(lifetime);
        } else if (what == abandoned) {
            abandon();
        }
    }

    /// Cancels the saga's entry, unless it is claimed, and resumes the saga.
    void abandon() {
        const auto before = saga_.find();
        const auto next = transact(store_, [&](auto& tx) {
            static_cast<void>(tx.cancel(saga_.current(), "abandoned", clock_()));
            return outbox_.resume(tx, saga_.current());
        });
        if (before && next.what == receipt::kind::inserted) {
            effects_.lose_claims({*before});
            saga_.add(next.id);
        }
    }

    /// An operator removes the cause of all faults and resumes the dead saga, which must then end compensated.
    void repair_and_resume() {
        faults_.stop();
        effects_.repair();
        unavailable_until_.clear();
        const auto next = outbox_.resume(saga_.current());
        saga_.add(next.id);
        ended_.reset();
        if (run_to_end() != saga_end::compensated) {
            wrong_.report("the resumed saga does not end compensated");
        }
    }

    [[nodiscard]] bool is_unavailable(const std::string& queue) const {
        const auto found = unavailable_until_.find(queue);
        return found != unavailable_until_.end() && found->second > clock_();
    }

    /// What was claimed by a commit after which the process crashed.
    [[nodiscard]] std::vector<entry> claimed_in(const std::string& queue) const {
        auto wanted = query::live(queue);
        wanted.state = state::claimed;
        return store_.list(wanted);
    }

    void purge_all() {
        static_cast<void>(transact(store_, [&](auto& tx) {
            const auto before = clock_() + duration{1};
            auto purged = tx.purge({.queue = saga_queue, .before = before, .state = state::succeeded});
            for (const auto& queue : queues_) {
                purged += tx.purge({.queue = queue, .before = before});
            }
            return purged;
        }));
    }

    /// Sets the clock to the next moment at which anything can happen. Returns false if there is none.
    [[nodiscard]] bool advance_clock() {
        auto next = held_.next();
        const auto consider = [&](std::optional<time_point> at) { next = at && (!next || *at < *next) ? at : next; };
        consider(store_.next_due(saga_queue));
        for (const auto& queue : queues_) {
            const auto due = store_.next_due(queue);
            consider(due && is_unavailable(queue) ? std::max(*due, unavailable_until_.at(queue)) : due);
        }
        if (next && *next > clock_()) {
            clock_.set(*next);
        }
        return next.has_value();
    }

    [[nodiscard]] saga_end find_end() {
        if (auto e = saga_.find(); e && is_terminal(e->state)) {
            ended_ = std::move(e); // it may be purged next
        }
        if (!ended_) {
            return saga_end::none;
        }
        for (const auto& c : saga_.commands()) {
            if (is_live(c.state)) {
                wrong_.report("the saga has ended while one of its commands is live");
            }
        }
        effects_.end();
        return end_of(*ended_);
    }

    /// The steps that are skipped and the faults that happened, as text.
    [[nodiscard]] std::string path() const {
        std::string out;
        for (std::size_t i = 0; i < given_.steps.size(); ++i) {
            out += how_.skipped[i] ? (out.empty() ? "skips " : "; skips ") + given_.steps[i].name : std::string{};
        }
        return out + (out.empty() || faults_.path().empty() ? "" : "; ") + faults_.path();
    }

    run_options how_;
    fault_plan& faults_;
    std::shared_ptr<simulated_process> process_;
    manual_clock clock_{};
    memory::store store_{};
    saga_definition given_;
    first_violation wrong_{};
    stored_saga saga_{store_};
    step_effects effects_;
    simulated_steps steps_;
    saga_definition definition_;
    emitter_options options_{
        .clock = clock_, .ids = counting_ids(), .bindings = bindings{}.bind("#", end_topics_queue)};
    outbox<memory::store> outbox_;
    std::vector<std::unique_ptr<process_life>> lives_{};
    std::set<std::string> queues_{}; ///< of the participants
    duration timeout_max_{};
    duration lease_{};
    std::optional<entry> ended_{}; ///< the saga's entry as it ended
    held_batches<store_type> held_{};
    std::map<std::string, time_point> unavailable_until_{};
    int interferences_left_ = 2;
    bool is_cancelled_ = false;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
