// SPDX-License-Identifier: MIT
// A memory store that counts commits and fails those it is told to: before the effect, after it (in doubt), or by
// conflict.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

namespace support {

enum class commit_fate {
    fine,
    lost_in_doubt,   ///< nothing happened, and nobody can tell
    landed_in_doubt, ///< it happened, and nobody can tell
    conflict,
    io,
};

struct script {
    std::deque<commit_fate> fates{}; ///< of the commits to come; then fine
    std::size_t commits = 0;         ///< that took effect
};

class scripted_transaction {
  public:
    scripted_transaction(vouch::memory::transaction tx, std::shared_ptr<script> s)
        : tx_(std::move(tx)), script_(std::move(s)) {}

    auto find(const vouch::id& i) const { return tx_.find(i); }
    auto list(const vouch::query& q) const { return tx_.list(q); }
    auto counts(std::string_view queue) const { return tx_.counts(queue); }
    auto next_due(std::string_view queue) const { return tx_.next_due(queue); }
    auto enqueue(std::span<const vouch::draft> drafts, vouch::time_point now) { return tx_.enqueue(drafts, now); }
    auto claim(const vouch::claim_request& r) { return tx_.claim(r); }
    auto settle(std::span<const vouch::settle> settles, vouch::time_point now) { return tx_.settle(settles, now); }
    auto extend(std::span<const vouch::ticket> tickets, vouch::time_point now, vouch::duration lease) {
        return tx_.extend(tickets, now, lease);
    }
    auto nudge(const vouch::id& i, vouch::time_point now) { return tx_.nudge(i, now); }
    auto cancel(const vouch::id& i, std::string_view error, vouch::time_point now) { return tx_.cancel(i, error, now); }
    auto purge(const vouch::purge_request& r) { return tx_.purge(r); }

    void commit() {
        auto fate = commit_fate::fine;
        if (!script_->fates.empty()) {
            fate = script_->fates.front();
            script_->fates.pop_front();
        }
        if (fate == commit_fate::fine || fate == commit_fate::landed_in_doubt) {
            tx_.commit();
            ++script_->commits;
        } else {
            const auto undone = std::move(tx_);
        }
        using kind = vouch::error_kind;
        switch (fate) {
        case commit_fate::fine: return;
        case commit_fate::conflict: throw vouch::error(kind::conflict, "scripted: conflict");
        case commit_fate::io: throw vouch::error(kind::io, "scripted: io");
        case commit_fate::lost_in_doubt:
        case commit_fate::landed_in_doubt: throw vouch::error(kind::io, "scripted: in doubt", {.in_doubt = true});
        }
    }

  private:
    vouch::memory::transaction tx_;
    std::shared_ptr<script> script_;
};

class scripted_store {
  public:
    using transaction = scripted_transaction;
    static constexpr int contract_level = vouch::contract_level;

    [[nodiscard]] transaction begin() { return {inner_.begin(), script_}; }
    [[nodiscard]] auto capabilities() const { return inner_.capabilities(); }
    auto find(const vouch::id& i) const { return inner_.find(i); }
    auto list(const vouch::query& q) const { return inner_.list(q); }
    auto counts(std::string_view queue) const { return inner_.counts(queue); }
    auto next_due(std::string_view queue) const { return inner_.next_due(queue); }

    /// The store without its script.
    [[nodiscard]] vouch::memory::store& plain() { return inner_; }
    [[nodiscard]] script& plan() { return *script_; }

  private:
    vouch::memory::store inner_;
    std::shared_ptr<script> script_ = std::make_shared<script>();
};

static_assert(vouch::store<scripted_store>);

} // namespace support
