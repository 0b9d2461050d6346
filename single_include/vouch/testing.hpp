// SPDX-License-Identifier: MIT
// Tools for unit tests: a sandbox for handlers, a recorder of events, tables and diagrams, and the saga verifier.
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
#include <concepts>
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
#include <unordered_set>
#include <utility>
#include <vector>

// ---- vouch/memory/history.hpp
// A history of attempts in memory, for tests and for work that may be lost with the process.
//
//   vouch::memory::history_log history;
//   runner.history(std::ref(history));
//
// Unlike the tables of the other stores, it is not part of the transaction: if a settle is refused because another worker
// has taken over, its line remains. A settle that is repeated replaces its line. Any number of threads may use one object.

namespace vouch {
inline namespace v0 {
namespace memory {

class history_log {
  public:
    /// Keeps at most this many lines of each entry, the newest.
    explicit history_log(std::size_t lines_max = 100) : lines_max_(lines_max) {}

    template <class Transaction>
    void operator()(Transaction&, const attempt_line& line) {
        const std::lock_guard lock(mutex_);
        auto& lines = lines_[line.id];
        lines[line.epoch] = line;
        while (lines.size() > lines_max_) {
            lines.erase(lines.begin());
        }
    }

    /// The lines of an entry, oldest first.
    [[nodiscard]] std::vector<attempt_line> of(const id& which) const {
        const std::lock_guard lock(mutex_);
        std::vector<attempt_line> out;
        if (const auto found = lines_.find(which); found != lines_.end()) {
            for (const auto& [epoch, line] : found->second) {
                out.push_back(line);
            }
        }
        return out;
    }

    /// Removes lines of entries whose last attempt ended before `before`. Returns the number of entries.
    std::size_t purge(time_point before) {
        const std::lock_guard lock(mutex_);
        return std::erase_if(lines_, [&](const auto& of) { return of.second.rbegin()->second.at < before; });
    }

  private:
    mutable std::mutex mutex_{};
    std::size_t lines_max_;
    std::map<id, std::map<std::uint64_t, attempt_line>> lines_{};
};

} // namespace memory
} // namespace v0
} // namespace vouch

// ---- vouch/testing/recorder.hpp
// An observer that keeps every event it receives, for tests. Thread-safe.

namespace vouch {
inline namespace v0 {
namespace testing {

/// An `event` with strings of its own.
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
    /// Keeps the event. An observer must not throw, so running out of memory here ends the program.
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

    /// All events so far, in the order they were reported.
    [[nodiscard]] std::vector<recorded_event> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// The number of events of this kind whose topic matches the pattern.
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

// ---- vouch/testing/saga/detail/fault_plan.hpp
// Which fault happens at each decision point of one simulated run. Option 0 is the normal course; every other option is
// a fault. The same plan gives the same run, so all plans can be tried in turn and a failing one can be repeated.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class fault_plan {
  public:
    /// Takes these options in order, and the normal course after their end. At most `faults_max` faults happen.
    explicit fault_plan(std::vector<std::size_t> options, std::size_t faults_max) noexcept
        : options_(std::move(options)), faults_left_(faults_max) {}

    /// A decision point: returns the index of one of `names`, and remembers it by its name if it is a fault.
    [[nodiscard]] std::size_t choose(std::string_view where, const std::vector<std::string_view>& names) {
        if (faults_left_ == 0 || names.size() < 2) {
            return 0;
        }
        const auto option = taken_.size() < options_.size() ? options_[taken_.size()] % names.size() : 0;
        taken_.push_back({option, names.size()});
        if (option != 0) {
            faults_left_ -= 1;
            path_ += std::string(path_.empty() ? "" : "; ") + std::string(where) + ": " + std::string(names[option]);
        }
        return option;
    }
    /// No more faults from now on.
    void stop() noexcept { faults_left_ = 0; }

    /// The faults that happened, as text.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// The options of the next plan, in an order that tries all of them; empty after the last one.
    [[nodiscard]] std::vector<std::size_t> next() const {
        auto last = taken_.size();
        while (last > 0 && taken_[last - 1].option + 1 == taken_[last - 1].count) {
            --last;
        }
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < last; ++i) {
            out.push_back(taken_[i].option + (i + 1 == last ? 1 : 0));
        }
        return out;
    }

  private:
    struct decision {
        std::size_t option;
        std::size_t count;
    };
    std::vector<std::size_t> options_;
    std::vector<decision> taken_{};
    std::size_t faults_left_;
    std::string path_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/crashing_store.hpp
// A memory store whose process may crash before or after any commit. From then on every call throws, so whatever the
// crashed code still does has no effect. A new handle on the same memory store is the process restarted. All calls and
// their answers are hashed, so that two runs can be compared.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

/// What the handles of one process share.
struct simulated_process {
    fault_plan& faults;
    bool has_crashed = false;
    std::uint64_t calls = 14695981039346656037U; ///< a hash of all calls and their answers

    /// Throws if the process has crashed.
    void record(std::string_view call, std::uint64_t answer = 0) {
        if (has_crashed) {
            throw error(error_kind::io, "simulated process: it has crashed");
        }
        mix_in(call, answer);
    }
    void crash() noexcept {
        mix_in("crash", 0);
        has_crashed = true;
    }

  private:
    void mix_in(std::string_view call, std::uint64_t answer) noexcept {
        for (const char c : call) {
            calls = (calls ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        calls = (calls ^ (answer + 1)) * 1099511628211U;
    }
};

/// Records every call whose arguments do not matter.
struct call_recorder {
    std::shared_ptr<simulated_process> process;

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        auto answer = call();
        process->record(name_of(what), hash_of(what, answer));
        return answer;
    }

  private:
    template <class Answer>
    [[nodiscard]] static std::uint64_t hash_of(store_operation what, const Answer& answer) noexcept {
        if constexpr (std::same_as<Answer, std::optional<entry>>) {
            return answer ? 2U + static_cast<unsigned>(answer->state) : 1U;
        } else if constexpr (std::same_as<Answer, verdict>) {
            return what == store_operation::cancel ? static_cast<unsigned>(answer) : 0U;
        } else {
            return 0;
        }
    }
};

class crashing_transaction : public transaction_adaptor<memory::transaction, call_recorder> {
  public:
    crashing_transaction(memory::transaction tx, const std::shared_ptr<const call_recorder>& recorder)
        : transaction_adaptor(std::move(tx), recorder), process_(recorder->process) {}

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            process_->record("enqueue " + d.queue + ' ' + d.topic);
        }
        return inner().enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        auto claimed = inner().claim(r);
        process_->record("claim " + r.queue, claimed.empty() ? 0U : claimed.front().attempts);
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        auto settled = inner().settle(settles, now);
        for (std::size_t i = 0; i < settled.size(); ++i) {
            process_->record("settle", settles[i].outcome.index() * 4U + static_cast<unsigned>(settled[i].verdict));
        }
        return settled;
    }
    void commit() {
        enum : std::size_t { normal, crash_before, crash_after };
        process_->record("commit");
        const auto fault = process_->faults.choose("commit", {"", "crash before", "crash after"});
        if (fault != crash_before) {
            inner().commit();
        }
        if (fault != normal) {
            process_->crash();
            process_->record("commit"); // throws
        }
    }

  private:
    std::shared_ptr<simulated_process> process_;
};

class crashing_store : public store_adaptor<memory::store, call_recorder> {
  public:
    using transaction = crashing_transaction;

