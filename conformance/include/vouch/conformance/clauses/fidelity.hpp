// SPDX-License-Identifier: MIT
// Fidelity: all values are returned as they were given, to the byte, the bit and the microsecond.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/expect.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fidelity_checks {

using namespace enqueue_checks;

/// A draft with a distinct value in every field that the store supports.
[[nodiscard]] inline draft full(std::uint64_t n, const capabilities& can) {
    return draft_of(n, {.topic = "orders.placed",
                        .payload = "the payload",
                        .key = "the key",
                        .group = can.groups ? "the group" : "",
                        .lane = can.lanes ? "the lane" : "",
                        .parent = id_of(17),
                        .due_at = at(3),
                        .expires_at = at(1003),
                        .attempts_max = 7,
                        .trail = {id_of(18), id_of(19)},
                        .headers = {{"name", "value"}},
                        .progress = "the progress"});
}

/// All byte values, with a NUL at the start, at the end and in between.
[[nodiscard]] inline std::string all_bytes() {
    std::string out;
    for (int c = 0; c < 256; ++c) {
        out.push_back(static_cast<char>(c));
    }
    return out + std::string("\0\xff\0", 3);
}

/// Contents that a careless store truncates, converts or treats as empty.
[[nodiscard]] inline std::vector<std::string> contents() {
    using namespace std::string_literals;
    return {""s,         "\0"s,   "\0\0"s,     "a\0b"s,         "a\0"s,      " "s,     " a "s,  "\n"s,
            "a\r\nb"s,   "0"s,    "007"s,      "1e3"s,          "NULL"s,     "'"s,     "''"s,   "%s{}\\n\\0"s,
            "\xff\xfe"s, "\xc3"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xc3\xa9"s, "x'00'"s, "\x1a"s, all_bytes()};
}

/// Requires that the entry is found, listed and claimed as drafted.
inline void comes_back(trial& t, any_store& store, const draft& d) {
    t.equal(put(store, d), inserted(d.id.low), "enqueued");
    stored_as_drafted(store, d, at(0), "found as drafted");
    auto q = query::all(d.queue);
    q.payloads = true;
    const auto listed = store.list(q);
    t.expect(!listed.empty(), "listed in its queue");
    t.equal(std::optional{listed.back()}, store.find(d.id), "listed as found");
    if (!d.result) {
        const auto due = std::max(at(0), d.due_at.value_or(at(0)));
        const auto claimed = take(store, due, {.queue = d.queue, .lease = duration{1}, .only = d.id});
        t.equal(claimed.size(), 1, "claimed");
        t.equal(std::optional{claimed.front()}, store.find(d.id), "claimed as found, payload included");
        t.equal(claimed.front().payload, d.payload, "the payload that is claimed");
    }
}

inline void every_field(trial& t) {
    auto store = t.open();
    const auto d = full(1, t.can());
    comes_back(t, store, d);
    put_dead(store, draft_of(2));
    put(store, draft_of(3, {.predecessor = id_of(2)}));
    t.equal(get(store, 3).predecessor, id_of(2), "the predecessor");
}

inline void survives_life(trial& t) {
    auto store = t.open();
    const auto d = full(1, t.can());
    put(store, d);
    auto expected = get(store, 1);
    settle(store, take_one(store, at(3)), retry{"e", at(4)}, at(3));
    settle(store, take_one(store, at(4)), advance{"next", at(5)}, at(4));
    settle(store, take_one(store, at(5)), bury{"f", "reply"}, at(5));
    const auto ended = get(store, 1);
    static_cast<life&>(expected) = ended;
    t.equal(ended, expected, "the draft's fields after a retry, an advance and a bury");
}

inline void survives_reopen(trial& t) {
    std::vector<std::optional<entry>> before;
    {
        auto store = t.open();
        put(store, full(1, t.can()));
        put(store, draft_of(2, {.payload = all_bytes(), .result = all_bytes()}), at(1));
        t.equal(take(store, at(3)).size(), 1, "claimed");
        t.equal(take(store, at(103)).size(), 1, "taken over");
        nudge(store, id_of(1), at(104));
        before = {store.find(id_of(1)), store.find(id_of(2))};
    }
    const auto again = t.open();
    t.equal(again.find(id_of(1)), before[0], "a claimed entry with every field set, after a reopen");
    t.equal(again.find(id_of(2)), before[1], "a succeeded entry, after a reopen");
}

inline void any_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto& content : contents()) {
        n += 2;
        comes_back(t, store, draft_of(n, {.payload = content, .headers = {{"n", content}}, .progress = content}));
        comes_back(t, store, draft_of(n + 1, {.result = content}));
    }
}

