// SPDX-License-Identifier: MIT
// An open transaction of a plain store: it works on a copy of the committed snapshot, which commit then replaces.
//
// Usually one transaction is open at a time. In an optimistic variant several are open, each on the snapshot that was
// committed when it began. Commit then repeats every operation on the present snapshot; a different answer is a
// conflict.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>

#include "shared_state.hpp"
#include "workspace.hpp"

namespace mutants {

class open_transaction {
  public:
    explicit open_transaction(std::shared_ptr<shared_state> in) : shared_(std::move(in)) {
        std::unique_lock lock(shared_->mutex);
        if (!shared_->variant.is_optimistic()) {
            if (shared_->is_writing && shared_->writer == std::this_thread::get_id()) {
                throw vouch::error(vouch::error_kind::misuse,
                                   "plain: this thread has a transaction open; begin would wait forever");
            }
            if (shared_->is_writing && shared_->is(trait::conflicts_instead_of_waiting)) {
                fail_in_conflict("another transaction is open");
            }
            shared_->wait_for_turn(lock);
        } else if (shared_->is_writing) { // only a mutant leaves it so
            throw vouch::error(vouch::error_kind::busy, "plain: the store is locked");
        } else {
            shared_->load();
        }
        if (shared_->is(defect::begin_is_once_per_thread) && !shared_->beginners.insert(begun_on_).second) {
            throw vouch::error(vouch::error_kind::misuse, "plain: this thread has a transaction open");
        }
        base_ = shared_->is(defect::begin_sees_uncommitted) ? shared_->shown : shared_->committed;
        version_ = shared_->version;
        is_spared_ = hooks().take_spared();
        prepare(workspace_, base_);
        workspace_.between_steps = [this](std::string_view step, bool releases) { between_steps(step, releases); };
    }
    open_transaction(const open_transaction&) = delete;
    open_transaction& operator=(const open_transaction&) = delete;
    ~open_transaction() {
        if (!is_over_) {
            roll_back();
        }
    }

    [[nodiscard]] const mutants::variant& variant() const noexcept { return shared_->variant; }
    [[nodiscard]] mutants::test_hooks& hooks() const noexcept { return *shared_->hooks; }
    [[nodiscard]] const snapshot& read_snapshot() const noexcept {
        return variant().is(defect::own_writes_are_invisible) ? base_ : workspace_.snapshot;
    }

    void expect_own_thread(defect d) const {
        if (variant().is(d) && begun_on_ != std::this_thread::get_id()) {
            throw vouch::error(vouch::error_kind::misuse, "plain: this transaction was begun on another thread");
        }
    }

    /// What another open transaction has made of an entry.
    [[nodiscard]] std::optional<vouch::entry> uncommitted_of_others(const vouch::id& wanted) const {
        const std::lock_guard lock(shared_->mutex);
        for (const auto& [who, ids] : shared_->touched) {
            if (const auto r = shared_->shown.find(wanted); who != this && ids.contains(wanted) && r) {
                return r->entry;
            }
        }
        return std::nullopt;
    }

    /// The first transaction of its handle.
    void mark_as_first() noexcept { is_first_ = true; }

    [[noreturn]] void fail_in_conflict(const std::string& why) const {
        throw vouch::error(vouch::error_kind::conflict,
                           "plain: " + why + "; repeat the transaction" +
                               (variant().is(trait::says_much) ? std::string(3000, '.') : ""),
                           {.in_doubt = variant().is(defect::conflict_is_in_doubt)});
    }

    void conflict_at_random() const {
        if (variant().conflicts_in_calls() && hooks().draw(1)) {
            fail_in_conflict("a random conflict");
        }
        if (variant().is(trait::conflicts_at_the_next_call)) {
            const std::lock_guard lock(shared_->mutex);
            if (shared_->version != version_) {
                fail_in_conflict("another transaction has committed");
            }
        }
        if (variant().is(trait::conflicts_at_random) && !is_spared_ && hooks().conflict_is_due()) {
            throw vouch::error(vouch::error_kind::conflict, "plain: a random conflict; repeat the transaction");
        }
    }