    /// `work` is a handle: all processes share its entries.
    crashing_store(memory::store work, std::shared_ptr<simulated_process> in)
        : store_adaptor(std::move(work), call_recorder{in}),
          recorder_(std::make_shared<const call_recorder>(call_recorder{std::move(in)})) {}

    [[nodiscard]] transaction begin() {
        recorder_->process->record("begin");
        return {inner().begin(), recorder_};
    }

  private:
    std::shared_ptr<const call_recorder> recorder_;
};

static_assert(store<crashing_store>);

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/violation.hpp
// The first thing a simulated run did that a saga must never do. Later ones are usually consequences of it.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class first_violation {
  public:
    void report(std::string what) {
        if (text_.empty()) {
            text_ = std::move(what);
        }
    }
    /// Empty if there was none.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::string text_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/step_effects.hpp
// The outside world of a simulated saga: every step has one effect, which happens once however often it is asked for,
// and is gone when the step is undone. Steps fail as the fault plan says. The truth about every effect is kept here, and
// every call that must not be made is reported.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

/// When a participant settles the command it has carried out.
enum class reply_time : std::uint8_t { at_once, after_timeout, after_lease };

/// The faults of an action. Those after `fails_after_then_rejects` happen to remote steps only.
enum class action_fault : std::uint8_t {
    none,
    fails_once,
    fails_always,
    crashes_before,
    crashes_after,
    crashes_always,
    rejects,
    fails_after_always,
    fails_after_then_rejects,
    replies_late,
    replies_after_lease,
};
inline constexpr std::array<std::string_view, 11> action_faults{"",
                                                                "fails once",
                                                                "fails always",
                                                                "crashes before its effect",
                                                                "crashes after its effect",
                                                                "crashes always",
                                                                "rejects",
                                                                "fails after its effect, and always",
                                                                "fails after its effect, then rejects",
                                                                "replies late",
                                                                "replies after its lease"};
inline constexpr std::size_t local_action_faults = 9;

class step_effects {
  public:
    /// `skipped` says by index which steps have a condition that is false.
    step_effects(const saga_definition& d, simulated_process& in, const std::vector<bool>& skipped,
                 first_violation& wrong)
        : definition_(d), process_(in), wrong_(wrong) {
        steps_.resize(d.steps.size());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            steps_[i].is_skipped = i < skipped.size() && skipped[i];
        }
    }

    /// The truth about a step.
    struct step {
        /// A fault that every later call repeats.
        enum class habit : std::uint8_t { none, fails, crashes, rejects };

        bool is_skipped = false; ///< its condition is false
        bool has_effect = false;
        bool was_attempted = false; ///< called, or claimed by a process that then crashed: it may have an effect
        bool has_rejected = false;  ///< the last call rejected
        bool was_undone = false;    ///< its compensation was called
        id done_under{};            ///< the key of the call that had the effect
        id undone_under{};          ///< the key of the call that undid it
        habit forward = habit::none;
        habit undo = habit::none;
    };

