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
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.topic = name, .parent = id_of(9'999)});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        for (auto q : {query::all("q"), query::live("q"), query::children(id_of(9'999))}) {
            q.topic = name;
            const auto found = store.list(q);
            t.equal(numbers(found), list_of{n}, "listed with the topic " + show(name));
            t.equal(found.front().topic, name, "the topic");
        }
    });
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

/// The names with which the entry n was claimed and failed, and its headers.
inline void kept_as_given(trial& t, const any_store& store, const names& all) {
    each(all, [&](const std::string& name, std::uint64_t n) {
        const auto e = get(store, n);
        t.equal(e.worker, name, "the name of the worker");
        t.equal(e.last_error, name.substr(0, t.can().limits.error_max), "the error code");
        t.equal(e.headers, header_list{{name, "value"}, {"name", name}, {name, name}}, "the headers");
    });
}

/// Claims each entry by a worker of its name, and fails it with an error of its name.
inline void put_kept(trial& t, any_store& store, const names& all) {
    put_all(t, store, drafts_of(all, [](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.headers = {{name, "value"}, {"name", name}, {name, name}}});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            const auto code = name.substr(0, t.can().limits.error_max);
            const auto taken = tx.claim(request(at(0), {.worker = name, .only = id_of(n)}));
            t.equal(taken.size(), 1, "claimed");
            t.equal(taken.front().worker, name, "the name of the worker that has just claimed");
            t.equal(taken.front().headers, header_list{{name, "value"}, {"name", name}, {name, name}},
                    "the headers of a claimed entry");
            const auto ends = n % 2 == 0 ? outcome{bury{code, {}}} : outcome{retry{n % 3 == 0 ? "e" : code, at(0)}};
            t.equal(settle_in(tx, ticket_of(taken.front()), ends, at(0)).verdict, verdict::applied, "failed");
            if (n % 2 == 1 && n % 3 == 0) {
                t.equal(tx.cancel(id_of(n), code, at(0)), verdict::applied, "cancelled");
            }
        });
    });
}

inline void kept_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_kept(t, store, all);
    kept_as_given(t, store, all);
}

/// Pairs of a queue and another name that are equal once they are joined.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> joined_alike() {
    std::vector<std::pair<std::string, std::string>> out;
    for (const std::string by : {":", "/", "", " ", ".", "|", ",", "-", "_", "\\", "::", "#", "$", "'", "\"", "%"}) {
        for (const auto& [queue, name] : {std::pair{"a" + by + "b", std::string("c")}, {"a", "b" + by + "c"}}) {
            if (std::find(out.begin(), out.end(), std::pair{queue, name}) == out.end()) {
                out.emplace_back(queue, name);
            }
        }
        out.emplace_back("a" + by + by + "b", "c");
        out.emplace_back("a" + by, by + "b" + by + "c");
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

inline void keys_and_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (const auto& [queue, key] : joined_alike()) {
        if (!queue.empty() && !key.empty()) {
            drafts.push_back(draft_of(drafts.size() + 1, {.queue = queue, .key = key}));
        }
    }
    put_all(t, store, drafts);
    for (const auto& d : drafts) {
        t.equal(ids_of(store.list(query::keyed(d.queue, d.key))), std::vector{d.id}, "listed by a queue and a key");
    }
}

inline void lanes_and_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (const auto& [queue, lane] : joined_alike()) {
        drafts.push_back(draft_of(drafts.size() + 1, {.queue = queue, .lane = lane}));
    }
    put_all(t, store, drafts);
    for (const auto& d : drafts) {
        const auto taken = take(store, at(0), {.queue = d.queue, .only = d.id});
        t.equal(ids_of(taken), std::vector{d.id}, "claimed of the lane " + show(d.lane) + " of " + show(d.queue));
    }
}

inline void names_survive(trial& t) {
    const auto all = lookalikes(t.can().limits.name_max);
    const auto named = [&](const std::string& name, std::uint64_t n) {
        return draft_of(1'000 + n, {.queue = name,
                                    .topic = name,
                                    .key = name,
                                    .group = t.can().groups ? name : "",
                                    .lane = t.can().lanes ? name : ""});
    };
    {
        auto store = t.open();
        put_kept(t, store, all);
        put_all(t, store, drafts_of(all, named));
    }
    auto store = t.open();
    kept_as_given(t, store, all);
    each(all, [&](const std::string& name, std::uint64_t n) {
        stored_as_drafted(store, named(name, n), at(0), "an entry with the name " + show(name) + " after a reopen");
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{1'000 + n}, "found by its names after a reopen");
    });
    const auto again = vouch::enqueue(store,
                                      drafts_of(all,
                                                [&](const std::string& name, std::uint64_t n) {
                                                    auto d = named(name, n);
                                                    d.id = id_of(5'000 + n);
                                                    return d;
                                                }),
                                      at(0));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.equal(again[n - 1], duplicate(1'000 + n), "the key " + show(name) + " after a reopen");
    });
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
    clause{"NAME-06", layer::examples, level::must, needs::nothing,
           "The names of workers, error codes, and the names and values of headers are kept to the byte.",
           names_checks::kept_names},
    clause{"NAME-07", layer::examples, level::must, needs::nothing,
           "A key belongs to its queue: a queue and a key are never mistaken for another queue and key that read the "
           "same when they are joined.",
           names_checks::keys_and_queues},
    clause{"NAME-08", layer::examples, level::may, needs::lanes,
           "A lane belongs to its queue: a queue and a lane are never mistaken for another queue and lane that read "
           "the same when they are joined.",
           names_checks::lanes_and_queues},
    clause{"NAME-09", layer::examples, level::may, needs::durable,
           "Names are the same, and different names stay different, after a reopen.", names_checks::names_survive},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
