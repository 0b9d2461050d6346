// SPDX-License-Identifier: MIT
// What the worker's tests share: a memory store whose transactions a test can trip up and whose wake-ups it can take
// away, a worker on a thread of its own, and waiting for something to become true.
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
using ticking = std::chrono::steady_clock;

/// Looks again and again, for long enough on a slow machine.
template <class Predicate>
[[nodiscard]] bool comes_true(Predicate&& p, std::chrono::milliseconds within = 20s) {
    const auto until = ticking::now() + within;
    while (!p()) {
        if (ticking::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// What happens to a transaction; a test sets it before the worker runs. Called by several threads.
struct tripwire {
    std::function<void()> at_begin{};                                     ///< may throw
    std::function<void(const std::function<void()>& commit)> at_commit{}; ///< commits or does not; may throw
    std::atomic<bool> passes_over = false; ///< claims get nothing, as if somebody had everything open
    std::atomic<std::size_t> commits = 0;  ///< that were tried
};

class tripped_transaction {
  public:
    tripped_transaction(vouch::memory::transaction tx, std::shared_ptr<tripwire> w)
        : tx_(std::move(tx)), wire_(std::move(w)) {}

    auto find(const vouch::id& i) const { return tx_.find(i); }
    auto list(const vouch::query& q) const { return tx_.list(q); }
    auto counts(std::string_view queue) const { return tx_.counts(queue); }
    auto next_due(std::string_view queue) const { return tx_.next_due(queue); }
    auto enqueue(std::span<const vouch::draft> drafts, vouch::time_point now) { return tx_.enqueue(drafts, now); }
    auto claim(const vouch::claim_request& r) {
        return wire_->passes_over ? std::vector<vouch::entry>{} : tx_.claim(r);
    }
    auto settle(std::span<const vouch::settle> settles, vouch::time_point now) { return tx_.settle(settles, now); }
    auto extend(std::span<const vouch::ticket> tickets, vouch::time_point now, vouch::duration lease) {
        return tx_.extend(tickets, now, lease);
    }
    auto nudge(const vouch::id& i, vouch::time_point now) { return tx_.nudge(i, now); }
    auto cancel(const vouch::id& i, std::string_view error, vouch::time_point now) { return tx_.cancel(i, error, now); }
    auto purge(const vouch::purge_request& r) { return tx_.purge(r); }
    void commit() {
        ++wire_->commits;
        auto tx = std::move(tx_); // whatever happens, it is closed
        if (wire_->at_commit) {
            wire_->at_commit([&] { tx.commit(); });
        } else {
            tx.commit();
        }
    }

  private:
    vouch::memory::transaction tx_;
    std::shared_ptr<tripwire> wire_;
};

/// Has no wake-ups at all.
class silent_store {
  public:
    using transaction = tripped_transaction;
    static constexpr int contract_level = vouch::contract_level;

    [[nodiscard]] transaction begin() {
        if (wire_->at_begin) {
            wire_->at_begin();
        }
        return {inner_.begin(), wire_};
    }
    [[nodiscard]] auto capabilities() const { return inner_.capabilities(); }
    auto find(const vouch::id& i) const { return inner_.find(i); }
    auto list(const vouch::query& q) const { return inner_.list(q); }
    auto counts(std::string_view queue) const { return inner_.counts(queue); }
    auto next_due(std::string_view queue) const { return inner_.next_due(queue); }

    [[nodiscard]] tripwire& wire() { return *wire_; }
    /// The store as it is.
    [[nodiscard]] vouch::memory::store& plain() { return inner_; }

  private:
    vouch::memory::store inner_;
    std::shared_ptr<tripwire> wire_ = std::make_shared<tripwire>();
};

/// Says it has wake-ups, and drops every one of them.
class deaf_store : public silent_store {
  public:
    [[nodiscard]] std::uint64_t wakes(std::string_view) const { return 0; }
    std::uint64_t wait(std::string_view, std::uint64_t, std::chrono::nanoseconds at_most, std::stop_token stop) const {
        const auto until = ticking::now() + at_most;
        while (ticking::now() < until && !stop.stop_requested()) {
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(1ms, until - ticking::now()));
        }
        return 0;
    }
};

static_assert(vouch::store<silent_store> && !vouch::waking_store<silent_store>);
static_assert(vouch::waking_store<deaf_store> && vouch::waking_store<vouch::memory::store>);

/// A worker that runs on a thread of its own until it is stopped, at the latest when the object goes.
template <class Store>
class at_work {
  public:
    explicit at_work(vouch::worker<Store>& who)
        : done_(std::async(std::launch::async, [&who, stop = stop_.get_token()] { return who.run(stop); })) {}
    at_work(const at_work&) = delete;
    at_work& operator=(const at_work&) = delete;
    ~at_work() { stop_.request_stop(); }

    void ask_to_stop() { stop_.request_stop(); }
    vouch::worker_report stop() {
        stop_.request_stop();
        return done_.get();
    }
    /// It ends by itself.
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
