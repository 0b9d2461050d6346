// SPDX-License-Identifier: MIT
// What can be seen of a store, compared with the naive model: questions drawn by lot after every command, all of them
// now and then. Names are few, so that everything meets everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <vouch/vouch.hpp>

#include "model.hpp"
#include "support.hpp"

namespace model {

using support::id_of;
using vouch::query;

/// Entries have the ids 1 to this; queues are "q" and "r", keys "k" and "l", groups "g" and "h", topics "a" and "b".
inline constexpr std::uint64_t ids = 14;

/// SplitMix64. RapidCheck's ranges grow with its size; these are the same from the first command on.
class dice {
    std::uint64_t state_;

  public:
    explicit dice(std::uint64_t seed) : state_(vouch::detail::mix(seed)) {}
    std::uint64_t roll() { return vouch::detail::mix(state_ += 0x9e3779b97f4a7c15U); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(roll() % n); }
    bool chance(std::size_t percent) { return below(100) < percent; }
    template <class T>
    T one_of(std::initializer_list<T> values) {
        return values.begin()[below(values.size())];
    }
};

struct mismatch {
    std::string what;
};

template <class T>
void require_same(const T& got, const T& expected, const char* what) {
    if (!(got == expected)) {
        throw mismatch{what};
    }
}

[[nodiscard]] inline query some_query(dice& d) {
    auto q = [&] {
        const std::string queue = d.chance(80) ? "q" : "r";
        switch (d.below(5)) {
        case 0: return query::members(d.one_of<std::string>({"g", "h"}));
        case 1: return query::children(id_of(1 + d.below(ids)));
        case 2: return query::keyed(queue, d.one_of<std::string>({"k", "l"}));
        case 3: return query::dead(queue);
        default: return query::live(queue);
        }
    }();
    if (d.chance(30)) {
        q.state = vouch::all_states[d.below(vouch::all_states.size())];
    }
    q.topic = d.one_of<std::string>({"", "", "a", "b"});
    q.payloads = d.chance(50);
    return q;
}

template <class Reader>
void compare_found(const Reader& reader, const store& expected, const id& wanted) {
    const auto* const e = expected.find(wanted);
    const auto got = reader.find(wanted);
    if (got.has_value() != (e != nullptr) || (e != nullptr && *got != *e)) {
        throw mismatch{"find " + std::to_string(wanted.low)};
    }
}

template <class Reader>
void compare_pages(const Reader& reader, const store& expected, query q, dice& d) {
    q.limit = d.one_of<std::size_t>({1, 2, 3, 100});
    for (;;) {
        const auto page = reader.list(q);
        require_same(page, expected.list(q), "a page");
        if (page.size() < q.limit) {
            return;
        }
        q.after = page.back().sequence;
    }
}

template <class Reader>
void compare_numbers(const Reader& reader, const store& expected, const std::string& queue) {
    require_same(reader.counts(queue), expected.counts(queue), "counts");
    require_same(reader.next_due(queue), expected.next_due(queue), "next_due");
}

/// All entries of a queue, payloads included, without copying the model's.
template <class Reader>
void compare_queue(const Reader& reader, const store& expected, const std::string& queue) {
    const auto got = reader.list({.queue = queue, .payloads = true});
    std::size_t at = 0;
    for (const auto& r : expected.records) {
        if (r.entry.queue == queue && (at == got.size() || got[at++] != r.entry)) {
            throw mismatch{"entry " + std::to_string(r.entry.id.low) + " of the queue " + queue};
        }
    }
    require_same(at, got.size(), "number of entries");
}

/// All entries, all numbers, and one question more.
template <class Reader>
void compare_some(const Reader& reader, const store& expected, dice& d) {
    for (const std::string queue : {"q", "r"}) {
        compare_queue(reader, expected, queue);
        compare_numbers(reader, expected, queue);
    }
    compare_pages(reader, expected, some_query(d), d);
    compare_found(reader, expected, id_of(1 + d.below(ids)));
}

template <class Reader>
void compare_all(const Reader& reader, const store& expected, dice& d) {
    for (std::uint64_t n = 1; n <= ids; ++n) {
        compare_found(reader, expected, id_of(n));
        compare_pages(reader, expected, query::children(id_of(n)), d);
    }
    for (const std::string queue : {"q", "r"}) {
        compare_numbers(reader, expected, queue);
        for (const auto& q : {query::all(queue), query::live(queue), query::dead(queue), query::keyed(queue, "k"),
                              query::keyed(queue, "l")}) {
            compare_pages(reader, expected, q, d);
        }
    }
    compare_pages(reader, expected, query::members("g"), d);
    compare_pages(reader, expected, query::members("h"), d);
}

} // namespace model