inline void any_bytes_settled(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "before"}));
    for (const auto& content : contents()) {
        settle(store, take_one(store, at(0)), advance{content, at(0)});
        t.equal(get(store, 1).progress, content, "the progress after an advance");
    }
    std::uint64_t n = 1;
    for (const auto& content : contents()) {
        n += 2;
        put_as(store, draft_of(n), state::claimed);
        settle(store, {id_of(n), 1}, succeed{content});
        t.equal(get(store, n).result, content, "the result of a success");
        put_as(store, draft_of(n + 1), state::claimed);
        settle(store, {id_of(n + 1), 1}, bury{"e", content});
        t.equal(get(store, n + 1).result, content, "the result of a burial");
    }
}

inline void none_is_not_empty(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {1U, 2U, 3U}) {
        put_as(store, draft_of(n), state::claimed);
    }
    settle(store, {id_of(1), 1}, bury{"e", {}});
    settle(store, {id_of(2), 1}, bury{"e", ""});
    settle(store, {id_of(3), 1}, succeed{""});
    t.equal(get(store, 1).result, std::optional<std::string>{}, "the result of a bury without one");
    t.equal(get(store, 2).result, "", "the result of a bury with an empty one");
    t.equal(get(store, 3).result, "", "the result of a succeed with an empty one");
    comes_back(t, store, draft_of(4, {.expires_at = time_point{}}));
    comes_back(t, store, draft_of(5));
}

inline void large(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::size_t size : {255U, 256U, 4096U, 65535U, 65536U, 65537U, 1024U * 1024U}) {
        n += 2;
        const auto content = pattern(size);
        comes_back(t, store, draft_of(n, {.payload = content, .progress = content}));
        settle(store, {id_of(n), 1}, succeed{content});
        t.equal(get(store, n).result, content, "a large result");
        put_as(store, draft_of(n + 1, {.result = content}), state::pending);
        t.equal(get(store, n + 1).result, content, "a large result of a draft");
    }
}

inline void headers_in_order(trial& t) {
    auto store = t.open();
    comes_back(t, store, draft_of(1, {.headers = {{"b", "2"}, {"a", ""}, {"b", "1"}, {"B", "2"}, {"b", "2"}}}));
    header_list most;
    for (std::size_t i = 0; i < t.can().limits.headers_max; ++i) {
        most.emplace_back("name " + std::to_string(i * 7 % 10), pattern(i * 64));
    }
    comes_back(t, store, draft_of(2, {.headers = most}));
}

inline void trail_in_order(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    comes_back(t, store, draft_of(1, {.trail = {id{top, top}, id_of(1), id_of(1), id{}, id{0, 1}, id{1, 0}}}));
    id_list most;
    for (std::uint64_t i = 0; i < t.can().limits.trail_max; ++i) {
        most.push_back(id{top - i, i << 60U});
    }
    comes_back(t, store, draft_of(2, {.trail = most}));
}

inline void ids_to_the_bit(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    const std::vector<id> ids{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {top, 0}, {0, top}, {top, top}, {0x8000000000000000U, 0}};
    for (const auto& one : ids) {
        auto d = draft_of(1, {.parent = one});
        d.id = one;
        t.equal(put(store, d), receipt{receipt::kind::inserted, one}, "an id that differs from another one in one bit");
    }
    for (const auto& one : ids) {
        t.equal(store.find(one).value_or(entry{}).id, one, "found by its id");
        t.equal(store.list(query::children(one)).size(), 1, "found by its parent");
        t.equal(take_one(store, at(0), {.only = one}), ticket{one, 1}, "claimed by its id");
    }
}

inline void names_to_the_byte(trial& t) {
    auto store = t.open();
    const auto most = t.can().limits.name_max;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        std::string name = "Gr\xc3\xb6\xc3\x9f"
                           "e ";
        while (name.size() + 2 < most) {
            name += "\xc3\xa9";
        }
        name.resize(most - 1, ' ');
        name += static_cast<char>('a' + n);
        auto d = draft_of(n, {.queue = name, .topic = name, .key = name, .headers = {{name, name}}});
        (t.can().groups ? d.group : d.topic) = name;
        (t.can().lanes ? d.lane : d.topic) = name;
        comes_back(t, store, d);
        t.equal(numbers(store.list(query::keyed(name, name))), list_of{n}, "listed by a name of full length");
        t.equal(take_one(store, at(1), {.queue = name, .worker = name}), ticket{d.id, 2}, "claimed from its queue");
        t.equal(get(store, n).worker, name, "the name of the worker");
    }
}

