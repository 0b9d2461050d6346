// SPDX-License-Identifier: MIT
// A complete store, written from the contract alone: an append-only log, replayed into maps when it is opened. Durable;
// one handle at a time; no groups, lanes or wake-ups, which `validate` refuses for it.
//
// A transaction works on a copy of the ledger. A commit appends what changed to the log and publishes the copy; a
// rollback throws it away. So every transaction pays for all entries: a store for thousands of them, not for millions.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "ledger.hpp"
#include "record_log.hpp"

namespace log_store {

/// What the store and its transaction share.
struct shared {
    std::mutex mutex{};
    std::condition_variable turn_over{};
    bool is_writing = false;
    std::shared_ptr<const ledger> committed{};
    std::unique_ptr<log_file> file{};
};

/// A ledger to work on, and the turn to do so.
struct turn : ledger {
    explicit turn(std::shared_ptr<shared> s) : of(std::move(s)) {
        std::unique_lock lock(of->mutex);
        of->turn_over.wait(lock, [&] { return !of->is_writing; });
        ledger::operator=(*of->committed);
        of->is_writing = true;
    }
    turn(const turn&) = delete;
    ~turn() {
        const std::lock_guard lock(of->mutex);
        of->is_writing = false;
        of->turn_over.notify_one();
    }
    std::shared_ptr<shared> of;
};

class transaction {
    mutable std::unique_ptr<turn> turn_; ///< none: closed

    /// After any error but `invalid_argument` the transaction is closed.
    template <class Operation>
    auto use(const Operation& operation) const {
        if (!turn_) {
            throw vouch::error(vouch::error_kind::misuse, "log: the transaction is closed");
        }
        try {
            return operation(*turn_);
        } catch (const vouch::error& e) {
            if (e.kind() != vouch::error_kind::invalid_argument) {
                turn_.reset();
            }
            throw;
        }
    }
    template <class Item, class Each>
    static auto for_all(std::span<const Item> items, const Each& each) {
        std::vector<decltype(each(items.front()))> answers;
        std::transform(items.begin(), items.end(), std::back_inserter(answers), each);
        return answers;
    }

  public:
    explicit transaction(std::shared_ptr<shared> s) : turn_(std::make_unique<turn>(std::move(s))) {}

    [[nodiscard]] auto find(const id& i) const {
        return use([&](auto& on) { return on.find(i); });
    }
    [[nodiscard]] auto list(const vouch::query& q) const {
        return use([&](auto& on) { return on.list(q); });
    }
    [[nodiscard]] auto counts(std::string_view queue) const {
        return use([&](auto& on) { return on.counts(queue); });
    }
    [[nodiscard]] auto next_due(std::string_view queue) const {
        return use([&](auto& on) { return on.next_due(queue); });
    }
    [[nodiscard]] auto claim(const vouch::claim_request& c) {
        return use([&](auto& on) { return on.claim(c); });
    }
    auto purge(const vouch::purge_request& p) {
        return use([&](auto& on) { return on.purge(p); });
    }
    auto enqueue(std::span<const vouch::draft> drafts, time_point now) {
        return use([&](auto& on) {
            validate(drafts, can);
            return for_all(drafts, [&](auto& d) { return on.enqueue(d, now); });
        });
    }
    [[nodiscard]] auto settle(std::span<const vouch::settle> settles, time_point now) {
        return use([&](auto& on) {
            validate(settles, can.limits);
            return for_all(settles, [&](auto& s) { return vouch::settlement{on.change(s.ticket.id, s, now)}; });
        });
    }
    [[nodiscard]] auto extend(std::span<const vouch::ticket> tickets, time_point now, vouch::duration lease) {
        return use([&](auto& on) {
            validate(tickets, now, lease, can.limits);
            return for_all(tickets, [&](auto& t) { return on.change(t.id, vouch::extend{t, lease}, now); });
        });
    }
    [[nodiscard]] auto nudge(const id& i, time_point now) {
        return use([&](auto& on) { return on.change(i, vouch::nudge{}, now); });
    }
    [[nodiscard]] auto cancel(const id& i, std::string_view error, time_point now) {
        return use([&](auto& on) {
            vouch::validate_error_code(error, can.limits);
            return on.change(i, vouch::cancel{error}, now);
        });
    }
    void commit() {
        use([&](auto& on) {
            if (!on.touched.empty()) {
                on.of->file->append(on.record());
            }
            auto next = std::make_shared<const ledger>(std::move(static_cast<ledger&>(on)));
            const std::lock_guard lock(on.of->mutex);
            on.of->committed = std::move(next);
        });
        turn_.reset();
    }
};

class store {
    std::shared_ptr<shared> shared_ = std::make_shared<shared>();

    [[nodiscard]] std::shared_ptr<const ledger> look() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->committed;
    }

  public:
    using transaction = log_store::transaction;
    static constexpr int contract_level = vouch::contract_level;

    explicit store(const std::filesystem::path& path, bool syncs = true) {
        ledger read;
        shared_->file = std::make_unique<log_file>(path, syncs, [&](std::string_view record) { read.replay(record); });
        read.touched.clear();
        shared_->committed = std::make_shared<const ledger>(std::move(read));
    }
    [[nodiscard]] auto find(const id& i) const { return look()->find(i); }
    [[nodiscard]] auto list(const vouch::query& q) const { return look()->list(q); }
    [[nodiscard]] auto counts(std::string_view queue) const { return look()->counts(queue); }
    [[nodiscard]] auto next_due(std::string_view queue) const { return look()->next_due(queue); }
    [[nodiscard]] transaction begin() { return transaction(shared_); }
    [[nodiscard]] vouch::capabilities capabilities() const { return can; }
};

static_assert(vouch::store<store>);

} // namespace log_store
