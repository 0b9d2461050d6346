// SPDX-License-Identifier: MIT
// Validation: every bound accepts what is at it and refuses what is one over it, by name, and nothing is written.
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
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace validation_checks {

using namespace reads_checks;
using words = std::vector<std::string>; ///< what a refusal has to say; the field comes first

/// What no message may quote.
inline constexpr std::string_view secret = "s3cret";

/// The largest content that is tried; a store may have raised its limits beyond.
inline constexpr std::size_t tried_max = 16U * 1024 * 1024;

[[nodiscard]] inline std::string bytes(std::size_t count) {
    std::string out(secret);
    out.resize(count, 'x');
    return out;
}

/// What a refusal says of something that is one over its limit.
[[nodiscard]] inline words one_over(std::string_view field, std::size_t limit) {
    return {std::string(field), std::to_string(limit + 1), std::to_string(limit)};
}

/// That the call is refused with these words and changes nothing.
template <class Call>
void refuses(any_store& store, const words& says, Call&& call) {
    from_begin(store, [&](auto& tx) {
        const auto before = look(tx);
        const auto what = "a call with a wrong " + says.front();
        const std::string message = trial::throws(error_kind::invalid_argument, what, [&] { call(tx); }).what();
        for (const auto& word : says) {
            if (message.find(word) == std::string::npos) {
                trial::fail(what + " is refused with the field, the limit and the size", show(message), show(word));
            }
        }
        trial::expect(message.find(secret) == std::string::npos, what + " is refused without quoting what was given");
        unchanged(tx, before, what + " changes nothing");
    });
}

/// That a batch is refused if one of its drafts, wherever it stands, is spoiled so.
template <class Spoil>
void refuses_draft(any_store& store, const words& says, Spoil&& spoil) {
    for (std::size_t i = 0; i < 3; ++i) {
        std::array batch{draft_of(18), draft_of(19), draft_of(20)};
        spoil(batch[i]);
        refuses(store, says, [&](auto& tx) { tx.enqueue(batch, at(0)); });
    }
}

struct name_field {
    std::string_view name;
    std::string draft::*of;
    bool required;
};

/// The names of a draft that the store supports.
[[nodiscard]] inline std::vector<name_field> name_fields(const capabilities& can) {
    std::vector<name_field> out{
        {"queue", &draft::queue, true}, {"topic", &draft::topic, true}, {"key", &draft::key, false}};
    if (can.groups) {
        out.push_back({"group", &draft::group, false});
    }
    if (can.lanes) {
        out.push_back({"lane", &draft::lane, false});
    }
    return out;
}

inline void id_required(trial& t) {
    auto store = furnished(t);
    refuses_draft(store, {"id"}, [](draft& d) { d.id = {}; });
}

inline void names_bounded(trial& t) {
    const auto most = t.can().limits.name_max;
    for (const auto& field : name_fields(t.can())) {
        auto store = furnished(t);
        auto longest = draft_of(9);
        longest.*field.of = bytes(most);
        t.equal(put(store, longest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        refuses_draft(store, one_over(field.name, most), [&](draft& d) { d.*field.of = bytes(most + 1); });
        if (field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { (d.*field.of).clear(); });
        }
    }
}

inline void names_without_control(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        for (const char c : {'\0', '\x01', '\n', '\x1f', '\x7f'}) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.*field.of = std::string("a") + c; });
        }
    }
    auto plain = draft_of(9);
    for (const auto& field : name_fields(t.can())) {
        plain.*field.of = " ~\x80\xff ";
    }
    t.equal(put(store, plain), inserted(9), "names with the bytes next to the control characters");
}

struct content_field {
    std::string_view name;
    std::size_t limit;
    void (*set)(draft&, std::string);
};

inline void contents_bounded(trial& t) {
    const auto& limit = t.can().limits;
    const std::array fields{
        content_field{"payload", limit.payload_max, [](draft& d, std::string s) { d.payload = std::move(s); }},
        content_field{"progress", limit.progress_max, [](draft& d, std::string s) { d.progress = std::move(s); }},
        content_field{"result", limit.result_max, [](draft& d, std::string s) { d.result = std::move(s); }}};
    for (const auto& field : fields) {
        auto store = furnished(t);
        auto largest = draft_of(9);
        field.set(largest, bytes(std::min(field.limit, tried_max)));
        t.equal(put(store, largest), inserted(9), "a " + std::string(field.name) + " of the largest size");
        if (field.limit <= tried_max) {
            refuses_draft(store, one_over(field.name, field.limit),
                          [&](draft& d) { field.set(d, bytes(field.limit + 1)); });
        }
    }
}

inline void trail_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.trail_max;
    t.equal(put(store, draft_of(9, {.trail = id_list(most, id_of(8))})), inserted(9), "a trail of the largest size");
    refuses_draft(store, one_over("trail", most), [&](draft& d) { d.trail.assign(most + 1, id_of(8)); });
}

inline void headers_bounded(trial& t) {
    auto store = furnished(t);
    const auto& limit = t.can().limits;
    const header_list most(limit.headers_max, {bytes(limit.name_max), bytes(limit.header_value_max)});
    t.equal(put(store, draft_of(9, {.headers = most})), inserted(9), "as many and as large headers as there may be");
    refuses_draft(store, one_over("header", limit.headers_max), [&](draft& d) {
        d.headers.assign(limit.headers_max + 1, {"n", ""});
    });
    const auto refuses_header = [&](const words& says, const std::string& name, const std::string& value) {
        refuses_draft(store, says, [&](draft& d) { d.headers = {{"n", "v"}, {name, value}}; });
    };
    refuses_header(one_over("header", limit.name_max), bytes(limit.name_max + 1), "");
    refuses_header(one_over("header", limit.header_value_max), "n", bytes(limit.header_value_max + 1));
    refuses_header({"header"}, "", "value");
    refuses_header({"header"}, "a\nb", "value");
}

