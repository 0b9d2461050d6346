// SPDX-License-Identifier: MIT
// The entries and what one may do with them, all in memory: the contract's verbs carried out on a map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "record_log.hpp"

namespace log_store {

using vouch::entry, vouch::id, vouch::time_point, vouch::verdict;
inline constexpr vouch::capabilities can{.durable = true};

struct ledger {
    std::map<id, std::shared_ptr<const entry>> entries{};
    std::set<std::tuple<std::string, time_point, std::uint64_t, id>> gates{}; ///< queue, gate, sequence: for claims
    std::uint64_t last_sequence = 0;
    std::set<id> touched{}; ///< since the last commit

    [[nodiscard]] const entry* at(const id& wanted) const {
        const auto found = entries.find(wanted);
        return found == entries.end() ? nullptr : found->second.get();
    }
    /// The only way anything changes: from now on this is the entry with that id, or there is none.
    void set(const id& which, const entry* e) {
        if (const auto* const old = at(which); old && !is_terminal(old->state)) {
            gates.erase({old->queue, *gate_of(*old), old->sequence, which});
        }
        if (e && !is_terminal(e->state)) {
            gates.insert({e->queue, *gate_of(*e), e->sequence, which});
        }
        touched.insert(which);
        if (e) {
            entries[which] = std::make_shared<const entry>(*e);
        } else {
            entries.erase(which);
        }
    }
    /// What a transaction did: the last sequence, then every entry that changed, or that it is gone.
    [[nodiscard]] std::string record() {
        tape out;
        out.pass(last_sequence);
        for (auto which : std::exchange(touched, {})) {
            auto e = find(which);
            bool is_there = e.has_value();
            out.pass(which), out.pass(is_there);
            if (is_there) {
                for_each_field([&](auto, auto& field) { out.pass(field); }, *e);
            }
        }
        return out.bytes;
    }
    void replay(std::string_view record) {
        tape in{.left = record};
        for (in.pass(last_sequence); !in.left->empty();) {
            id which;
            entry e;
            bool is_there = false;
            in.pass(which), in.pass(is_there);
            if (is_there) {
                for_each_field([&](auto, auto& field) { in.pass(field); }, e);
            }
            set(which, is_there ? &e : nullptr);
        }
    }
    /// The newest entry of which `f` is true.
    template <class F>
    [[nodiscard]] const entry* newest(const F& f) const {
        const entry* found = nullptr;
        for (const auto& [which, e] : entries) {
            found = f(*e) && (!found || found->sequence < e->sequence) ? e.get() : found;
        }
        return found;
    }