    /// The forward action: returns its result, or throws. A call with the key of an earlier one has no further effect.
    std::string run(std::size_t i, const id& key) {
        auto& s = steps_[i];
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            report_if(!steps_[earlier].has_effect && !steps_[earlier].is_skipped, i,
                      "runs before an earlier step is done");
        }
        report_if(s.is_skipped, i, "runs although its condition is false");
        report_if(last_undone_.has_value(), i, "runs forward after compensation has begun");
        report_if(has_ended_, i, "runs after the saga has ended");
        const bool was_attempted_before = std::exchange(s.was_attempted, true);
        s.has_rejected = false;
        const auto fault = s.forward == step::habit::none && !s.has_effect ? choose(name(i), i) : action_fault::none;
        fail_before(fault, s.forward);
        if (fault == action_fault::rejects || s.forward == step::habit::rejects) {
            s.has_rejected = true;
            s.was_attempted = was_attempted_before;
            throw reject("rejected");
        }
        report_if(s.has_effect && s.done_under != key, i, "is done twice, under two keys");
        s.has_effect = true;
        s.done_under = key;
        fail_after(fault, s.forward);
        return result_of(i);
    }

    /// The compensation, given `result`. `is_known`: the store says that the forward action succeeded.
    void undo(std::size_t i, std::string_view result, bool is_known, const id& key) {
        auto& s = steps_[i];
        for (auto later = i + 1; later < steps_.size(); ++later) {
            report_if(steps_[later].has_effect && definition_.steps[later].has_undo(), i,
                      "is undone before a later step");
        }
        report_if(last_undone_ && i > *last_undone_, i, "is undone after an earlier step");
        report_if(s.has_rejected && !s.was_attempted, i, "is undone although it rejected");
        report_if(!s.was_attempted && !s.has_rejected, i, "is undone although it was never attempted");
        report_if(result != (is_known ? result_of(i) : std::string{}), i, "is undone with the wrong result");
        report_if(has_ended_, i, "is undone after the saga has ended");
        last_undone_ = i;
        s.was_undone = true;
        const auto fault = s.undo == step::habit::none ? choose("undo " + name(i), i) : action_fault::none;
        fail_before(fault, s.undo);
        if (fault == action_fault::rejects || s.undo == step::habit::rejects) {
            s.undo = step::habit::fails;
            throw reject("undo_rejected");
        }
        report_if(!s.undone_under.is_nil() && s.undone_under != key, i, "is undone twice, under two keys");
        s.undone_under = std::exchange(s.has_effect, false) ? key : s.undone_under;
        fail_after(fault, s.undo);
    }

    /// When the remote action that was just called replies. Resets to `at_once`.
    [[nodiscard]] reply_time take_reply_time() noexcept { return std::exchange(reply_, reply_time::at_once); }

    /// These claims, as they were claimed, are not settled in time. The steps they called, or may have called, may have
    /// had an effect, and their answers are lost.
    void lose_claims(const std::vector<entry>& claimed) {
        for (const auto& e : claimed) {
            const auto command = command_of(e);
            if (command && !command->is_compensation) {
                lose_answer(command->number - 1);
            } else if (!command) {
                const auto p = decode_progress(e.progress);
                if (p && may_call_action(*p)) {
                    lose_answer(p->at);
                }
            }
        }
    }
    void end() noexcept { has_ended_ = true; }
    /// Removes what makes steps fail, as an operator does before a resume.
    void repair() {
        has_ended_ = false;
        for (auto& s : steps_) {
            s.forward = s.undo = step::habit::none;
        }
    }

    [[nodiscard]] const std::vector<step>& steps() const noexcept { return steps_; }

  private:
    [[nodiscard]] static std::string result_of(std::size_t i) { return "r" + std::to_string(i); }

    void lose_answer(std::size_t i) {
        steps_.at(i).was_attempted = true;
        steps_.at(i).has_rejected = false;
    }
    /// Whether a claim of a saga with this progress calls a forward action in this process.
    [[nodiscard]] bool may_call_action(const saga_progress& p) const {
        const auto& steps = definition_.steps;
        if (p.direction != saga_direction::forward || p.at >= steps.size() || steps[p.at].is_remote()) {
            return false;
        }
        return p.at < p.steps.size() ? p.steps[p.at].state == step_state::begun : !steps[p.at].condition;
    }

    [[nodiscard]] action_fault choose(const std::string& where, std::size_t i) {
        const auto count = definition_.steps[i].is_remote() ? action_faults.size() : local_action_faults;
        return static_cast<action_fault>(
            process_.faults.choose(where, {action_faults.data(), action_faults.data() + count}));
    }

    void fail_before(action_fault fault, step::habit& habit) {
        habit = fault == action_fault::fails_always     ? step::habit::fails
                : fault == action_fault::crashes_always ? step::habit::crashes
                                                        : habit;
        if (fault == action_fault::crashes_before || habit == step::habit::crashes) {
            crash();
        }
        if (fault == action_fault::fails_once || habit == step::habit::fails) {
            throw failure("failed");
        }
    }
    void fail_after(action_fault fault, step::habit& habit) {
        if (fault == action_fault::crashes_after) {
            crash();
        }
        if (fault == action_fault::fails_after_always || fault == action_fault::fails_after_then_rejects) {
            habit = fault == action_fault::fails_after_always ? step::habit::fails : step::habit::rejects;
            throw failure("failed");
        }
        reply_ = fault == action_fault::replies_late          ? reply_time::after_timeout
                 : fault == action_fault::replies_after_lease ? reply_time::after_lease
                                                              : reply_time::at_once;
    }
    [[noreturn]] void crash() {
        process_.crash();
        throw failure("crash");
    }

    void report_if(bool is_wrong, std::size_t i, std::string_view what) {
        if (is_wrong) {
            wrong_.report("step " + name(i) + ' ' + std::string(what));
        }
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return definition_.steps[i].name; }

    const saga_definition& definition_;
    simulated_process& process_;
    first_violation& wrong_;
    std::vector<step> steps_{};
    std::optional<std::size_t> last_undone_{};
    reply_time reply_ = reply_time::at_once;
    bool has_ended_ = false;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/end_check.hpp
