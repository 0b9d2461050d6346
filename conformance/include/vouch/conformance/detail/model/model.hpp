// SPDX-License-Identifier: MIT
// A second implementation of the contract, as simple as possible: a list of records, searched from end to end for every
// operation. It is written from the design alone and uses none of the library's rules (`apply`, `gate_of`, `born`), so
// that a store that agrees with it does not merely share its mistakes. Arguments must be valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class model {
  public:
    struct record {
        vouch::entry entry{};
        std::uint64_t replaces = 0; ///< the sequence of its predecessor; ids can be reused, sequences cannot
    };
    std::vector<record> records{}; ///< in sequence

    // Reading.

    [[nodiscard]] const entry* find(const id& wanted) const {
        for (const auto& r : records) {
            if (r.entry.id == wanted) {
                return &r.entry;
            }
        }
        return nullptr;
    }

    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        using path = vouch::query::path;
        std::vector<entry> out;
        for (const auto& r : records) {
            const auto& e = r.entry;
            const bool on_path =
                (q.by == path::group && e.group == q.group) || (q.by == path::parent && e.parent == q.parent) ||
                (q.by == path::key && e.queue == q.queue && e.key == q.key) ||
                (q.by == path::dead && e.queue == q.queue && e.state == state::dead) ||
                (q.by == path::live && e.queue == q.queue && alive(e)) || (q.by == path::all && e.queue == q.queue);
            if (on_path && (!q.state || e.state == *q.state) && (q.topic.empty() || e.topic == q.topic) &&
                e.sequence > q.after && out.size() < q.limit) {
                out.push_back(e);
                if (!q.payloads) {
                    out.back().payload.clear();
                }
            }
        }
        return out;
    }

    [[nodiscard]] vouch::state_counts counts(const std::string& queue) const {
        vouch::state_counts out;
        for (const auto& r : records) {
            out.by_state[static_cast<std::size_t>(r.entry.state)] += r.entry.queue == queue ? 1U : 0U;
        }
        return out;
    }

    [[nodiscard]] std::optional<time_point> next_due(const std::string& queue) const {
        std::optional<time_point> least;
        for (const auto& r : records) {
            const auto g = gate(r.entry);
            if (r.entry.queue == queue && g && (!least || *g < *least)) {
                least = g;
            }
        }
        return least;
    }

    /// Whether one of these entries is claimed here.
    [[nodiscard]] bool has_claimed(const std::vector<entry>& entries) const {
        return std::any_of(entries.begin(), entries.end(), [&](const entry& e) {
            const auto* const stored = find(e.id);
            return stored != nullptr && stored->state == state::claimed;
        });
    }

    // Writing.

    vouch::receipt enqueue(const vouch::draft& d, time_point now) {
        using kind = vouch::receipt::kind;
        if (find(d.id) != nullptr) {
            return {kind::duplicate, d.id};
        }
        record fresh;
        auto& e = fresh.entry;
        if (!d.predecessor.is_nil()) {
            const auto* const old = find(d.predecessor);
            if (old == nullptr || old->state != state::dead || old->queue != d.queue) {
                return {kind::refused, {}};
            }
            if (const auto* const other = successor(*old)) {
                return {kind::duplicate, other->entry.id};
            }
            fresh.replaces = old->sequence;
            e.key = old->key;
            e.group = old->group;
            e.lane = old->lane;
            e.generation = old->generation + 1;
        } else {
            const entry* newest = nullptr;
            for (const auto& r : records) {
                newest = !d.key.empty() && r.entry.queue == d.queue && r.entry.key == d.key ? &r.entry : newest;
            }
            if (newest != nullptr) {
                return {kind::duplicate, newest->id};
            }
            e.key = d.key;
            e.group = d.group;
            e.lane = d.lane;
            e.generation = 1;
        }
        e.id = d.id;
        e.queue = d.queue;
        e.topic = d.topic;
        e.payload = d.payload;
        e.parent = d.parent;
        e.predecessor = d.predecessor;
        e.expires_at = d.expires_at;
        e.attempts_max = d.attempts_max;
        e.trail = d.trail;
        e.headers = d.headers;
        e.progress = d.progress;
        e.result = d.result;
        e.state = d.result ? state::succeeded : state::pending;
        e.due_at = d.due_at ? *d.due_at : now;
        e.created_at = now;
        e.updated_at = now;
        e.sequence =
            records.empty() ? 1 : records.back().entry.sequence + 1; // replaced by the sequence that the store chooses
        records.push_back(std::move(fresh));
        return {kind::inserted, d.id};
    }

    std::vector<entry> claim(const vouch::claim_request& r) {
        std::vector<std::pair<time_point, entry*>> eligible;
        for (auto& one : records) {
            const auto g = gate(one.entry);
            if (one.entry.queue == r.queue && g && *g <= r.now && (r.only.is_nil() || one.entry.id == r.only)) {
                eligible.emplace_back(*g, &one.entry);
            }
        }
        std::sort(eligible.begin(), eligible.end(), [](const auto& a, const auto& b) {
            return std::tie(a.first, a.second->sequence) < std::tie(b.first, b.second->sequence);
        });
        eligible.resize(std::min(eligible.size(), r.limit));
        std::vector<entry> out;
        for (const auto& [g, e] : eligible) {
            if (e->state != state::claimed) {
                e->attempts += 1;
            } else {
                e->attempts += e->lapses == 0 ? 0 : 1; // the first lapse may have been caused by another entry
                e->lapses += 1;
            }
            e->state = state::claimed;
            e->epoch += 1;
            e->lease_until = r.now + r.lease;
            e->woken = false;
            e->worker = r.worker;
            e->last_attempt_at = r.now;
            e->updated_at = r.now;
            out.push_back(*e);
        }
        std::sort(out.begin(), out.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return out;
    }

    vouch::settlement settle(const vouch::settle& s, time_point now) {
        auto* const e = find_mutable(s.ticket.id);
        if (e == nullptr) {
            return {verdict::unknown, false};
        }
        if (s.ticket.epoch != e->epoch) {
            return {verdict::stale, false};
        }
        if (e->state != state::claimed) {
            return {verdict::repeated, false};
        }
        const auto unfinished_before = unfinished(e->group);
        const auto due = [&](time_point at) { e->due_at = e->woken && now < at ? now : at; };
        e->lapses = std::holds_alternative<vouch::release>(s.outcome) ? e->lapses : 0;
        if (const auto* const succeed = std::get_if<vouch::succeed>(&s.outcome)) {
            e->state = state::succeeded;
            e->result = succeed->result;
        } else if (const auto* const retry = std::get_if<vouch::retry>(&s.outcome)) {
            e->state = state::retrying;
            e->failures += 1;
            e->last_error = retry->error;
            due(retry->at);
        } else if (const auto* const bury = std::get_if<vouch::bury>(&s.outcome)) {
            e->state = state::dead;
            e->failures += 1;
            e->last_error = bury->error;
            e->result = bury->result;
        } else if (const auto* const release = std::get_if<vouch::release>(&s.outcome)) {
            e->attempts -= 1;
            e->state = e->attempts == 0 ? state::pending : state::retrying;
            due(release->at ? *release->at : e->due_at);
        } else if (const auto* const advance = std::get_if<vouch::advance>(&s.outcome)) {
            e->state = state::pending;
            e->attempts = 0;
            e->progress = advance->progress;
            due(advance->at ? *advance->at : now);
        }
        e->lease_until.reset();
        e->woken = false;
        e->updated_at = now;
        const bool completed = !e->group.empty() && unfinished_before == 1 && unfinished(e->group) == 0;
        wake_parent_of(*e, now);
        return {verdict::applied, completed};
    }

    verdict extend(const vouch::ticket& t, time_point now, vouch::duration lease) {
        auto* const e = find_mutable(t.id);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (t.epoch != e->epoch) {
            return verdict::stale;
        }
        if (e->state != state::claimed) {
            return verdict::repeated;
        }
        if (*e->lease_until < now + lease) {
            e->lease_until = now + lease;
        }
        e->updated_at = now;
        return verdict::applied;
    }

    verdict nudge(const id& wanted, time_point now) {
        auto* const e = find_mutable(wanted);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (!alive(*e)) {
            return verdict::stale;
        }
        if (e->state == state::claimed ? e->woken : e->due_at <= now) {
            return verdict::repeated;
        }
        if (e->state == state::claimed) {
            e->woken = true;
        } else {
            e->due_at = now;
        }
        e->updated_at = now;
        return verdict::applied;
    }

    verdict cancel(const id& wanted, const std::string& error, time_point now) {
        auto* const e = find_mutable(wanted);
        if (e == nullptr) {
            return verdict::unknown;
        }
        if (e->state == state::dead) {
            return verdict::repeated;
        }
        if (e->state == state::succeeded || (e->state == state::claimed && *e->lease_until > now)) {
            return verdict::stale;
        }
        e->epoch += e->state == state::claimed ? 1U : 0U;
        e->state = state::dead;
        e->last_error = error;
        e->lease_until.reset();
        e->woken = false;
        e->updated_at = now;
        wake_parent_of(*e, now);
        return verdict::applied;
    }

    std::size_t purge(const vouch::purge_request& request) {
        std::vector<const record*> tips;
        for (const auto& r : records) {
            const auto& e = r.entry;
            if (e.queue == request.queue && !alive(e) && e.updated_at < request.before && successor(e) == nullptr &&
                (!request.state || e.state == *request.state)) {
                tips.push_back(&r);
            }
        }
        std::sort(tips.begin(), tips.end(), [](const record* a, const record* b) {
            return std::tie(a->entry.updated_at, a->entry.sequence) < std::tie(b->entry.updated_at, b->entry.sequence);
        });
        std::vector<std::uint64_t> going;
        for (const auto* const tip : tips) {
            std::vector<std::uint64_t> chain;
            bool needed = false;
            for (const auto* r = tip; r != nullptr; r = predecessor(*r)) {
                chain.insert(chain.begin(), r->entry.sequence);
                needed = needed || is_needed(r->entry);
            }
            if (!needed) {
                going.insert(going.end(), chain.begin(), chain.end());
            }
        }
        going.resize(std::min(going.size(), request.limit));
        std::erase_if(records, [&](const record& r) {
            return std::find(going.begin(), going.end(), r.entry.sequence) != going.end();
        });
        return going.size();
    }

    [[nodiscard]] static bool alive(const entry& e) { return e.state != state::succeeded && e.state != state::dead; }

    [[nodiscard]] std::optional<time_point> gate(const entry& e) const {
        if (!alive(e)) {
            return std::nullopt;
        }
        for (const auto& r : records) {
            if (!e.lane.empty() && r.entry.queue == e.queue && r.entry.lane == e.lane && alive(r.entry) &&
                r.entry.sequence < e.sequence) {
                return std::nullopt;
            }
        }
        return e.state == state::claimed ? e.lease_until : std::optional{e.due_at};
    }

  private:
    [[nodiscard]] entry* find_mutable(const id& wanted) { return const_cast<entry*>(find(wanted)); }

    [[nodiscard]] const record* successor(const entry& of) const {
        for (const auto& r : records) {
            if (r.replaces == of.sequence) {
                return &r;
            }
        }
        return nullptr;
    }

    [[nodiscard]] const record* predecessor(const record& of) const {
        for (const auto& r : records) {
            if (r.entry.sequence == of.replaces) {
                return &r;
            }
        }
        return nullptr;
    }

    /// Members not yet succeeded. A dead member with a successor does not count; its successor does.
    [[nodiscard]] std::size_t unfinished(const std::string& group) const {
        std::size_t count = 0;
        for (const auto& r : records) {
            const bool open = r.entry.state != state::succeeded && successor(r.entry) == nullptr;
            count += r.entry.group == group && open ? 1U : 0U;
        }
        return count;
    }

    [[nodiscard]] bool is_needed(const entry& e) const {
        for (const auto& r : records) {
            if (alive(r.entry) && ((!e.group.empty() && r.entry.group == e.group) || r.entry.parent == e.id)) {
                return true;
            }
        }
        return false;
    }

    void wake_parent_of(const entry& e, time_point now) {
        if (!alive(e) && !e.parent.is_nil()) {
            const auto parent = e.parent;
            std::ignore = nudge(parent, now);
        }
    }
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
