// SPDX-License-Identifier: MIT
// A store that logs the calls on another store's transactions and their answers, for messages and for later checks:
//
//   auto calls = std::make_shared<call_log>();
//   recording<memory::store> store(memory::store{}, calls);
//   for (const auto& call : calls->all()) { std::puts(to_string(call).c_str()); }
//
// Several stores and threads may share a log. A store that cannot be moved is passed as `any_store`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/call_log.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store_adaptor.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// The log of one open transaction. Its last owner logs how the transaction ended.
class transaction_log {
  public:
    transaction_log(std::shared_ptr<call_log> log, std::uint64_t number) : log_(std::move(log)), number_(number) {}
    transaction_log(transaction_log&&) noexcept = default;
    transaction_log& operator=(transaction_log&& other) noexcept {
        abandon();
        log_ = std::move(other.log_);
        number_ = other.number_;
        return *this;
    }
    ~transaction_log() { abandon(); }

    /// Calls `run`, which puts the answer into the call, and logs the call.
    template <class Run>
    void write(call c, const Run& run) {
        c.transaction = number_;
        try {
            run(c);
        } catch (const error& e) {
            c.threw = e.kind();
            const bool is_commit = c.what == call::operation::commit;
            add(std::move(c));
            if (e.kind() != error_kind::invalid_argument || is_commit) {
                end(e.is_in_doubt() ? call::status::in_doubt : call::status::rolled_back);
            }
            throw;
        }
        const bool is_commit = c.what == call::operation::commit;
        add(std::move(c));
        if (is_commit) {
            end(call::status::committed);
        }
    }

  private:
    void add(call c) const {
        if (log_) {
            log_->add(std::move(c));
        }
    }
    void end(call::status how) {
        if (const auto log = std::exchange(log_, nullptr)) {
            log->end(number_, how);
        }
    }
    void abandon() noexcept {
        if (log_) {
            log_->add({.what = call::operation::roll_back, .transaction = number_});
            end(call::status::rolled_back);
        }
    }

    std::shared_ptr<call_log> log_; ///< empty: ended or moved from
    std::uint64_t number_;
};

} // namespace detail

/// Logs all operations except reads.
template <class Transaction>
class recording_transaction : public transaction_adaptor<Transaction> {
  public:
    recording_transaction(Transaction tx, std::shared_ptr<call_log> log, std::uint64_t number)
        : transaction_adaptor<Transaction>(std::move(tx)), log_(std::move(log), number) {}

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> answer;
        log_.write({.what = call::operation::enqueue, .now = now, .drafts = {drafts.begin(), drafts.end()}},
                   [&](call& c) { c.receipts = answer = this->inner().enqueue(drafts, now); });
        return answer;
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<entry> answer;
        log_.write({.what = call::operation::claim, .now = request.now, .wanted = request},
                   [&](call& c) { c.claimed = answer = this->inner().claim(request); });
        return answer;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answer;
        log_.write({.what = call::operation::settle, .now = now, .settles = {settles.begin(), settles.end()}},
                   [&](call& c) { c.settlements = answer = this->inner().settle(settles, now); });
        return answer;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> answer;
        log_.write(
            {.what = call::operation::extend, .now = now, .tickets = {tickets.begin(), tickets.end()}, .lease = lease},
            [&](call& c) { c.verdicts = answer = this->inner().extend(tickets, now, lease); });
        return answer;
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        verdict answer{};
        log_.write({.what = call::operation::nudge, .now = now, .id = wanted},
                   [&](call& c) { c.verdicts = {answer = this->inner().nudge(wanted, now)}; });
        return answer;
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        verdict answer{};
        log_.write({.what = call::operation::cancel, .now = now, .id = wanted, .error = std::string(error)},
                   [&](call& c) { c.verdicts = {answer = this->inner().cancel(wanted, error, now)}; });
        return answer;
    }
    std::size_t purge(const purge_request& request) {
        std::size_t answer = 0;
        log_.write({.what = call::operation::purge, .purge = request},
                   [&](call& c) { c.purged = answer = this->inner().purge(request); });
        return answer;
    }
    void commit() {
        log_.write({.what = call::operation::commit}, [&](call&) { this->inner().commit(); });
    }

  private:
    detail::transaction_log log_; // destroyed before the transaction, so that the rollback is logged first
};

/// A store whose transactions log their calls. `inner()` is the store without the log.
template <class Store>
class recording : public store_adaptor<Store> {
  public:
    using transaction = recording_transaction<typename Store::transaction>;

    recording(Store store, std::shared_ptr<call_log> log)
        : store_adaptor<Store>(std::move(store)), log_(std::move(log)) {}

    [[nodiscard]] transaction begin() {
        auto tx = this->inner().begin();
        const auto number = log_->next_transaction();
        log_->add({.what = call::operation::begin, .transaction = number});
        return transaction(std::move(tx), log_, number);
    }
    [[nodiscard]] call_log& log() const noexcept { return *log_; }

  private:
    std::shared_ptr<call_log> log_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
