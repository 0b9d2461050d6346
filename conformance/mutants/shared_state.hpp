// SPDX-License-Identifier: MIT
// What all handles and transactions of one plain store share: the committed world, whose turn it is, who waits; and the
// machinery underneath, which a test may make pause or fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>

#include "snapshot.hpp"
#include "variant.hpp"

namespace mutants {

/// One per fixture.
class machinery {
  public:
    using callback = std::function<void(std::string_view)>;

    void set_seam(callback f) {
        const std::lock_guard lock(mutex_);
        seam_ = f ? std::make_shared<callback>(std::move(f)) : nullptr;
    }
    /// Between two steps: others may go on here, as far as nobody holds them up.
    void pause(std::string_view step) {
        std::shared_ptr<callback> f;
        {
            const std::lock_guard lock(mutex_);
            f = seam_;
        }
        if (f) {
            (*f)(step);
        }
    }

    bool fail_at(std::size_t n) {
        left_ = n;
        return failed_.exchange(false);
    }
    /// Throws if it is this step that is to fail.
    void step(std::string_view what, bool in_doubt = false) {
        auto left = left_.load();
        while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
        }
        if (left == 1) {
            failed_ = true;
            throw vouch::error(vouch::error_kind::io, "plain: the machinery failed at " + std::string(what),
                               {.in_doubt = in_doubt});
        }
    }

    /// Every so often, in the stores that have conflicts for no reason; the transaction after that one is spared.
    bool is_unlucky() {
        constexpr std::uint64_t often = 53;
        const bool is = ++calls_ % often == 0;
        spares_ = is || spares_;
        return is;
    }
    bool was_unlucky() { return spares_.exchange(false); }

  private:
    std::atomic<std::uint64_t> calls_ = 0;
    std::atomic<bool> spares_ = false;
    std::mutex mutex_{};
    std::shared_ptr<callback> seam_{};
    std::atomic<std::size_t> left_ = 0;
    std::atomic<bool> failed_ = false;
};

struct ground {
    ground(mutants::temper how, std::shared_ptr<mutants::machinery> below) : temper(how), machinery(std::move(below)) {}

    const mutants::temper temper;
    const std::shared_ptr<mutants::machinery> machinery;

    std::mutex mutex{};
    std::condition_variable turn_over{};
    std::condition_variable_any stirred{};
    world committed{};
    world synced{}; ///< what outlives a crash, in stores that take their time
    world shown{};  ///< with what is not committed, in stores that show it
    std::uint64_t version = 0;
    bool is_writing = false;
    std::thread::id writer{};
    std::map<const void*, std::set<id>> touched{}; ///< by open transactions
    std::map<std::string, std::uint64_t, std::less<>> wakes{};
    std::vector<row> leaked{}; ///< rolled back, and remembered all the same
    std::weak_ptr<int> handles{};
    bool was_open = false;
    const void* last_writer = nullptr; ///< the handle, in stores that tell nobody else
    std::atomic<std::uint64_t> sequences = 0;
    std::atomic<std::uint64_t> calls = 0;

    [[nodiscard]] bool is(defect d) const noexcept { return temper.is(d); }
    [[nodiscard]] bool is(habit h) const noexcept { return temper.is(h); }

    // Turns. All with the mutex locked.

    void wait_for_turn(std::unique_lock<std::mutex>& lock) {
        turn_over.wait(lock, [&] { return !is_writing; });
        is_writing = true;
        writer = std::this_thread::get_id();
    }
    void leave_turn() {
        is_writing = false;
        turn_over.notify_all();
    }

    void wake(const std::vector<std::string>& queues) {
        if (is(habit::wakes_for_anything)) {
            for (auto& [queue, n] : wakes) {
                n += 1;
            }
        }
        for (const auto& queue : queues) {
            wakes[queue] += is(defect::wakes_never_change) ? 0U : 1U;
        }
        stirred.notify_all();
    }

    // Life and death of the process.

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

    void crash() {
        const std::lock_guard lock(mutex);
        if (is(defect::crash_loses_the_claimed)) {
            for (const auto& r : committed.everything()) {
                if (r->entry.state == vouch::state::claimed) {
                    committed.remove(r->entry.id);
                }
            }
        }
        if (is(defect::crash_loses_the_last_commit)) {
            committed = synced;
        }
        shown = committed;
    }

  private:
    void reopen() {
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
        for (const auto& stored : committed.everything()) {
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
            if (is(defect::reopen_forgets_lapses)) {
                r.entry.lapses = 0;
            }
            committed.put(std::move(r));
        }
        if (is(defect::reopen_frees_sequences)) {
            committed.last_sequence = 0;
            for (const auto& r : committed.everything()) {
                committed.last_sequence = std::max(committed.last_sequence, r->entry.sequence);
            }
        }
        shown = committed;
    }

    void release_claims() {
        for (const auto& stored : committed.everything()) {
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
