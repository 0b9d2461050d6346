// SPDX-License-Identifier: MIT
// One course of events of one saga, played by the shipped runner and engine through the runner's phases, in simulated
// time: processes die and are restarted on the same work, participants are away, answers come late, requests to cancel
// come at any moment, time jumps past the expiry, and everything that may be purged is purged at once.
//
// Same definition and choices, same trial. A complaint says what a saga must never do.
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
#include <vouch/contract/query.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/memory.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/saga/cancel.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/saga.hpp>
#include <vouch/testing/saga/detail/crashing_store.hpp>
#include <vouch/testing/saga/detail/end_check.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>
#include <vouch/testing/saga/detail/step_effects.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

struct trial_result {
    saga_end end = saga_end::none;
    std::string path{};      ///< the trouble there was
    std::string complaint{}; ///< empty: all is as it should be
    std::uint64_t calls = 0; ///< stands for the sequence of store calls
};

/// What a participant knows a command by that it has carried out already. By its id alone it acts again on a
/// compensating command that is sent again.
enum class dedup_by : std::uint8_t { key, command_id };

struct trial_options {
    dedup_by dedup = dedup_by::key;
    std::vector<bool> skipped{}; ///< by number: steps whose condition says no; that of an `otherwise` follows from it
};

template <class Rules = vouch::detail::saga_rules>
class saga_trial {
  public:
    saga_trial(const saga_definition& shape, choices& fate, trial_options how = {})
        : how_(completed(std::move(how), shape)), process_(std::make_shared<process>(process{.fate = fate})),
          fate_(fate), shape_(shape), world_(shape_, fate, *process_, how_.skipped), definition_(acted_out(shape)),
          outbox_({.clock = clock_, .ids = counting_ids(), .bindings = bindings{}.bind("#", "ends")}) {
        restart();
        for (const auto& s : shape_.steps) {
            if (s.is_remote()) {
                queues_.insert(s.queue);
                longest_ = std::max(longest_, s.timeout);
            }
        }
        lease_ = std::max<duration>(std::chrono::minutes{5}, 4 * longest_);
    }
    saga_trial(const saga_trial&) = delete;
    saga_trial& operator=(const saga_trial&) = delete;

    [[nodiscard]] trial_result run() {
        auto begun = definition_.begin(outbox_, sagas, std::string{});
        const bool is_short = fate_.choose("expiry", {"", "before any second try"}) == 1;
        begun.expires_at = start_ + (is_short ? duration{1} : lifetime);
        saga_ = outbox_.emit(work_, begun).front().id;
        entries_ = {saga_};
        auto end = play();
        check(end);
        if (end == saga_end::dead && world_.complaint().empty()) {
            resume_it();
        }
        return {end, path(), world_.complaint(), process_->calls};
    }

  private:
    using store_type = mortal_store;
    using runner_type = runner<store_type>;
    static constexpr const char* sagas = "sagas";
    static constexpr duration lifetime = std::chrono::hours{24 * 365};
    static constexpr std::size_t turns_max = 2000;

    /// A batch that was handled and is settled later.
    struct parked {
        std::unique_ptr<runner_type> by;
        runner_type::batch batch;
        time_point until;
    };

    /// An answer for every step.
    [[nodiscard]] static trial_options completed(trial_options how, const saga_definition& shape) {
        how.skipped.resize(shape.steps.size());
        for (std::size_t i = 0; i < shape.steps.size(); ++i) {
            const auto& s = shape.steps[i];
            how.skipped[i] = s.is_otherwise ? !how.skipped[i - 1] : how.skipped[i] && s.condition;
        }
        return how;
    }

    /// What is stored of a step of the saga.
    [[nodiscard]] std::optional<step_state> stored(std::size_t i) const {
        const auto found = work_.find(saga_);
        const auto p = found ? decode_progress(found->progress) : std::nullopt;
        return p && i < p->steps.size() ? std::optional(p->steps[i].state) : std::nullopt;
    }

    /// A condition's answer.
    [[nodiscard]] bool answer(std::size_t i) {
        if (stored(i).value_or(step_state::undecided) != step_state::undecided) {
            world_.complain("step " + shape_.steps[i].name + " is asked for its condition after the answer is stored");
        }
        return !how_.skipped[i];
    }

