// SPDX-License-Identifier: MIT
// An operation of a writer as a value, so that it can be performed on a store and on the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/generator.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/replay/as_code.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/expect.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct operation {
    enum class kind : std::uint8_t { enqueue, claim, settle, extend, nudge, cancel, purge };
    operation::kind what = kind::claim;
    time_point now{};
    std::vector<draft> drafts{};
    claim_request claim{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{};
    duration lease{};
    id wanted{};
    purge_request purge{};
};

struct answer {
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<verdict> verdicts{};
    std::size_t purged = 0;

    [[nodiscard]] friend bool operator==(const answer&, const answer&) = default;
};

template <class Writer>
[[nodiscard]] answer perform(Writer& tx, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::enqueue: out.receipts = tx.enqueue(o.drafts, o.now); break;
    case operation::kind::claim: out.claimed = tx.claim(o.claim); break;
    case operation::kind::settle: out.settlements = tx.settle(o.settles, o.now); break;
    case operation::kind::extend: out.verdicts = tx.extend(o.tickets, o.now, o.lease); break;
    case operation::kind::nudge: out.verdicts = {tx.nudge(o.wanted, o.now)}; break;
    case operation::kind::cancel: out.verdicts = {tx.cancel(o.wanted, "c", o.now)}; break;
    case operation::kind::purge: out.purged = tx.purge(o.purge); break;
    }
    return out;
}

/// The model takes the items of a batch one by one.
[[nodiscard]] inline answer perform(model& on, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::enqueue:
        for (const auto& d : o.drafts) {
            out.receipts.push_back(on.enqueue(d, o.now));
        }
        break;
    case operation::kind::claim: out.claimed = on.claim(o.claim); break;
    case operation::kind::settle:
        for (const auto& s : o.settles) {
            out.settlements.push_back(on.settle(s, o.now));
        }
        break;
    case operation::kind::extend:
        for (const auto& t : o.tickets) {
            out.verdicts.push_back(on.extend(t, o.now, o.lease));
        }
        break;
    case operation::kind::nudge: out.verdicts = {on.nudge(o.wanted, o.now)}; break;
    case operation::kind::cancel: out.verdicts = {on.cancel(o.wanted, "c", o.now)}; break;
    case operation::kind::purge: out.purged = on.purge(o.purge); break;
    }
    return out;
}

/// A random operation.
[[nodiscard]] inline operation some_operation(generator& arguments, time_point now, random_source& d) {
    operation o{.now = now};
    const auto roll = d.below(100);
    if (roll < 20) {
        o.what = operation::kind::enqueue;
        o.drafts.push_back(arguments.some_draft());
    } else if (roll < 48) {
        o.what = operation::kind::claim;
        o.claim = arguments.some_claim();
    } else if (roll < 75) {
        o.what = operation::kind::settle;
        for (auto left = d.one_of<std::size_t>({1, 1, 2}); left > 0; --left) {
            o.settles.push_back({arguments.some_ticket(), arguments.some_outcome()});
        }
    } else if (roll < 80) {
        o.what = operation::kind::extend;
        o.tickets.push_back(arguments.some_ticket());
        o.lease = arguments.some_lease();
    } else if (roll < 86) {
        o.what = operation::kind::nudge;
        o.wanted = arguments.some_id();
    } else if (roll < 94) {
        o.what = operation::kind::cancel;
        o.wanted = arguments.some_id();
    } else {
        o.what = operation::kind::purge;
        o.purge = arguments.some_purge();
    }
    return o;
}

[[nodiscard]] inline std::string show(const operation& o) {
    switch (o.what) {
    case operation::kind::enqueue: {
        std::string out = "enqueue";
        for (const auto& d : o.drafts) {
            out += ' ' + as_code(d).substr(5);
        }
        return out;
    }
    case operation::kind::claim:
        return "claim " + std::to_string(o.claim.limit) + " of " + o.claim.queue +
               (o.claim.only.is_nil() ? "" : ", only " + show(o.claim.only));
    case operation::kind::settle: {
        std::string out;
        for (const auto& s : o.settles) {
            out += (out.empty() ? "" : "; ") + visit_outcome(outcome_as_code{}, s.outcome) + " " + show(s.ticket);
        }
        return out;
    }
    case operation::kind::extend: return "extend " + show(o.tickets) + " by " + show(o.lease);
    case operation::kind::nudge: return "nudge " + show(o.wanted);
    case operation::kind::cancel: return "cancel " + show(o.wanted);
    case operation::kind::purge: return "purge " + as_code(o.purge).substr(13);
    }
    return "?";
}

[[nodiscard]] inline std::string show(const operation& o, const answer& a) {
    switch (o.what) {
    case operation::kind::enqueue: return show(a.receipts);
    case operation::kind::claim: return show(tickets_of(a.claimed));
    case operation::kind::settle: return show(a.settlements);
    case operation::kind::purge: return std::to_string(a.purged);
    default: return show(a.verdicts);
    }
}

/// Adds the names of what an operation touches: entries, keys, groups and lanes. A claim and a purge touch their whole
/// queue.
inline void add_touched(const operation& o, const answer& a, std::set<std::string>& names) {
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
