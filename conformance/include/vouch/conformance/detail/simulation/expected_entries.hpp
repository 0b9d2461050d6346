// SPDX-License-Identifier: MIT
// What the store must contain after the calls of a simulation: entries, lanes, keys and groups. It is computed from the
// arguments of the calls, not from their answers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class expected_entries {
  public:
    /// An entry as it must be.
    struct known {
        vouch::entry entry{};
        vouch::id successor{};
        bool frozen = false; ///< terminal and compared since: `entry` equals the stored entry in all fields
    };

    // Reading.

    [[nodiscard]] const std::map<id, known>& stored() const noexcept { return stored_; }
    [[nodiscard]] std::map<id, known>& stored() noexcept { return stored_; }
    [[nodiscard]] known* find(const id& wanted) {
        const auto at = stored_.find(wanted);
        return at == stored_.end() ? nullptr : &at->second;
    }
    [[nodiscard]] std::size_t live() const {
        return static_cast<std::size_t>(
            std::count_if(stored_.begin(), stored_.end(), [](const auto& k) { return is_live(k.second.entry.state); }));
    }
    [[nodiscard]] bool is_blocked(const entry& e) const {
        return !e.lane.empty() && lanes_.at({e.queue, e.lane}).front() != e.id;
    }
    [[nodiscard]] bool is_due(const entry& e, time_point now) const {
        return is_live(e.state) && !is_blocked(e) && (e.state == state::claimed ? *e.lease_until : e.due_at) <= now;
    }
    /// Whether a live entry keeps this one from being purged.
    [[nodiscard]] bool is_needed(const entry& e) const {
        return std::any_of(stored_.begin(), stored_.end(), [&](const auto& other) {
            const auto& o = other.second.entry;
            return is_live(o.state) && (o.parent == e.id || (!e.group.empty() && o.group == e.group));
        });
    }

    [[nodiscard]] receipt receipt_of(const draft& d) {
        const auto* const predecessor = find(d.predecessor);
        const auto keyed = d.key.empty() ? newest_.end() : newest_.find({d.queue, d.key});
        if (find(d.id) != nullptr) {
            return {receipt::kind::duplicate, d.id};
        }
        if (!d.predecessor.is_nil() && (predecessor == nullptr || predecessor->entry.state != state::dead)) {
            return {};
        }
        if (predecessor != nullptr && !predecessor->successor.is_nil()) {
            return {receipt::kind::duplicate, predecessor->successor};
        }
        return keyed != newest_.end() ? receipt{receipt::kind::duplicate, keyed->second}
                                      : receipt{receipt::kind::inserted, d.id};
    }

    [[nodiscard]] static verdict verdict_of(const known* k, const ticket& t) {
        if (k == nullptr) {
            return verdict::unknown;
        }
        if (k->entry.epoch != t.epoch) {
            return verdict::stale;
        }
        return k->entry.state == state::claimed ? verdict::applied : verdict::repeated;
    }

    [[nodiscard]] static verdict verdict_of_cancel(const known* k, time_point now) {
        if (k == nullptr) {
            return verdict::unknown;
        }
        const auto& e = k->entry;
        if (e.state == state::dead) {
            return verdict::repeated;
        }
        const bool is_held = e.state == state::claimed && *e.lease_until > now;
        return e.state == state::succeeded || is_held ? verdict::stale : verdict::applied;
    }

    // Changing, after the store has answered that it changed.

    void insert(const draft& d, time_point now) {
        auto* const predecessor = find(d.predecessor);
        auto& e = stored_[d.id].entry;
        e = born(d, now);
        if (predecessor != nullptr) {
            e.key = predecessor->entry.key;
            e.group = predecessor->entry.group;
            e.lane = predecessor->entry.lane;
            e.generation = predecessor->entry.generation + 1;
            predecessor->successor = d.id;
            unfinished_[e.group] -= 1; // its successor counts in its location
        }
        unfinished_[e.group] += e.state == state::succeeded ? 0 : 1;
        if (!e.key.empty()) {
            newest_[{e.queue, e.key}] = e.id;
        }
        if (!e.lane.empty()) {
            lanes_[{e.queue, e.lane}].push_back(e.id);
        }
        touched_.insert(d.id);
    }

    void claim(entry& e, const claim_request& r) {
        e.attempts += e.state == state::claimed && e.lapses == 0 ? 0U : 1U;
        e.lapses += e.state == state::claimed ? 1U : 0U;
        e.state = state::claimed;
        e.epoch += 1;
        e.lease_until = r.now + r.lease;
        e.woken = false;
        e.updated_at = r.now;
        touched_.insert(e.id);
    }

    /// Returns whether this completes the entry's group.
    [[nodiscard]] bool settle(entry& e, const outcome& o, time_point now) {
        const auto due = [&](time_point at) { e.due_at = e.woken ? std::min(at, now) : at; };
        e.lapses = std::holds_alternative<release>(o) ? e.lapses : 0;
        if (std::holds_alternative<succeed>(o)) {
            e.state = state::succeeded;
        } else if (const auto* const again = std::get_if<retry>(&o)) {
            e.state = state::retrying;
            e.failures += 1;
            due(again->at);
        } else if (std::holds_alternative<bury>(o)) {
            e.state = state::dead;
            e.failures += 1;
        } else if (const auto* const back = std::get_if<release>(&o)) {
            e.attempts -= 1;
            e.state = e.attempts == 0 ? state::pending : state::retrying;
            due(back->at.value_or(e.due_at));
        } else if (const auto* const further = std::get_if<advance>(&o)) {
            e.state = state::pending;
            e.attempts = 0;
            due(further->at.value_or(now));
        }
        end_claim(e, now);
        return e.state == state::succeeded && --unfinished_[e.group] == 0 && !e.group.empty();
    }

    void extend(entry& e, time_point now, duration lease) {
        e.lease_until = std::max(*e.lease_until, now + lease);
        e.updated_at = now;
        touched_.insert(e.id);
    }

    /// Nudges the entry and returns the verdict.
    verdict nudge(const id& wanted, time_point now) {
        auto* const k = find(wanted);
        if (k == nullptr) {
            return verdict::unknown;
        }
        auto& e = k->entry;
        if (is_terminal(e.state)) {
            return verdict::stale;
        }
        if (e.state == state::claimed ? e.woken : e.due_at <= now) {
            return verdict::repeated;
        }
        if (e.state == state::claimed) {
            e.woken = true;
        } else {
            e.due_at = now;
        }
        e.updated_at = now;
        touched_.insert(wanted);
        return verdict::applied;
    }

    void cancel(entry& e, time_point now) {
        e.epoch += e.state == state::claimed ? 1U : 0U;
        e.state = state::dead;
        end_claim(e, now);
    }

    void remove(const known& k) {
        const auto& e = k.entry;
        unfinished_[e.group] -= e.state == state::dead && k.successor.is_nil() ? 1 : 0;
        if (const auto key = newest_.find({e.queue, e.key}); key != newest_.end() && key->second == e.id) {
            newest_.erase(key);
        }
        stored_.erase(id(e.id));
    }

    /// The entries that have changed since the last call.
    [[nodiscard]] std::set<id> take_touched() { return std::exchange(touched_, {}); }

  private:
    void end_claim(entry& e, time_point now) {
        e.lease_until.reset();
        e.woken = false;
        e.updated_at = now;
        touched_.insert(e.id);
        if (is_terminal(e.state) && !e.lane.empty()) {
            std::erase(lanes_.at({e.queue, e.lane}), e.id);
        }
        if (is_terminal(e.state) && !e.parent.is_nil()) {
            nudge(e.parent, now);
        }
    }

    std::map<id, known> stored_{};
    std::map<std::pair<std::string, std::string>, std::vector<id>> lanes_{}; ///< live entries, in sequence
    std::map<std::pair<std::string, std::string>, id> newest_{};             ///< by queue and key
    std::map<std::string, std::int64_t> unfinished_{};                       ///< by group
    std::set<id> touched_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