    /// No action follows from an answer that could still be another one.
    void check_answers(std::size_t up_to) {
        for (std::size_t i = 0; i <= up_to; ++i) {
            if (shape_.steps[i].condition && stored(i).value_or(step_state::undecided) == step_state::undecided) {
                world_.complain("step " + shape_.steps[i].name + " has a condition whose answer is not stored");
            }
        }
    }

    /// The same steps, policies and timeouts, acting on the world.
    [[nodiscard]] saga_definition acted_out(const saga_definition& shape) {
        auto d = shape;
        d.check = nullptr;
        for (std::size_t i = 0; i < d.steps.size(); ++i) {
            auto& s = d.steps[i];
            const bool is_remote = s.is_remote();
            if (s.condition && !s.is_otherwise) {
                s.condition = [this, i](const delivery&, const step_results&) { return answer(i); };
            }
            s.forward = [this, i, is_remote](step_call& call) {
                if (!is_remote) {
                    check_answers(i);
                }
                return is_remote ? std::string{} : world_.act(i, call.key());
            };
            if (s.undo) {
                s.undo = [this, i, is_remote](step_call& call) {
                    if (!is_remote) {
                        world_.undo(i, call.result(), is_on_record(i), call.key());
                    }
                    return std::string(call.result());
                };
            }
        }
        return d;
    }

    /// A process is its handle on the store, its routes and its runners.
    struct life {
        store_type store;
        router<store_type> sagas{};
        router<store_type> participants{};
    };

    /// The one that died is forgotten, but for runners that were never part of it.
    void restart() {
        process_->is_dead = false;
        lives_.push_back(std::make_unique<life>(life{store_type(work_, process_)}));
        auto& fresh = *lives_.back();
        add_saga<store_type, Rules>(fresh.sagas, fresh.store, {definition_});
        fresh.participants.on(
            "#", [this](delivery& d) { return take_part(d); }, retry_policy{.backoff = fixed{}});
    }

    /// What the participants do, all of them.
    [[nodiscard]] std::string take_part(delivery& d) {
        const auto command = command_of(d.entry());
        if (!command || d.entry().group.empty()) {
            world_.complain("a command is not to be recognised");
            return {};
        }
        const auto i = command->number - 1;
        const auto& known_by = how_.dedup == dedup_by::key ? command->key : command->id;
        if (!command->is_compensation) {
            return world_.act(i, known_by);
        }
        world_.undo(i, command->payload, is_on_record(i), known_by);
        return {};
    }

    /// Whether it is stored that the forward action of this step succeeded: in the saga's progress, or by its command.
    [[nodiscard]] bool is_on_record(std::size_t i) const {
        const auto stored = work_.find(saga_);
        const auto p = stored ? decode_progress(stored->progress) : std::nullopt;
        if (p && i < p->steps.size() && p->steps[i].state == step_state::done) {
            return true;
        }
        const auto commands = all_commands();
        return std::any_of(commands.begin(), commands.end(), [&](const entry& c) {
            const auto command = command_of(c);
            return command && command->number == i + 1 && !command->is_compensation && c.state == state::succeeded;
        });
    }

    /// Of the saga's entry, and of those it was resumed from.
    [[nodiscard]] std::vector<entry> all_commands() const {
        std::vector<entry> out;
        for (const auto& e : entries_) {
            for (auto& c : work_.list(query::children(e))) {
                out.push_back(std::move(c));
            }
        }
        return out;
    }

    // Playing.

    [[nodiscard]] saga_end play() {
        for (std::size_t turns = 0; turns < turns_max; ++turns) {
            bool busy = settle_parked() || take_turn(sagas);
            for (const auto& queue : queues_) {
                busy = busy || (!is_away(queue) && take_turn(queue));
            }
            if (const auto end = look(); end != saga_end::none && parked_.empty()) {
                return end;
            }
            purge_all();
            if (!busy && !pass_time()) {
                break;
            }
        }
        world_.complain("it never ends");
        return saga_end::none;
    }

