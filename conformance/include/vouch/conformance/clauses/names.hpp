// SPDX-License-Identifier: MIT
// Names: two names are the same only if all their bytes are equal, wherever a store compares them; and a name is kept as
// it was given. All names here are valid UTF-8 without control characters.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace names_checks {

using namespace enqueue_checks;
using names = std::vector<std::string>;

/// Names that a careless store takes for one another. `size` is the length of the longest.
[[nodiscard]] inline names lookalikes(std::size_t size) {
    names out{"name", "Name", "NAME", "name ", "name  ", " name", "  name", "nam", "names", "na me", "name.", "name.x"};
    const auto add = [&](const names& more) { out.insert(out.end(), more.begin(), more.end()); };
    add({"1", "01", "1.0", "1.", "+1", "1e0", "0x1", "10", "-1", "0", "-0", "00", "0.0"});
    add({"9007199254740992", "9007199254740993", "18446744073709551616", "18446744073709551617"});
    add({"%", "_", "n%", "nam_", "name%", "%name", "*", "n*", "?", "nam?", "[n]ame"});
    add({"'name'", "''name''", "\"name\"", "\"\"name\"\"", "`name`", "na'me", "na''me", "name\\", "name\\\\", "na\\me",
         "na\\\\me", "\\name", "name;--", "$1", ":name", "@name", "name:", "/name", "name/"});
    add({"null", "NULL", "nil", "true", "TRUE", "undefined", "default"});
    // e with an acute accent as one character and as two, in both cases, with another accent and with none
    add({"caf\xc3\xa9", "cafe\xcc\x81", "CAF\xc3\x89", "CAFE\xcc\x81", "caf\xc3\xa8", "cafe"});
    // the sharp s, dotted and dotless i, a ligature, a full-width letter, a Greek and a Cyrillic letter that look alike
    add({"stra\xc3\x9f"
         "e",
         "strasse", "i", "I", "\xc4\xb1", "\xc4\xb0", "\xef\xac\x81", "fi", "\xef\xbd\x81", "a", "\xd0\xb0",
         "\xce\xb1"});
    // a no-break space, an ideographic space, a zero-width joiner, a byte order mark
    add({"name\xc2\xa0", "name\xe3\x80\x80", "name\xe2\x80\x8d", "\xef\xbb\xbfname", "\xef\xbf\xbd"});
    // characters of four bytes, which are the same if only 16 bits of each are kept
    add({"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", "\xf0\x9f\x98\x80 ", "\xf0\xaf\x98\x80", "\xf0\x90\x8d\x88"});
    for (const auto* const end : {"a", "b", "A", " ", "\xc3\xa9", "\xc3\xa8"}) {
        const std::string last(end);
        out.push_back(std::string(size - last.size(), 'n') + last);
    }
    out.emplace_back(size - 1, 'n');
    out.emplace_back(size, 'n');
    return out;
}

/// Calls `use(name, n)` for every one of the names, which have numbers from 1 on.
template <class Use>
void each(const names& all, const Use& use) {
    std::uint64_t n = 0;
    for (const auto& name : all) {
        use(name, ++n);
    }
}

/// One draft for each name, made by `make(name, n)`.
template <class Make>
[[nodiscard]] std::vector<draft> drafts_of(const names& all, const Make& make) {
    std::vector<draft> out;
    each(all, [&](const std::string& name, std::uint64_t n) { out.push_back(make(name, n)); });
    return out;
}

/// Enqueues the drafts and requires that each is stored.
inline void put_all(trial& t, any_store& store, const std::vector<draft>& drafts) {
    const auto seen = vouch::enqueue(store, drafts, at(0));
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        t.equal(seen[i], receipt{receipt::kind::inserted, drafts[i].id}, "the receipt of a name like others");
    }
}

