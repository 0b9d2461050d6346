// SPDX-License-Identifier: MIT
// Compares what a store returns with the model: all entries, counts and due times after every command, and random
// queries. There are few names, so that entries share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/query.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Generated entries have the numbers 1 to this; queues are "q" and "r", keys "k" and "l", groups "g" and "h", topics
/// "a" and "b".
inline constexpr std::uint64_t numbers_max = 14;

[[nodiscard]] inline query some_query(random_source& d) {
    auto q = [&] {
        const std::string queue = d.chance(80) ? "q" : "r";
        switch (d.below(5)) {
        case 0: return query::members(d.one_of<std::string>({"g", "h"}));
        case 1: return query::children(id_of(1 + d.below(numbers_max)));
        case 2: return query::keyed(queue, d.one_of<std::string>({"k", "l"}));
        case 3: return query::dead(queue);
        default: return query::live(queue);
        }
    }();
    if (d.chance(30)) {
        q.state = all_states[d.below(all_states.size())];
    }
    q.topic = d.one_of<std::string>({"", "", "a", "b"});
    q.payloads = d.chance(50);
    return q;
}

template <class Reader>
void compare_found(const Reader& reader, const model& expected, const id& wanted) {
    const auto* const e = expected.find(wanted);
    trial::equal(reader.find(wanted), e == nullptr ? std::nullopt : std::optional{*e}, "find " + show(wanted));
}

template <class Reader>
void compare_pages(const Reader& reader, const model& expected, query q, random_source& d) {
    q.limit = d.one_of<std::size_t>({1, 2, 3, 100});
    for (;;) {
        const auto page = reader.list(q);
        trial::equal(page, expected.list(q), "a page of a list");
        if (page.size() < q.limit) {
            return;
        }
        q.after = page.back().sequence;
    }
}

template <class Reader>
void compare_numbers(const Reader& reader, const model& expected, const std::string& queue) {
    trial::equal(reader.counts(queue), expected.counts(queue), "counts");
    trial::equal(reader.next_due(queue), expected.next_due(queue), "next_due");
}

/// Compares all entries of a queue, payloads included. Does not copy the model's entries.
template <class Reader>
void compare_queue(const Reader& reader, const model& expected, const std::string& queue) {
    const auto seen = reader.list({.queue = queue, .payloads = true});
    std::size_t n = 0;
    for (const auto& r : expected.records) {
        if (r.entry.queue != queue) {
            continue;
        }
        if (n == seen.size() || seen[n] != r.entry) {
            trial::equal(seen, expected.list({.queue = queue, .payloads = true}), "all entries of a queue");
        }
        ++n;
    }
    trial::equal(seen.size(), n, "entries of a queue");
}

/// Compares all entries, counts and due times, and the answer to one random query.
template <class Reader>
void compare_some(const Reader& reader, const model& expected, random_source& d) {
    for (const std::string queue : {"q", "r"}) {
        compare_queue(reader, expected, queue);
        compare_numbers(reader, expected, queue);
    }
    compare_pages(reader, expected, some_query(d), d);
    compare_found(reader, expected, id_of(1 + d.below(numbers_max)));
}

template <class Reader>
void compare_all(const Reader& reader, const model& expected, random_source& d) {
    for (std::uint64_t n = 1; n <= numbers_max; ++n) {
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

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