    /// Claims, handles and settles what is due in a queue, and may die anywhere in between. False if nothing was due.
    bool take_turn(const std::string& queue) {
        const auto due = work_.next_due(queue);
        if (!due || *due > clock_()) {
            return false;
        }
        const bool is_saga_turn = queue == sagas;
        if (!(is_saga_turn ? may_interfere("before a claim") : may_be_served(queue))) {
            return true;
        }
        auto& now = *lives_.back();
        auto by = std::make_unique<runner_type>(now.store, outbox_, is_saga_turn ? now.sagas : now.participants,
                                                runner_options{.queue = queue, .batch_size = 1, .lease = lease_});
        std::vector<entry> claimed;
        try {
            claimed = by->claim();
            auto batch = by->handle_all(claimed);
            const auto until = is_saga_turn ? hold_back(batch) : parked_until(batch);
            if (until) {
                note_lost(claimed);
                parked_.push_back({std::move(by), std::move(batch), *until});
                return true;
            }
            static_cast<void>(by->settle(batch));
        } catch (const error&) { // the store's only fault is that its process is dead
        }
        if (process_->is_dead) {
            note_lost(claimed.empty() ? in_flight(queue) : claimed);
            restart();
        }
        return true;
    }

    /// Whether somebody asks to cancel, or time jumps past the expiry, at this moment.
    bool may_interfere(std::string_view when) {
        const auto way = interferences_left_ == 0
                             ? 0
                             : fate_.choose(when, {"", "cancel requested", "expired", "abandoned and resumed"});
        interferences_left_ -= way == 0 ? 0 : 1;
        if (way == 1) {
            const auto answer = transact(work_, [&](auto& tx) { return request_cancel(tx, saga_, clock_()); });
            must_turn_round_ = must_turn_round_ || answer == verdict::applied || answer == verdict::repeated;
        } else if (way == 2) {
            clock_.pass(lifetime);
        } else if (way == 3) {
            abandon();
        }
        return true;
    }

    /// Somebody kills the saga as it stands, unless a runner holds it, and somebody else resumes it.
    void abandon() {
        const auto before = work_.find(saga_);
        const auto next = transact(work_, [&](auto& tx) {
            static_cast<void>(tx.cancel(saga_, "abandoned", clock_()));
            return resume(tx, saga_, outbox_.fresh_id(), clock_());
        });
        if (before && next.what == receipt::kind::inserted) {
            note_lost({*before});
            saga_ = next.id;
            entries_.push_back(saga_);
        }
    }

    /// Whether the participants are there; if not they come back when the saga has stopped waiting.
    [[nodiscard]] bool may_be_served(const std::string& queue) {
        if (fate_.choose(queue, {"", "nobody there"}) == 0) {
            return true;
        }
        away_[queue] = clock_() + longest_ + std::chrono::seconds{1};
        return false;
    }
    [[nodiscard]] bool is_away(const std::string& queue) const {
        const auto found = away_.find(queue);
        return found != away_.end() && found->second > clock_();
    }

    /// A runner of sagas that is slower than its lease; or somebody who asks to cancel just before it settles.
    [[nodiscard]] std::optional<time_point> hold_back(const runner_type::batch& batch) {
        if (batch.empty() || process_->is_dead) {
            return std::nullopt;
        }
        may_interfere("before a settle");
        const bool is_slow = fate_.choose("saga's runner", {"", "slower than its lease"}) == 1;
        return is_slow ? std::optional{clock_() + lease_ + std::chrono::seconds{1}} : std::nullopt;
    }
    [[nodiscard]] std::optional<time_point> parked_until(const runner_type::batch& batch) {
        const auto how = world_.answers();
        if (batch.empty() || process_->is_dead || how == answering::at_once) {
            return std::nullopt;
        }
        return clock_() + (how == answering::late ? longest_ : lease_) + std::chrono::seconds{1};
    }

    bool settle_parked() {
        for (std::size_t i = 0; i < parked_.size(); ++i) {
            if (parked_[i].until <= clock_()) {
                auto one = std::move(parked_[i]);
                parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
                try {
                    static_cast<void>(one.by->settle(one.batch));
                } catch (const error&) {
                    restart();
                }
                return true;
            }
        }
        return false;
    }

