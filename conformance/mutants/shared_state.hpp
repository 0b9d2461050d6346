// SPDX-License-Identifier: MIT
// What all handles and transactions of one plain store share: the committed snapshot, the turn to write, and the wake
// counters. The mutex guards every member that is neither const nor atomic.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>

#include "snapshot.hpp"
#include "state_file.hpp"
#include "state_mutex.hpp"
#include "test_hooks.hpp"
#include "variant.hpp"

namespace mutants {

/// A commit whose wake numbers change later.
struct late_wake {
    std::chrono::steady_clock::time_point from;
    std::vector<std::string> queues;
};

struct shared_state {
    shared_state(mutants::variant how, std::shared_ptr<mutants::test_hooks> below)
        : variant(how), hooks(std::move(below)), mutex(!how.is(defect::store_takes_no_lock)) {
        committed.variant = synced.variant = shown.variant = how;
    }

    const mutants::variant variant;
    const std::shared_ptr<mutants::test_hooks> hooks;

    state_mutex mutex;
    std::condition_variable_any turn_over{};
    std::condition_variable_any wakes_changed{};
    snapshot committed{};
    snapshot synced{}; ///< one commit behind; what some mutants read or restore
    snapshot shown{};  ///< with uncommitted writes, which some mutants show
    std::uint64_t version = 0;
    bool is_writing = false;
    std::thread::id writer{};
    std::map<const void*, std::set<id>> touched{}; ///< the entries each open transaction has touched
    std::set<std::thread::id> beginners{};         ///< with an open transaction, for the mutant that counts them
    std::map<std::string, std::uint64_t, std::less<>> wakes{};
    std::set<id> not_written{}; ///< lost in a crash, in one mutant
    std::vector<row> leaked{};  ///< rolled back, but restored by a reopen in one mutant
    std::weak_ptr<int> handles{};
    bool was_open = false;
    const void* last_writer = nullptr; ///< the handle, for the mutant whose wakes stay in one
    std::atomic<std::uint64_t> sequences = 0;
    std::atomic<std::uint64_t> calls = 0;
    std::shared_ptr<void> forgotten{};              ///< a transaction that a mutant never ends
    std::set<const void*> undone{};                 ///< open transactions whose writes a mutant has dropped
    std::set<const void*> doomed{};                 ///< open transactions that a mutant ends in a conflict
    std::set<const void*> published{};              ///< open transactions that a mutant commits too early
    std::vector<std::pair<id, row_ptr>> in_doubt{}; ///< what the last commit in doubt wrote over
    std::vector<late_wake> late_wakes{};            ///< commits whose wake numbers follow later

    [[nodiscard]] bool is(defect d) const noexcept { return variant.is(d); }
    [[nodiscard]] bool is(trait h) const noexcept { return variant.is(h); }
    [[nodiscard]] bool is(committing_defect d) const noexcept { return variant.is(d); }

    // The file that other processes see, if they may. These require the mutex.

    std::unique_ptr<state_file> file{};
    std::string unwritten{}; ///< in some mutants, what the file should have

    void share_through(const std::filesystem::path& folder) {
        file = std::make_unique<state_file>(folder);
        file->lock();
        if (!state_file::is_in(folder)) {
            file->save(state_file::bytes_of(committed, version, wakes));
        }
        file->unlock();
        file->load(committed, version, wakes);
        shown = synced = committed;
    }
    ~shared_state() {
        if (file && !unwritten.empty()) {
            file->save(unwritten);
        }
    }
    void load() {
        if (file && !is(defect::file_is_read_only_when_opened)) {
            const auto own_wakes = wakes;
            file->load(committed, version, wakes);
            sequences = std::max(sequences.load(), committed.last_sequence);
            shown = committed;
            wakes = is(defect::wakes_stay_in_the_process) ? own_wakes : wakes;
        }
    }
    void save(const snapshot& what) {
        if (!file) {
            return;
        }
        auto bytes = state_file::bytes_of(what, version, wakes);
        if (is(defect::file_is_written_when_closed)) {
            unwritten = std::move(bytes);
        } else if (is(defect::file_is_one_commit_behind)) {
            if (!unwritten.empty()) {
                file->save(unwritten);
            }
            unwritten = std::move(bytes);
        } else {
            file->save(bytes);
        }
    }
    void lock_file() {
        if (file && !is(defect::processes_do_not_exclude_each_other)) {
            file->lock();
        }
    }
    void unlock_file() {
        if (file) {
            file->unlock();
        }
    }

