// SPDX-License-Identifier: MIT
// Reads: filters and pages of lists, counts and next_due.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/clauses/reads.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace reads_checks {

/// Every path, with entries of a furnished store on it.
[[nodiscard]] inline std::vector<query> paths(const capabilities& can) {
    std::vector<query> out{query::all("q"),        query::live("q"),       query::dead("q"), query::all("r"),
                           query::keyed("q", "k"), query::keyed("q", "l"), query::live("r"), query::children(id_of(1))};
    if (can.groups) {
        out.push_back(query::members("g"));
    }
    return out;
}

inline void filters_by_state(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const auto s : all_states) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.state != s; });
            q.state = s;
            t.equal(store.list(q), expected, "the entries on a path that are " + show(s));
        }
    }
}

inline void filters_by_topic(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const std::string topic : {"early", "late", "ear", "lat%", "LATE", "never"}) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.topic != topic; });
            q.topic = topic;
            t.equal(store.list(q), expected, "the entries on a path with exactly the topic " + show(topic));
        }
    }
}

inline void filters_together(trial& t) {
    const auto store = furnished(t);
    auto q = query::all("q");
    q.topic = "early";
    q.state = state::claimed;
    t.equal(numbers(store.list(q)), list_of{3}, "by topic and state");
    q.after = get(store, 3).sequence;
    t.equal(numbers(store.list(q)), list_of{}, "by topic and state after the last");
    q = query::live("q");
    q.topic = "early";
    q.limit = 1;
    q.after = get(store, 1).sequence;
    t.equal(numbers(store.list(q)), list_of{2}, "the first after another, by topic");
}

inline void after_is_exclusive(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (std::size_t i = 0; i < everything.size(); ++i) {
            const std::vector<entry> rest(everything.begin() + static_cast<std::ptrdiff_t>(i), everything.end());
            q.after = everything[i].sequence - 1;
            t.equal(store.list(q), rest, "after the sequence before an entry");
            q.after = everything[i].sequence;
            t.equal(store.list(q), std::vector<entry>(rest.begin() + 1, rest.end()), "after an entry's sequence");
        }
        q.after = ~std::uint64_t{0};
        t.equal(store.list(q), std::vector<entry>{}, "after the greatest sequence");
    }
}

inline void limit_is_exact(trial& t) {
    const auto each = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = each.list(q);
        for (std::size_t limit = 0; limit <= everything.size() + 1; ++limit) {
            auto expected = everything;
            expected.resize(std::min(limit, expected.size()));
            q.limit = limit;
            t.equal(each.list(q), expected, "listed with limit " + show(limit));
        }
    }
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 1100; ++n) {
        drafts.push_back(draft_of(n));
    }
    vouch::enqueue(store, drafts, at(0));
    query q = query::all("q");
    t.equal(store.list(q).size(), 100, "listed with the default limit of a query");
    q.limit = t.can().limits.batch_max;
    t.equal(store.list(q).size(), 1100, "listed with the largest limit");
}

/// All pages of this size together, up to the first empty one.
[[nodiscard]] inline list_of in_pages(const any_store& store, query q, std::size_t size) {
    list_of out;
    q.limit = size;
    for (int page = 0; page < 30; ++page) {
        const auto found = store.list(q);
        if (found.empty()) {
            break;
        }
        const auto more = numbers(found);
        out.insert(out.end(), more.begin(), more.end());
        q.after = found.back().sequence;
    }
    return out;
}

inline void pages(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 12; ++n) {
        const auto queue = n == 3 ? "r" : "q";
        put(store, draft_of(n, {.queue = queue, .topic = n % 2 == 0 ? "even" : "odd", .parent = id_of(20)}));
        if (n % 3 == 0) {
            cancel(store, id_of(n), at(n == 6 ? 0 : 5));
        }
    }
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged, to leave a gap");
    auto odd = query::live("q");
    odd.topic = "odd";
    for (const auto& q : {query::all("q"), query::live("q"), query::dead("q"), query::children(id_of(20)), odd}) {
        for (std::size_t size = 1; size <= 12; ++size) {
            t.equal(in_pages(store, q, size), numbers(store.list(q)), "all pages of " + show(size) + " put together");
        }
    }
    put_dead(store, draft_of(13, {.key = "k"}));
    for (std::uint64_t n = 14; n <= 17; ++n) {
        put(store, draft_of(n, {.predecessor = id_of(n - 1)}));
        cancel(store, id_of(n));
    }
    for (std::size_t size = 1; size <= 6; ++size) {
        t.equal(in_pages(store, query::keyed("q", "k"), size), list_of{13, 14, 15, 16, 17},
                "all pages of " + show(size) + " generations put together");
    }
}

inline void payloads_on_request(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        auto expected = store.list(q);
        for (auto& e : expected) {
            t.equal(e.payload, "", "the payload when it is not requested");
            e.payload = "payload " + std::to_string(e.id.low);
            t.equal(std::optional{e}, store.find(e.id), "everything but the payload is listed as it is found");
        }
        q.payloads = true;
        t.equal(store.list(q), expected, "with payloads");
    }
}