inline void queues(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.queue = name, .due_at = at(static_cast<std::int64_t>(n))});
            }));
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(1'000 + n, {.queue = name, .result = ""});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).queue, name, "the queue");
        t.equal(numbers(store.list(query::all(name))), list_of{n, 1'000 + n}, "listed of the queue " + show(name));
        t.equal(numbers(store.list(query::live(name))), list_of{n}, "live in the queue " + show(name));
        t.equal(store.counts(name), state_counts{{1, 0, 0, 1, 0}}, "the counts of the queue " + show(name));
        t.equal(store.next_due(name), at(static_cast<std::int64_t>(n)), "next_due of the queue " + show(name));
    });
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            const auto taken = tx.claim(request(at(1'000), {.queue = name}));
            t.equal(numbers(taken), list_of{n}, "claimed from the queue " + show(name));
            t.equal(taken.front().queue, name, "the queue of a claimed entry");
            t.equal(settle_in(tx, ticket_of(taken.front()), bury{"e", {}}, at(1'000)).verdict, verdict::applied,
                    "buried");
            t.equal(tx.purge({.queue = name, .before = at(1)}), 1, "purged from the queue " + show(name));
        });
    });
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(numbers(store.list(query::dead(name))), list_of{n}, "dead in the queue " + show(name));
        t.equal(store.counts(name).total(), 1, "left in the queue " + show(name));
    });
}

inline void topics(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    const std::string group = t.can().groups ? "group" : "";
    put_all(t, store, drafts_of(all, [&](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.topic = name, .group = group, .parent = id_of(9'999)});
            }));
    const auto lists_each = [&](query q) {
        each(all, [&](const std::string& name, std::uint64_t n) {
            q.topic = name;
            const auto found = store.list(q);
            t.equal(numbers(found), list_of{n}, "listed with the topic " + show(name));
            t.equal(found.front().topic, name, "the topic");
        });
    };
    lists_each(query::all("q"));
    lists_each(query::live("q"));
    lists_each(query::children(id_of(9'999)));
    if (t.can().groups) {
        lists_each(query::members(group));
    }
    std::vector<vouch::settle> batch;
    for (const auto& e : take(store, at(0), {.limit = 1'000})) {
        batch.push_back({ticket_of(e), bury{"e", {}}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    lists_each(query::dead("q"));
}

inline void keys(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.key = name}); }));
    const auto again = vouch::enqueue(
        store,
        drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(1'000 + n, {.key = name}); }),
        at(0));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).key, name, "the key");
        t.equal(again[n - 1], duplicate(n), "a second draft with the key " + show(name));
        t.equal(numbers(store.list(query::keyed("q", name))), list_of{n}, "listed by the key " + show(name));
    });
}

inline void groups(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.group = name}); }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(get(store, n).group, name, "the group");
        t.equal(numbers(store.list(query::members(name))), list_of{n}, "the members of the group " + show(name));
    });
    std::vector<vouch::settle> batch;
    for (const auto& e : take(store, at(0), {.limit = 1'000})) {
        batch.push_back({ticket_of(e), succeed{}});
    }
    const auto seen = transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    t.equal(seen, std::vector(all.size(), settlement{verdict::applied, true}),
            "the success of the only member of each group");
}

inline void lanes_of_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    list_of heads;
    list_of rest;
    each(all, [&](const std::string&, std::uint64_t n) {
        heads.push_back(n);
        rest.push_back(1'000 + n);
    });
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.lane = name}); }));
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(1'000 + n, {.lane = name});
            }));
    const auto first = take(store, at(0), {.limit = 1'000});
    t.equal(numbers(first), heads, "claimed of lanes with names like each other");
    each(all, [&](const std::string& name, std::uint64_t n) { t.equal(first[n - 1].lane, name, "the lane"); });
    // The last ends first: it must open its own lane and no other.
    settle(store, ticket_of(first.back()), succeed{});
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{rest.back()}, "claimed when one head has ended");
    rest.pop_back();
    std::vector<vouch::settle> batch;
    for (auto e = first.begin(); e + 1 != first.end(); ++e) {
        batch.push_back({ticket_of(*e), succeed{}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(0)); });
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), rest, "claimed when every head has ended");
}

} // namespace names_checks

inline constexpr std::array naming{
    clause{"NAME-01", layer::examples, level::must, needs::nothing,
           "Queues whose names differ in any byte are different queues for list, counts, next_due, claim and purge.",
           names_checks::queues},
    clause{"NAME-02", layer::examples, level::must, needs::nothing,
           "Topics that differ in any byte are different topics for every list.", names_checks::topics},
    clause{"NAME-03", layer::examples, level::must, needs::nothing,
           "Keys that differ in any byte are different keys: only an equal key makes a duplicate.", names_checks::keys},
    clause{"NAME-04", layer::examples, level::may, needs::groups,
           "Groups whose names differ in any byte are different groups, which are completed separately.",
           names_checks::groups},
    clause{"NAME-05", layer::examples, level::may, needs::lanes,
           "Lanes whose names differ in any byte are different lanes, which do not block each other.",
           names_checks::lanes_of_names},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