inline void times_to_the_microsecond(trial& t) {
    auto store = t.open();
    const auto far_back = time_point::min() + start.time_since_epoch();
    const auto far_ahead = time_point::max() - duration{5};
    std::uint64_t n = 0;
    for (const auto when :
         {time_point{duration{-1}}, time_point{}, time_point{duration{1}}, time_point{duration{999'999}},
          time_point{duration{-1'000'001}}, at(123'457), far_back, far_ahead}) {
        n += 1;
        const auto d = draft_of(n, {.due_at = when, .expires_at = when});
        put(store, d, when);
        stored_as_drafted(store, d, when, "times as drafted and given");
        const auto claimed = take(store, when, {.lease = duration{3}, .only = id_of(n)});
        t.equal(claimed.size(), 1, "claimed exactly at that time");
        t.equal(claimed.front().last_attempt_at, when, "the time of the last attempt");
        t.equal(claimed.front().lease_until, when + duration{3}, "the end of the lease");
        settle(store, ticket_of(claimed.front()), retry{"e", when + duration{1}}, when);
        t.equal(get(store, n).due_at, when + duration{1}, "the time of the retry");
        t.equal(get(store, n).updated_at, when, "the time of the last change");
        cancel(store, id_of(n), when);
    }
}

inline void counters(trial& t) {
    auto store = t.open();
    constexpr auto top = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t most : {0U, 1U, 255U, 256U, 65'536U, top / 2 + 1, top}) {
        comes_back(t, store, draft_of(10 + most, {.attempts_max = most}));
        cancel(store, id_of(10 + most), at(10));
    }
    put(store, draft_of(1));
    from_begin(store, [&](auto& tx) {
        for (std::uint64_t claims = 1; claims <= 600; ++claims) {
            const auto claimed = tx.claim(request(at(20), {.only = id_of(1)}));
            t.equal(claimed.size(), 1, "claimed again");
            t.equal(claimed.front().epoch, claims, "the epoch, which counts every claim");
            const bool failed = claims <= 300;
            settle_in(tx, ticket_of(claimed.front()), failed ? outcome{retry{"e", at(0)}} : outcome{release{}}, at(20));
        }
        tx.commit();
    });
    t.equal(get(store, 1).attempts, 300, "the attempts after 300 retries and 300 releases");
    t.equal(get(store, 1).failures, 300, "the failures after 300 retries and 300 releases");
    t.equal(get(store, 1).epoch, 600, "the epoch after 600 claims");
    put(store, draft_of(2));
    from_begin(store, [&](auto& tx) {
        for (std::int64_t claims = 0; claims <= 300; ++claims) {
            t.equal(tx.claim(request(at(20 + 100 * claims), {.only = id_of(2)})).size(), 1, "taken over again");
        }
        tx.commit();
    });
    t.equal(get(store, 2).lapses, 300, "the lapses after 300 claims that ended with their leases");
}

} // namespace fidelity_checks

inline constexpr std::array fidelity{
    clause{"FIDELITY-01", layer::examples, level::must, needs::nothing,
           "Every field of a draft is returned in the entry that is found, listed and claimed.",
           fidelity_checks::every_field},
    clause{"FIDELITY-02", layer::examples, level::must, needs::nothing,
           "The fields that come from a draft never change, whatever happens to the entry.",
           fidelity_checks::survives_life},
    clause{"FIDELITY-03", layer::examples, level::may, needs::durable, "Every field of an entry survives a reopen.",
           fidelity_checks::survives_reopen},
    clause{
        "FIDELITY-04", layer::examples, level::must, needs::nothing,
        "A draft's payload, progress, result and header values may contain any bytes: none at all, NUL, invalid UTF-8.",
        fidelity_checks::any_bytes},
    clause{"FIDELITY-05", layer::examples, level::must, needs::nothing,
           "The progress and the result of an outcome may contain any bytes.", fidelity_checks::any_bytes_settled},
    clause{"FIDELITY-06", layer::examples, level::must, needs::nothing,
           "An absent value differs from an empty one: results, and an expires_at at the earliest time.",
           fidelity_checks::none_is_not_empty},
    clause{"FIDELITY-07", layer::examples, level::must, needs::nothing,
           "Payloads, results and progress of up to 1 MiB are returned complete.", fidelity_checks::large},
    clause{"FIDELITY-08", layer::examples, level::must, needs::nothing,
           "Headers keep their order, their repeated names and their empty values.", fidelity_checks::headers_in_order},
    clause{"FIDELITY-09", layer::examples, level::must, needs::nothing,
           "A trail keeps all its ids, in order and with repetitions.", fidelity_checks::trail_in_order},
    clause{"FIDELITY-10", layer::examples, level::must, needs::nothing,
           "Two ids are equal only if all 128 bits are equal.", fidelity_checks::ids_to_the_bit},
    clause{"FIDELITY-11", layer::examples, level::must, needs::nothing,
           "Names of any characters and of full length are kept and distinguished to the last byte.",
           fidelity_checks::names_to_the_byte},
    clause{"FIDELITY-12", layer::examples, level::must, needs::nothing,
           "Times are stored to the microsecond, before 1970 and in the far future too.",
           fidelity_checks::times_to_the_microsecond},
    clause{"FIDELITY-13", layer::examples, level::must, needs::nothing,
           "attempts_max has 32 bits, and attempts, lapses, failures and epoch count beyond 256.",
           fidelity_checks::counters},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