inline void counts_states(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7));
    put(store, draft_of(8, {.result = ""}));
    put(store, draft_of(9, {.result = ""}));
    t.equal(store.counts("q"), state_counts{{2, 1, 1, 3, 1}}, "the counts of \"q\"");
    t.equal(store.counts("r"), state_counts{{1, 0, 0, 0, 0}}, "the counts of \"r\"");
    t.equal(store.counts("unused"), state_counts{}, "the counts of an unused queue");
}

inline void due_smallest(trial& t) {
    auto store = t.open();
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due of an unused queue");
    put(store, draft_of(1, {.due_at = at(50)}));
    t.equal(store.next_due("q"), at(50), "next_due with one entry");
    put(store, draft_of(2, {.due_at = at(60)}));
    t.equal(store.next_due("q"), at(50), "next_due with an entry due later");
    put(store, draft_of(3, {.due_at = at(-9)}));
    t.equal(store.next_due("q"), at(-9), "next_due with an entry due in the past");
    put(store, draft_of(4, {.queue = "r", .due_at = at(-99)}));
    t.equal(store.next_due("q"), at(-9), "next_due beside another queue's");
    t.equal(store.next_due("r"), at(-99), "next_due of the other queue");
}

inline void due_by_lease(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(-9)}));
    const auto held = take_one(store, at(0), {.lease = duration{30}});
    t.equal(store.next_due("q"), at(30), "next_due is the end of the lease");
    extend(store, held, at(5), duration{40});
    t.equal(store.next_due("q"), at(45), "next_due after the lease was extended");
    put(store, draft_of(2, {.due_at = at(44)}));
    t.equal(store.next_due("q"), at(44), "next_due with an entry due before the lease ends");
    settle(store, held, retry{"e", at(20)}, at(6));
    t.equal(store.next_due("q"), at(20), "next_due after a retry");
}

inline void due_not_terminal(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1), state::succeeded);
    put_as(store, draft_of(2), state::dead);
    put_as(store, draft_of(3), state::claimed);
    settle(store, {id_of(3), 1}, bury{"e", {}});
    put(store, draft_of(4, {.result = ""}));
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when everything has ended");
}

inline void due_not_blocked(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane", .due_at = at(50)}));
    put(store, draft_of(2, {.lane = "lane", .due_at = at(5)}));
    t.equal(store.next_due("q"), at(50), "next_due ignores blocked entries");
    t.equal(store.counts("q")[state::pending], 2, "blocked entries are counted");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2}, "blocked entries are listed");
    cancel(store, id_of(1));
    t.equal(store.next_due("q"), at(5), "next_due when the entry is not blocked any more");
}

} // namespace reads_checks

inline constexpr std::array filtered_reads{
    clause{"READ-10", layer::examples, level::must, needs::nothing,
           "The filter `state` restricts every path to that state.", reads_checks::filters_by_state},
    clause{"READ-11", layer::examples, level::must, needs::nothing,
           "The filter `topic` restricts every path to exactly that topic; it is not a pattern.",
           reads_checks::filters_by_topic},
    clause{"READ-12", layer::examples, level::must, needs::nothing,
           "Filters, `after` and `limit` combine: the limit counts only entries that pass the filters.",
           reads_checks::filters_together},
    clause{"READ-13", layer::examples, level::must, needs::nothing,
           "`after` restricts every path to greater sequences.", reads_checks::after_is_exclusive},
    clause{"READ-14", layer::examples, level::must, needs::nothing,
           "`limit` restricts every path to its first entries; 0 returns none, and the store has no lower limit of its "
           "own.",
           reads_checks::limit_is_exact},
    clause{"READ-15", layer::examples, level::must, needs::nothing,
           "Pages of any size together are the whole list, without gaps or repetitions.", reads_checks::pages},
    clause{"READ-16", layer::examples, level::must, needs::nothing,
           "list returns payloads only on request, and all other fields always.", reads_checks::payloads_on_request},
    clause{"READ-17", layer::examples, level::must, needs::nothing,
           "counts returns every state of one queue, with zero for states without entries.",
           reads_checks::counts_states},
    clause{"READ-18", layer::examples, level::must, needs::nothing,
           "next_due is the earliest due_at of one queue, in the past too, and none if the queue is empty.",
           reads_checks::due_smallest},
    clause{"READ-19", layer::examples, level::must, needs::nothing,
           "For next_due, a claimed entry counts with its lease_until.", reads_checks::due_by_lease},
    clause{"READ-20", layer::examples, level::must, needs::nothing, "Terminal entries do not affect next_due.",
           reads_checks::due_not_terminal},
    clause{"READ-21", layer::examples, level::may, needs::lanes,
           "An entry that is blocked in its lane is counted and listed, but does not affect next_due.",
           reads_checks::due_not_blocked},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
