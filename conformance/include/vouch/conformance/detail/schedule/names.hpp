// SPDX-License-Identifier: MIT
// The names that operations share: entries, keys, groups, lanes and queues. Two transactions that share none cannot
// disturb each other, so a history of such transactions shows little.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <vouch/conformance/detail/schedule/operation.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Adds the names that an operation and its answer contain. A claim and a purge name their whole queue.
inline void add_names(const operation& o, const answer& a, std::set<std::string>& names) {
    const auto entry_name = [](const id& one) { return "entry " + std::to_string(one.low); };
    for (const auto& d : o.drafts) {
        names.insert(entry_name(d.id));
        names.insert("queue " + d.queue);
        for (const auto& [kind, name] : {std::pair{"key ", &d.key}, {"group ", &d.group}, {"lane ", &d.lane}}) {
            if (!name->empty()) {
                names.insert(kind + *name);
            }
        }
        if (!d.predecessor.is_nil()) {
            names.insert(entry_name(d.predecessor));
        }
    }
    for (const auto& s : o.settles) {
        names.insert(entry_name(s.ticket.id));
    }
    for (const auto& t : o.tickets) {
        names.insert(entry_name(t.id));
    }
    for (const auto& e : a.claimed) {
        names.insert(entry_name(e.id));
    }
    if (!o.wanted.is_nil()) {
        names.insert(entry_name(o.wanted));
    }
    if (o.what == operation::kind::claim) {
        names.insert("queue " + o.claim.queue);
    }
    if (o.what == operation::kind::purge) {
        names.insert("queue " + o.purge.queue);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