    /// Runs `operation(workspace)` and logs it, in case commit has to repeat it.
    template <class Operation>
    auto use(const Operation& operation) {
        expect_own_thread(defect::transaction_stays_on_its_thread);
        {
            const std::lock_guard lock(shared_->mutex);
            shared_->writer = std::this_thread::get_id();
            if (shared_->undone.erase(this) > 0) {
                undo();
            }
            if (variant().skips()) {
                workspace_.passed_over.clear();
                for (const auto& [who, ids] : shared_->touched) {
                    if (who != this) {
                        workspace_.passed_over.insert(ids.begin(), ids.end());
                    }
                }
            }
        }
        auto answer = operation(workspace_);
        hooks().step("the end of an operation");
        if (variant().is_optimistic()) {
            log_.push_back([operation, answer, passed_over = workspace_.passed_over](workspace& again) {
                again.passed_over = passed_over;
                return operation(again) == answer;
            });
        }
        const std::lock_guard lock(shared_->mutex);
        shared_->touched[this] = workspace_.written;
        if (variant().is(defect::uncommitted_is_visible) || variant().is(defect::begin_sees_uncommitted) ||
            variant().is(defect::find_shows_uncommitted_of_others)) {
            shared_->shown = workspace_.snapshot;
        }
        if (variant().is(defect::file_has_uncommitted_work)) {
            shared_->save(workspace_.snapshot);
        }
        if (variant().is(defect::wake_comes_before_commit)) {
            shared_->wake(std::exchange(workspace_.woken_queues, {}));
        }
        return answer;
    }

    /// Forgets what was written and stays open, which only a mutant does.
    void undo() {
        workspace_.snapshot = base_;
        workspace_.written.clear();
        workspace_.woken_queues.clear();
        log_.clear();
    }

    /// Publishes what was written and stays open, which only a mutant does. Requires the mutex.
    void publish_early() { shared_->committed = on_top(); }

    /// Ends the transaction after an error, which mutants do in wrong ways.
    void fail() {
        const std::lock_guard lock(shared_->mutex);
        if (variant().is(defect::failed_call_commits)) {
            publish_early();
        }
        for (const auto& one : workspace_.written) {
            const auto r = workspace_.snapshot.find(one);
            if (variant().is(defect::failed_call_keeps_keys) && r && !r->entry.key.empty()) {
                shared_->committed.keys.set({r->entry.queue, r->entry.key, r->entry.generation}, r);
            }
        }
        if (variant().is(defect::failed_call_keeps_the_lock)) {
            is_over_ = true;
            shared_->touched.erase(this);
        }
    }

    void commit() {
        expect_own_thread(defect::commit_stays_on_its_thread);
        {
            const std::lock_guard lock(shared_->mutex);
            if (shared_->undone.erase(this) > 0) {
                undo();
            }
        }
        if (is_first_ || (variant().conflicts_in_commits() && hooks().draw(90))) {
            fail_in_conflict("a conflict at commit");
        }
        try {
            hooks().step("the start of a commit");
        } catch (...) {
            if (variant().is(defect::failed_commit_leaves_open)) {
                throw;
            }
            if (variant().is(defect::failed_commit_returns_after_reopen)) {
                const std::lock_guard lock(shared_->mutex);
                for (const auto& one : workspace_.written) {
                    if (const auto r = workspace_.snapshot.find(one)) {
                        shared_->leaked.push_back(*r);
                    }
                }
            }
            if (variant().is(defect::failed_commit_keeps_the_lock)) {
                is_over_ = true;
                throw;
            }
            roll_back();
            if (variant().is(defect::commit_swallows_failure)) {
                return;
            }
            throw;
        }
        hooks().pause("commit");
        publish();
        hooks().pause("committed");
        try {
            hooks().step("the end of a commit", !variant().is(defect::commit_hides_doubt));
        } catch (...) {
            const std::lock_guard lock(shared_->mutex);
            shared_->in_doubt.clear();
            for (const auto& one : workspace_.written) {
                shared_->in_doubt.emplace_back(one, base_.find(one));
            }
            throw;
        }
    }

