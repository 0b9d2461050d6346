// SPDX-License-Identifier: MIT
// A store that keeps a list of what it was asked and what it answered, to print when something went wrong, or to hold
// against rules afterwards.
//
//   auto calls = std::make_shared<call_log>();
//   recording<memory::store> store(memory::store{}, calls);
//   for (const auto& call : calls->all()) { std::puts(to_string(call).c_str()); }
//
// A log may be shared by several stores and threads. A store that cannot be moved goes in erased (`any_store.hpp`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/call_log.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/store.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// A transaction that is open: the last one to hold this writes down how it ended.
class open_record {
  public:
    open_record(std::shared_ptr<call_log> log, std::uint64_t number) : log_(std::move(log)), number_(number) {}
    open_record(open_record&&) noexcept = default;
    open_record& operator=(open_record&& other) noexcept {
        abandon();
        log_ = std::move(other.log_);
        number_ = other.number_;
        return *this;
    }
    ~open_record() { abandon(); }

    /// Carries `what` out and writes it down with its answer, which `run` puts into the call.
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
                end(e.is_in_doubt() ? call::fate::in_doubt : call::fate::rolled_back);
            }
            throw;
        }
        const bool is_commit = c.what == call::operation::commit;
        add(std::move(c));
        if (is_commit) {
            end(call::fate::committed);
        }
    }

  private:
    void add(call c) const {
        if (log_) {
            log_->add(std::move(c));
        }
    }
    void end(call::fate how) {
        if (const auto log = std::exchange(log_, nullptr)) {
            log->end(number_, how);
        }
    }
    void abandon() noexcept {
        if (log_) {
            log_->add({.what = call::operation::roll_back, .transaction = number_});
            end(call::fate::rolled_back);
        }
    }

    std::shared_ptr<call_log> log_; ///< empty: ended, or moved from
    std::uint64_t number_;
};

} // namespace detail

template <class Transaction>
class recording_transaction {
  public:
    recording_transaction(Transaction tx, std::shared_ptr<call_log> log, std::uint64_t number)
        : tx_(std::move(tx)), record_(std::move(log), number) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return tx_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return tx_.next_due(queue); }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> answer;
        record_.write({.what = call::operation::enqueue, .now = now, .drafts = {drafts.begin(), drafts.end()}},
                      [&](call& c) { c.receipts = answer = tx_.enqueue(drafts, now); });
        return answer;
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<entry> answer;
        record_.write({.what = call::operation::claim, .now = request.now, .wanted = request},
                      [&](call& c) { c.claimed = answer = tx_.claim(request); });
        return answer;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answer;
        record_.write({.what = call::operation::settle, .now = now, .settles = {settles.begin(), settles.end()}},
                      [&](call& c) { c.settlements = answer = tx_.settle(settles, now); });
        return answer;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> answer;
        record_.write(
            {.what = call::operation::extend, .now = now, .tickets = {tickets.begin(), tickets.end()}, .lease = lease},
            [&](call& c) { c.verdicts = answer = tx_.extend(tickets, now, lease); });
        return answer;
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        verdict answer{};
        record_.write({.what = call::operation::nudge, .now = now, .id = wanted},
                      [&](call& c) { c.verdicts = {answer = tx_.nudge(wanted, now)}; });
        return answer;
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        verdict answer{};
        record_.write({.what = call::operation::cancel, .now = now, .id = wanted, .error = std::string(error)},
                      [&](call& c) { c.verdicts = {answer = tx_.cancel(wanted, error, now)}; });
        return answer;
    }
    std::size_t purge(const purge_request& request) {
        std::size_t answer = 0;
        record_.write({.what = call::operation::purge, .purge = request},
                      [&](call& c) { c.purged = answer = tx_.purge(request); });
        return answer;
    }
    void commit() {
        record_.write({.what = call::operation::commit}, [&](call&) { tx_.commit(); });
    }

  private:
    Transaction tx_;
    detail::open_record record_; // last: written down before it is rolled back
};

template <class Store>
class recording {
    static_assert(explain_store<Store>());

  public:
    using transaction = recording_transaction<typename Store::transaction>;
    static constexpr int contract_level = Store::contract_level;

    recording(Store store, std::shared_ptr<call_log> log) : store_(std::move(store)), log_(std::move(log)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return store_.next_due(queue); }
    [[nodiscard]] transaction begin() {
        auto tx = store_.begin();
        const auto number = log_->next_transaction();
        log_->add({.what = call::operation::begin, .transaction = number});
        return transaction(std::move(tx), log_, number);
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return store_.capabilities(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Store> {
        return store_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Store> {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The store without its log.
    [[nodiscard]] Store& plain() noexcept { return store_; }
    [[nodiscard]] const Store& plain() const noexcept { return store_; }
    [[nodiscard]] call_log& log() const noexcept { return *log_; }

  private:
    Store store_;
    std::shared_ptr<call_log> log_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
