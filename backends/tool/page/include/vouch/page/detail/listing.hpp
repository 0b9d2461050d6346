// SPDX-License-Identifier: MIT
// Finds entries by a filter and reads a bounded number of entries in one request. The answer says from where the next
// request continues, so a search through a million entries is a thousand short requests, between which workers work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/page/detail/filter.hpp>
#include <vouch/page/detail/parameters.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// Where a search stands: behind this sequence of this queue. As text: `123.mail`; empty before the first entry.
struct cursor {
    std::uint64_t after = 0;
    std::string queue{};

    [[nodiscard]] static cursor of(const std::string& text) {
        const auto dot = std::min(text.find('.'), text.size());
        return text.empty() ? cursor{}
                            : cursor{.after = parameters::number_of("cursor", std::string_view(text).substr(0, dot)),
                                     .queue = dot < text.size() ? text.substr(dot + 1) : std::string()};
    }
    [[nodiscard]] std::string text() const { return std::to_string(after) + '.' + queue; }
};

struct listing {
    std::vector<entry> found{};
    std::string next{};   ///< the cursor to continue with; empty at the end
    std::size_t read = 0; ///< entries that were read
};

struct listing_limits {
    std::size_t found_max = 50;
    std::size_t read_max = 1000;
    std::uint64_t until = 0; ///< only entries up to this sequence; 0: all
};

namespace listing_steps {

inline constexpr std::size_t first_chunk = 200;           ///< then all the rest, unless these were heavy
inline constexpr std::size_t light = 1024 * 1024;         ///< bytes of a chunk after which a larger one is safe
inline constexpr std::size_t queues_max = 100;            ///< looked at in one request
inline constexpr std::size_t bytes_max = 8 * 1024 * 1024; ///< of progress and results in one request

[[nodiscard]] inline std::size_t weight(const entry& e) {
    return e.progress.size() + (e.result ? e.result->size() : 0);
}

} // namespace listing_steps

/// Requires that `queues` is sorted.
template <class Reader>
[[nodiscard]] listing list_entries(const Reader& in, const filter& wanted, const std::vector<std::string>& queues,
                                   cursor from, time_point now, const listing_limits& at_most) {
    namespace steps = listing_steps;
    listing out;
    std::size_t bytes = 0;
    std::size_t visited = 0;
    for (const auto& queue : wanted.is_across_queues() ? std::vector<std::string>{from.queue} : queues) {
        if (queue < from.queue || (!wanted.queue.empty() && !wanted.is_across_queues() && queue != wanted.queue)) {
            continue;
        }
        from = {.after = queue == from.queue ? from.after : 0, .queue = queue};
        if (++visited > steps::queues_max) {
            out.next = from.text();
            return out;
        }
        auto page = wanted.path_in(queue);
        for (bool is_last = false; !is_last;) {
            page.after = from.after;
            const bool is_light = out.read > 0 && bytes < steps::light;
            page.limit = std::min(is_light ? at_most.read_max : steps::first_chunk, at_most.read_max - out.read);
            if (page.limit == 0 || bytes > steps::bytes_max || out.found.size() >= at_most.found_max) {
                out.next = from.text();
                return out;
            }
            auto chunk = in.list(page);
            is_last = chunk.size() < page.limit;
            for (auto& e : chunk) {
                if (at_most.until != 0 && e.sequence > at_most.until) {
                    is_last = true;
                    break;
                }
                if (out.found.size() >= at_most.found_max) {
                    is_last = false;
                    break;
                }
                from.after = e.sequence;
                out.read += 1;
                bytes += steps::weight(e);
                if (wanted.matches(e, now)) {
                    out.found.push_back(std::move(e));
                }
            }
        }
    }
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
