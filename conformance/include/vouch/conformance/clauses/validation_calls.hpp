// SPDX-License-Identifier: MIT
// Validation of claims, settles, purges and queries: every limit accepts a value at the limit and refuses one above it,
// with the name of the field. A refusal writes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/reads.hpp>
#include <vouch/conformance/clauses/validation.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

inline void nothing_is_no_error(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    auto tx = store.begin();
    t.equal(tx.enqueue({}, at(0)).size(), 0, "answers to no drafts");
    t.equal(tx.settle({}, at(0)).size(), 0, "answers to no settles");
    t.equal(tx.extend({}, at(0), duration{1}).size(), 0, "answers to no tickets");
    t.equal(tx.claim(request(at(900), {.limit = 0})).size(), 0, "claimed with limit 0");
    t.equal(tx.purge({.queue = "q", .before = at(900), .limit = 0}), 0, "purged with limit 0");
    tx.commit();
    unchanged(store, before, "asking for nothing changes nothing");
}

inline void claim_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_claim = [&](const words& says, const claim_request& r) {
        refuses(store, says, [&](auto& tx) { std::ignore = tx.claim(r); });
    };
    refuses_claim({"queue"}, request(at(900), {.queue = ""}));
    refuses_claim({"queue"}, request(at(900), {.queue = "a\nb"}));
    refuses_claim(one_over("queue", limit.name_max), request(at(900), {.queue = bytes(limit.name_max + 1)}));
    refuses_claim(one_over("worker", limit.name_max), request(at(900), {.worker = bytes(limit.name_max + 1)}));
    refuses_claim({"worker"}, request(at(900), {.worker = "a\nb"}));
    refuses_claim(one_over("limit", limit.batch_max), request(at(900), {.limit = limit.batch_max + 1}));
    const auto most =
        request(at(0), {.limit = limit.batch_max, .queue = bytes(limit.name_max), .worker = bytes(limit.name_max)});
    t.equal(claim(store, most).size(), 0, "claimed with everything at its limit");
}

inline void leases_bounded(trial& t) {
    auto store = furnished(t);
    const auto [shortest, longest] = std::pair{t.can().limits.lease_min, t.can().limits.lease_max};
    for (const auto lease :
         {duration{0}, duration{-1}, shortest - duration{1}, longest + duration{1}, duration::max()}) {
        refuses(store, {"lease"}, [&](auto& tx) { std::ignore = tx.claim(request(at(900), {.lease = lease})); });
        refuses(store, {"lease"}, [&](auto& tx) {
            std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(900), lease);
        });
    }
    t.equal(take(store, at(0), {.queue = "r", .lease = shortest}).size(), 1, "claimed with the shortest lease");
    t.equal(get(store, 6).lease_until, at(0) + shortest, "the end of the shortest lease");
    t.equal(take(store, at(900), {.queue = "r", .lease = longest}).size(), 1, "claimed with the longest lease");
    t.equal(get(store, 6).lease_until, at(900) + longest, "the end of the longest lease");
    t.equal(extend(store, {id_of(3), 1}, at(900), longest), verdict::applied, "extended by the longest lease");
    t.equal(get(store, 3).lease_until, at(900) + longest, "the end of a lease extended by the longest");
}

inline void leases_end_in_time(trial& t) {
    auto store = furnished(t);
    const auto last = time_point::max() - duration{100};
    refuses(store, {"now"}, [&](auto& tx) { std::ignore = tx.claim(request(last + duration{1})); });
    refuses(store, {"now"}, [&](auto& tx) {
        std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, last + duration{1}, duration{100});
    });
    t.equal(take(store, last).size(), 3, "claimed as late as a lease can still end");
    t.equal(get(store, 3).lease_until, time_point::max(), "the end of the last possible lease");
}