    // The turn to write. These require the mutex.

    void wait_for_turn(std::unique_lock<state_mutex>& lock) {
        const bool waits = !is(defect::store_takes_no_lock) && !is(defect::begin_does_not_wait);
        const auto is_free = [&] { return !is_writing || !waits; };
        if (!is(defect::rollback_stays_on_its_thread)) {
            turn_over.wait(lock, is_free);
        } else if (!turn_over.wait_for(lock, std::chrono::milliseconds{200}, is_free)) {
            throw vouch::error(vouch::error_kind::busy, "plain: another transaction is open");
        }
        is_writing = true;
        writer = std::this_thread::get_id();
        lock_file();
        load();
    }
    void leave_turn() {
        unlock_file();
        is_writing = false;
        turn_over.notify_all();
    }

    void wake(const std::vector<std::string>& queues) {
        if (is(trait::wakes_follow_later) && !file) { // another process would wait for ever
            constexpr std::chrono::milliseconds delay{3};
            late_wakes.push_back({std::chrono::steady_clock::now() + delay, queues});
            return;
        }
        wake_now(queues);
    }

    /// Changes the numbers whose time has come.
    void wake_late() {
        const auto now = std::chrono::steady_clock::now();
        for (const auto& one : late_wakes) {
            if (one.from <= now) {
                wake_now(one.queues);
            }
        }
        std::erase_if(late_wakes, [&](const late_wake& one) { return one.from <= now; });
    }

    void wake_now(const std::vector<std::string>& queues) {
        if (is(trait::wakes_every_queue)) {
            for (auto& [queue, n] : wakes) {
                n += 1;
            }
        }
        for (const auto& queue : queues) {
            if (is(defect::wake_is_for_one_queue_per_commit) && queue != queues.front()) {
                continue;
            }
            if (is(defect::wakes_are_kept_for_256_queues) &&
                std::distance(wakes.begin(), wakes.lower_bound(queue)) >= 256) {
                continue;
            }
            wakes[is(defect::wakes_are_kept_in_lower_case) ? folded(queue, fold::case_of_letters) : queue] +=
                is(defect::wakes_never_change) ? 0U : 1U;
        }
        if (is(defect::wait_wakes_one_waiter)) {
            wakes_changed.notify_one();
        } else {
            wakes_changed.notify_all();
        }
    }

    /// The number of a queue as callers see it.
    [[nodiscard]] std::uint64_t wake_number(const std::string& queue) {
        wake_late();
        load();
        const auto n = wakes[queue];
        constexpr std::uint64_t near_the_end = 5;
        if (is(trait::wakes_begin_high)) {
            return n - near_the_end; // the first numbers are the greatest there are
        }
        if (is(trait::wakes_count_down)) {
            return ~n;
        }
        if (is(trait::wakes_jump)) {
            return vouch::detail::mix(n);
        }
        if (is(defect::wake_number_alternates)) {
            return n % 2;
        }
        return is(defect::wake_number_has_eight_bits) ? n & 0xffU : n;
    }

    // Opening and crashing.

    void open_handle() {
        const std::lock_guard lock(mutex);
        if (was_open && handles.expired()) {
            reopen();
        }
        if (was_open && is(defect::open_releases_claims)) {
            release_claims();
        }
        was_open = true;
    }

