// SPDX-License-Identifier: MIT
// `vouch list`: a page of entries, oldest first.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "entry_text.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

/// The queue on the command line, or else all queues.
template <class Database>
[[nodiscard]] std::vector<std::string> queues_of(const Database& in, const arguments& with) {
    return with.queue.empty() ? in.queues() : std::vector{with.queue};
}

template <class Database>
int list(Database& in, const arguments& with) {
    using vouch::query;
    std::vector<vouch::entry> page;
    for (const auto& queue : queues_of(in, with)) {
        auto wanted = with.state == vouch::state::dead            ? query::dead(queue)
                      : with.state && vouch::is_live(*with.state) ? query::live(queue)
                                                                  : query::all(queue);
        wanted.state = with.state;
        wanted.topic = with.topic;
        wanted.after = with.after;
        wanted.limit = with.limit;
        auto found = in.stored().list(wanted);
        page.insert(page.end(), std::move_iterator(found.begin()), std::move_iterator(found.end()));
        // Sequences are unique in the store, so the page is the lowest ones of all queues.
        std::sort(page.begin(), page.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
        page.resize(std::min(page.size(), with.limit));
    }
    std::vector<std::string> rows;
    std::string text;
    const auto now = vouch::system_now();
    for (const auto& e : page) {
        rows.push_back(json_of(e).str());
        text += line_of(e, now);
    }
    print(with.json ? json_list(rows) + "\n" : text);
    return done;
}

} // namespace tool
