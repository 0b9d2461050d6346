// SPDX-License-Identifier: MIT
// A worker on a store whose transactions can fail as planned.
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

/// Makes the next transactions fail as planned; later ones succeed. It must outlive the worker's run.
class failure_plan {
  public:
    enum class fault { none, begin_fails, rolled_back_in_doubt, committed_in_doubt };

    failure_plan(fault_hooks& hooks, std::deque<fault> plan, error_kind kind = error_kind::io)
        : plan_(std::move(plan)), kind_(kind) {
        hooks.at_begin = [this] {
            const std::lock_guard lock(mutex_);
            if (!plan_.empty() && plan_.front() == fault::begin_fails) {
                plan_.pop_front();
                throw vouch::error(kind_, "planned");
            }
        };
        hooks.at_commit = [this](const std::function<void()>& commit) {
            const auto next = take();
            if (next != fault::rolled_back_in_doubt) {
                commit();
            }
            if (next != fault::none) {
                throw vouch::error(kind_, "planned", {.in_doubt = true});
            }
        };
    }

    [[nodiscard]] bool is_over() const {
        const std::lock_guard lock(mutex_);
        return plan_.empty();
    }

  private:
    [[nodiscard]] fault take() {
        const std::lock_guard lock(mutex_);
        if (plan_.empty()) {
            return fault::none;
        }
        const auto next = plan_.front();
        plan_.pop_front();
        return next;
    }

    mutable std::mutex mutex_;
    std::deque<fault> plan_;
    error_kind kind_;
};

using fault = failure_plan::fault;

struct worker_fixture {
    dropped_wakes_store store{};
    vouch::outbox<dropped_wakes_store> outbox{store};
    vouch::testing::recorder seen{};
    std::atomic<int> calls = 0;
    vouch::router<dropped_wakes_store> routes{outbox};
    vouch::worker<dropped_wakes_store> worker{outbox,
                                              {.poll_interval = 20ms, .store_backoff = {.base = 1ms, .max = 20ms}}};

    explicit worker_fixture(vouch::queue_options served = {.queue = "q"}) {
        routes.on("t", [this](vouch::delivery& d) {
            ++calls;
            d.emit({.queue = "effects", .topic = "done"});
        });
        worker.serve(routes, std::move(served));
        worker.observe(seen);
    }

    void emit(std::size_t count) { emit_many(store.plain(), outbox, count, {.queue = "q", .topic = "t"}); }
    [[nodiscard]] bool all_succeeded(std::size_t count) {
        return eventually([&] { return count_of(store, state::succeeded) == count; });
    }
};

} // namespace worker_test
