// SPDX-License-Identifier: MIT
// The threads of this process that wait for work in a file, and the numbers that end their waits. A commit of this process
// wakes the threads that wait for one of its queues. To notice commits of other processes, one of the waiting threads, the
// watcher, also looks at the file, and wakes those whose queues they concern.
//
// Safe for any number of threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/sqlite/detail/file_events.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class wake_ups {
  public:
    using clock = std::chrono::steady_clock;

    explicit wake_ups(const std::string& database) : events_(database) {}

    /// The number of wake-ups of the queue by this process.
    [[nodiscard]] std::uint64_t count_of(std::string_view queue) {
        const std::lock_guard lock(mutex_);
        return count(queue);
    }

    /// A commit of this process may have made work in these queues due sooner.
    void wake(const std::vector<std::string>& queues) noexcept {
        const std::lock_guard lock(mutex_);
        for (const auto& queue : queues) {
            const bool is_counted = try_to_count(queue);
            for (auto* one = first_; one != nullptr; one = one->next) {
                if (one->queue == queue || !is_counted) {
                    notify(*one);
                }
            }
        }
    }

    /// What a thread knew when it decided to wait.
    struct start {
        std::uint64_t count = 0;   ///< `count_of` its queue
        std::uint64_t commits = 0; ///< `commits` of its source
        std::uint64_t foreign = 0; ///< `count_foreign` of its source
    };

    /// Waits until `count_of` the queue or `count_foreign` has changed, until `until`, or a stop is requested. May also
    /// return earlier. `Source` says what other processes have done:
    ///  1. `std::uint64_t commits()` grows with their commits;
    ///  2. `std::uint64_t count_foreign(const std::string& queue)` grows with those that concern the queue;
    ///  3. `clock::duration look_every(bool is_told)` is how often to look, if the system tells of commits or not.
    template <class Source>
    void wait(Source& of, std::string_view queue, const start& from, clock::time_point until,
              const std::stop_token& stop) {
        waiter me{.source = &of, .queue = queue, .foreign = from.foreign};
        const std::stop_callback on_stop(stop, [&] {
            const std::lock_guard lock(mutex_);
            me.is_woken = true;
            notify(me);
        });
        std::unique_lock lock(mutex_);
        if (commits_ > from.commits) {
            return; // noticed since the thread has looked
        }
        add(me);
        while (!me.is_woken && count(queue) == from.count && clock::now() < until) {
            if (watcher_ == nullptr) {
                watcher_ = &me;
            }
            if (watcher_ == &me) {
                watch(lock, of, until);
            } else {
                me.changed.wait_until(lock, until);
            }
        }
        remove(me);
    }

  private:
    struct waiter {
        const void* source = nullptr;
        std::string_view queue{};
        std::uint64_t foreign = 0;
        bool is_woken = false;
        std::condition_variable changed{};
        waiter* next = nullptr;
    };

    [[nodiscard]] std::uint64_t count(std::string_view queue) const {
        const auto found = counts_.find(queue);
        return found == counts_.end() ? uncounted_ : found->second + uncounted_;
    }

    /// If there is no memory for the name, every queue is woken.
    bool try_to_count(const std::string& queue) noexcept {
        try {
            counts_[queue] += 1;
            return true;
        } catch (...) {
            uncounted_ += 1;
            return false;
        }
    }

    void add(waiter& one) noexcept { one.next = std::exchange(first_, &one); }

    /// The next thread in the list becomes the watcher, if this one was.
    void remove(waiter& one) noexcept {
        auto** at = &first_;
        while (*at != &one) {
            at = &(*at)->next;
        }
        *at = one.next;
        if (watcher_ == &one) {
            watcher_ = nullptr;
            if (first_ != nullptr) {
                first_->changed.notify_one();
            }
        }
    }

    void notify(waiter& one) noexcept {
        if (watcher_ == &one) {
            events_.interrupt();
        } else {
            one.changed.notify_one();
        }
    }

    void wake_all_but_of(const void* source) noexcept {
        for (auto* one = first_; one != nullptr; one = one->next) {
            if (one->source != source) {
                one->is_woken = true;
                notify(*one);
            }
        }
    }

    /// Waits for one event, and acts on what other processes have committed. Unlocks meanwhile.
    template <class Source>
    void watch(std::unique_lock<std::mutex>& lock, Source& of, clock::time_point until) {
        const auto known = commits_;
        lock.unlock();
        std::optional<std::uint64_t> now;
        try {
            const bool is_told = events_.begin();
            now = of.commits();
            if (*now == known) {
                events_.wait(std::min(until, clock::now() + pause_before_look(of.look_every(is_told))));
                now = of.commits();
            }
        } catch (...) { // each waiting thread finds out for itself
            now.reset();
        }
        lock.lock();
        if (!now) {
            wake_all_but_of(nullptr);
        } else if (*now != known) {
            commits_ = *now;
            wake_all_but_of(&of);
            wake_changed(lock, of);
        }
    }

    /// A commit can be seen only a moment after its last write, as long as the disk takes. So the watcher looks soon after
    /// a write, and then ever more rarely.
    [[nodiscard]] clock::duration pause_before_look(clock::duration usual) const noexcept {
        constexpr std::chrono::microseconds soonest{300};
        constexpr std::chrono::milliseconds slowest_disk{500};
        const auto since = events_.since_write();
        return since < slowest_disk ? std::clamp<clock::duration>(since, soonest, usual) : usual;
    }

    /// Wakes the threads whose queues the commits of other processes concern.
    template <class Source>
    void wake_changed(std::unique_lock<std::mutex>& lock, Source& of) {
        try {
            std::map<std::string, std::uint64_t, std::less<>> foreign;
            for (auto* one = first_; one != nullptr; one = one->next) {
                if (one->source == &of) {
                    foreign.try_emplace(std::string(one->queue));
                }
            }
            lock.unlock();
            for (auto& [queue, count] : foreign) {
                count = of.count_foreign(queue);
            }
            lock.lock();
            for (auto* one = first_; one != nullptr; one = one->next) {
                const auto now = foreign.find(one->queue);
                if (one->source == &of && now != foreign.end() && now->second != one->foreign) {
                    one->is_woken = true;
                    notify(*one);
                }
            }
        } catch (...) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            wake_all_but_of(nullptr);
        }
    }

    std::mutex mutex_{};
    file_events events_;
    std::map<std::string, std::uint64_t, std::less<>> counts_{};
    std::uint64_t uncounted_ = 0;
    waiter* first_ = nullptr;
    waiter* watcher_ = nullptr;
    std::uint64_t commits_ = 0; ///< of other processes, as far as a watcher has noticed them
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
