// SPDX-License-Identifier: MIT
// A memory store whose process may die at any commit, before it or after it. From then on every call throws, so that
// whatever the dying code still does is without effect; a new handle on the same work is the process restarted. Every
// call is noted, so that two courses of events can be compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/memory.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

/// What the handles of one process share.
struct process {
    testing::choices& fate;
    bool is_dead = false;
    std::uint64_t calls = 14695981039346656037U; ///< a hash of all calls and their answers

    void note(std::string_view what, std::uint64_t answer = 0) {
        if (is_dead) {
            throw error(error_kind::io, "mortal store: its process is dead");
        }
        mix_in(what, answer);
    }
    void die() noexcept {
        mix_in("dies", 0);
        is_dead = true;
    }

  private:
    void mix_in(std::string_view what, std::uint64_t answer) noexcept {
        for (const char c : what) {
            calls = (calls ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        calls = (calls ^ (answer + 1)) * 1099511628211U;
    }
};

class mortal_transaction {
  public:
    mortal_transaction(memory::transaction tx, std::shared_ptr<process> in)
        : tx_(std::move(tx)), process_(std::move(in)) {}

    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = tx_.find(i);
        process_->note("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->note("list");
        return tx_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->note("counts");
        return tx_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->note("next_due");
        return tx_.next_due(queue);
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            process_->note("enqueue " + d.queue + ' ' + d.topic);
        }
        return tx_.enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        auto claimed = tx_.claim(r);
        process_->note("claim " + r.queue, claimed.empty() ? 0U : claimed.front().attempts);
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        auto settled = tx_.settle(settles, now);
        for (std::size_t i = 0; i < settled.size(); ++i) {
            process_->note("settle", settles[i].outcome.index() * 4U + static_cast<unsigned>(settled[i].verdict));
        }
        return settled;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        process_->note("extend");
        return tx_.extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& i, time_point now) {
        process_->note("nudge");
        return tx_.nudge(i, now);
    }
    [[nodiscard]] verdict cancel(const id& i, std::string_view error, time_point now) {
        const auto answer = tx_.cancel(i, error, now);
        process_->note("cancel", static_cast<unsigned>(answer));
        return answer;
    }
    std::size_t purge(const purge_request& r) {
        process_->note("purge");
        return tx_.purge(r);
    }

    void commit() {
        process_->note("commit");
        const auto way = process_->fate.choose("commit", {"", "crash before", "crash after"});
        if (way != 1) {
            tx_.commit();
        }
        if (way != 0) {
            process_->die();
            process_->note("");
        }
    }

  private:
    memory::transaction tx_;
    std::shared_ptr<process> process_;
};

class mortal_store {
  public:
    using transaction = mortal_transaction;
    static constexpr int contract_level = vouch::contract_level;

    mortal_store(memory::store work, std::shared_ptr<process> in) : work_(std::move(work)), process_(std::move(in)) {}

    [[nodiscard]] transaction begin() {
        process_->note("begin");
        return {work_.begin(), process_};
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return work_.capabilities(); }
    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = work_.find(i);
        process_->note("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->note("list");
        return work_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->note("counts");
        return work_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->note("next_due");
        return work_.next_due(queue);
    }

  private:
    memory::store work_;
    std::shared_ptr<process> process_;
};

static_assert(store<mortal_store>);

} // namespace testing
} // namespace v0
} // namespace vouch
