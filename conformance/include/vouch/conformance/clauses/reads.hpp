// SPDX-License-Identifier: MIT
// Reads: find, and list by every path.
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
/// pending. 1 is the parent of 2 and 6; 4 has the key "k" and 5 the key "l"; 1, 3, 5 and 6 are the group "g".
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
    auto store = t.open(t.fresh_location());
    furnish(store, t.can());
    return store;
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
    t.equal(numbers(store.list(query::all("unused"))), list_of{}, "all entries of an unused queue");
}

inline void lists_live(trial& t) {
    const auto store = furnished(t);
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the live of \"q\"");
    t.equal(numbers(store.list(query::live("r"))), list_of{6}, "the live of \"r\"");
    t.equal(numbers(store.list(query::live("unused"))), list_of{}, "the live entries of an unused queue");
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
    t.equal(numbers(store.list(query::keyed("q", "m"))), list_of{}, "an unused key");
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
    t.equal(numbers(store.list(query::members("i"))), list_of{}, "the members of an unused group");
}

inline void names_are_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::string name : {"q", "Q", "q ", "qq", "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x93\xa6", "7", "07"}) {
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

} // namespace reads_checks

inline constexpr std::array reads{
    clause{"READ-01", layer::examples, level::must, needs::nothing,
           "find returns the entry with this id, payload included, or nothing.", reads_checks::finds_by_id},
    clause{"READ-02", layer::examples, level::must, needs::nothing,
           "list by `all` returns the entries of one queue, in every state.", reads_checks::lists_all},
    clause{"READ-03", layer::examples, level::must, needs::nothing,
           "list by `live` returns the pending, retrying and claimed entries of one queue.", reads_checks::lists_live},
    clause{"READ-04", layer::examples, level::must, needs::nothing,
           "list by `dead` returns the dead entries of one queue.", reads_checks::lists_dead},
    clause{"READ-05", layer::examples, level::must, needs::nothing,
           "list by `key` returns every stored generation of a key in one queue.", reads_checks::lists_by_key},
    clause{"READ-06", layer::examples, level::must, needs::nothing,
           "list by `parent` returns the entries with that parent, in all queues.", reads_checks::lists_children},
    clause{"READ-07", layer::examples, level::may, needs::groups,
           "list by `group` returns the members of that group, in all queues and states.", reads_checks::lists_members},
    clause{"READ-08", layer::examples, level::must, needs::nothing,
           "Two queues or topics are the same only if all bytes of their names are equal.",
           reads_checks::names_are_bytes},
    clause{"READ-09", layer::examples, level::must, needs::nothing,
           "Lists are ordered by ascending sequence, whatever the ids and times.", reads_checks::by_sequence},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
