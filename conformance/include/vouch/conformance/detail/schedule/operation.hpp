// SPDX-License-Identifier: MIT
// An operation of a writer or reader as a value, so that it can be performed on a store and on the model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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
    enum class kind : std::uint8_t {
        enqueue,
        claim,
        settle,
        extend,
        nudge,
        cancel,
        purge,
        find,
        list,
        counts,
        next_due
    };
    operation::kind what = kind::claim;
    time_point now{};
    std::vector<draft> drafts{};
    claim_request claim{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{};
    duration lease{};
    id wanted{};
    purge_request purge{};
    vouch::query query{};
    std::string queue{}; ///< of `counts` and `next_due`

    [[nodiscard]] bool is_read() const noexcept { return what >= kind::find; }
};

struct answer {
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<verdict> verdicts{};
    std::size_t purged = 0;
    std::vector<entry> found{}; ///< by `find`: one or none; by `list`
    state_counts counts{};
    std::optional<time_point> due{};

    /// Whether the operation has changed anything.
    [[nodiscard]] bool has_effect() const {
        return !claimed.empty() || purged > 0 || std::any_of(receipts.begin(), receipts.end(), [](const receipt& r) {
            return r.what == receipt::kind::inserted;
        }) || std::any_of(settlements.begin(), settlements.end(), [](const settlement& s) {
            return s.verdict == verdict::applied;
        }) || std::find(verdicts.begin(), verdicts.end(), verdict::applied) != verdicts.end();
    }

    [[nodiscard]] friend bool operator==(const answer&, const answer&) = default;
};

/// Performs a read on a store, on a transaction or on the model.
template <class Reader>
[[nodiscard]] answer perform_read(const Reader& reader, const operation& o) {
    answer out;
    switch (o.what) {
    case operation::kind::find:
        if (const auto e = reader.find(o.wanted)) {
            out.found.push_back(*e);
        }
        break;
    case operation::kind::list: out.found = reader.list(o.query); break;
    case operation::kind::counts: out.counts = reader.counts(o.queue); break;
    default: out.due = reader.next_due(o.queue);
    }
    return out;
}

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
    default: return perform_read(tx, o);
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
    default: return perform_read(on, o);
    }
    return out;
}

/// A random read.
[[nodiscard]] inline operation some_read(generator& arguments, random_source& d) {
    const auto roll = d.below(100);
    if (roll < 50) {
        return {.what = operation::kind::find, .wanted = arguments.some_id()};
    }
    if (roll < 75) {
        return {.what = operation::kind::list, .query = some_query(d)};
    }
    return {.what = roll < 85 ? operation::kind::counts : operation::kind::next_due, .queue = arguments.some_queue()};
}

/// A random write.
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

[[nodiscard]] inline std::string show_query(const query& q) {
    const auto path = [&]() -> std::string {
        switch (q.by) {
        case query::path::group: return "group " + q.group;
        case query::path::parent: return "children of " + show(q.parent);
        case query::path::key: return "key " + q.key + " of " + q.queue;
        case query::path::dead: return "dead of " + q.queue;
        case query::path::live: return "live of " + q.queue;
        case query::path::all: break;
        }
        return "all of " + q.queue;
    }();
    return path + (q.state ? ", " + show(*q.state) : "") + (q.topic.empty() ? "" : ", topic " + q.topic);
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
    case operation::kind::find: return "find " + show(o.wanted);
    case operation::kind::list: return "list " + show_query(o.query);
    case operation::kind::counts: return "counts " + o.queue;
    case operation::kind::next_due: return "next_due " + o.queue;
    }
    return "?";
}

[[nodiscard]] inline std::string show(const operation& o, const answer& a) {
    switch (o.what) {
    case operation::kind::enqueue: return show(a.receipts);
    case operation::kind::claim: return show(tickets_of(a.claimed));
    case operation::kind::settle: return show(a.settlements);
    case operation::kind::purge: return std::to_string(a.purged);
    case operation::kind::find: return a.found.empty() ? "none" : show(a.found.front());
    case operation::kind::list: return show(ids_of(a.found));
    case operation::kind::counts: return show(a.counts);
    case operation::kind::next_due: return show(a.due);
    default: return show(a.verdicts);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