inline void result_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (field.name == "group" || field.name == "lane") {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) { d.result = "", d.*field.of = "x"; });
        }
    }
    refuses_draft(store, {"parent"}, [](draft& d) { d.result = "", d.parent = id_of(1); });
    refuses_draft(store, {"predecessor"}, [](draft& d) { d.result = "", d.predecessor = id_of(5); });
}

inline void predecessor_excludes(trial& t) {
    auto store = furnished(t);
    for (const auto& field : name_fields(t.can())) {
        if (!field.required) {
            refuses_draft(store, {std::string(field.name)}, [&](draft& d) {
                d.predecessor = id_of(5);
                d.*field.of = "x";
            });
        }
    }
}

inline void batches_bounded(trial& t) {
    auto store = furnished(t);
    const auto most = t.can().limits.batch_max;
    auto tx = store.begin();
    t.equal(tx.enqueue(std::vector(most, draft_of(9)), at(0)).size(), most, "answers to the largest batch of drafts");
    t.equal(tx.settle(std::vector<vouch::settle>(most), at(0)).size(), most, "answers to the largest batch of settles");
    t.equal(tx.extend(std::vector<ticket>(most), at(0), duration{1}).size(), most, "answers to the most tickets");
    tx.commit();
    refuses(store, one_over("drafts", most), [&](auto& w) { w.enqueue(std::vector(most + 1, draft_of(18)), at(0)); });
    refuses(store, one_over("settles", most), [&](auto& w) {
        std::ignore = w.settle(std::vector(most + 1, vouch::settle{{id_of(3), 1}, succeed{}}), at(0));
    });
    refuses(store, one_over("tickets", most), [&](auto& w) {
        std::ignore = w.extend(std::vector(most + 1, ticket{id_of(3), 1}), at(90), duration{900});
    });
}

inline void nothing_is_no_error(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
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
    t.equal(get(store, 3).lease_until, time_point::max(), "the end of the last lease there can be");
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

/// Queries no store accepts, and the field that is wrong.
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

inline constexpr std::array validation{
    clause{"VALID-01", layer::examples, level::must, needs::nothing, "A draft with the nil id is refused.",
           validation_checks::id_required},
    clause{"VALID-02", layer::examples, level::must, needs::nothing,
           "A draft's queue, topic, key, group and lane may have name_max bytes, not one more; queue and topic are not "
           "empty.",
           validation_checks::names_bounded},
    clause{"VALID-03", layer::examples, level::must, needs::nothing,
           "A name with a control character is refused; any other byte is allowed.",
           validation_checks::names_without_control},
    clause{"VALID-04", layer::examples, level::must, needs::nothing,
           "A draft's payload, progress and result may have as many bytes as the store's limits say, not one more.",
           validation_checks::contents_bounded},
    clause{"VALID-05", layer::examples, level::must, needs::nothing, "A trail may have trail_max ids, not one more.",
           validation_checks::trail_bounded},
    clause{"VALID-06", layer::examples, level::must, needs::nothing,
           "Headers are bounded in number, name and value, each at its limit and not one over; their names are names.",
           validation_checks::headers_bounded},
    clause{"VALID-07", layer::examples, level::must, needs::nothing,
           "A draft with a result is refused if it has a lane, group, parent or predecessor.",
           validation_checks::result_excludes},
    clause{"VALID-08", layer::examples, level::must, needs::nothing,
           "A draft with a predecessor is refused if it has a key, group or lane of its own.",
           validation_checks::predecessor_excludes},
    clause{"VALID-09", layer::examples, level::must, needs::nothing,
           "A batch of drafts, settles or tickets may have batch_max items, not one more.",
           validation_checks::batches_bounded},
    clause{"VALID-10", layer::examples, level::must, needs::nothing,
           "Empty batches and a limit of 0 are no errors and change nothing.", validation_checks::nothing_is_no_error},
    clause{"VALID-11", layer::examples, level::must, needs::nothing, "A claim's queue, worker and limit are bounded.",
           validation_checks::claim_bounded},
    clause{"VALID-12", layer::examples, level::must, needs::nothing,
           "A claim and an extension are given leases from lease_min to lease_max, never none and none longer.",
           validation_checks::leases_bounded},
    clause{"VALID-13", layer::examples, level::must, needs::nothing,
           "A lease that would end after the last representable time is refused.",
           validation_checks::leases_end_in_time},
    clause{"VALID-14", layer::examples, level::must, needs::nothing,
           "The error code of a retry, bury or cancel may have error_max bytes, not one more, and no control "
           "characters.",
           validation_checks::error_codes_bounded},
    clause{"VALID-15", layer::examples, level::must, needs::nothing,
           "An outcome's result and progress are bounded; one invalid settle rejects its whole batch.",
           validation_checks::outcomes_bounded},
    clause{"VALID-16", layer::examples, level::must, needs::nothing,
           "A purge's queue and limit are bounded, and its state is a terminal one.", validation_checks::purge_bounded},
    clause{"VALID-17", layer::examples, level::must, needs::nothing,
           "A query names what its path wants and nothing else; its names and its limit are bounded.",
           validation_checks::queries_bounded},
    clause{"VALID-18", layer::examples, level::must, needs::nothing,
           "The queue of counts and next_due is a name: not empty, not too long, without control characters.",
           validation_checks::read_queues_bounded},
    clause{"VALID-19", layer::examples, level::must, needs::nothing,
           "A refusal names fields, limits and sizes and never quotes what was given.",
           validation_checks::nothing_is_quoted},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
