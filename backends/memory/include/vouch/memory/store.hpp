// SPDX-License-Identifier: MIT
// The memory store and its transaction: validation, locking and misuse around the ledger.
//
// A store is a handle: copies share the same work, so a second handle is a copy. One transaction is open at a time;
// `begin` waits for it. On the thread that used it last, and has not moved it since, `begin` would wait for itself and
// says `misuse`; after a minute it says `busy`. Each operation holds the lock only while it runs, so readers see the
// committed state at any time and wait for no transaction.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/memory/detail/entry_reader.hpp>
#include <vouch/memory/detail/entry_writer.hpp>
#include <vouch/memory/detail/ledger.hpp>
#include <vouch/memory/detail/purger.hpp>
#include <vouch/memory/seam.hpp>

namespace vouch {
inline namespace v0 {
namespace memory {

namespace detail {

inline constexpr vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .shared = true};

/// How long `begin` waits. A minute is longer than any transaction that ends by itself; a seam may say otherwise.
template <class Seam>
[[nodiscard]] constexpr std::chrono::milliseconds begin_limit() noexcept {
    if constexpr (requires { Seam::begin_limit; }) {
        return Seam::begin_limit;
    } else {
        return std::chrono::minutes{1};
    }
}

/// What all handles and transactions of one store share.
template <class Seam>
struct shared {
    explicit shared(Seam seam) : ledger(std::move(seam)) {}

    std::mutex mutex; ///< guards everything below
    detail::ledger<Seam> ledger;
    bool writing = false;                ///< a transaction is open
    std::thread::id writer;              ///< the thread that used it last; none after a move
    std::condition_variable idle;        ///< no transaction is open
    std::condition_variable_any stirred; ///< some queue's `wakes` has grown

    /// Made ahead, because there may be no memory left to say so: copying it allocates nothing.
    const error out_of_memory{error_kind::full, "memory: out of memory"};

    void end(bool committed) noexcept {
        const bool wake = committed && ledger.is_stirred();
        committed ? ledger.commit() : ledger.roll_back();
        writing = false;
        idle.notify_one();
        if (wake) {
            stirred.notify_all();
        }
    }
};

} // namespace detail

template <class Seam>
class basic_store;

template <class Seam = no_seam>
class basic_transaction {
    using shared = detail::shared<Seam>;

    friend class basic_store<Seam>;
    explicit basic_transaction(std::shared_ptr<shared> s) noexcept : shared_(std::move(s)) {}

    [[nodiscard]] shared& opened() const {
        if (!shared_) {
            throw error(error_kind::misuse, "memory: the transaction is closed");
        }
        return *shared_;
    }

    /// What validation goes by; a closed transaction says so before it looks at any argument.
    [[nodiscard]] const vouch::capabilities& can() const {
        std::ignore = opened();
        return detail::can;
    }

    /// Runs one operation under the lock. An exception in it rolls everything back and closes the transaction.
    template <class Operation>
    auto use(Operation&& operation) const {
        std::exception_ptr fault;
        {
            auto& open = opened();
            const std::lock_guard lock(open.mutex);
            open.writer = std::this_thread::get_id();
            try {
                return operation(open.ledger);
            } catch (const std::bad_alloc&) {
                open.end(false);
            } catch (...) {
                open.end(false);
                fault = std::current_exception();
            }
        }
        const auto closed = std::exchange(shared_, nullptr);
        if (fault) {
            std::rethrow_exception(fault);
        }
        throw closed->out_of_memory;
    }

    template <class Item, class Operation>
    auto each(std::span<const Item> items, Operation&& operation) {
        return use([&](auto& ledger) {
            detail::writing writing(ledger);
            std::vector<decltype(operation(writing, items.front()))> answers;
            answers.reserve(items.size());
            for (const auto& item : items) {
                answers.push_back(operation(writing, item));
            }
            return answers;
        });
    }

    template <class Look>
    auto look(Look&& look) const {
        return use([&](auto& ledger) { return look(detail::reading(ledger, detail::view::own)); });
    }

    /// Whose it is shows when it is used next.
    void hand_over() const noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->writer = {};
        }
    }

