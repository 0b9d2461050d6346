// SPDX-License-Identifier: MIT
// A transaction of a plain store: it works on a copy of the world, and commit puts that in the place of the old one.
//
// Usually one is open at a time. Side by side, by habit or by mistake, each starts from the world as it was; commit
// then carries out everything once more on the present one, and what does not come out as before is a conflict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
    explicit open_transaction(std::shared_ptr<ground> in) : ground_(std::move(in)) {
        std::unique_lock lock(ground_->mutex);
        if (!ground_->temper.is_optimistic()) {
            if (ground_->is_writing && ground_->writer == std::this_thread::get_id()) {
                throw vouch::error(vouch::error_kind::misuse,
                                   "plain: begin while this thread has a transaction open would wait for ever");
            }
            ground_->wait_for_turn(lock);
        }
        base_ = ground_->is(defect::begin_sees_uncommitted) ? ground_->shown : ground_->committed;
        version_ = ground_->version;
        is_spared_ = machinery().was_unlucky();
        prepare(desk_, base_);
        desk_.between = [this](std::string_view step, bool drops) { between(step, drops); };
    }
    open_transaction(const open_transaction&) = delete;
    open_transaction& operator=(const open_transaction&) = delete;
    ~open_transaction() {
        if (!is_over_) {
            roll_back();
        }
    }

    [[nodiscard]] const mutants::temper& temper() const noexcept { return ground_->temper; }
    [[nodiscard]] mutants::machinery& machinery() const noexcept { return *ground_->machinery; }
    [[nodiscard]] const world& read_world() const noexcept {
        return temper().is(defect::own_writes_are_invisible) ? base_ : desk_.world;
    }

    void conflict_at_random() const {
        if (temper().is(habit::conflicts_at_random) && !is_spared_ && machinery().is_unlucky()) {
            throw vouch::error(vouch::error_kind::conflict, "plain: for no particular reason");
        }
    }

    /// Runs `operation(desk)` and remembers it, in case commit has to do it again.
    template <class Operation>
    auto use(const Operation& operation) {
        {
            const std::lock_guard lock(ground_->mutex);
            ground_->writer = std::this_thread::get_id();
            if (temper().is(habit::skips_touched) || temper().is(defect::claim_skips_touched_for_ever)) {
                desk_.passed_over.clear();
                for (const auto& [who, ids] : ground_->touched) {
                    if (who != this) {
                        desk_.passed_over.insert(ids.begin(), ids.end());
                    }
                }
            }
        }
        auto answer = operation(desk_);
        machinery().step("the end of an operation");
        if (temper().is_optimistic()) {
            log_.push_back([operation, answer, passed_over = desk_.passed_over](desk& again) {
                again.passed_over = passed_over;
                return operation(again) == answer;
            });
        }
        const std::lock_guard lock(ground_->mutex);
        ground_->touched[this] = desk_.written;
        if (temper().is(defect::uncommitted_is_visible) || temper().is(defect::begin_sees_uncommitted)) {
            ground_->shown = desk_.world;
        }
        if (temper().is(defect::wake_comes_before_commit)) {
            ground_->wake(std::exchange(desk_.stirred, {}));
        }
        return answer;
    }

    void commit() {
        try {
            machinery().step("the begin of a commit");
        } catch (...) {
            if (temper().is(defect::failed_commit_keeps_the_turn)) {
                is_over_ = true;
                throw;
            }
            roll_back();
            if (temper().is(defect::commit_swallows_failure)) {
                return;
            }
            throw;
        }
        machinery().pause("commit");
        publish();
        machinery().pause("committed");
        machinery().step("the end of a commit", !temper().is(defect::commit_hides_doubt));
    }

    void roll_back() noexcept {
        const std::lock_guard lock(ground_->mutex);
        auto& committed = ground_->committed;
        for (const auto& one : desk_.written) {
            const auto r = desk_.world.find(one);
            const auto before = base_.find(one);
            if (r && !before && temper().is(defect::rollback_keeps_new_entries)) {
                committed.put(*r);
            }
            if (r && !before && temper().is(defect::rollback_keeps_keys) && !r->entry.key.empty()) {
                committed.keys.set({r->entry.queue, r->entry.key, r->entry.generation}, r);
            }
            if (r && before && temper().is(defect::rollback_keeps_epochs)) {
                auto changed = *before;
                changed.entry.epoch = r->entry.epoch;
                committed.put(std::move(changed));
            }
            if (r && before && temper().is(defect::rollback_keeps_lapses)) {
                auto changed = *before;
                changed.entry.lapses = r->entry.lapses;
                committed.put(std::move(changed));
            }
            if (r && before && temper().is(defect::rollback_keeps_settles) && is_terminal(r->entry.state)) {
                committed.put(*r);
            }
            if (r && !before && temper().is(defect::reopen_finds_uncommitted)) {
                ground_->leaked.push_back(*r);
            }
        }
        end();
    }

  private:
    void prepare(desk& d, const world& from) const {
        d.world = from;
        d.temper = ground_->temper;
        d.gap = ground_->is(habit::leaves_gaps) ? 1'000'000'007U : 0U;
        const bool counts = temper().is_optimistic() || is_race() || temper().is(habit::forgets_nothing);
        if (counts) {
            d.counter = [g = ground_.get()] { return ++g->sequences; };
        }
    }

    [[nodiscard]] bool is_race() const noexcept {
        using enum defect;
        for (const auto d : {enqueue_checks_then_inserts, claim_selects_then_updates, claim_goes_row_by_row,
                             settle_reads_then_writes, extend_reads_then_writes, nudge_reads_then_writes,
                             cancel_reads_then_writes, group_is_counted_too_early, group_is_counted_twice}) {
            if (temper().is(d)) {
                return true;
            }
        }
        return false;
    }

    /// The present world with everything this transaction wrote on top, whatever it was written over.
    [[nodiscard]] world on_top() const {
        auto merged = ground_->committed;
        for (const auto& one : desk_.written) {
            if (const auto r = desk_.world.find(one)) {
                merged.put(*r);
            } else {
                merged.remove(one);
            }
        }
        return merged;
    }

    void between(std::string_view step, bool drops) {
        if (!drops) {
            machinery().pause(step);
            return;
        }
        const bool shows = temper().is(defect::group_is_counted_twice);
        {
            const std::lock_guard lock(ground_->mutex);
            if (shows) {
                ground_->committed = on_top();
            }
            ground_->leave_turn();
        }
        std::this_thread::yield();
        machinery().pause(step);
        std::unique_lock lock(ground_->mutex);
        ground_->wait_for_turn(lock);
        for (const auto& one : desk_.written) {
            if (const auto before = base_.find(one); shows && before) {
                ground_->committed.put(*before);
            }
        }
        desk_.world = on_top();
    }

    void publish() {
        std::unique_lock lock(ground_->mutex);
        ground_->synced = ground_->committed;
        auto next = desk_.world;
        if (temper().is_optimistic()) {
            next = merged(); // or throws `conflict`, and the destructor ends it
        }
        if (temper().is(defect::commit_shows_half) && desk_.written.size() > 1) {
            if (const auto r = next.find(*desk_.written.begin())) {
                ground_->committed.put(*r);
                lock.unlock();
                std::this_thread::yield();
                machinery().pause("half a commit");
                lock.lock();
            }
        }
        if (temper().is(defect::commit_loses_the_last_of_many) && desk_.written.size() > 8) {
            next.remove(*desk_.written.rbegin());
        }
        ground_->committed = std::move(next);
        ground_->version += 1;
        if (!temper().is(defect::wake_comes_before_commit)) {
            ground_->wake(desk_.stirred);
        }
        end();
    }

    [[nodiscard]] world merged() {
        if (ground_->version == version_ || desk_.written.empty()) {
            return desk_.written.empty() ? ground_->committed : desk_.world;
        }
        if (temper().is(defect::commit_overwrites) || temper().is(defect::begin_sees_uncommitted)) {
            return on_top();
        }
        bool holds = true;
        desk again;
        if (temper().is(defect::commit_checks_only_its_rows)) {
            for (const auto& one : desk_.written) {
                holds = holds && ground_->committed.find(one) == base_.find(one);
            }
            again.world = on_top();
        } else {
            prepare(again, ground_->committed);
            again.between = [](std::string_view, bool) {};
            for (const auto& operation : log_) {
                holds = holds && operation(again);
            }
        }
        if (!holds) {
            if (temper().is(defect::conflict_is_kept)) {
                ground_->committed = on_top();
            }
            throw vouch::error(vouch::error_kind::conflict, "plain: somebody else has committed first");
        }
        desk_.stirred = again.stirred.empty() ? desk_.stirred : again.stirred;
        return again.world;
    }

    /// With the mutex locked.
    void end() noexcept {
        is_over_ = true;
        if (!temper().is(defect::claim_skips_touched_for_ever)) {
            ground_->touched.erase(this);
        }
        ground_->shown = ground_->committed;
        if (!temper().is_optimistic()) {
            ground_->leave_turn();
        }
    }

    std::shared_ptr<ground> ground_;
    world base_{};
    std::uint64_t version_ = 0;
    desk desk_{};
    std::vector<std::function<bool(desk&)>> log_{};
    bool is_over_ = false;
    bool is_spared_ = false; ///< the one before had a conflict
};

} // namespace mutants