inline void error_codes_bounded(trial& t) {
    const auto most = t.can().limits.error_max;
    auto store = furnished(t);
    for (const auto& [says, code] :
         {std::pair{one_over("error", most), bytes(most + 1)}, std::pair{words{"error"}, std::string("a\nb")},
          std::pair{words{"error"}, std::string("a\0", 2)}}) {
        const auto refuses_code = [&, &s = says](auto&& call) { refuses(store, s, call); };
        const auto& c = code;
        refuses_code([&](auto& tx) { settle_in(tx, {id_of(3), 1}, retry{c, at(0)}, at(0)); });
        refuses_code([&](auto& tx) { settle_in(tx, {id_of(3), 1}, bury{c, {}}, at(0)); });
        refuses_code([&](auto& tx) { std::ignore = tx.cancel(id_of(1), c, at(0)); });
    }
    settle(store, {id_of(3), 1}, retry{bytes(most), at(0)});
    t.equal(get(store, 3).last_error, bytes(most), "the longest error code, of a retry");
    settle(store, take_one(store, at(0), {.only = id_of(3)}), bury{bytes(most - 1) + "b", {}});
    t.equal(get(store, 3).last_error, bytes(most - 1) + "b", "the longest error code, of a burial");
    cancel(store, id_of(1), at(0), bytes(most));
    t.equal(get(store, 1).last_error, bytes(most), "the longest error code, of a cancel");
}

inline void outcomes_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_outcome = [&](std::string_view field, std::size_t most, const outcome& o) {
        if (most > tried_max) {
            return;
        }
        const std::array batch{vouch::settle{{id_of(3), 1}, succeed{}}, vouch::settle{{id_of(3), 1}, o}};
        refuses(store, one_over(field, most), [&](auto& tx) { std::ignore = tx.settle(batch, at(0)); });
    };
    const auto result = bytes(std::min(limit.result_max, tried_max) + 1);
    const auto progress = bytes(std::min(limit.progress_max, tried_max) + 1);
    refuses_outcome("result", limit.result_max, succeed{result});
    refuses_outcome("result", limit.result_max, bury{"e", result});
    refuses_outcome("progress", limit.progress_max, advance{progress, {}});
    t.equal(settle(store, {id_of(3), 1}, advance{progress.substr(1), at(0)}).verdict, verdict::applied,
            "advanced with the largest progress");
    const auto held = take_one(store, at(0), {.only = id_of(3)});
    t.equal(settle(store, held, succeed{result.substr(1)}).verdict, verdict::applied, "the largest result");
}

inline void purge_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const auto refuses_purge = [&](const words& says, purge_request r) {
        r.before = at(900);
        refuses(store, says, [&](auto& tx) { tx.purge(r); });
    };
    refuses_purge({"queue"}, {});
    refuses_purge({"queue"}, {.queue = "a\nb"});
    refuses_purge(one_over("queue", limit.name_max), {.queue = bytes(limit.name_max + 1)});
    refuses_purge(one_over("limit", limit.batch_max), {.queue = "q", .limit = limit.batch_max + 1});
    for (const auto s : {state::pending, state::retrying, state::claimed}) {
        refuses_purge({"state"}, {.queue = "q", .state = s});
    }
}

/// Invalid queries, and the field that is wrong.
[[nodiscard]] inline std::vector<std::pair<words, query>> wrong_queries(const limits& limit) {
    using path = query::path;
    return {{{"queue"}, {.by = path::all}},
            {{"queue"}, {.by = path::live}},
            {{"queue"}, {.by = path::dead}},
            {{"queue"}, {.by = path::key, .key = "k"}},
            {{"key"}, {.by = path::key, .queue = "q"}},
            {{"group"}, {.by = path::group}},
            {{"parent"}, {.by = path::parent}},
            {{"queue"}, {.by = path::group, .queue = "q", .group = "g"}},
            {{"queue"}, {.by = path::parent, .queue = "q", .parent = id_of(1)}},
            {{"key"}, {.by = path::all, .queue = "q", .key = "k"}},
            {{"group"}, {.by = path::live, .queue = "q", .group = "g"}},
            {{"parent"}, {.by = path::dead, .queue = "q", .parent = id_of(1)}},
            {{"queue"}, {.by = path::all, .queue = "a\nb"}},
            {one_over("queue", limit.name_max), query::all(bytes(limit.name_max + 1))},
            {one_over("key", limit.name_max), query::keyed("q", bytes(limit.name_max + 1))},
            {one_over("group", limit.name_max), query::members(bytes(limit.name_max + 1))},
            {one_over("topic", limit.name_max), {.queue = "q", .topic = bytes(limit.name_max + 1)}},
            {one_over("limit", limit.batch_max), {.queue = "q", .limit = limit.batch_max + 1}}};
}

