// SPDX-License-Identifier: MIT
// `stats`, `list` and `show` for a file with an older schema. They read only columns that every schema version has, or print
// the columns as they are. They do not interpret them, so they cannot say why an entry is not running.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../entry_id.hpp"
#include "../entry_text.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../stats.hpp"
#include "sqlite_file.hpp"

namespace tool::older_schema {

using vouch::sqlite::detail::run;
using vouch::sqlite::detail::statement;
using vouch::sqlite::detail::with_prefix;

inline int stats(const sqlite_file& in, const arguments& with) {
    stats_lines lines(vouch::system_now());
    for (const auto& [queue, counts] : in.counts()) {
        if (with.queue.empty() || with.queue == queue) {
            lines.add(queue, counts, std::nullopt);
        }
    }
    lines.print_as(with);
    return done;
}

inline int list(const sqlite_file& in, const arguments& with) {
    const statement select(in.read_connection(),
                           with_prefix(R"(SELECT e.sequence, e.id, q.name, e.topic, e.state, e.attempts,
 e.last_error, e.updated_at FROM @entries e JOIN @queues q ON q.number = e.partition >> 2
 WHERE (?1 = '' OR q.name = ?1) AND (?2 IS NULL OR e.state = ?2) AND (?3 = '' OR e.topic = ?3) AND e.sequence > ?4
 ORDER BY e.sequence LIMIT ?5)",
                                       with.prefix));
    run row(select);
    row.bind(with.queue, with.state, with.topic, with.after, std::uint64_t{with.limit});
    std::vector<std::string> rows;
    std::string text;
    const auto now = vouch::system_now();
    while (row.step()) {
        vouch::entry e;
        row.read_all(e.sequence, e.id, e.queue, e.topic, e.state, e.attempts, e.last_error, e.updated_at);
        json_object out;
        out.id("id", e.id).number("sequence", e.sequence).text("queue", e.queue).text("topic", e.topic);
        out.text("state", name_of(e.state)).number("attempts", e.attempts).text("last_error", e.last_error);
        rows.push_back(out.time("updated_at", e.updated_at).str());
        text += line_of(e, now);
    }
    print(with.json ? json_list(rows) + "\n" : text);
    return done;
}

/// Prints the row column by column; for a blob, only its size.
inline int show(const sqlite_file& in, const arguments& with) {
    const auto wanted = entry_id_of(with);
    const statement select(in.read_connection(), with_prefix("SELECT * FROM @entries WHERE id = ?1", with.prefix));
    run row(select);
    if (!row.bind(wanted).step()) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.entry_id.c_str());
        return not_found;
    }
    json_object out;
    std::string text;
    out.id("id", wanted);
    for (int i = 0; i < sqlite3_column_count(select.handle()); ++i) {
        const std::string name = sqlite3_column_name(select.handle(), i);
        const auto type = sqlite3_column_type(select.handle(), i);
        if (type == SQLITE_NULL || name == "id") {
            continue;
        }
        const auto value = type == SQLITE_INTEGER ? std::to_string(row.integer(i))
                           : type == SQLITE_TEXT  ? plain(row.bytes(i))
                                                  : std::to_string(row.bytes(i).size()) + " bytes";
        out.raw(name, type == SQLITE_INTEGER ? value
                      : type == SQLITE_TEXT  ? json_object::quoted(row.bytes(i))
                                             : json_object::quoted(value));
        text += plain(name) + std::string(name.size() < 17 ? 17 - name.size() : 1, ' ') + value + "\n";
    }
    print(with.json ? out.str() + "\n" : "id               " + to_string(wanted) + "\n" + text);
    return done;
}

using function = int (*)(const sqlite_file&, const arguments&);

/// The function for a verb; null if the verb needs the current schema.
[[nodiscard]] inline function verb_of(const arguments& with) {
    return with.verb == "stats" ? stats : with.verb == "list" ? list : with.verb == "show" ? show : nullptr;
}

} // namespace tool::older_schema
