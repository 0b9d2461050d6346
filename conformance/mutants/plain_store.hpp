// SPDX-License-Identifier: MIT
// A small, correct store in memory, written on the contract's own functions. Most mutants are this store with a defect:
// its `variant` says which, and the default is none. It declares every capability. Safe for concurrent use.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>

#include "plain_capabilities.hpp"
#include "plain_transaction.hpp"
#include "shared_state.hpp"
#include "snapshot_reader.hpp"
#include "waiter.hpp"

namespace mutants {

class plain_store {
    template <class Validate>
    void check(defect unless, const Validate& validate_it) const {
        if (!shared_->is(unless)) {
            validate_it(capabilities_of(shared_->variant));
        }
    }

    template <class Read>
    auto read(const Read& read) const {
        if (shared_->is(defect::reads_take_no_lock)) {
            shared_->load();
            return read(snapshot_reader(shared_->committed, shared_->variant));
        }
        snapshot seen;
        {
            std::unique_lock lock(shared_->mutex);
            if (shared_->is(defect::reads_wait_for_writers)) {
                shared_->turn_over.wait(lock, [&] { return !shared_->is_writing; });
            }
            if (!shared_->is_writing && !shared_->is(defect::file_is_read_once_per_transaction)) {
                shared_->load();
            }
            seen = shared_->is(defect::uncommitted_is_visible) ? shared_->shown : shared_->committed;
            if (shared_->is(defect::reads_are_one_commit_behind)) {
                seen = shared_->synced;
            }
        }
        return read(
            snapshot_reader(shared_->is(defect::handle_keeps_its_first_view) ? first_view_ : seen, shared_->variant));
    }

    std::shared_ptr<shared_state> shared_;
    std::shared_ptr<int> handle_; ///< expires with the last handle
    snapshot first_view_{};
    mutable id asked_for_{}; ///< in one mutant, the argument of `find`
    std::shared_ptr<std::atomic<bool>> has_begun_ = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<void> closing_{}; ///< what happens to other transactions when a mutant's handle is closed

  public:
    using transaction = plain_transaction;
    static constexpr int contract_level = vouch::contract_level;

    plain_store(std::shared_ptr<shared_state> on, std::shared_ptr<int> handle)
        : shared_(std::move(on)), handle_(std::move(handle)) {
        first_view_ = shared_->committed;
        if (shared_->is(defect::closing_a_handle_undoes_the_others) ||
            shared_->is(defect::closing_a_handle_commits_the_others)) {
            closing_ = std::shared_ptr<void>(shared_.get(), [of = shared_](void*) {
                const std::lock_guard lock(of->mutex);
                for (const auto& [who, ids] : of->touched) {
                    (of->is(defect::closing_a_handle_undoes_the_others) ? of->undone : of->published).insert(who);
                }
            });
        }
    }

    [[nodiscard]] vouch::capabilities capabilities() const {
        auto can = capabilities_of(shared_->variant);
        if (shared_->is(defect::capabilities_change)) {
            can.wakes = shared_->calls++ % 2 == 0;
        }
        return can;
    }

    [[nodiscard]] transaction begin() {
        try {
            shared_->hooks->step("begin", shared_->is(defect::begin_fails_in_doubt));
        } catch (...) {
            const std::lock_guard lock(shared_->mutex);
            if (shared_->is(defect::failed_begin_keeps_the_lock)) {
                shared_->is_writing = true;
                shared_->writer = std::this_thread::get_id();
            }
            throw;
        }
        if (shared_->is(trait::begins_slowly)) {
            std::this_thread::sleep_for(std::chrono::microseconds{200});
        }
        if (shared_->is(trait::conflicts_at_begin) && shared_->hooks->draw(33)) {
            throw vouch::error(vouch::error_kind::conflict, "plain: a conflict at begin");
        }
        if (shared_->is(defect::wakes_stay_in_the_handle) || shared_->is(defect::wait_hears_its_own_handle_only)) {
            const std::lock_guard lock(shared_->mutex);
            shared_->last_writer = this;
        }
        transaction out(shared_);
        if (shared_->is(trait::conflicts_at_first) && !has_begun_->exchange(true)) {
            out.mark_as_first();
        }
        return out;
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        if (shared_->is(defect::handle_is_for_one_thread)) {
            asked_for_ = wanted; // as a statement that all threads bind and step would
            std::this_thread::yield();
            return read([&](const snapshot_reader& r) { return r.find(asked_for_); });
        }
        return read([&](const snapshot_reader& r) { return r.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        check(defect::list_checks_nothing, [&](const auto& can) { validate(q, can.limits); });
        return read([&](const snapshot_reader& r) { return r.list(q); });
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return read([&](const snapshot_reader& r) { return r.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        check(defect::counts_check_nothing, [&](const auto& can) { vouch::validate_queue(queue, can.limits); });
        return read([&](const snapshot_reader& r) { return r.next_due(queue); });
    }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        vouch::validate_queue(queue, capabilities_of(shared_->variant).limits);
        const std::lock_guard lock(shared_->mutex);
        if (shared_->is(defect::wakes_stay_in_the_handle) && shared_->last_writer != this) {
            return 0;
        }
        return shared_->wake_number(std::string(queue));
    }

    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        vouch::validate_queue(queue, capabilities_of(shared_->variant).limits);
        return waiter(*shared_, queue, seen, this).wait(at_most, std::move(stop));
    }
};

} // namespace mutants
