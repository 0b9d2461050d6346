// SPDX-License-Identifier: MIT
// Names: kept as they were given, joined with the name of their queue, taken over by successors, and after a reopen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/names.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace names_checks {

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

/// Ends each entry with such a name and requeues it.
inline void successors(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    put_all(t, store, drafts_of(all, [&](const std::string& name, std::uint64_t n) {
                return draft_of(n, {.queue = name,
                                    .key = name,
                                    .group = t.can().groups ? name : "",
                                    .lane = t.can().lanes ? name : ""});
            }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        transact(store, [&](auto& tx) {
            t.equal(tx.cancel(id_of(n), "cancelled", at(0)), verdict::applied, "cancelled");
            const auto other = n == all.size() ? all.front() : all[n];
            const std::array batch{draft_of(1'000 + n, {.queue = other, .predecessor = id_of(n)}),
                                   draft_of(2'000 + n, {.queue = name, .predecessor = id_of(n)})};
            t.equal(tx.enqueue(batch, at(0)), receipts{refused, inserted(2'000 + n)},
                    "requeued in a queue with another name, and in its own");
        });
        const auto before = get(store, n);
        const auto after = get(store, 2'000 + n);
        t.equal(after.queue, before.queue, "the queue of a successor");
        t.equal(after.key, before.key, "the key of a successor");
        t.equal(after.group, before.group, "the group of a successor");
        t.equal(after.lane, before.lane, "the lane of a successor");
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{n, 2'000 + n}, "the generations of a key");
    });
}

inline void wakes_of_names(trial& t) {
    auto store = t.open();
    const auto all = lookalikes(t.can().limits.name_max);
    std::vector<std::uint64_t> seen;
    each(all, [&](const std::string& name, std::uint64_t) { seen.push_back(store.wakes(name)); });
    put_all(t, store,
            drafts_of(all, [](const std::string& name, std::uint64_t n) { return draft_of(n, {.queue = name}); }));
    each(all, [&](const std::string& name, std::uint64_t n) {
        t.expect(wakes_change(store, name, seen[n - 1]), "the number of the queue " + show(name) + " changes");
    });
}

} // namespace names_checks

inline constexpr std::array naming_of_values{
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
    clause{"NAME-10", layer::examples, level::must, needs::nothing,
           "A successor has exactly the key, group and lane of its predecessor, and is refused in a queue whose name "
           "differs in any byte.",
           names_checks::successors},
    clause{"NAME-11", layer::examples, level::may, needs::wakes,
           "Each queue has its number of wakes, whatever its name.", names_checks::wakes_of_names},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