// Checks a saga that has ended: what the store says about it must agree with the effects that remain.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

enum class saga_end : std::uint8_t { none, completed, compensated, dead };

[[nodiscard]] inline saga_end end_of(const entry& ended) {
    const auto s = inspect(ended);
    return !s                    ? saga_end::none
           : s->is_completed()   ? saga_end::completed
           : s->is_compensated() ? saga_end::compensated
           : s->is_stuck()       ? saga_end::dead
                                 : saga_end::none;
}

/// The queue of the topics a saga emits at its end, if its options name none.
inline constexpr const char* end_topics_queue = "ends";

class end_check {
  public:
    end_check(const saga_definition& of, const step_effects& effects, const memory::store& store,
              first_violation& wrong) noexcept
        : definition_(of), effects_(effects), store_(store), wrong_(wrong) {}

    /// Reports what is wrong with the end of a saga. `was_cancelled`: its cancellation was requested in time.
    void run(const entry& ended, bool was_cancelled) {
        const auto end = end_of(ended);
        const auto status = inspect(ended);
        if (!status || end == saga_end::none) {
            wrong_.report("the ended saga cannot be inspected");
            return;
        }
        if (end == saga_end::completed && was_cancelled) {
            wrong_.report("the saga completed although its cancellation was requested");
        }
        check_emitted(definition_.options.completed, end == saga_end::completed);
        check_emitted(definition_.options.compensated, end == saga_end::compensated);
        for (std::size_t i = 0; i < definition_.steps.size(); ++i) {
            check_step(i, end, *status);
        }
        if (end == saga_end::dead && status->direction != saga_direction::back) {
            wrong_.report("the saga is dead and has not begun to compensate");
        }
    }

  private:
    void check_emitted(const std::string& topic, bool is_expected) {
        if (topic.empty()) {
            return;
        }
        auto q = query::all(definition_.options.queue.empty() ? end_topics_queue : definition_.options.queue);
        q.topic = topic;
        if (store_.list(q).size() != (is_expected ? 1U : 0U)) {
            wrong_.report("topic " + topic + (is_expected ? " was not emitted exactly once" : " was emitted"));
        }
    }

    void check_step(std::size_t i, saga_end end, const saga_status& status) {
        const auto& s = effects_.steps()[i];
        const auto& name = definition_.steps[i].name;
        if (end == saga_end::completed && (s.has_effect == s.is_skipped || s.was_undone)) {
            wrong_.report("the saga completed, and step " + name + " is not in effect");
        }
        if (i < status.steps.size() && status.steps[i].state == step_state::skipped && !s.is_skipped) {
            wrong_.report("step " + name + " is recorded as skipped although its condition is true");
        }
        const bool is_past = end == saga_end::compensated || (end == saga_end::dead && i > status.at);
        if (is_past && s.has_effect && definition_.steps[i].has_undo()) {
            wrong_.report("step " + name + " is still in effect");
        }
    }

    const saga_definition& definition_;
    const step_effects& effects_;
    const memory::store& store_;
    first_violation& wrong_;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/held_batches.hpp
// Batches that a simulated runner has handled and settles later, because it is slow.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

template <class Store>
class held_batches {
  public:
    struct held {
        std::unique_ptr<runner<Store>> by;
        typename runner<Store>::batch batch;
        time_point until;
    };

    void add(held one) { all_.push_back(std::move(one)); }
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

