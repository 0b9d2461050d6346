// SPDX-License-Identifier: MIT
// A worker on a store that fails as planned.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "worker_support.hpp"

namespace worker_test {

using vouch::error_kind;
using vouch::event_kind;
using vouch::state;

/// Makes the next transactions fail as planned; later ones succeed.
class bad_luck {
  public:
    enum class fate { fine, begin_fails, lost_in_doubt, landed_in_doubt };

    bad_luck(tripwire& wire, std::deque<fate> plan, error_kind kind = error_kind::io)
        : plan_(std::move(plan)), kind_(kind) {
        wire.at_begin = [this] {
            const std::lock_guard lock(mutex_);
            if (!plan_.empty() && plan_.front() == fate::begin_fails) {
                plan_.pop_front();
                throw vouch::error(kind_, "planned");
            }
        };
        wire.at_commit = [this](const std::function<void()>& commit) {
            const auto next = take();
            if (next != fate::lost_in_doubt) {
                commit();
            }
            if (next != fate::fine) {
                throw vouch::error(kind_, "planned", {.in_doubt = true});
            }
        };
    }

    [[nodiscard]] bool is_over() const {
        const std::lock_guard lock(mutex_);
        return plan_.empty();
    }

  private:
    [[nodiscard]] fate take() {
        const std::lock_guard lock(mutex_);
        if (plan_.empty()) {
            return fate::fine;
        }
        const auto next = plan_.front();
        plan_.pop_front();
        return next;
    }

    mutable std::mutex mutex_;
    std::deque<fate> plan_;
    error_kind kind_;
};

using fate = bad_luck::fate;

struct troubled {
    deaf_store store{};
    vouch::outbox<deaf_store> outbox{store};
    vouch::testing::recorder seen{};
    std::atomic<int> calls = 0;
    vouch::router<deaf_store> routes{outbox};
    vouch::worker<deaf_store> worker{outbox, {.poll_interval = 20ms, .store_backoff = {.base = 1ms, .max = 20ms}}};

    explicit troubled(vouch::queue_options served = {.queue = "q"}) {
        routes.on("t", [this](vouch::delivery& d) {
            ++calls;
            d.emit({.queue = "effects", .topic = "done"});
        });
        worker.serve(routes, std::move(served));
        worker.observe(seen);
    }

    void emit(std::size_t count) { emit_many(store.plain(), outbox, count, {.queue = "q", .topic = "t"}); }
    [[nodiscard]] bool all_succeeded(std::size_t count) {
        return comes_true([&] { return count_of(store, state::succeeded) == count; });
    }
};

} // namespace worker_test
