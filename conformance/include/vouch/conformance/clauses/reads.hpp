// SPDX-License-Identifier: MIT
// Reading: find, list by every path, counts and next_due.
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
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace reads_checks {

using namespace enqueue_checks;

/// In "q": 1 pending and due at(50), 2 retrying from at(10), 3 claimed until at(100), 4 succeeded, 5 dead; in "r": 6
/// pending. 1 is the parent of 2 and 6; 4 has the key "k", 5 "l"; the odd ones and 6 are the group "g".
inline void furnish(any_store& store, const capabilities& can) {
    const std::string g = can.groups ? "g" : "";
    put(store, draft_of(1, {.topic = "early", .payload = "payload 1", .group = g, .due_at = at(50)}));
    put_as(store, draft_of(2, {.topic = "early", .payload = "payload 2", .parent = id_of(1)}), state::retrying);
    put_as(store, draft_of(3, {.topic = "early", .payload = "payload 3", .group = g}), state::claimed);
    put_as(store, draft_of(4, {.topic = "late", .payload = "payload 4", .key = "k"}), state::succeeded);
    put_as(store, draft_of(5, {.topic = "late", .payload = "payload 5", .key = "l", .group = g}), state::dead);
    put(store, draft_of(6, {.queue = "r", .topic = "late", .payload = "payload 6", .group = g, .parent = id_of(1)}));
}

[[nodiscard]] inline any_store furnished(trial& t) {
    auto store = t.open(t.fresh_place());
    furnish(store, t.can());
    return store;
}

/// Every path there is, to something in a furnished store.
[[nodiscard]] inline std::vector<query> paths(const capabilities& can) {
    std::vector<query> out{query::all("q"),        query::live("q"),       query::dead("q"), query::all("r"),
                           query::keyed("q", "k"), query::keyed("q", "l"), query::live("r"), query::children(id_of(1))};
    if (can.groups) {
        out.push_back(query::members("g"));
    }
    return out;
}

inline void finds_by_id(trial& t) {
    const auto store = furnished(t);
    for (std::uint64_t n = 1; n <= 6; ++n) {
        t.equal(get(store, n).id, id_of(n), "the entry found has the id asked for");
        t.equal(get(store, n).payload, "payload " + std::to_string(n), "find gives the payload");
    }
    t.expect(!store.find(id_of(7)), "an id that is not stored finds nothing");
    t.expect(!store.find(id{}), "the nil id finds nothing");
}

inline void lists_all(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 2, 3, 4, 5}, "all of \"q\"");
    t.equal(numbers(store.list(query::all("r"))), list_of{6}, "all of \"r\"");
    t.equal(numbers(store.list(query::all("nobody's"))), list_of{}, "all of a queue nobody has used");
}

inline void lists_live(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the live of \"q\"");
    t.equal(numbers(store.list(query::live("r"))), list_of{6}, "the live of \"r\"");
    t.equal(numbers(store.list(query::live("nobody's"))), list_of{}, "the live of a queue nobody has used");
}

inline void lists_dead(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::dead("q"))), list_of{5}, "the dead of \"q\"");
    t.equal(numbers(store.list(query::dead("r"))), list_of{}, "the dead of \"r\"");
}

inline void lists_by_key(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7, {.queue = "r", .key = "k"}));
    put(store, draft_of(8, {.predecessor = id_of(5)}));
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{4}, "\"k\" of \"q\"");
    t.equal(numbers(store.list(query::keyed("r", "k"))), list_of{7}, "\"k\" of \"r\"");
    t.equal(numbers(store.list(query::keyed("q", "l"))), list_of{5, 8}, "every generation of \"l\" of \"q\"");
    t.equal(numbers(store.list(query::keyed("r", "l"))), list_of{}, "a key another queue has");
    t.equal(numbers(store.list(query::keyed("q", "m"))), list_of{}, "a key nobody has");
}

inline void lists_children(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::children(id_of(1)))), list_of{2, 6}, "the children of 1, in both queues");
    t.equal(numbers(store.list(query::children(id_of(2)))), list_of{}, "the children of 2");
}

inline void lists_members(trial& t) {
    auto store = furnished(t);
    put(store, draft_of(7, {.group = "h"}));
    t.equal(numbers(store.list(query::members("g"))), list_of{1, 3, 5, 6}, "the members of \"g\", in both queues");
    t.equal(numbers(store.list(query::members("h"))), list_of{7}, "the members of \"h\"");
    t.equal(numbers(store.list(query::members("i"))), list_of{}, "the members of a group nobody is in");
}

inline void names_are_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::string name : {"q", "Q", "q ", "qq", "\xc3\xa9", "e\xcc\x81", "\xff", "7", "07"}) {
        put(store, draft_of(++n, {.queue = name}));
        put(store, draft_of(n + 10, {.queue = "one", .topic = name}));
        t.equal(numbers(store.list(query::all(name))), list_of{n}, "listed of a queue named like others");
        t.equal(store.counts(name).total(), 1, "counted of a queue named like others");
        auto by_topic = query::all("one");
        by_topic.topic = name;
        t.equal(numbers(store.list(by_topic)), list_of{n + 10}, "listed of a topic named like others");
    }
}

inline void by_sequence(trial& t) {
    auto store = t.open();
    for (const std::int64_t n : {9, 8, 7}) {
        put(store, draft_of(static_cast<std::uint64_t>(n), {.parent = id_of(20), .due_at = at(n)}), at(n));
    }
    for (const auto& q : {query::all("q"), query::live("q"), query::children(id_of(20))}) {
        t.equal(numbers(store.list(q)), list_of{9, 8, 7}, "listed in the order of coming, not of ids or times");
    }
    for (const std::int64_t n : {7, 9, 8}) {
        cancel(store, id_of(static_cast<std::uint64_t>(n)), at(100));
    }
    t.equal(numbers(store.list(query::dead("q"))), list_of{9, 8, 7}, "the dead in the order of coming, not of ending");
}

