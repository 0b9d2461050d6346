// SPDX-License-Identifier: MIT
// Sizes: contents, names, headers and trails around the sizes at which stores keep them differently, and at their limits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/fidelity.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

using fidelity_checks::comes_back;

/// Requires that a value of this size is kept in every field that holds contents. Uses the numbers from `n` on.
inline void keeps_content(trial& t, any_store& store, std::uint64_t n, std::size_t size) {
    const auto content = pattern(size);
    const auto what = " of " + show(size) + " bytes";
    std::vector<draft> drafts = numbered(6, draft_of(n));
    drafts[0].payload = drafts[1].progress = content;
    drafts[5].result = content;
    const std::array outcomes{outcome{release{}}, outcome{release{}}, outcome{advance{content, at(0)}},
                              outcome{succeed{content}}, outcome{bury{"e", content}}};
    transact(store, [&](auto& tx) {
        tx.enqueue(drafts, at(0));
        std::vector<vouch::settle> batch;
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            const auto taken = tx.claim(request(at(0), {.only = drafts[i].id}));
            t.equal(taken.size(), 1, "claimed");
            t.equal(taken.front().payload, drafts[i].payload, "the payload that is claimed," + what);
            batch.push_back({ticket_of(taken.front()), outcomes[i]});
        }
        return tx.settle(batch, at(0));
    });
    t.equal(get(store, n).payload, content, "a payload" + what);
    t.equal(get(store, n + 1).progress, content, "the progress of a draft" + what);
    t.equal(get(store, n + 2).progress, content, "the progress of an advance" + what);
    t.equal(get(store, n + 3).result, content, "the result of a success" + what);
    t.equal(get(store, n + 4).result, content, "the result of a burial" + what);
    t.equal(get(store, n + 5).result, content, "the result of a draft" + what);
}

/// The sizes, and a number for the entries of each.
inline constexpr std::array content_sizes{1'023U, 1'024U, 1'025U, 65'534U, 65'535U, 65'536U, 65'537U};

inline void contents_of_all_sizes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 1;
    for (const std::size_t size : content_sizes) {
        keeps_content(t, store, n, size);
        n += 10;
    }
}

inline void contents_at_the_limit(trial& t) {
    auto store = t.open();
    constexpr std::size_t tried_max = 16U * 1024 * 1024; // although a store may declare higher limits
    const auto& limit = t.can().limits;
    const auto most = std::min({limit.payload_max, limit.progress_max, limit.result_max, tried_max});
    keeps_content(t, store, 1, most - 1);
    keeps_content(t, store, 11, most);
}

/// A valid name of this size, in which the letter and the last character are the caller's.
[[nodiscard]] inline std::string long_name(std::size_t size, char letter, char last) {
    std::string out(size, letter);
    out.back() = last;
    return out;
}

/// A draft with a name of this size in every field that holds one, and all headers and trail ids that are allowed.
[[nodiscard]] inline draft largest_draft(std::uint64_t n, std::size_t size, const limits& limit,
                                         const capabilities& can) {
    const auto last = static_cast<char>('a' + n);
    auto d = draft_of(n, {.queue = long_name(size, 'q', last),
                          .topic = long_name(size, 't', last),
                          .key = long_name(size, 'k', last),
                          .group = can.groups ? long_name(size, 'g', last) : "",
                          .lane = can.lanes ? long_name(size, 'l', last) : ""});
    for (std::uint64_t i = 0; i < limit.headers_max; ++i) {
        d.headers.emplace_back(long_name(size, 'h', static_cast<char>('0' + i)), pattern(limit.header_value_max - i));
    }
    for (std::uint64_t i = 0; i < limit.trail_max; ++i) {
        d.trail.push_back(id_of(100 + i));
    }
    return d;
}

/// Enqueues drafts with the largest names, and claims and ends them with the largest worker and error.
inline void put_largest(trial& t, any_store& store) {
    const auto& limit = t.can().limits;
    std::uint64_t n = 0;
    for (const auto size : {limit.name_max - 1, limit.name_max, limit.name_max}) {
        n += 1;
        const auto d = largest_draft(n, size, limit, t.can());
        comes_back(t, store, d);
        const auto worker = long_name(size, 'w', 'z');
        const auto held = take_one(store, at(1), {.queue = d.queue, .worker = worker});
        t.equal(get(store, n).worker, worker, "the name of a worker of " + show(size) + " bytes");
        const auto code = long_name(n == 1 ? limit.error_max - 1 : limit.error_max, 'e', 'z');
        settle(store, held, n == 2 ? outcome{retry{code, at(2)}} : outcome{bury{code, {}}}, at(1));
        t.equal(get(store, n).last_error, code, "the longest error code of a settle");
    }
    const auto code = long_name(limit.error_max, 'c', 'z');
    cancel(store, id_of(2), at(2), code);
    t.equal(get(store, 2).last_error, code, "the longest error code of a cancel");
}

inline void longest_names(trial& t) {
    auto store = t.open();
    put_largest(t, store);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        const auto e = get(store, n);
        t.equal(numbers(store.list(query::keyed(e.queue, e.key))), list_of{n}, "listed by the longest key");
        t.equal(numbers(store.list(query::dead(e.queue))), list_of{n}, "listed by the longest queue");
        auto by_topic = query::all(e.queue);
        by_topic.topic = e.topic;
        t.equal(numbers(store.list(by_topic)), list_of{n}, "listed by the longest topic");
        if (t.can().groups) {
            t.equal(numbers(store.list(query::members(e.group))), list_of{n}, "listed by the longest group");
        }
    }
}

inline void large_values_survive(trial& t) {
    std::vector<std::optional<entry>> before;
    const auto all = [&](const any_store& store) {
        std::vector<std::optional<entry>> out;
        for (std::uint64_t n = 1; n <= 10 * content_sizes.size() + 20; ++n) {
            out.push_back(store.find(id_of(n)));
        }
        return out;
    };
    {
        auto store = t.open();
        put_largest(t, store);
        std::uint64_t n = 10;
        for (const std::size_t size : content_sizes) {
            keeps_content(t, store, n, size);
            n += 10;
        }
        before = all(store);
    }
    const auto again = t.open();
    const auto after = all(again);
    for (std::size_t i = 0; i < after.size(); ++i) {
        t.equal(after[i], before[i], "an entry with large values, after a reopen");
    }
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_values{
    clause{"SIZE-22", layer::examples, level::must, needs::nothing,
           "Payloads, progress and results of about 1 KiB and 64 KiB are kept to the byte, whichever call brings them.",
           sizes_checks::contents_of_all_sizes},
    clause{"SIZE-23", layer::examples, level::must, needs::nothing,
           "Payloads, progress and results of the largest size are kept to the byte, whichever call brings them.",
           sizes_checks::contents_at_the_limit},
    clause{"SIZE-24", layer::examples, level::must, needs::nothing,
           "The longest names, error codes, header values, headers and trails are kept to the last byte and item.",
           sizes_checks::longest_names},
    clause{"SIZE-25", layer::examples, level::may, needs::durable, "Large values and long names survive a reopen.",
           sizes_checks::large_values_survive},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