    void roll_back() noexcept {
        const std::lock_guard lock(shared_->mutex);
        if (variant().is(defect::rollback_undoes_later_transactions)) {
            for (const auto& [who, ids] : shared_->touched) {
                shared_->undone.insert(who);
            }
        }
        if (shared_->published.erase(this) > 0) {
            publish_early();
        }
        auto& committed = shared_->committed;
        std::size_t undone = 0;
        for (const auto& one : workspace_.written) {
            if (const auto kept = workspace_.snapshot.find(one);
                kept && variant().is(defect::rollback_undoes_1000) && ++undone > 1000) {
                committed.put(*kept);
            }
            const auto r = workspace_.snapshot.find(one);
            const auto before = base_.find(one);
            if (r && !before && variant().is(defect::rollback_keeps_new_entries)) {
                committed.put(*r);
            }
            if (r && !before && variant().is(defect::rollback_keeps_keys) && !r->entry.key.empty()) {
                committed.keys.set({r->entry.queue, r->entry.key, r->entry.generation}, r);
            }
            if (r && before && variant().is(defect::rollback_keeps_epochs)) {
                auto changed = *before;
                changed.entry.epoch = r->entry.epoch;
                committed.put(std::move(changed));
            }
            if (r && before && variant().is(defect::rollback_keeps_lapses)) {
                auto changed = *before;
                changed.entry.lapses = r->entry.lapses;
                committed.put(std::move(changed));
            }
            if (r && before && variant().is(defect::rollback_keeps_settles) && is_terminal(r->entry.state)) {
                committed.put(*r);
            }
            if (r && !before && variant().is(defect::reopen_finds_uncommitted)) {
                shared_->leaked.push_back(*r);
            }
        }
        end();
    }

  private:
    void prepare(workspace& d, const snapshot& from) const {
        d.snapshot = from;
        d.variant = shared_->variant;
        d.gap = shared_->is(trait::leaves_gaps) ? 1'000'000'007U : 0U;
        d.gap = shared_->is(trait::counts_in_thousands) ? 999U : d.gap;
        const bool counts = variant().is_optimistic() || is_race() || variant().is(trait::keeps_counting) ||
                            variant().is(trait::conflicts_often_and_leaves_gaps);
        if (variant().is(trait::counts_for_all_locations) && !shared_->file) { // of one process
            d.counter = [] {
                static std::atomic<std::uint64_t> all = 0;
                return ++all;
            };
        } else if (counts) {
            d.counter = [g = shared_.get()] { return ++g->sequences; };
        }
    }

    [[nodiscard]] bool is_race() const noexcept {
        using enum defect;
        for (const auto d : {enqueue_checks_then_inserts, claim_selects_then_updates, claim_selects_row_by_row,
                             settle_reads_then_writes, extend_reads_then_writes, nudge_reads_then_writes,
                             cancel_reads_then_writes, group_is_counted_too_early, group_is_counted_twice}) {
            if (variant().is(d)) {
                return true;
            }
        }
        return false;
    }

    /// The committed snapshot, overwritten with everything this transaction wrote.
    [[nodiscard]] snapshot on_top() const {
        auto merged = shared_->committed;
        for (const auto& one : workspace_.written) {
            if (const auto r = workspace_.snapshot.find(one)) {
                merged.put(*r);
            } else {
                merged.remove(one);
            }
        }
        return merged;
    }

    void between_steps(std::string_view step, bool releases) {
        if (!releases) {
            hooks().pause(step);
            return;
        }
        const bool shows = variant().is(defect::group_is_counted_twice);
        {
            const std::lock_guard lock(shared_->mutex);
            if (shows) {
                shared_->committed = on_top();
            }
            shared_->leave_turn();
        }
        std::this_thread::yield();
        hooks().pause(step);
        std::unique_lock lock(shared_->mutex);
        shared_->wait_for_turn(lock);
        for (const auto& one : workspace_.written) {
            if (const auto before = base_.find(one); shows && before) {
                shared_->committed.put(*before);
            }
        }
        workspace_.snapshot = on_top();
    }