inline void filters_by_state(trial& t) {
    const auto store = furnished(t);
    for (auto q : paths(t.can())) {
        const auto everything = store.list(q);
        for (const auto s : all_states) {
            auto expected = everything;
            std::erase_if(expected, [&](const entry& e) { return e.state != s; });
            q.state = s;
            t.equal(store.list(q), expected, "of a path only what is " + show(s));
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
            t.equal(store.list(q), expected, "of a path only what has exactly the topic " + show(topic));
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
        t.equal(store.list(q), std::vector<entry>{}, "after the greatest number there is");
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
    t.equal(store.list(q).size(), 100, "listed with the limit a query has by itself");
    q.limit = t.can().limits.batch_max;
    t.equal(store.list(q).size(), 1100, "listed with the largest limit");
}

/// All pages of this size put together, up to the first that is empty.
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
            t.equal(e.payload, "", "the payload when it is not asked for");
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
    t.equal(store.counts("nobody's"), state_counts{}, "the counts of a queue nobody has used");
}

inline void due_smallest(trial& t) {
    auto store = t.open();
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due of a queue nobody has used");
    put(store, draft_of(1, {.due_at = at(50)}));
    t.equal(store.next_due("q"), at(50), "next_due with one entry");
    put(store, draft_of(2, {.due_at = at(60)}));
    t.equal(store.next_due("q"), at(50), "next_due with one due later");
    put(store, draft_of(3, {.due_at = at(-9)}));
    t.equal(store.next_due("q"), at(-9), "next_due with one due in the past");
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
    t.equal(store.next_due("q"), at(44), "next_due with one due before the lease ends");
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
    t.equal(store.next_due("q"), at(50), "next_due passes over what is blocked in its lane");
    t.equal(store.counts("q")[state::pending], 2, "what is blocked is counted");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2}, "what is blocked is listed");
    cancel(store, id_of(1));
    t.equal(store.next_due("q"), at(5), "next_due once it is not blocked any more");
}

} // namespace reads_checks

inline constexpr std::array reads{
    clause{"READ-01", layer::examples, level::must, needs::nothing,
           "find gives the entry with this id, payload included, or nothing.", reads_checks::finds_by_id},
    clause{"READ-02", layer::examples, level::must, needs::nothing,
           "list by `all` gives the entries of the one queue, in every state.", reads_checks::lists_all},
    clause{"READ-03", layer::examples, level::must, needs::nothing,
           "list by `live` gives the pending, retrying and claimed entries of the one queue.",
           reads_checks::lists_live},
    clause{"READ-04", layer::examples, level::must, needs::nothing,
           "list by `dead` gives the dead entries of the one queue.", reads_checks::lists_dead},
    clause{"READ-05", layer::examples, level::must, needs::nothing,
           "list by `key` gives every stored generation of that key in that queue.", reads_checks::lists_by_key},
    clause{"READ-06", layer::examples, level::must, needs::nothing,
           "list by `parent` gives the entries with that parent, in all queues.", reads_checks::lists_children},
    clause{"READ-07", layer::examples, level::may, needs::groups,
           "list by `group` gives the members of that group, in all queues and states.", reads_checks::lists_members},
    clause{"READ-08", layer::examples, level::must, needs::nothing,
           "Queues and topics are the same only if every byte of their names is.", reads_checks::names_are_bytes},
    clause{"READ-09", layer::examples, level::must, needs::nothing,
           "Lists are in ascending sequence, whatever the ids and times.", reads_checks::by_sequence},
    clause{"READ-10", layer::examples, level::must, needs::nothing,
           "The filter `state` narrows every path to that one state.", reads_checks::filters_by_state},
    clause{"READ-11", layer::examples, level::must, needs::nothing,
           "The filter `topic` narrows every path to exactly that topic; it is no pattern.",
           reads_checks::filters_by_topic},
    clause{"READ-12", layer::examples, level::must, needs::nothing,
           "Filters, `after` and `limit` go together: the limit counts what has passed the filters.",
           reads_checks::filters_together},
    clause{"READ-13", layer::examples, level::must, needs::nothing,
           "`after` gives only sequences greater than itself, on every path.", reads_checks::after_is_exclusive},
    clause{
        "READ-14", layer::examples, level::must, needs::nothing,
        "`limit` gives the first so many, on every path; 0 gives none, and the store has no smaller limit of its own.",
        reads_checks::limit_is_exact},
    clause{"READ-15", layer::examples, level::must, needs::nothing,
           "Pages of any size put together are the whole: none is skipped at an edge, none comes twice.",
           reads_checks::pages},
    clause{"READ-16", layer::examples, level::must, needs::nothing,
           "list gives payloads only when asked to, and everything else always.", reads_checks::payloads_on_request},
    clause{"READ-17", layer::examples, level::must, needs::nothing,
           "counts has every state of the one queue, zero where there is none.", reads_checks::counts_states},
    clause{"READ-18", layer::examples, level::must, needs::nothing,
           "next_due is the earliest due_at of the one queue, in the past too, and none if the queue is empty.",
           reads_checks::due_smallest},
    clause{"READ-19", layer::examples, level::must, needs::nothing,
           "For next_due a claimed entry counts with the end of its lease.", reads_checks::due_by_lease},
    clause{"READ-20", layer::examples, level::must, needs::nothing, "Terminal entries have no part in next_due.",
           reads_checks::due_not_terminal},
    clause{"READ-21", layer::examples, level::may, needs::lanes,
           "An entry that is blocked in its lane is counted and listed, but has no part in next_due.",
           reads_checks::due_not_blocked},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