    /// Takes over what the death of the process that used `dead` leaves.
    void inherit(shared_state& dead) {
        const std::lock_guard lock(dead.mutex);
        committed = is(defect::crash_loses_the_last_commit) ? dead.synced : dead.committed;
        if (is(defect::crash_loses_claimed)) {
            for (const auto& r : committed.all_rows()) {
                if (r->entry.state == vouch::state::claimed) {
                    committed.remove(r->entry.id);
                }
            }
        }
        if (is(defect::crash_loses_large_results)) {
            for (const auto& r : committed.all_rows()) {
                if (auto kept = *r; kept.entry.result && kept.entry.result->size() > 0xFFFF) {
                    kept.entry.result->clear();
                    committed.put(kept);
                }
            }
        }
        if (is(committing_defect::is_lost_in_a_crash)) {
            for (const auto& one : dead.not_written) {
                committed.remove(one);
            }
        }
        synced = dead.synced;
        shown = committed;
        sequences = dead.sequences.load();
        leaked = dead.leaked;
        in_doubt = dead.in_doubt;
        was_open = dead.was_open;
    }

  private:
    /// Drops some of what the last commit in doubt has written.
    void undo_doubt() {
        std::size_t left = is(defect::doubt_is_undone_by_reopen)   ? in_doubt.size()
                           : is(defect::doubt_is_halved_by_reopen) ? in_doubt.size() / 2
                                                                   : 0;
        for (const auto& [which, before] : in_doubt) {
            if (left == 0) {
                break;
            }
            left -= 1;
            if (before) {
                committed.put(*before);
            } else {
                committed.remove(which);
            }
        }
        in_doubt.clear();
    }

    void reopen() {
        undo_doubt();
        if (is(trait::lacks_durability)) {
            committed = {};
        }
        if (is(defect::reopen_loses_the_last_commit)) {
            committed = synced;
        }
        if (is(defect::reopen_releases_claims)) {
            release_claims();
        }
        for (auto& r : leaked) {
            committed.put(std::move(r));
        }
        leaked.clear();
        for (const auto& stored : committed.all_rows()) {
            auto r = *stored;
            if (is(defect::reopen_opens_lanes)) {
                r.gate = gate_of(r.entry);
            }
            if (is(defect::reopen_forgets_wake_marks)) {
                r.entry.woken = false;
            }
            if (is(defect::reopen_forgets_progress)) {
                r.entry.progress.clear();
            }
            if (is(defect::reopen_cuts_bytes_at_1024)) {
                r.entry.payload.resize(std::min<std::size_t>(r.entry.payload.size(), 1024));
                r.entry.progress.resize(std::min<std::size_t>(r.entry.progress.size(), 1024));
            }
            if (is(defect::reopen_keeps_eight_bits_of_epochs)) {
                r.entry.epoch &= 0xffU;
            }
            if (is(defect::reopen_loses_long_names)) {
                r.entry.worker.resize(std::min<std::size_t>(r.entry.worker.size(), 128));
                r.entry.topic.resize(std::min<std::size_t>(r.entry.topic.size(), 128));
            }
            if (is(defect::reopen_forgets_lapses)) {
                r.entry.lapses = 0;
            }
            committed.put(std::move(r));
        }
        if (is(defect::reopen_keeps_1000)) {
            std::size_t kept = 0;
            for (const auto& r : committed.all_rows()) {
                if (++kept > 1000) {
                    committed.remove(r->entry.id);
                }
            }
        }
        if (is(defect::reopen_frees_sequences)) {
            committed.last_sequence = 0;
            for (const auto& r : committed.all_rows()) {
                committed.last_sequence = std::max(committed.last_sequence, r->entry.sequence);
            }
        }
        shown = committed;
    }

    void release_claims() {
        for (const auto& stored : committed.all_rows()) {
            if (stored->entry.state == vouch::state::claimed) {
                auto r = *stored;
                r.entry.state = vouch::state::pending;
                r.entry.lease_until.reset();
                r.gate = r.entry.due_at;
                committed.put(std::move(r));
            }
        }
    }
};

} // namespace mutants
