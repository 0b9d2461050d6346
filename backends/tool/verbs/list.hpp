// SPDX-License-Identifier: MIT
// `vouch list`: the entries that the filters select, oldest first.
#pragma once

#include <string>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../database.hpp"
#include "../entry_text.hpp"
#include "../output.hpp"
#include "../search.hpp"
#include "../table.hpp"

namespace tool {

inline constexpr std::size_t limit_max = 10'000;

inline int list(database& in, const arguments& with) {
    if (with.limit > limit_max) {
        throw bad_usage("--limit is " + std::to_string(with.limit) + "; at most " + std::to_string(limit_max) +
                        " entries are printed at once. --after continues; `export` prints all");
    }
    const auto& stored = in.stored();
    const filter by(in, with);
    search found(stored, by, {.expected = with.limit});
    table rows(with, list_titles);
    std::uint64_t last = with.after;
    while (rows.size() < with.limit) {
        const auto e = found.next();
        if (!e) {
            break;
        }
        rows.add(list_row(*e, by.now), json_of(*e));
        last = e->sequence;
    }
    rows.print_all("");
    if (rows.size() == with.limit && found.next()) {
        say("there are more; --after " + std::to_string(last) + " continues");
    }
    found.remark();
    return done;
}

} // namespace tool
