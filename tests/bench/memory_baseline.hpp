// SPDX-License-Identifier: MIT
// A hand-written job queue to compare the memory store with: one mutex, jobs in an `unordered_map` by id, a `std::set`
// by (gate, sequence). It has the same operations: enqueue once per id, claim the first due jobs under a lease, settle
// by ticket. It keeps none of the contract's other promises: no transactions, validation or concurrent reads; no keys,
// groups, lanes, parents or purge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baseline {

struct id {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    [[nodiscard]] friend bool operator==(const id&, const id&) noexcept = default;
};

struct id_hash {
    [[nodiscard]] std::size_t operator()(const id& value) const noexcept {
        return std::hash<std::uint64_t>{}(value.high ^ (value.low * 0x9e3779b97f4a7c15U));
    }
};

enum class state : std::uint8_t { pending, claimed, succeeded };

struct job {
    baseline::id id{};
    std::string topic{};
    std::string payload{};
    std::int64_t due_at = 0; // in microseconds, like all times here
    baseline::state state = state::pending;
    std::uint32_t attempts = 0;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    std::int64_t gate = 0; // when it may be claimed: due_at, or the end of the lease
};

struct ticket {
    baseline::id id{};
    std::uint64_t epoch = 0;
};

class queue {
  public:
    /// Returns the number of new jobs.
    std::size_t enqueue(const std::vector<job>& jobs) {
        const std::lock_guard lock(mutex_);
        std::size_t inserted = 0;
        for (const auto& given : jobs) {
            const auto [at, is_new] = jobs_.try_emplace(given.id, given);
            if (is_new) {
                auto& j = at->second;
                j.sequence = ++last_sequence_;
                j.gate = j.due_at;
                gates_.insert({j.gate, j.sequence, &j});
                ++inserted;
            }
        }
        return inserted;
    }

    [[nodiscard]] std::vector<job> claim(std::size_t limit, std::int64_t now, std::int64_t lease) {
        const std::lock_guard lock(mutex_);
        std::vector<job> claimed;
        claimed.reserve(limit);
        while (claimed.size() < limit && !gates_.empty() && gates_.begin()->at <= now) {
            auto node = gates_.extract(gates_.begin()); // reuses the node
            auto& j = *node.value().target;
            j.state = state::claimed;
            j.attempts += 1;
            j.epoch += 1;
            j.gate = now + lease;
            node.value().at = j.gate;
            gates_.insert(std::move(node));
            claimed.push_back(j);
        }
        return claimed;
    }

    /// Returns the number of valid tickets.
    std::size_t settle(const std::vector<ticket>& tickets) {
        const std::lock_guard lock(mutex_);
        std::size_t applied = 0;
        for (const auto& t : tickets) {
            const auto found = jobs_.find(t.id);
            if (found != jobs_.end() && found->second.epoch == t.epoch && found->second.state == state::claimed) {
                gates_.erase({found->second.gate, found->second.sequence, nullptr});
                found->second.state = state::succeeded;
                ++applied;
            }
        }
        return applied;
    }

  private:
    struct gate {
        std::int64_t at;
        std::uint64_t sequence;
        job* target;
        [[nodiscard]] friend bool operator<(const gate& a, const gate& b) noexcept {
            return a.at != b.at ? a.at < b.at : a.sequence < b.sequence;
        }
    };

    std::mutex mutex_;
    std::unordered_map<id, job, id_hash> jobs_;
    std::set<gate> gates_;
    std::uint64_t last_sequence_ = 0;
};

} // namespace baseline