    // What a reader asks.

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return at(wanted) ? std::optional(*at(wanted)) : std::nullopt;
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        validate(q, can.limits);
        using path = vouch::query::path;
        std::vector<entry> out;
        for (const auto& [which, e] : entries) {
            const bool is_on_path =
                q.by == path::parent ? e->parent == q.parent : q.by != path::group && e->queue == q.queue;
            if (is_on_path && (q.by != path::key || e->key == q.key) &&
                (q.by != path::live || !is_terminal(e->state)) &&
                (q.by != path::dead || e->state == vouch::state::dead) && (!q.state || e->state == *q.state) &&
                (q.topic.empty() || e->topic == q.topic) && e->sequence > q.after) {
                out.push_back(*e);
                out.back().payload = q.payloads ? e->payload : std::string{};
            }
        }
        std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.sequence < b.sequence; });
        out.resize(std::min(out.size(), q.limit));
        return out;
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        vouch::validate_queue(queue, can.limits);
        vouch::state_counts out;
        for (const auto& [which, e] : entries) {
            out[e->state] += e->queue == queue ? 1U : 0U;
        }
        return out;
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        vouch::validate_queue(queue, can.limits);
        const auto first = gates.lower_bound({std::string(queue), time_point::min(), 0, {}});
        const bool is_there = first != gates.end() && std::get<0>(*first) == queue;
        return is_there ? std::optional(std::get<1>(*first)) : std::nullopt;
    }

    // What a writer does.

    vouch::receipt enqueue(const vouch::draft& d, time_point now) {
        using kind = vouch::receipt::kind;
        auto e = born(d, now);
        const auto* same = at(d.id);
        if (!same && !d.key.empty()) {
            same = newest([&](auto& other) { return other.queue == d.queue && other.key == d.key; });
        }
        if (const auto* const dead = at(d.predecessor); !same && !d.predecessor.is_nil()) {
            if (!dead || dead->state != vouch::state::dead || dead->queue != d.queue) {
                return {};
            }
            same = newest([&](auto& other) { return replaces(other, *dead); });
            e.key = dead->key;
            e.generation = dead->generation + 1;
        }
        if (same) {
            return {kind::duplicate, same->id};
        }
        e.sequence = ++last_sequence;
        set(d.id, &e);
        return {kind::inserted, d.id};
    }
    /// An id may come again when its entry is purged, but its sequence is then a later one.
    [[nodiscard]] static bool replaces(const entry& e, const entry& dead) {
        return e.predecessor == dead.id && e.sequence > dead.sequence;
    }
    std::vector<entry> claim(const vouch::claim_request& c) {
        validate(c, can.limits);
        std::vector<entry> out;
        for (auto g = gates.lower_bound({c.queue, time_point::min(), 0, {}});
             g != gates.end() && std::get<0>(*g) == c.queue && std::get<1>(*g) <= c.now && out.size() < c.limit; ++g) {
            if (c.only.is_nil() || c.only == std::get<3>(*g)) {
                out.push_back(*at(std::get<3>(*g)));
            }
        }
        for (auto& e : out) {
            apply(e, c);
            set(e.id, &e);
        }
        std::sort(out.begin(), out.end(), before<&entry::due_at>);
        return out;
    }
    template <auto Time>
    static bool before(const entry& a, const entry& b) {
        return std::tie(a.*Time, a.sequence) < std::tie(b.*Time, b.sequence);
    }
    /// Changes an entry by the contract's `apply`. Who ends wakes its parent.
    template <class Verb>
    verdict change(const id& which, const Verb& verb, time_point now) {
        auto e = find(which);
        const auto said = e ? apply(*e, verb, now) : verdict::unknown;
        if (said == verdict::applied) {
            set(which, &*e);
            if (is_terminal(e->state)) {
                change(e->parent, vouch::nudge{}, now);
            }
        }
        return said;
    }
    /// Generations go together, the eldest first, and none of them while a live entry needs one.
    std::size_t purge(const vouch::purge_request& p) {
        validate(p, can.limits);
        std::set<id> needed, replaced;
        for (const auto& [which, e] : entries) {
            if (!is_terminal(e->state)) {
                needed.insert(e->parent);
            }
            if (const auto* const dead = at(e->predecessor); dead && replaces(*e, *dead)) {
                replaced.insert(dead->id);
            }
        }
        std::vector<entry> tips;
        for (const auto& [which, e] : entries) {
            if (is_terminal(e->state) && e->queue == p.queue && e->updated_at < p.before && !replaced.contains(which) &&
                (!p.state || e->state == *p.state)) {
                tips.push_back(*e);
            }
        }
        std::sort(tips.begin(), tips.end(), before<&entry::updated_at>);
        std::vector<id> going;
        for (const auto& tip : tips) {
            std::vector<id> chain;
            const auto* e = &tip;
            for (const entry* next = nullptr; e; e = next && replaces(*e, *next) ? next : nullptr) {
                chain.insert(chain.begin(), e->id);
                next = at(e->predecessor);
            }
            if (std::none_of(chain.begin(), chain.end(), [&](auto& one) { return needed.contains(one); })) {
                going.insert(going.end(), chain.begin(), chain.end());
            }
        }
        going.resize(std::min(going.size(), p.limit));
        std::for_each(going.begin(), going.end(), [this](auto& one) { set(one, nullptr); });
        return going.size();
    }
};

} // namespace log_store