    /// Steps whose claim nobody will settle in time may have done something, for all anybody knows.
    void note_lost(const std::vector<entry>& claimed) {
        for (const auto& e : claimed) {
            const auto command = command_of(e);
            if (command && !command->is_compensation) {
                world_.note_claim_lost(command->number - 1);
            } else if (!command) {
                const auto p = decode_progress(e.progress);
                if (p && p->direction == saga_direction::forward && p->at < shape_.steps.size() &&
                    !shape_.steps[p->at].is_remote() && may_run_next(*p)) {
                    world_.note_claim_lost(p->at);
                }
            }
        }
    }
    /// Whether a claim calls the action whose turn it is; else it asks for its condition.
    [[nodiscard]] bool may_run_next(const saga_progress& p) const {
        return p.at < p.steps.size() ? p.steps[p.at].state == step_state::begun : !shape_.steps[p.at].condition;
    }
    /// What was claimed by a commit after which its process died.
    [[nodiscard]] std::vector<entry> in_flight(const std::string& queue) const {
        auto wanted = query::live(queue);
        wanted.state = state::claimed;
        return work_.list(wanted);
    }

    void purge_all() {
        static_cast<void>(transact(work_, [&](auto& tx) {
            auto gone = tx.purge({.queue = sagas, .before = clock_() + duration{1}, .state = state::succeeded});
            for (const auto& queue : queues_) {
                gone += tx.purge({.queue = queue, .before = clock_() + duration{1}});
            }
            return gone;
        }));
    }

    /// To the next moment at which anything can happen; false if there is none.
    [[nodiscard]] bool pass_time() {
        std::optional<time_point> next;
        const auto consider = [&](std::optional<time_point> at) { next = at && (!next || *at < *next) ? at : next; };
        consider(work_.next_due(sagas));
        for (const auto& queue : queues_) {
            const auto due = work_.next_due(queue);
            consider(due && is_away(queue) ? std::max(*due, away_.at(queue)) : due);
        }
        for (const auto& p : parked_) {
            consider(p.until);
        }
        if (next && *next > clock_()) {
            clock_.set(*next);
        }
        return next.has_value();
    }

    // Judging.

    [[nodiscard]] saga_end look() {
        if (auto e = work_.find(saga_); e && is_terminal(e->state)) {
            ended_ = std::move(e); // before it is purged
        }
        if (!ended_) {
            return saga_end::none;
        }
        for (const auto& c : all_commands()) {
            if (is_live(c.state)) {
                world_.complain("it has ended while a command of its is live");
            }
        }
        world_.note_end();
        return end_of(*ended_);
    }

    [[nodiscard]] std::string path() const {
        std::string out;
        for (std::size_t i = 0; i < shape_.steps.size(); ++i) {
            out += how_.skipped[i] ? (out.empty() ? "skips " : "; skips ") + shape_.steps[i].name : std::string{};
        }
        return out + (out.empty() || fate_.path().empty() ? "" : "; ") + fate_.path();
    }

    void check(saga_end end) {
        if (end != saga_end::none) {
            judge(world_, shape_, work_, *ended_, must_turn_round_);
        }
    }

    /// Somebody sees to what was wrong, and the dead saga goes on to its proper end.
    void resume_it() {
        fate_.end_of_trouble();
        world_.heal();
        away_.clear();
        const auto next = transact(work_, [&](auto& tx) { return resume(tx, saga_, outbox_.fresh_id(), clock_()); });
        saga_ = next.id;
        entries_.push_back(saga_);
        ended_.reset();
        const auto end = play();
        if (end != saga_end::compensated) {
            world_.complain("resumed, it is not compensated in the end");
        }
        check(end);
    }

    trial_options how_;
    manual_clock clock_{};
    time_point start_ = clock_();
    memory::store work_{};
    std::shared_ptr<process> process_;
    choices& fate_;
    saga_definition shape_;
    saga_world world_;
    saga_definition definition_;
    outbox outbox_;
    std::vector<std::unique_ptr<life>> lives_{};
    std::set<std::string> queues_{};
    duration longest_{};
    duration lease_{};
    id saga_{};
    std::optional<entry> ended_{}; ///< the saga's entry, as it ended
    std::vector<id> entries_{};    ///< the saga's, and those it was resumed from before
    std::vector<parked> parked_{};
    std::map<std::string, time_point> away_{};
    int interferences_left_ = 2;
    bool must_turn_round_ = false;
};

} // namespace testing
} // namespace v0
} // namespace vouch