    void publish() {
        std::unique_lock lock(shared_->mutex);
        shared_->synced = shared_->committed;
        auto next = workspace_.snapshot;
        if (variant().is_optimistic()) {
            shared_->lock_file();
            shared_->load();
            next = merged(); // throws `conflict`: the destructor rolls back
        }
        if (variant().is(defect::commit_shows_half) && workspace_.written.size() > 1) {
            if (const auto r = next.find(*workspace_.written.begin())) {
                shared_->committed.put(*r);
                lock.unlock();
                std::this_thread::yield();
                hooks().pause("half a commit");
                lock.lock();
            }
        }
        if (variant().is(defect::commit_loses_the_last_of_many) && workspace_.written.size() > 8) {
            next.remove(*workspace_.written.rbegin());
        }
        shared_->committed = std::move(next);
        shared_->version += 1;
        if (!variant().is(defect::wake_comes_before_commit)) {
            shared_->wake(workspace_.woken_queues);
        }
        if (shared_->file && variant().is(defect::file_is_written_in_halves) && !workspace_.written.empty()) {
            auto half = shared_->committed;
            half.remove(*workspace_.written.rbegin());
            shared_->save(half);
            hooks().pause("half a file");
        }
        shared_->save(shared_->committed);
        end();
    }

    /// What some mutants leave of a transaction that ends in a conflict.
    void leave_after_conflict() {
        if (variant().is(defect::conflict_keeps_its_writes)) {
            shared_->committed = on_top();
        }
        for (const auto& one : workspace_.written) {
            const auto r = workspace_.snapshot.find(one);
            if (r && variant().is(defect::conflict_keeps_keys) && !r->entry.key.empty()) {
                shared_->committed.keys.set({r->entry.queue, r->entry.key, r->entry.generation}, r);
            }
            if (r && variant().is(defect::conflict_keeps_claims) && r->entry.state == vouch::state::claimed) {
                shared_->committed.put(*r);
            }
        }
        if (variant().is(defect::conflict_undoes_the_winner)) {
            shared_->committed = base_;
        }
        shared_->is_writing = variant().is(defect::conflict_keeps_the_lock);
    }

    [[nodiscard]] snapshot merged() {
        if (variant().is(defect::conflict_hits_both)) {
            const bool is_hit = shared_->doomed.contains(this) || shared_->touched.size() > 1;
            for (const auto& [who, ids] : shared_->touched) {
                shared_->doomed.insert(who);
            }
            if (is_hit) {
                fail_in_conflict("another transaction is open");
            }
        }
        if (shared_->version == version_ || workspace_.written.empty()) {
            return workspace_.written.empty() ? shared_->committed : workspace_.snapshot;
        }
        if (variant().is(defect::commit_overwrites) || variant().is(defect::begin_sees_uncommitted)) {
            return on_top();
        }
        bool holds = !variant().is(trait::conflicts_at_any_overlap);
        workspace again;
        if (variant().is(defect::commit_checks_only_its_rows)) {
            for (const auto& one : workspace_.written) {
                holds = holds && shared_->committed.find(one) == base_.find(one);
            }
            again.snapshot = on_top();
        } else {
            prepare(again, shared_->committed);
            again.between_steps = [](std::string_view, bool) {};
            for (const auto& operation : log_) {
                holds = holds && operation(again);
            }
        }
        if (!holds) {
            leave_after_conflict();
            fail_in_conflict("another transaction has committed first");
        }
        if (variant().is(defect::commit_writes_what_it_computed_first)) {
            return on_top();
        }
        workspace_.woken_queues = again.woken_queues.empty() ? workspace_.woken_queues : again.woken_queues;
        return again.snapshot;
    }

    /// Requires the mutex.
    void end() noexcept {
        is_over_ = true;
        if (variant().is(defect::rollback_stays_on_its_thread) && begun_on_ != std::this_thread::get_id()) {
            return; // as a mutex would that only its own thread can unlock
        }
        if (!variant().is(defect::claim_skips_touched_forever)) {
            shared_->touched.erase(this);
        }
        shared_->beginners.erase(begun_on_);
        shared_->undone.erase(this);
        shared_->doomed.erase(this);
        shared_->shown = shared_->committed;
        if (!variant().is_optimistic()) {
            shared_->leave_turn();
        } else {
            shared_->unlock_file();
        }
    }

    std::shared_ptr<shared_state> shared_;
    std::thread::id begun_on_ = std::this_thread::get_id();
    snapshot base_{};
    std::uint64_t version_ = 0;
    workspace workspace_{};
    std::vector<std::function<bool(workspace&)>> log_{};
    bool is_over_ = false;
    bool is_first_ = false;  ///< it must end in a conflict
    bool is_spared_ = false; ///< the previous transaction had a conflict at random
};

} // namespace mutants