    void roll_back() noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->end(false);
        }
    }

    mutable std::shared_ptr<shared> shared_; // null: closed; a read that fails closes too

  public:
    basic_transaction(basic_transaction&& other) noexcept : shared_(std::move(other.shared_)) { hand_over(); }
    basic_transaction& operator=(basic_transaction&& other) noexcept {
        if (this != &other) {
            roll_back();
            shared_ = std::move(other.shared_);
            hand_over();
        }
        return *this;
    }
    ~basic_transaction() { roll_back(); }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](const auto& reading) { return reading.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, can().limits);
        return look([&](const auto& reading) { return reading.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, can().limits);
        return look([&](const auto& reading) { return reading.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, can().limits);
        return look([&](const auto& reading) { return reading.next_due(queue); });
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        validate(drafts, can());
        return each(drafts, [&](auto& writing, const draft& d) { return writing.enqueue(d, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        validate(request, can().limits);
        return use([&](auto& ledger) { return detail::writing(ledger).claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        validate(settles, can().limits);
        return each(settles, [&](auto& writing, const vouch::settle& s) { return writing.settle(s, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        validate(tickets, now, lease, can().limits);
        return each(tickets, [&](auto& writing, const ticket& t) { return writing.extend(t, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return use([&](auto& ledger) { return detail::writing(ledger).nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        validate_error_code(error, can().limits);
        return use([&](auto& ledger) { return detail::writing(ledger).cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        validate(request, can().limits);
        return use([&](auto& ledger) { return detail::purging(ledger, request).purge(); });
    }

    void commit() {
        auto& open = opened();
        {
            const std::lock_guard lock(open.mutex);
            open.end(true);
        }
        shared_.reset();
    }
};

template <class Seam = no_seam>
class basic_store {
    using shared = detail::shared<Seam>;

    template <class Look>
    auto look(Look&& look) const {
        const std::lock_guard lock(shared_->mutex);
        try {
            return look(detail::reading(shared_->ledger, detail::view::committed));
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    std::shared_ptr<shared> shared_;

  public:
    using transaction = basic_transaction<Seam>;
    static constexpr int contract_level = vouch::contract_level;

    explicit basic_store(Seam seam = {}) : shared_(std::make_shared<shared>(std::move(seam))) {}
    // Copied where others are moved, so that a handle is never without its work.
    basic_store(const basic_store&) = default;
    basic_store& operator=(const basic_store&) = default;
    ~basic_store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::can; }

    [[nodiscard]] transaction begin() {
        std::unique_lock lock(shared_->mutex);
        const auto me = std::this_thread::get_id();
        if (shared_->writing && shared_->writer == me) {
            throw error(error_kind::misuse, "memory: begin while this thread has a transaction open would wait for "
                                            "itself; end that one first, or write through it");
        }
        if (!shared_->idle.wait_for(lock, detail::begin_limit<Seam>(), [&] { return !shared_->writing; })) {
            throw error(error_kind::busy, "memory: begin: the open transaction did not end in time; one that is this "
                                          "thread's own, or waits for it, never will");
        }
        shared_->writing = true;
        shared_->writer = me;
        return transaction(shared_);
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](const auto& reading) { return reading.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, detail::can.limits);
        return look([&](const auto& reading) { return reading.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](const auto& reading) { return reading.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](const auto& reading) { return reading.next_due(queue); });
    }

    /// Every queue something was ever enqueued to, in no order. Not part of the contract.
    [[nodiscard]] std::vector<std::string> queues() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.queue_names();
    }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.wakes(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::can.limits);
        // The longest waits would lead past the last time there is, and the most negative before the first.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::can.limits.lease_max);
        std::unique_lock lock(shared_->mutex);
        auto& ledger = shared_->ledger;
        shared_->stirred.wait_for(lock, stop, at_most, [&] { return ledger.wakes(queue) != seen; });
        return ledger.wakes(queue);
    }
};

using store = basic_store<>;
using transaction = basic_transaction<>;

} // namespace memory
} // namespace v0
} // namespace vouch
