// SPDX-License-Identifier: MIT
// Helpers for the worker's tests: memory stores whose transactions can fail and whose wake-ups are missing, a worker
// that runs on a thread of its own, and waiting for a condition.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "support.hpp"

namespace worker_test {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Polls until `p` holds. Returns false after a time that is enough on a slow machine.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate&& p, std::chrono::milliseconds within = 20s) {
    const auto until = steady_clock::now() + within;
    while (!p()) {
        if (steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// Hooks into begin, claim and commit. A test sets the functions before the worker runs; several threads call them.
struct fault_hooks {
    std::function<void()> at_begin{};                                     ///< may throw
    std::function<void(const std::function<void()>& commit)> at_commit{}; ///< may call `commit`; may throw
    std::atomic<bool> claims_nothing = false; ///< claims return nothing, as if other transactions held every entry
    std::atomic<std::size_t> commits = 0;     ///< number of attempted commits
};

class faulty_transaction {
  public:
    faulty_transaction(vouch::memory::transaction tx, std::shared_ptr<fault_hooks> w)
        : tx_(std::move(tx)), hooks_(std::move(w)) {}

    auto find(const vouch::id& i) const { return tx_.find(i); }
    auto list(const vouch::query& q) const { return tx_.list(q); }
    auto counts(std::string_view queue) const { return tx_.counts(queue); }
    auto next_due(std::string_view queue) const { return tx_.next_due(queue); }
    auto enqueue(std::span<const vouch::draft> drafts, vouch::time_point now) { return tx_.enqueue(drafts, now); }
    auto claim(const vouch::claim_request& r) {
        return hooks_->claims_nothing ? std::vector<vouch::entry>{} : tx_.claim(r);
    }
    auto settle(std::span<const vouch::settle> settles, vouch::time_point now) { return tx_.settle(settles, now); }
    auto extend(std::span<const vouch::ticket> tickets, vouch::time_point now, vouch::duration lease) {
        return tx_.extend(tickets, now, lease);
    }
    auto nudge(const vouch::id& i, vouch::time_point now) { return tx_.nudge(i, now); }
    auto cancel(const vouch::id& i, std::string_view error, vouch::time_point now) { return tx_.cancel(i, error, now); }
    auto purge(const vouch::purge_request& r) { return tx_.purge(r); }
    void commit() {
        ++hooks_->commits;
        auto tx = std::move(tx_); // so that it is closed in any case
        if (hooks_->at_commit) {
            hooks_->at_commit([&] { tx.commit(); });
        } else {
            tx.commit();
        }
    }

  private:
    vouch::memory::transaction tx_;
    std::shared_ptr<fault_hooks> hooks_;
};

/// A store without wake-ups.
class no_wakes_store {
  public:
    using transaction = faulty_transaction;
    static constexpr int contract_level = vouch::contract_level;

    [[nodiscard]] transaction begin() {
        if (hooks_->at_begin) {
            hooks_->at_begin();
        }
        return {inner_.begin(), hooks_};
    }
    [[nodiscard]] auto capabilities() const { return inner_.capabilities(); }
    auto find(const vouch::id& i) const { return inner_.find(i); }
    auto list(const vouch::query& q) const { return inner_.list(q); }
    auto counts(std::string_view queue) const { return inner_.counts(queue); }
    auto next_due(std::string_view queue) const { return inner_.next_due(queue); }

    [[nodiscard]] fault_hooks& hooks() { return *hooks_; }
    /// The inner store, without the hooks.
    [[nodiscard]] vouch::memory::store& plain() { return inner_; }

  private:
    vouch::memory::store inner_;
    std::shared_ptr<fault_hooks> hooks_ = std::make_shared<fault_hooks>();
};

/// Declares wake-ups and drops every one of them.
class dropped_wakes_store : public no_wakes_store {
  public:
    [[nodiscard]] std::uint64_t wakes(std::string_view) const { return 0; }
    std::uint64_t wait(std::string_view, std::uint64_t, std::chrono::nanoseconds at_most, std::stop_token stop) const {
        const auto until = steady_clock::now() + at_most;
        while (steady_clock::now() < until && !stop.stop_requested()) {
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(1ms, until - steady_clock::now()));
        }
        return 0;
    }
};

static_assert(vouch::store<no_wakes_store> && !vouch::waking_store<no_wakes_store>);
static_assert(vouch::waking_store<dropped_wakes_store> && vouch::waking_store<vouch::memory::store>);

/// Runs a worker on a thread of its own until it is stopped, at the latest in the destructor.
template <class Store>
class running_worker {
  public:
    explicit running_worker(vouch::worker<Store>& worker)
        : done_(std::async(std::launch::async, [&worker, stop = stop_.get_token()] { return worker.run(stop); })) {}
    running_worker(const running_worker&) = delete;
    running_worker& operator=(const running_worker&) = delete;
    ~running_worker() { stop_.request_stop(); }

    void request_stop() { stop_.request_stop(); }
    vouch::worker_report stop() {
        stop_.request_stop();
        return done_.get();
    }
    /// Waits for a run that ends without a request to stop.
    vouch::worker_report wait() {
        REQUIRE(done_.wait_for(20s) == std::future_status::ready);
        return done_.get();
    }

  private:
    std::stop_source stop_{};
    std::future<vouch::worker_report> done_;
};

template <class Store>
void emit_many(Store& store, const vouch::emitter& from, std::size_t count, const vouch::emission& e) {
    const std::vector<vouch::emission> all(count, e);
    vouch::transact(store, [&](auto& tx) { from.emit(tx, all); });
}

template <class Store>
[[nodiscard]] std::size_t count_of(const Store& store, vouch::state s, std::string_view queue = "q") {
    return store.counts(queue)[s];
}

} // namespace worker_test