inline void queries_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    for (const auto& [says, wrong] : wrong_queries(limit)) {
        refuses(store, says, [&, &q = wrong](auto& tx) { std::ignore = tx.list(q); });
        t.throws(error_kind::invalid_argument, "a query on the store with a wrong " + says.front(),
                 [&, &q = wrong] { std::ignore = store.list(q); });
    }
    const query most{.queue = bytes(limit.name_max), .topic = bytes(limit.name_max), .limit = limit.batch_max};
    t.equal(store.list(most).size(), 0, "listed with everything at its limit");
}

inline void read_queues_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.name_max;
    for (const auto& [says, name] :
         {std::pair{words{"queue"}, std::string()}, std::pair{words{"queue"}, std::string("a\nb")},
          std::pair{one_over("queue", most), bytes(most + 1)}}) {
        const auto& wrong = name;
        refuses(store, says, [&](auto& tx) { std::ignore = tx.counts(wrong); });
        refuses(store, says, [&](auto& tx) { std::ignore = tx.next_due(wrong); });
        t.throws(error_kind::invalid_argument, "counts on the store", [&] { std::ignore = store.counts(wrong); });
        t.throws(error_kind::invalid_argument, "next_due on the store", [&] { std::ignore = store.next_due(wrong); });
    }
    t.equal(store.counts(bytes(most)).total(), 0, "counts of a queue with the longest name");
    t.equal(store.next_due(bytes(most)), std::optional<time_point>{}, "next_due of a queue with the longest name");
}

inline void nothing_is_quoted(trial& t) {
    auto store = furnished(t);
    const auto full = [](draft& d) {
        d.payload = d.key = d.progress = d.topic = std::string(secret);
        d.headers = {{std::string(secret), std::string(secret)}};
    };
    refuses_draft(store, {"id"}, [&](draft& d) { full(d), d.id = {}; });
    refuses_draft(store, {"topic"}, [&](draft& d) { full(d), d.topic += '\n'; });
    refuses_draft(store, {"key"}, [&](draft& d) { full(d), d.key += '\x7f'; });
    refuses_draft(store, {"header"}, [&](draft& d) { full(d), d.headers[0].first += '\n'; });
    refuses(store, {"error"}, [](auto& tx) { std::ignore = tx.cancel(id_of(1), std::string(secret) + '\n', at(0)); });
}

} // namespace validation_checks

inline constexpr std::array validation_of_calls{
    clause{"VALID-10", layer::examples, level::must, needs::nothing,
           "Empty batches and a limit of 0 are not errors and change nothing.", validation_checks::nothing_is_no_error},
    clause{"VALID-11", layer::examples, level::must, needs::nothing,
           "A claim whose queue, worker or limit is out of bounds is refused.", validation_checks::claim_bounded},
    clause{"VALID-12", layer::examples, level::must, needs::nothing,
           "The lease of a claim or an extend must be between lease_min and lease_max.",
           validation_checks::leases_bounded},
    clause{"VALID-13", layer::examples, level::must, needs::nothing,
           "A lease that would end after the last representable time is refused.",
           validation_checks::leases_end_in_time},
    clause{"VALID-14", layer::examples, level::must, needs::nothing,
           "The error code of a retry, bury or cancel may have up to error_max bytes and no control characters.",
           validation_checks::error_codes_bounded},
    clause{"VALID-15", layer::examples, level::must, needs::nothing,
           "An outcome's result and progress are limited; one invalid settle rejects its whole batch.",
           validation_checks::outcomes_bounded},
    clause{"VALID-16", layer::examples, level::must, needs::nothing,
           "A purge's queue and limit are limited, and its state must be terminal.", validation_checks::purge_bounded},
    clause{"VALID-17", layer::examples, level::must, needs::nothing,
           "A query has exactly the fields that its path needs; its names and its limit are limited.",
           validation_checks::queries_bounded},
    clause{
        "VALID-18", layer::examples, level::must, needs::nothing,
        "The queue of counts and next_due must be a valid name: not empty, not too long, without control characters.",
        validation_checks::read_queues_bounded},
    clause{"VALID-19", layer::examples, level::must, needs::nothing,
           "The message of a refusal names fields, limits and sizes and never quotes the given value.",
           validation_checks::nothing_is_quoted},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
