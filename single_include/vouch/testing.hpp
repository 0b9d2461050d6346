// SPDX-License-Identifier: MIT
// For unit tests of code that uses vouch.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_TESTING
#define VOUCH_SINGLE_HEADER_TESTING

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/saga.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

// ---- vouch/testing/choices.hpp
// Where a trial may go one way or another. Way 0 is the ordinary one; every other is trouble. The same choices lead to
// the same trial, so all ways can be gone through, and one that went wrong can be gone again.

namespace vouch {
inline namespace v0 {
namespace testing {

class choices {
  public:
    /// Ways to take, in order; after their end the ordinary one. At most so much trouble.
    explicit choices(std::vector<std::size_t> ways, std::size_t troubles_max) noexcept
        : ways_(std::move(ways)), troubles_left_(troubles_max) {}

    /// One of `names`. What was taken out of the ordinary is remembered by its name.
    [[nodiscard]] std::size_t choose(std::string_view where, const std::vector<std::string_view>& names) {
        if (troubles_left_ == 0 || names.size() < 2) {
            return 0;
        }
        const auto way = taken_.size() < ways_.size() ? ways_[taken_.size()] % names.size() : 0;
        taken_.push_back({way, names.size()});
        if (way != 0) {
            troubles_left_ -= 1;
            path_ += std::string(path_.empty() ? "" : "; ") + std::string(where) + ": " + std::string(names[way]);
        }
        return way;
    }
    /// From now on everything is ordinary.
    void end_of_trouble() noexcept { troubles_left_ = 0; }

    /// The trouble there was, readable.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Ways for the next trial, when all are gone through in turn; empty: there is none.
    [[nodiscard]] std::vector<std::size_t> next() const {
        auto last = taken_.size();
        while (last > 0 && taken_[last - 1].way + 1 == taken_[last - 1].of) {
            --last;
        }
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < last; ++i) {
            out.push_back(taken_[i].way + (i + 1 == last ? 1 : 0));
        }
        return out;
    }

  private:
    struct taken {
        std::size_t way;
        std::size_t of;
    };
    std::vector<std::size_t> ways_;
    std::vector<taken> taken_{};
    std::size_t troubles_left_;
    std::string path_{};
};

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/mortal_store.hpp
// A memory store whose process may die at any commit, before it or after it. From then on every call throws, so that
// whatever the dying code still does is without effect; a new handle on the same work is the process restarted. Every
// call is noted, so that two courses of events can be compared.

namespace vouch {
inline namespace v0 {
namespace testing {

/// What the handles of one process share.
struct process {
    testing::choices& fate;
    bool is_dead = false;
    std::uint64_t calls = 14695981039346656037U; ///< a hash of all calls and their answers

    void note(std::string_view what, std::uint64_t answer = 0) {
        if (is_dead) {
            throw error(error_kind::io, "mortal store: its process is dead");
        }
        mix_in(what, answer);
    }
    void die() noexcept {
        mix_in("dies", 0);
        is_dead = true;
    }

  private:
    void mix_in(std::string_view what, std::uint64_t answer) noexcept {
        for (const char c : what) {
            calls = (calls ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        calls = (calls ^ (answer + 1)) * 1099511628211U;
    }
};

class mortal_transaction {
  public:
    mortal_transaction(memory::transaction tx, std::shared_ptr<process> in)
        : tx_(std::move(tx)), process_(std::move(in)) {}

    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = tx_.find(i);
        process_->note("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->note("list");
        return tx_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->note("counts");
        return tx_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->note("next_due");
        return tx_.next_due(queue);
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            process_->note("enqueue " + d.queue + ' ' + d.topic);
        }
        return tx_.enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        auto claimed = tx_.claim(r);
        process_->note("claim " + r.queue, claimed.empty() ? 0U : claimed.front().attempts);
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        auto settled = tx_.settle(settles, now);
        for (std::size_t i = 0; i < settled.size(); ++i) {
            process_->note("settle", settles[i].outcome.index() * 4U + static_cast<unsigned>(settled[i].verdict));
        }
        return settled;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        process_->note("extend");
        return tx_.extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& i, time_point now) {
        process_->note("nudge");
        return tx_.nudge(i, now);
    }
    [[nodiscard]] verdict cancel(const id& i, std::string_view error, time_point now) {
        const auto answer = tx_.cancel(i, error, now);
        process_->note("cancel", static_cast<unsigned>(answer));
        return answer;
    }
    std::size_t purge(const purge_request& r) {
        process_->note("purge");
        return tx_.purge(r);
    }

    void commit() {
        process_->note("commit");
        const auto way = process_->fate.choose("commit", {"", "crash before", "crash after"});
        if (way != 1) {
            tx_.commit();
        }
        if (way != 0) {
            process_->die();
            process_->note("");
        }
    }

  private:
    memory::transaction tx_;
    std::shared_ptr<process> process_;
};

class mortal_store {
  public:
    using transaction = mortal_transaction;
    static constexpr int contract_level = vouch::contract_level;

    mortal_store(memory::store work, std::shared_ptr<process> in) : work_(std::move(work)), process_(std::move(in)) {}

    [[nodiscard]] transaction begin() {
        process_->note("begin");
        return {work_.begin(), process_};
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return work_.capabilities(); }
    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = work_.find(i);
        process_->note("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->note("list");
        return work_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->note("counts");
        return work_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->note("next_due");
        return work_.next_due(queue);
    }

  private:
    memory::store work_;
    std::shared_ptr<process> process_;
};

static_assert(store<mortal_store>);

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/recorder.hpp
// An observer that keeps what it sees. Thread-safe.

namespace vouch {
inline namespace v0 {
namespace testing {

struct recorded_event {
    event_kind what{};
    time_point at{};
    std::string queue{};
    std::string topic{};
    std::string group{};
    std::string error{};
    std::string tag{};
    vouch::id id{};
    std::uint32_t attempt = 0;
};

class recorder {
  public:
    /// An observer must not throw; a test that runs out of memory here has no use for going on.
    void on(const event& e) noexcept {
        const std::lock_guard lock(mutex_);
        events_.push_back({.what = e.what,
                           .at = e.at,
                           .queue = std::string(e.queue),
                           .topic = std::string(e.topic),
                           .group = std::string(e.group),
                           .error = std::string(e.error),
                           .tag = std::string(e.tag),
                           .id = e.id,
                           .attempt = e.attempt});
    }

    [[nodiscard]] std::vector<recorded_event> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// How many events of a kind there were, of topics that fit the pattern.
    [[nodiscard]] std::size_t count(event_kind what, std::string_view pattern = "#") const {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const recorded_event& e) {
            return e.what == what && topic_matches(pattern, e.topic);
        }));
    }

  private:
    mutable std::mutex mutex_;
    std::vector<recorded_event> events_;
};

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga_world.hpp
// The world a saga acts upon in a trial: every step has one effect, which happens once however often it is asked for
// and is gone when it is undone. The world goes wrong as the choices say, knows the truth about every effect, and
// complains about every call that should not have been made.

namespace vouch {
inline namespace v0 {
namespace testing {

/// What becomes of the answer of an action that has been called.
enum class answering { at_once, late, too_late };

class saga_world {
  public:
    /// Steps whose condition answers no are named by `skipped`.
    saga_world(const saga_definition& d, choices& fate, process& in, const std::vector<bool>& skipped)
        : definition_(d), fate_(fate), process_(in) {
        steps_.resize(d.steps.size());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            steps_[i].is_skipped = i < skipped.size() && skipped[i];
        }
    }

    /// Truth about a step.
    struct step {
        bool is_skipped = false; ///< its condition says no
        bool has_effect = false;
        bool was_tried = false;    ///< called, or claimed by somebody who died over it: it may have done something
        bool has_rejected = false; ///< its last word
        bool was_undone = false;   ///< its compensation has been called
        id done_under{};           ///< the key its effect happened under
        id undone_under{};         ///< the key its effect was undone under
        enum class habit { none, fails, crashes, rejects } forward = habit::none, undo = habit::none;
    };

    /// The forward action. Gives its result, or throws as actions do. What has the key of an earlier call is done
    /// already.
    std::string act(std::size_t i, const id& key) {
        auto& s = steps_[i];
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            complain_if(!steps_[earlier].has_effect && !steps_[earlier].is_skipped, i,
                        "runs before the steps before it are done");
        }
        complain_if(s.is_skipped, i, "runs though its condition says no");
        complain_if(last_undone_.has_value(), i, "runs forward after the saga has turned round");
        complain_if(has_ended_, i, "runs after the saga has ended");
        const bool was_tried_before = std::exchange(s.was_tried, true);
        s.has_rejected = false;
        const auto way = s.forward == step::habit::none && !s.has_effect ? fate_.choose(name(i), trouble(i)) : 0;
        go_wrong_before(way, s.forward);
        if (way == 6 || s.forward == step::habit::rejects) {
            s.has_rejected = true;
            s.was_tried = was_tried_before;
            throw reject("rejected");
        }
        complain_if(s.has_effect && s.done_under != key, i, "is done twice, under two keys");
        s.has_effect = true;
        s.done_under = key;
        go_wrong_after(way, s.forward);
        return result_of(i);
    }

    /// The compensation, handed `result`; `is_answered`: it is on record that the forward action succeeded.
    void undo(std::size_t i, std::string_view result, bool is_answered, const id& key) {
        auto& s = steps_[i];
        for (auto later = i + 1; later < steps_.size(); ++later) {
            complain_if(steps_[later].has_effect && definition_.steps[later].has_undo(), i,
                        "is undone before the steps after it are");
        }
        complain_if(last_undone_ && i > *last_undone_, i, "is undone after the steps before it");
        complain_if(s.has_rejected && !s.was_tried, i, "is undone though it rejected");
        complain_if(!s.was_tried && !s.has_rejected, i, "is undone though nobody ever tried it");
        complain_if(result != (is_answered ? result_of(i) : std::string{}), i, "is undone with the wrong result");
        complain_if(has_ended_, i, "is undone after the saga has ended");
        last_undone_ = i;
        s.was_undone = true;
        const auto way = s.undo == step::habit::none ? fate_.choose("undo " + name(i), trouble(i)) : 0;
        go_wrong_before(way, s.undo);
        if (way == 6 || s.undo == step::habit::rejects) {
            s.undo = step::habit::fails;
            throw reject("undo_rejected");
        }
        complain_if(!s.undone_under.is_nil() && s.undone_under != key, i, "is undone twice, under two keys");
        s.undone_under = std::exchange(s.has_effect, false) ? key : s.undone_under;
        go_wrong_after(way, s.undo);
    }

    /// What becomes of the answer of the remote action that was just called.
    [[nodiscard]] answering answers() noexcept { return std::exchange(answering_, answering::at_once); }

    /// Whatever the step answered, nobody has heard it.
    void note_claim_lost(std::size_t i) {
        steps_.at(i).was_tried = true;
        steps_.at(i).has_rejected = false;
    }
    void note_end() noexcept { has_ended_ = true; }
    /// Everybody is well again; what a person would see to before a resume.
    void heal() {
        has_ended_ = false;
        for (auto& s : steps_) {
            s.forward = s.undo = step::habit::none;
        }
    }

    [[nodiscard]] const std::vector<step>& steps() const noexcept { return steps_; }
    [[nodiscard]] bool has_undone() const noexcept { return last_undone_.has_value(); }
    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
    void complain(std::string what) {
        if (complaint_.empty()) {
            complaint_ = std::move(what);
        }
    }
    [[nodiscard]] static std::string result_of(std::size_t i) { return "r" + std::to_string(i); }

  private:
    [[nodiscard]] std::vector<std::string_view> trouble(std::size_t i) const {
        std::vector<std::string_view> ways{"",
                                           "fails once",
                                           "fails always",
                                           "crashes before its effect",
                                           "crashes after its effect",
                                           "crashes always",
                                           "rejects",
                                           "fails after its effect, and always",
                                           "fails after its effect, then rejects"};
        if (definition_.steps[i].is_remote()) {
            ways.insert(ways.end(), {"answers late", "answers after its lease"});
        }
        return ways;
    }

    void go_wrong_before(std::size_t way, step::habit& habit) {
        habit = way == 2 ? step::habit::fails : way == 5 ? step::habit::crashes : habit;
        if (way == 3 || habit == step::habit::crashes) {
            process_.die();
            throw failure("crash");
        }
        if (way == 1 || habit == step::habit::fails) {
            throw failure("failed");
        }
    }
    void go_wrong_after(std::size_t way, step::habit& habit) {
        if (way == 4) {
            process_.die();
            throw failure("crash");
        }
        if (way == 7 || way == 8) {
            habit = way == 7 ? step::habit::fails : step::habit::rejects;
            throw failure("failed");
        }
        answering_ = way == 9 ? answering::late : way == 10 ? answering::too_late : answering::at_once;
    }

    void complain_if(bool wrong, std::size_t i, std::string_view what) {
        if (wrong) {
            complain("step " + name(i) + ' ' + std::string(what));
        }
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return definition_.steps[i].name; }

    const saga_definition& definition_;
    choices& fate_;
    process& process_;
    std::vector<step> steps_{};
    std::optional<std::size_t> last_undone_{};
    answering answering_ = answering::at_once;
    bool has_ended_ = false;
    std::string complaint_{};
};

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga_judge.hpp
// Whether a saga that has ended, has ended as it should: the world is asked what is in effect, the store what was said.

namespace vouch {
inline namespace v0 {
namespace testing {

enum class saga_end : std::uint8_t { none, completed, compensated, dead };

[[nodiscard]] inline saga_end end_of(const entry& ended) {
    const auto s = inspect(ended);
    return !s                    ? saga_end::none
           : s->is_completed()   ? saga_end::completed
           : s->is_compensated() ? saga_end::compensated
           : s->is_stuck()       ? saga_end::dead
                                 : saga_end::none;
}

inline void judge_emitted(saga_world& world, const memory::store& work, const saga_options& options,
                          const std::string& topic, bool wanted) {
    if (!topic.empty()) {
        auto q = query::all(options.queue.empty() ? "ends" : options.queue);
        q.topic = topic;
        if (work.list(q).size() != (wanted ? 1U : 0U)) {
            world.complain("topic " + topic + (wanted ? " was not emitted once" : " was emitted"));
        }
    }
}

/// Makes the world complain about what is not as it should be.
inline void judge(saga_world& world, const saga_definition& shape, const memory::store& work, const entry& ended,
                  bool must_turn_round) {
    const auto end = end_of(ended);
    const auto status = inspect(ended);
    if (!status || end == saga_end::none) {
        world.complain("it cannot be inspected");
        return;
    }
    if (end == saga_end::completed && must_turn_round) {
        world.complain("it has completed though it was asked to turn round");
    }
    judge_emitted(world, work, shape.options, shape.options.completed, end == saga_end::completed);
    judge_emitted(world, work, shape.options, shape.options.compensated, end == saga_end::compensated);
    for (std::size_t i = 0; i < shape.steps.size(); ++i) {
        const auto& s = world.steps()[i];
        const auto& name = shape.steps[i].name;
        if (end == saga_end::completed && (s.has_effect == s.is_skipped || s.was_undone)) {
            world.complain("it has completed, and step " + name + " is not in effect");
        }
        if (i < status->steps.size() && (status->steps[i].state == step_state::skipped) > s.is_skipped) {
            world.complain("step " + name + " is on record as skipped, and is not");
        }
        const bool is_past = end == saga_end::compensated || (end == saga_end::dead && i > status->at);
        if (is_past && s.has_effect && shape.steps[i].has_undo()) {
            world.complain("step " + name + " is still in effect");
        }
    }
    if (end == saga_end::dead && status->direction != saga_direction::back) {
        world.complain("it is dead with work done, and nobody has tried to undo it");
    }
}

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga_trial.hpp
// One course of events of one saga, played by the shipped runner and engine through the runner's phases, in simulated
// time: processes die and are restarted on the same work, participants are away, answers come late, requests to cancel
// come at any moment, time jumps past the expiry, and everything that may be purged is purged at once.
//
// Same definition and choices, same trial. A complaint says what a saga must never do.

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

template <class Rules = saga_rules>
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

// ---- vouch/testing/table.hpp
// Entries as a table a person can read: in a failing test, or at a breakpoint.

namespace vouch {
inline namespace v0 {
namespace testing {

/// A length of time in its largest whole unit: 0, 90s, 5min, 2h, 250ms, -3us.
[[nodiscard]] inline std::string to_text(duration d) {
    struct unit {
        duration::rep size;
        const char* name;
    };
    constexpr std::array<unit, 5> units{
        {{3'600'000'000, "h"}, {60'000'000, "min"}, {1'000'000, "s"}, {1000, "ms"}, {1, "us"}}};
    if (d == duration::zero()) {
        return "0";
    }
    for (const auto& u : units) {
        if (d.count() % u.size == 0) {
            return std::to_string(d.count() / u.size) + u.name;
        }
    }
    return {};
}

/// Counting ids by their number, others in full.
[[nodiscard]] inline std::string to_text(const id& i) { return i.high == 0 ? std::to_string(i.low) : to_string(i); }

/// One row per entry; times count from `start`.
[[nodiscard]] inline std::string table(std::span<const entry> entries, time_point start) {
    using row = std::array<std::string, 7>;
    std::vector<row> rows{{"id", "queue", "topic", "state", "attempts", "due", "last error"}};
    for (const auto& e : entries) {
        const bool waits = e.state == state::pending || e.state == state::retrying;
        const auto when = e.state == state::claimed ? "held to " + to_text(*e.lease_until - start)
                          : waits                   ? to_text(e.due_at - start)
                                                    : std::string{"-"};
        rows.push_back({to_text(e.id), e.queue, e.topic, std::string(name_of(e.state)), std::to_string(e.attempts),
                        when, e.last_error});
    }
    std::array<std::size_t, 7> width{};
    for (const auto& r : rows) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            width[i] = std::max(width[i], r[i].size());
        }
    }
    std::string out;
    for (const auto& r : rows) {
        std::string line;
        for (std::size_t i = 0; i < r.size(); ++i) {
            line += r[i] + std::string(width[i] - r[i].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/sandbox.hpp
// Everything a unit test of a handler needs, in one object: a memory store, a clock that stands still, ids that count,
// an outbox, a router, a runner, and a record of what happened.
//
//   vouch::testing::sandbox box;
//   box.on("user.created", greet);
//   box.emit({.topic = "user.created", .payload = "ada"});
//   box.run_until_idle();
//   REQUIRE(box.emitted("mail.welcome") == 1);

namespace vouch {
inline namespace v0 {
namespace testing {

struct sandbox_options {
    std::string queue = "test"; ///< that the runner works on
    vouch::bindings bindings{}; ///< for emissions without a queue; empty: they all go to `queue`
    retry_policy retry{};       ///< for handlers registered without
    duration lease = std::chrono::minutes{5};
    std::size_t batch_size = 50;
};

/// What would run next, and when.
struct upcoming {
    vouch::entry entry{};
    time_point at{};
};

class sandbox {
  public:
    sandbox() : sandbox(sandbox_options{}) {}
    explicit sandbox(sandbox_options options)
        : queue_(options.queue), start_(clock_()),
          outbox_({.clock = clock_,
                   .ids = ids_,
                   .bindings = options.bindings.empty() ? bindings{}.bind("#", options.queue) : options.bindings}),
          runner_(store_, outbox_, router_,
                  {.queue = options.queue,
                   .worker = "sandbox",
                   .batch_size = options.batch_size,
                   .lease = options.lease,
                   .retry = std::move(options.retry)}) {
        runner_.observe(recorder_);
    }
    sandbox(const sandbox&) = delete;
    sandbox& operator=(const sandbox&) = delete;

    /// Registers a handler, as `router::on` does.
    template <class Handler>
    sandbox& on(std::string pattern, Handler&& handler, retry_policy retry) {
        router_.on(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    template <class Handler>
    sandbox& on(std::string pattern, Handler&& handler) {
        router_.on(std::move(pattern), std::forward<Handler>(handler));
        return *this;
    }
    template <class T, class Handler>
    sandbox& on(std::string pattern, Handler&& handler) {
        router_.template on<T>(std::move(pattern), std::forward<Handler>(handler));
        return *this;
    }

    /// Emits in a transaction of its own. The receipt is of the first entry, if there are several.
    receipt emit(const emission& e) { return outbox_.emit(store_, e).front(); }

    /// One pass over what is due now.
    report run_once() { return runner_.run_once(); }
    /// Until nothing is left to wait for: retries, delays and leases included, with the clock moving along.
    report run_until_idle() { return runner_.run_until_idle(clock_); }
    /// Lets time go by. Nothing runs.
    void pass(duration by) { clock_.pass(by); }

    /// How many entries whose topic fits the pattern are stored, in any queue, whoever emitted them.
    [[nodiscard]] std::size_t emitted(std::string_view pattern) const {
        std::size_t count = 0;
        for (const auto& e : entries()) {
            count += topic_matches(pattern, e.topic) ? 1U : 0U;
        }
        return count;
    }

    /// The entry of the sandbox's queue that a claim would take first, and when it could.
    [[nodiscard]] std::optional<upcoming> next() const {
        std::optional<upcoming> first;
        std::set<std::string> lanes;
        for (auto& e : all(query::live(queue_))) {
            if (!e.lane.empty() && !lanes.insert(e.lane).second) {
                continue; // blocked behind an earlier one
            }
            const auto at = *gate_of(e);
            if (!first || at < first->at) {
                first = upcoming{std::move(e), at};
            }
        }
        return first;
    }

    /// Every entry of every queue, by queue and sequence.
    [[nodiscard]] std::vector<entry> entries() const {
        auto queues = store_.queues();
        std::sort(queues.begin(), queues.end());
        std::vector<entry> out;
        for (const auto& queue : queues) {
            auto found = all(query::all(queue));
            out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
        }
        return out;
    }

    /// All entries, readable; times count from the sandbox's beginning.
    [[nodiscard]] std::string table() const { return testing::table(entries(), start_); }

    [[nodiscard]] std::vector<recorded_event> events() const { return recorder_.events(); }
    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }

    [[nodiscard]] memory::store& store() noexcept { return store_; }
    [[nodiscard]] const manual_clock& clock() const noexcept { return clock_; }
    [[nodiscard]] const vouch::outbox& outbox() const noexcept { return outbox_; }
    [[nodiscard]] vouch::runner<memory::store>& runner() noexcept { return runner_; }
    [[nodiscard]] time_point start() const noexcept { return start_; }

  private:
    [[nodiscard]] std::vector<entry> all(query q) const {
        q.limit = limits{}.batch_max;
        q.payloads = true;
        std::vector<entry> out;
        for (;;) {
            auto page = store_.list(q);
            if (page.empty()) {
                return out;
            }
            q.after = page.back().sequence;
            out.insert(out.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
        }
    }

    std::string queue_;
    manual_clock clock_;
    counting_ids ids_;
    time_point start_;
    memory::store store_;
    vouch::outbox outbox_;
    router<memory::store> router_;
    recorder recorder_;
    vouch::runner<memory::store> runner_;
};

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/sequence_diagram.hpp
// What was recorded, as a Mermaid sequence diagram: queues are the participants, an emission is an arrow to the queue
// it goes to, and the end of what was emitted is an arrow back. Give one recorder to the runners of all queues
// concerned.

namespace vouch {
inline namespace v0 {
namespace testing {

namespace detail {

class diagram {
  public:
    void add(const recorded_event& e) {
        switch (e.what) {
        case event_kind::enqueued: // by what was settled right before
            sent_from_[e.id] = last_;
            arrow(last_, "->>", e.queue, e.topic);
            break;
        case event_kind::started:
            if (!sent_from_.contains(e.id) && e.attempt == 1 && begun_.emplace(e.id, true).second) {
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + '\n';
            }
            break;
        case event_kind::succeeded:
        case event_kind::dead: end(e); break;
        case event_kind::retried: arrow(e.queue, "->>", e.queue, e.topic + " again" + told(e)); break;
        case event_kind::advanced:
            last_ = e.queue;
            if (!e.tag.empty()) { // a saga skips a step
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + told(e) + '\n';
            }
            break;
        default: break;
        }
    }

    [[nodiscard]] std::string text() const {
        std::string out = "sequenceDiagram\n";
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            out += "    participant q" + std::to_string(i) + " as " + queues_[i] + '\n';
        }
        return out + body_;
    }

  private:
    void end(const recorded_event& e) {
        last_ = e.queue;
        const auto what = e.topic + ' ' + std::string(name_of(e.what)) + told(e);
        if (const auto from = sent_from_.find(e.id); from != sent_from_.end()) {
            arrow(e.queue, "-->>", from->second, what);
        } else {
            body_ += "    Note over " + alias(e.queue) + ": " + what + '\n';
        }
    }
    [[nodiscard]] static std::string told(const recorded_event& e) {
        const auto& word = e.error.empty() ? e.tag : e.error;
        return word.empty() ? std::string{} : " (" + word + ')';
    }
    void arrow(const std::string& from, std::string_view how, const std::string& to, const std::string& what) {
        const auto start = alias(from);
        body_ += "    " + start + std::string(how) + alias(to) + ": " + what + '\n';
    }
    /// Names may be anything; Mermaid's own must not.
    [[nodiscard]] std::string alias(const std::string& queue) {
        const auto found = std::find(queues_.begin(), queues_.end(), queue);
        const auto index = found - queues_.begin();
        if (found == queues_.end()) {
            queues_.push_back(queue);
        }
        return 'q' + std::to_string(index);
    }

    std::vector<std::string> queues_{};
    std::map<id, std::string> sent_from_{};
    std::map<id, bool> begun_{};
    std::string last_ = "outside";
    std::string body_{};
};

} // namespace detail

[[nodiscard]] inline std::string sequence_diagram(const std::vector<recorded_event>& events) {
    detail::diagram out;
    for (const auto& e : events) {
        out.add(e);
    }
    return out.text();
}

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/verify.hpp
// Goes through every course a saga can take, on the shipped engine and runner, with up to so many troubles at once:
// each step failing, rejecting, timing out, crashing before and after its effect and around every commit, answering
// late, its compensation failing; requests to cancel, expiry, runners slower than their lease. Each must end completed,
// compensated, or dead for an operator and then, resumed, compensated; and every effect that happened is undone exactly
// when it should be, and only once for a participant that knows a command by its key.
//
//   CHECK(vouch::testing::verify(order_saga).is_sound());
//
// The definition's own actions and conditions are not called: what is verified is its shape, with its policies and
// timeouts, for every way its conditions can answer.

namespace vouch {
inline namespace v0 {
namespace testing {

struct verify_options {
    std::size_t troubles_max = 2;       ///< at once; a habit, such as failing always, is one
    std::size_t trials_max = 1'000'000; ///< after which it is given up, and not sound
    dedup_by dedup = dedup_by::key;     ///< what the participants know a command by that they have carried out
};

struct verification {
    std::size_t trials = 0;
    std::size_t paths = 0; ///< courses of events that differ in their store calls
    std::size_t completed = 0;
    std::size_t compensated = 0;
    std::size_t dead = 0;
    std::string complaint{}; ///< of the first course that went wrong; empty: none did
    std::string path{};      ///< what went wrong in it

    [[nodiscard]] bool is_sound() const noexcept { return trials > 0 && complaint.empty(); }
};

[[nodiscard]] inline std::string to_string(const verification& v) {
    auto out = std::to_string(v.paths) + " paths: " + std::to_string(v.completed) + " completed, " +
               std::to_string(v.compensated) + " compensated, " + std::to_string(v.dead) + " dead for an operator";
    return v.is_sound() ? out : out + "\nnot sound: " + v.complaint + "\non the path: " + v.path;
}

namespace detail {

/// Every way a definition's conditions can answer, by number of the step: true is skipped.
[[nodiscard]] inline std::vector<std::vector<bool>> all_answers(const saga_definition& d) {
    std::vector<std::vector<bool>> out{std::vector<bool>(d.steps.size())};
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        if (d.steps[i].condition && !d.steps[i].is_otherwise) {
            const auto so_far = out.size();
            for (std::size_t n = 0; n < so_far; ++n) {
                out.push_back(out[n]);
                out.back()[i] = true;
            }
        }
    }
    return out;
}

} // namespace detail

/// Stops at the first course that is not as it should be. `Rules` is for testing the verifier itself.
template <class Rules = saga_rules>
[[nodiscard]] verification verify(const saga_definition& definition, verify_options how = {}) {
    validate(definition);
    verification out;
    std::unordered_set<std::uint64_t> seen;
    for (const auto& skipped : detail::all_answers(definition)) {
        std::vector<std::size_t> ways;
        do {
            if (out.trials == how.trials_max) {
                out.complaint = "more courses than trials_max";
                return out;
            }
            choices fate(std::move(ways), how.troubles_max);
            const auto result = saga_trial<Rules>(definition, fate, {how.dedup, skipped}).run();
            out.trials += 1;
            if (seen.insert(result.calls).second) {
                out.paths += 1;
                out.completed += result.end == saga_end::completed ? 1U : 0U;
                out.compensated += result.end == saga_end::compensated ? 1U : 0U;
                out.dead += result.end == saga_end::dead ? 1U : 0U;
            }
            if (!result.complaint.empty()) {
                out.complaint = result.complaint;
                out.path = result.path.empty() ? "the ordinary one" : result.path;
                return out;
            }
            ways = fate.next();
        } while (!ways.empty());
    }
    return out;
}

} // namespace testing
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_TESTING