    /// Removes and returns the first batch whose time has come.
    [[nodiscard]] std::optional<held> take_due(time_point now) {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (all_[i].until <= now) {
                std::optional<held> out(std::move(all_[i]));
                all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
                return out;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<time_point> next() const {
        std::optional<time_point> first;
        for (const auto& one : all_) {
            first = !first || one.until < *first ? one.until : *first;
        }
        return first;
    }

  private:
    std::vector<held> all_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/stored_saga.hpp
// What the store says about the saga of a simulated run: its entry, those it was resumed from, and its commands.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class stored_saga {
  public:
    explicit stored_saga(const memory::store& in) noexcept : store_(in) {}

    /// Adds the saga's first entry, or the successor that a resume has inserted.
    void add(const id& entry) { entries_.push_back(entry); }
    [[nodiscard]] const id& current() const { return entries_.back(); }
    [[nodiscard]] std::optional<entry> find() const { return store_.find(current()); }

    /// The stored state of a step; nothing if the step has not begun or the saga is purged.
    [[nodiscard]] std::optional<step_state> state_of(std::size_t i) const {
        const auto found = find();
        const auto p = found ? decode_progress(found->progress) : std::nullopt;
        return p && i < p->steps.size() ? std::optional(p->steps[i].state) : std::nullopt;
    }

    /// Whether the saga's progress, or the step's command, says that the forward action succeeded.
    [[nodiscard]] bool is_known_done(std::size_t i) const {
        if (state_of(i) == step_state::done) {
            return true;
        }
        const auto sent = commands();
        return std::any_of(sent.begin(), sent.end(), [&](const entry& c) {
            const auto command = command_of(c);
            return command && command->number == i + 1 && !command->is_compensation && c.state == state::succeeded;
        });
    }

    /// The commands of the saga's entry, and of those it was resumed from.
    [[nodiscard]] std::vector<entry> commands() const {
        std::vector<entry> out;
        for (const auto& e : entries_) {
            for (auto& c : store_.list(query::children(e))) {
                out.push_back(std::move(c));
            }
        }
        return out;
    }

  private:
    const memory::store& store_;
    std::vector<id> entries_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/simulated_steps.hpp
// The actions, conditions and participants of a simulated run. They take the place of the definition's own, have their
// effects in `step_effects`, and report conditions that the engine asks at the wrong time.

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

struct run_options {
    /// Participants recognise a command they have carried out by its id, not by its key: they act again on a
    /// compensating command that is sent again.
    bool dedup_by_id = false;
    std::vector<bool> skipped{}; ///< by index: the step's condition is false. That of an `otherwise` step follows
};

/// The options with an answer for every step of the definition.
[[nodiscard]] inline run_options complete(run_options how, const saga_definition& d) {
    how.skipped.resize(d.steps.size());
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        how.skipped[i] = s.is_otherwise ? !how.skipped[i - 1] : how.skipped[i] && s.condition;
    }
    return how;
}

class simulated_steps {
  public:
    simulated_steps(const saga_definition& of, const run_options& how, step_effects& effects, const stored_saga& saga,
                    first_violation& wrong) noexcept
        : given_(of), how_(how), effects_(effects), saga_(saga), wrong_(wrong) {}
    simulated_steps(const simulated_steps&) = delete;
    simulated_steps& operator=(const simulated_steps&) = delete;

    /// The given definition's steps, policies and timeouts with simulated actions. It refers to this object.
    [[nodiscard]] saga_definition definition() {
        auto out = given_;
        out.check = nullptr;
        for (std::size_t i = 0; i < out.steps.size(); ++i) {
            auto& s = out.steps[i];
            if (s.condition && !s.is_otherwise) {
                s.condition = [this, i](const delivery&, const step_results&) { return answer(i); };
            }
            if (s.is_remote()) {
                make_remote(s);
            } else {
                make_local(s, i);
            }
        }
        return out;
    }

    /// Handles a command on behalf of its participant.
    [[nodiscard]] std::string handle_command(const delivery& d) {
        const auto command = command_of(d.entry());
        if (!command || d.entry().group.empty()) {
            wrong_.report("a participant cannot recognise a command");
            return {};
        }
        const auto i = command->number - 1;
        const auto& known_by = how_.dedup_by_id ? command->id : command->key;
        if (!command->is_compensation) {
            return effects_.run(i, known_by);
        }
        effects_.undo(i, command->payload, saga_.is_known_done(i), known_by);
        return {};
    }

  private:
    void make_local(saga_step& s, std::size_t i) {
        s.forward = [this, i](step_call& call) {
            check_answers(i);
            return effects_.run(i, call.key());
        };
        if (s.undo) {
            s.undo = [this, i](step_call& call) {
                effects_.undo(i, call.result(), saga_.is_known_done(i), call.key());
                return std::string(call.result());
            };
        }
    }
    static void make_remote(saga_step& s) {
        s.forward = [](step_call&) { return std::string{}; };
        if (s.undo) {
            s.undo = [](step_call& call) { return std::string(call.result()); };
        }
    }

    [[nodiscard]] bool is_undecided(std::size_t i) const {
        return saga_.state_of(i).value_or(step_state::undecided) == step_state::undecided;
    }
    /// The answer of a condition.
    [[nodiscard]] bool answer(std::size_t i) {
        if (!is_undecided(i)) {
            wrong_.report("the condition of step " + given_.steps[i].name +
                          " is asked again after its answer is stored");
        }
        return !how_.skipped[i];
    }
    /// No action may run while the answer of a condition up to that step is not stored.
    void check_answers(std::size_t up_to) {
        for (std::size_t i = 0; i <= up_to; ++i) {
            if (given_.steps[i].condition && is_undecided(i)) {
                wrong_.report("an action runs before the answer of the condition of step " + given_.steps[i].name +
                              " is stored");
            }
        }
    }

    const saga_definition& given_;
    const run_options& how_;
    step_effects& effects_;
    const stored_saga& saga_;
    first_violation& wrong_;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/saga/detail/saga_run.hpp
// One simulated run of one saga, on the shipped runner and engine, step by step through the runner's phases and in
// simulated time. Processes crash and restart on the same store, participants are unavailable, replies are late,
// cancellation is requested at any moment, time jumps past the expiry, and whatever may be purged is purged at once.
//
// The same definition and fault plan give the same run. Whatever a saga must never do is reported as a violation.

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

// ---- vouch/testing/saga/verify.hpp
// Checks a saga definition by simulation: runs the saga on the shipped engine and runner through every combination of a
// few faults, and checks each run.
//
//   CHECK(vouch::testing::verify(order_saga).is_sound());
//
// The faults: a step or its compensation fails, rejects, times out, crashes before or after its effect, or replies late;
// the process crashes before or after any commit; a runner is slower than its lease; the saga is cancelled, expires, or
// is abandoned and resumed. Every run must end completed, compensated, or dead; a dead saga must end compensated once
// the fault is repaired and the saga resumed. Every effect must be undone exactly when it should be, and only once for a
// participant that recognises a command by its key.
//
// `verify` checks the definition's shape, policies and timeouts, for every answer its conditions can give. It never
// calls the definition's own actions and conditions.

namespace vouch {
inline namespace v0 {
namespace testing {

/// How a participant recognises a command that it has already executed. With `command_id` it executes a compensating
/// command that is sent again a second time.
enum class dedup_by : std::uint8_t { key, command_id };

struct verify_options {
    std::size_t faults_max = 2;       ///< in one run; a fault that repeats, such as failing always, counts once
    std::size_t runs_max = 1'000'000; ///< a saga that needs more is reported as not sound
    dedup_by dedup = dedup_by::key;   ///< how the simulated participants recognise a command
};

struct verification {
    std::size_t runs = 0;
    std::size_t paths = 0;       ///< runs that differ in their store calls
    std::size_t completed = 0;   ///< of these paths
    std::size_t compensated = 0; ///< of these paths
    std::size_t dead = 0;        ///< of these paths, before the resume
    std::string violation{};     ///< what the first wrong run did; empty: every run was right
    std::string path{};          ///< the faults of that run

    [[nodiscard]] bool is_sound() const noexcept { return runs > 0 && violation.empty(); }
};

/// A summary of one line, and the violation with its path if there is one.
[[nodiscard]] inline std::string to_string(const verification& v) {
    auto out = std::to_string(v.paths) + " paths: " + std::to_string(v.completed) + " completed, " +
               std::to_string(v.compensated) + " compensated, " + std::to_string(v.dead) + " dead for an operator";
    return v.is_sound() ? out : out + "\nnot sound: " + v.violation + "\non the path: " + v.path;
}

namespace detail {

/// Every combination of answers of a definition's conditions: by index, whether the step is skipped.
[[nodiscard]] inline std::vector<std::vector<bool>> all_answers(const saga_definition& d) {
    std::vector<std::vector<bool>> out{std::vector<bool>(d.steps.size())};
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        if (d.steps[i].condition && !d.steps[i].is_otherwise) {
            const auto count = out.size();
            for (std::size_t n = 0; n < count; ++n) {
                out.push_back(out[n]);
                out.back()[i] = true;
            }
        }
    }
    return out;
}

/// `verify` on an engine with other rules, for tests of the verifier itself.
template <class Rules>
[[nodiscard]] verification verify_with(const saga_definition& definition, const verify_options& how = {}) {
    validate(definition);
    verification out;
    std::unordered_set<std::uint64_t> seen;
    for (const auto& skipped : all_answers(definition)) {
        std::vector<std::size_t> options;
        do {
            if (out.runs == how.runs_max) {
                out.violation = "not verified: more than runs_max = " + std::to_string(how.runs_max) +
                                " runs are needed; raise it or lower faults_max";
                return out;
            }
            fault_plan faults(std::move(options), how.faults_max);
            const auto result = saga_run<Rules>(definition, faults, {how.dedup == dedup_by::command_id, skipped}).run();
            out.runs += 1;
            if (seen.insert(result.calls).second) {
                out.paths += 1;
                out.completed += result.end == saga_end::completed ? 1U : 0U;
                out.compensated += result.end == saga_end::compensated ? 1U : 0U;
                out.dead += result.end == saga_end::dead ? 1U : 0U;
            }
            if (!result.violation.empty()) {
                out.violation = result.violation;
                out.path = result.path.empty() ? "no fault" : result.path;
                return out;
            }
            options = faults.next();
        } while (!options.empty());
    }
    return out;
}

} // namespace detail

/// Simulates every run of the saga with up to `faults_max` faults, and stops at the first one that is wrong. Throws
/// `invalid_argument` for a definition that cannot run.
[[nodiscard]] inline verification verify(const saga_definition& definition, const verify_options& how = {}) {
    return detail::verify_with<vouch::detail::saga_rules>(definition, how);
}

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/table.hpp
// Entries as a readable table, for a failing test or a debugger.

namespace vouch {
inline namespace v0 {
namespace testing {

/// A duration in its largest whole unit: 0, 90s, 5min, 2h, 250ms, -3us.
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

/// An id of `counting_ids` as its number, any other id in full.
[[nodiscard]] inline std::string to_text(const id& i) { return i.high == 0 ? std::to_string(i.low) : to_string(i); }

/// One row per entry; times are relative to `start`.
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
// Everything a unit test of a handler needs, in one object: a store, a clock that stands still, ids that count, an
// outbox, routers, runners, and a record of all events.
//
//   vouch::testing::sandbox box;
//   box.on("user.created", greet);
//   box.emit({.topic = "user.created", .payload = "ada"});
//   box.run_until_idle();
//   REQUIRE(box.emitted("mail.welcome") == 1);
//
// `sandbox` has a memory store of its own. To test what a handler records in its database, give the sandbox that store:
//
//   vouch::sqlite::store store(path);
//   vouch::testing::basic_sandbox box(store);
//
// A sandbox is used by one thread.

namespace vouch {
inline namespace v0 {
namespace testing {

struct sandbox_options {
    std::string queue = "test"; ///< the queue of handlers that are registered with `on`
    vouch::bindings bindings{}; ///< for emissions without a queue; empty: they all go to `queue`
    retry_policy retry{};       ///< for handlers without a policy of their own
    duration lease = std::chrono::minutes{5};
    std::size_t batch_size = 50;
    std::size_t passes_max = 1'000'000; ///< `run_until_idle` gives up after this many passes
};

/// The entry that runs next, and when.
struct upcoming {
    vouch::entry entry{};
    time_point at{};
};

/// A sandbox over any store. Its ids count from 1, so the store should be empty.
template <class Store>
class basic_sandbox {
  public:
    /// A sandbox with a store of its own.
    explicit basic_sandbox(sandbox_options options = {}) requires std::default_initializable<Store>
        : basic_sandbox(std::make_unique<Store>(), nullptr, std::move(options)) {}
    /// A sandbox over this store, which must outlive it.
    explicit basic_sandbox(Store& store, sandbox_options options = {})
        : basic_sandbox(nullptr, &store, std::move(options)) {}
    basic_sandbox(const basic_sandbox&) = delete;
    basic_sandbox& operator=(const basic_sandbox&) = delete;

    // Handlers. Those of the sandbox's own queue are registered with `on`, those of any other with `router(queue)`.

    /// Registers a handler, as `router::on` does.
    template <class Handler>
    basic_sandbox& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        router().on(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    basic_sandbox& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        router().template on<T>(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    /// Registers a batch handler, as `router::on_batch` does.
    template <class Handler>
    basic_sandbox& on_batch(std::string pattern, Handler&& handler, batch_options how = {}, retry_policy retry = {}) {
        router().on_batch(std::move(pattern), std::forward<Handler>(handler), how, std::move(retry));
        return *this;
    }
    /// Registers a saga definition, several versions of one as a `std::vector`, or a `webhook`.
    template <class Routable>
        requires requires(vouch::router<Store>& to, Routable&& what) { to.on(std::forward<Routable>(what)); }
    basic_sandbox& on(Routable&& what) {
        router().on(std::forward<Routable>(what));
        return *this;
    }
    /// The routes of the sandbox's own queue.
    [[nodiscard]] vouch::router<Store>& router() { return router(queue_); }
    /// The routes of a queue. From the first call on, the sandbox serves this queue too.
    [[nodiscard]] vouch::router<Store>& router(const std::string& queue) { return serve(queue).router; }

    // Work.

    /// Emits in a transaction of its own. Returns the receipt of the first entry, if there are several.
    receipt emit(const emission& e) { return outbox_.emit(e).front(); }
    /// Starts a saga in the sandbox's own queue and returns its id.
    template <class Saga, class Context>
    id start(const Saga& saga, const Context& context) {
        return outbox_.start(saga, queue_, context);
    }

    /// One pass over each queue: runs what is due now, up to `batch_size` entries of each.
    report run_once() {
        report total;
        for (auto& [queue, served] : served_) {
            total += served->runner.run_once();
        }
        return total;
    }
    /// Runs all queues until nothing is left to wait for. The clock jumps to the next moment at which something is due:
    /// a retry, a delay, or the end of a lease. Stops early if a failing hook holds up an outcome. Throws `misuse` if the
    /// work does not end within `passes_max` passes.
    report run_until_idle() {
        report total;
        for (std::size_t rounds = 0; rounds < how_.passes_max; ++rounds) {
            const auto round = run_round();
            total += round;
            if (round.held_up > 0) {
                return total;
            }
            if (round.claimed > 0) {
                continue;
            }
            const auto next = next_due();
            if (!next) {
                return total;
            }
            clock_.set(std::max(clock_(), *next));
        }
        throw error(error_kind::misuse, "sandbox: not idle after " + std::to_string(how_.passes_max) +
                                            " passes (passes_max); its handlers keep making work");
    }
    /// Moves the clock forward. Nothing runs.
    void pass(duration by) { clock_.pass(by); }

    // Results.

    /// The number of stored entries whose topic matches the pattern, in any queue.
    [[nodiscard]] std::size_t emitted(std::string_view pattern) const {
        const auto all = entries();
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [&](const entry& e) { return topic_matches(pattern, e.topic); }));
    }

    /// The entry of the queues served that can be claimed first, and when.
    [[nodiscard]] std::optional<upcoming> next() const {
        std::optional<upcoming> first;
        for (const auto& [queue, served] : served_) {
            std::set<std::string> lanes;
            for (auto& e : all(query::live(queue))) {
                if (!e.lane.empty() && !lanes.insert(e.lane).second) {
                    continue; // blocked by an earlier entry of its lane
                }
                const auto at = *gate_of(e);
                if (!first || at < first->at) {
                    first = upcoming{std::move(e), at};
                }
            }
        }
        return first;
    }

    /// Every entry, by queue and sequence. A memory store knows its queues; of any other store, these are the entries of
    /// the queues that the sandbox serves and of every queue that appeared in an event.
    [[nodiscard]] std::vector<entry> entries() const {
        std::vector<entry> out;
        for (const auto& queue : queues()) {
            auto found = all(query::all(queue));
            out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
        }
        return out;
    }
    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }
    /// All entries as a readable table; times are relative to `start()`.
    [[nodiscard]] std::string table() const { return testing::table(entries(), start_); }
    /// The events of the runners, in order.
    [[nodiscard]] std::vector<recorded_event> events() const { return recorder_.events(); }

    // Parts.

    [[nodiscard]] Store& store() noexcept { return store_; }
    [[nodiscard]] const manual_clock& clock() const noexcept { return clock_; }
    [[nodiscard]] vouch::outbox<Store>& outbox() noexcept { return outbox_; }
    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return outbox_; }
    /// The runner of the sandbox's own queue, for its hooks and phases.
    [[nodiscard]] vouch::runner<Store>& runner() { return runner(queue_); }
    /// The runner of a queue. From the first call on, the sandbox serves this queue too.
    [[nodiscard]] vouch::runner<Store>& runner(const std::string& queue) { return serve(queue).runner; }
    /// The time at which the clock stood when the sandbox was made.
    [[nodiscard]] time_point start() const noexcept { return start_; }

  private:
    /// Collects the queues of all events.
    struct queue_observer {
        std::set<std::string> queues{};
        void on(const event& e) noexcept { queues.emplace(e.queue); }
    };

    struct served_queue {
        served_queue(const vouch::outbox<Store>& from, runner_options how)
            : router(from), runner(from, router, std::move(how)) {}
        vouch::router<Store> router;
        vouch::runner<Store> runner;
    };

    basic_sandbox(std::unique_ptr<Store> owned, Store* given, sandbox_options options)
        : queue_(options.queue), start_(clock_()), owned_(std::move(owned)), store_(owned_ ? *owned_ : *given),
          outbox_(store_,
                  {.clock = clock_,
                   .ids = ids_,
                   .bindings = options.bindings.empty() ? bindings{}.bind("#", options.queue) : options.bindings}),
          how_{.worker = "sandbox",
               .batch_size = options.batch_size,
               .lease = options.lease,
               .retry = std::move(options.retry),
               .passes_max = options.passes_max} {
        outbox_.observe(seen_);
        serve(queue_);
    }

    served_queue& serve(const std::string& queue) {
        auto& served = served_[queue];
        if (!served) {
            auto how = how_;
            how.queue = queue;
            served = std::make_unique<served_queue>(outbox_, std::move(how));
            served->runner.observe(recorder_);
        }
        return *served;
    }

    report run_round() {
        report total;
        for (auto& [queue, served] : served_) {
            total += served->runner.run_until_idle();
        }
        return total;
    }

    [[nodiscard]] std::optional<time_point> next_due() const {
        std::optional<time_point> first;
        for (const auto& [queue, served] : served_) {
            const auto due = store_.next_due(queue);
            first = due && (!first || *due < *first) ? due : first;
        }
        return first;
    }

    [[nodiscard]] std::set<std::string> queues() const {
        if constexpr (requires { store_.queues(); }) {
            const auto stored = store_.queues();
            return {stored.begin(), stored.end()};
        } else {
            auto out = seen_.queues;
            for (const auto& [queue, served] : served_) {
                out.insert(queue);
            }
            return out;
        }
    }

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
    std::unique_ptr<Store> owned_; ///< null: the store is the caller's
    Store& store_;
    vouch::outbox<Store> outbox_;
    recorder recorder_;
    queue_observer seen_;
    runner_options how_; ///< without a queue
    std::map<std::string, std::unique_ptr<served_queue>> served_;
};

/// A sandbox over a memory store.
using sandbox = basic_sandbox<memory::store>;

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/sequence_diagram.hpp
// Recorded events as a Mermaid sequence diagram: the queues are the participants, an emission is an arrow to its queue,
// and the end of an emitted entry is an arrow back. Register one recorder with the runners of all queues involved.

namespace vouch {
inline namespace v0 {
namespace testing {

namespace detail {

class diagram {
  public:
    void add(const recorded_event& e) {
        switch (e.what) {
        case event_kind::enqueued: // by the entry that was settled just before
            sent_from_[e.id] = last_;
            arrow(last_, "->>", e.queue, e.topic);
            break;
        case event_kind::started:
            if (!sent_from_.contains(e.id) && e.attempt == 1 && started_.emplace(e.id, true).second) {
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + '\n';
            }
            break;
        case event_kind::succeeded:
        case event_kind::dead: end(e); break;
        case event_kind::retried: arrow(e.queue, "->>", e.queue, e.topic + " again" + note_of(e)); break;
        case event_kind::advanced:
            last_ = e.queue;
            if (!e.tag.empty()) { // a saga skips a step
                body_ += "    Note over " + alias(e.queue) + ": " + e.topic + note_of(e) + '\n';
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
        const auto what = e.topic + ' ' + std::string(name_of(e.what)) + note_of(e);
        if (const auto from = sent_from_.find(e.id); from != sent_from_.end()) {
            arrow(e.queue, "-->>", from->second, what);
        } else {
            body_ += "    Note over " + alias(e.queue) + ": " + what + '\n';
        }
    }
    [[nodiscard]] static std::string note_of(const recorded_event& e) {
        const auto& word = e.error.empty() ? e.tag : e.error;
        return word.empty() ? std::string{} : " (" + word + ')';
    }
    void arrow(const std::string& from, std::string_view how, const std::string& to, const std::string& what) {
        const auto start = alias(from);
        body_ += "    " + start + std::string(how) + alias(to) + ": " + what + '\n';
    }
    /// A queue may have any name; a participant in Mermaid may not.
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
    std::map<id, bool> started_{};
    std::string last_ = "outside";
    std::string body_{};
};

} // namespace detail

/// The Mermaid text of these events.
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

#endif // VOUCH_SINGLE_HEADER_TESTING
