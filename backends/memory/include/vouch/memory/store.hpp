// SPDX-License-Identifier: MIT
// The memory store and its transaction.
//
// A store is a handle: copies share the same entries, so a second handle is a copy. One transaction is open at a time;
// `begin` waits for it to end. Each operation holds a lock only while it runs, so reads on the store see the committed
// state at any time and never wait for a transaction. Safe for any number of threads; a transaction is used by one
// thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>
#include <vouch/memory/detail/entry_reader.hpp>
#include <vouch/memory/detail/entry_writer.hpp>
#include <vouch/memory/detail/shared_state.hpp>
#include <vouch/memory/seam.hpp>

namespace vouch {
inline namespace v0 {
namespace memory {

template <class Seam>
class basic_store;

/// A transaction, made by `basic_store::begin`. The operations are those of the concept `transaction`.
template <class Seam = no_seam>
class basic_transaction : public validated_writer<basic_transaction<Seam>> {
  public:
    basic_transaction(basic_transaction&& other) noexcept : shared_(std::move(other.shared_)) { forget_thread(); }
    basic_transaction& operator=(basic_transaction&& other) noexcept {
        if (this != &other) {
            close();
            shared_ = std::move(other.shared_);
            forget_thread();
        }
        return *this;
    }
    ~basic_transaction() { close(); }

    void commit() {
        static_cast<void>(expect_open());
        end(true);
    }

  private:
    using shared_state = detail::shared_state<Seam>;

    friend class basic_store<Seam>;
    friend class validated_reader<basic_transaction>;
    friend class validated_writer<basic_transaction>;

    explicit basic_transaction(std::shared_ptr<shared_state> shared) noexcept : shared_(std::move(shared)) {}

    [[nodiscard]] const vouch::capabilities& expect_open() const {
        if (!shared_) {
            throw error(error_kind::misuse, "memory: the transaction is closed; call begin() for a new one");
        }
        return detail::supported;
    }

    void close() const noexcept {
        if (shared_) {
            end(false);
        }
    }

    void end(bool committed) const noexcept {
        const auto ended = std::exchange(shared_, nullptr);
        const std::lock_guard lock(ended->mutex);
        ended->end(committed);
    }

    template <class Operation>
    auto read(const Operation& operation) const {
        return use([&](auto& ledger) { return operation(detail::entry_reader(ledger, detail::view::own)); });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        return use([&](auto& ledger) { return operation(detail::entry_writer(ledger)); });
    }

    template <class Use>
    auto use(const Use& use) const {
        const std::lock_guard lock(shared_->mutex);
        shared_->writer = std::this_thread::get_id();
        try {
            return use(shared_->ledger);
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    /// After a move, the thread that uses the transaction next is its thread.
    void forget_thread() const noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->writer = {};
        }
    }

    mutable std::shared_ptr<shared_state> shared_; // null: closed; a read that fails closes, too
};

/// The store. `Seam` is for tests (`seam.hpp`); everything else uses `memory::store`.
template <class Seam = no_seam>
class basic_store : public validated_reader<basic_store<Seam>> {
  public:
    using transaction = basic_transaction<Seam>;
    static constexpr int contract_level = vouch::contract_level;

    explicit basic_store(Seam seam = {}) : shared_(std::make_shared<shared_state>(std::move(seam))) {}
    // Moving copies, so that a handle always has a store.
    basic_store(const basic_store&) = default;
    basic_store& operator=(const basic_store&) = default;
    ~basic_store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::supported; }

    /// Waits until no transaction is open. Throws `misuse` if the open transaction was last used by this thread and
    /// not moved since, because it would wait for itself; `busy` after a minute.
    [[nodiscard]] transaction begin() {
        std::unique_lock lock(shared_->mutex);
        const auto me = std::this_thread::get_id();
        if (shared_->writing && shared_->writer == me) {
            throw error(error_kind::misuse, "memory: begin: this thread has a transaction open and would wait for "
                                            "itself; end that transaction first, or write through it");
        }
        if (!shared_->idle.wait_for(lock, detail::begin_limit<Seam>(), [&] { return !shared_->writing; })) {
            throw error(error_kind::busy, "memory: begin: the open transaction did not end in time; if it belongs to "
                                          "this thread, or waits for it, it never will");
        }
        shared_->writing = true;
        shared_->writer = me;
        return transaction(shared_);
    }

    /// Every queue that has ever held an entry, in no particular order. Not part of the contract.
    [[nodiscard]] std::vector<std::string> queues() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.queue_names();
    }

    /// A number that grows with every commit that may have made work in this queue due sooner.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::supported.limits);
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.wakes(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::supported.limits);
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::supported.limits.lease_max);
        std::unique_lock lock(shared_->mutex);
        auto& ledger = shared_->ledger;
        shared_->woken.wait_for(lock, stop, at_most, [&] { return ledger.wakes(queue) != seen; });
        return ledger.wakes(queue);
    }

  private:
    using shared_state = detail::shared_state<Seam>;

    friend class validated_reader<basic_store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return detail::supported; }

    template <class Operation>
    auto read(const Operation& operation) const {
        const std::lock_guard lock(shared_->mutex);
        try {
            return operation(detail::entry_reader(shared_->ledger, detail::view::committed));
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    std::shared_ptr<shared_state> shared_;
};

using store = basic_store<>;
using transaction = basic_transaction<>;

} // namespace memory
} // namespace v0
} // namespace vouch
