// SPDX-License-Identifier: MIT
// A memory store whose process may crash before or after any commit. From then on every call throws, so whatever the
// crashed code still does has no effect. A new handle on the same memory store is the process restarted. All calls and
// their answers are hashed, so that two runs can be compared.
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
namespace detail {

/// What the handles of one process share.
struct simulated_process {
    fault_plan& faults;
    bool has_crashed = false;
    std::uint64_t calls = 14695981039346656037U; ///< a hash of all calls and their answers

    /// Throws if the process has crashed.
    void record(std::string_view call, std::uint64_t answer = 0) {
        if (has_crashed) {
            throw error(error_kind::io, "simulated process: it has crashed");
        }
        mix_in(call, answer);
    }
    void crash() noexcept {
        mix_in("crash", 0);
        has_crashed = true;
    }

  private:
    void mix_in(std::string_view call, std::uint64_t answer) noexcept {
        for (const char c : call) {
            calls = (calls ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        calls = (calls ^ (answer + 1)) * 1099511628211U;
    }
};

class crashing_transaction {
  public:
    crashing_transaction(memory::transaction tx, std::shared_ptr<simulated_process> in)
        : tx_(std::move(tx)), process_(std::move(in)) {}

    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = tx_.find(i);
        process_->record("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->record("list");
        return tx_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->record("counts");
        return tx_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->record("next_due");
        return tx_.next_due(queue);
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            process_->record("enqueue " + d.queue + ' ' + d.topic);
        }
        return tx_.enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        auto claimed = tx_.claim(r);
        process_->record("claim " + r.queue, claimed.empty() ? 0U : claimed.front().attempts);
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        auto settled = tx_.settle(settles, now);
        for (std::size_t i = 0; i < settled.size(); ++i) {
            process_->record("settle", settles[i].outcome.index() * 4U + static_cast<unsigned>(settled[i].verdict));
        }
        return settled;
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        process_->record("extend");
        return tx_.extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& i, time_point now) {
        process_->record("nudge");
        return tx_.nudge(i, now);
    }
    [[nodiscard]] verdict cancel(const id& i, std::string_view error, time_point now) {
        const auto answer = tx_.cancel(i, error, now);
        process_->record("cancel", static_cast<unsigned>(answer));
        return answer;
    }
    std::size_t purge(const purge_request& r) {
        process_->record("purge");
        return tx_.purge(r);
    }

    void commit() {
        process_->record("commit");
        enum : std::size_t { normal, crash_before, crash_after };
        const auto fault = process_->faults.choose("commit", {"", "crash before", "crash after"});
        if (fault != crash_before) {
            tx_.commit();
        }
        if (fault != normal) {
            process_->crash();
            process_->record("");
        }
    }

  private:
    memory::transaction tx_;
    std::shared_ptr<simulated_process> process_;
};

class crashing_store {
  public:
    using transaction = crashing_transaction;
    static constexpr int contract_level = vouch::contract_level;

    crashing_store(memory::store work, std::shared_ptr<simulated_process> in)
        : work_(std::move(work)), process_(std::move(in)) {}

    [[nodiscard]] transaction begin() {
        process_->record("begin");
        return {work_.begin(), process_};
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return work_.capabilities(); }
    [[nodiscard]] std::optional<entry> find(const id& i) const {
        auto found = work_.find(i);
        process_->record("find", found ? 2U + static_cast<unsigned>(found->state) : 1U);
        return found;
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        process_->record("list");
        return work_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        process_->record("counts");
        return work_.counts(queue);
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        process_->record("next_due");
        return work_.next_due(queue);
    }

  private:
    memory::store work_;
    std::shared_ptr<simulated_process> process_;
};

static_assert(store<crashing_store>);

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
