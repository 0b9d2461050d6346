// SPDX-License-Identifier: MIT
// `stats`, `list` and `show` for a file with an older schema. They read only columns that every schema version has, or print
// the columns as they are. They do not interpret them, so they cannot say why an entry is not running.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../entry_id.hpp"
#include "../entry_text.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../table.hpp"
#include "../verbs/stats.hpp"
#include "sqlite_file.hpp"

namespace tool::older_schema {

using vouch::sqlite::detail::run;
using vouch::sqlite::detail::statement;
using vouch::sqlite::detail::with_prefix;

inline int stats(sqlite_file& in, const arguments& with) {
    stats_table lines(with, vouch::system_now());
    for (const auto& [queue, counts] : in.counts()) {
        if (with.queue.empty() || with.queue == queue) {
            lines.add(queue, counts, std::nullopt);
        }
    }
    lines.print_all();
    return done;
}

inline int list(sqlite_file& in, const arguments& with) {
    auto others = with;
    others.queue.clear();
    others.topic.clear();
    others.state.reset();
    if (others.has_filter() || (with.state && with.state->is_compensated)) {
        throw failure(refused,
                      "of a file with an older schema, `list` finds entries by --queue, --topic and --state only");
    }
    const statement select(in.read_connection(),
                           with_prefix(R"(SELECT e.sequence, e.id, q.name, e.topic, e.state, e.attempts,
 e.last_error, e.updated_at FROM @entries e JOIN @queues q ON q.number = e.partition >> 2
 WHERE (?1 = '' OR q.name = ?1) AND (?2 IS NULL OR e.state = ?2) AND (?3 = '' OR e.topic = ?3) AND e.sequence > ?4
 ORDER BY e.sequence LIMIT ?5)",
                                       with.prefix));
    run row(select);
    row.bind(with.queue, with.state ? std::optional(with.state->state) : std::nullopt, with.topic, with.after,
             std::uint64_t{with.limit});
    table rows(with, list_titles);
    const auto now = vouch::system_now();
    while (row.step()) {
        vouch::entry e;
        row.read_all(e.sequence, e.id, e.queue, e.topic, e.state, e.attempts, e.last_error, e.updated_at);
        rows.add(list_row(e, now), {{"id", to_string(e.id)},
                                    {"sequence", e.sequence},
                                    {"queue", e.queue},
                                    {"topic", e.topic},
                                    {"state", name_of(e.state)},
                                    {"attempts", e.attempts},
                                    {"last_error", e.last_error},
                                    {"updated_at", json_of(e.updated_at)}});
    }
    rows.print_all("");
    return done;
}

/// Prints the row column by column; for a blob, only its size.
inline int show(sqlite_file& in, const arguments& with) {
    const auto wanted = entry_id_of(in, with);
    const statement select(in.read_connection(), with_prefix("SELECT * FROM @entries WHERE id = ?1", with.prefix));
    run row(select);
    if (!row.bind(wanted).step()) {
        throw failure(not_found, "there is no entry " + to_string(wanted));
    }
    json out{{"id", to_string(wanted)}};
    std::string text;
    for (int i = 0; i < sqlite3_column_count(select.handle()); ++i) {
        const std::string name = sqlite3_column_name(select.handle(), i);
        const auto type = sqlite3_column_type(select.handle(), i);
        if (type == SQLITE_NULL || name == "id") {
            continue;
        }
        const auto value = type == SQLITE_INTEGER ? std::to_string(row.integer(i))
                           : type == SQLITE_TEXT  ? plain(row.bytes(i))
                                                  : std::to_string(row.bytes(i).size()) + " bytes";
        out[name] = type == SQLITE_INTEGER ? json(row.integer(i))
                    : type == SQLITE_TEXT  ? json_of_bytes(row.bytes(i))
                                           : json(value);
        text += plain(name) + std::string(name.size() < 17 ? 17 - name.size() : 1, ' ') + value + "\n";
    }
    print(is_json(with) ? text_of(out) + "\n" : "id               " + to_string(wanted) + "\n" + text);
    return done;
}

using function = int (*)(sqlite_file&, const arguments&);

/// The function for a verb; null if the verb needs the current schema.
[[nodiscard]] inline function verb_of(const arguments& with) {
    return with.verb == "stats" ? stats : with.verb == "list" ? list : with.verb == "show" ? show : nullptr;
}

} // namespace tool::older_schema
