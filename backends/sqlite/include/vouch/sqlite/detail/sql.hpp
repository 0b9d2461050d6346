// SPDX-License-Identifier: MIT
// All statements of the store, as data. Each connection prepares a statement on first use; a test checks the plan of
// each for table scans. `@` stands for the prefix, `$` for a part that several statements share. If SQLite could choose
// among several indexes, the statement names one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/sqlite/detail/schema_text.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

enum class sql : std::uint8_t {
    begin,
    begin_reading,
    commit,
    roll_back,
    savepoint,
    release,
    roll_back_to,
    data_version,
    settle_doubt,
    queue,
    add_queue,
    find,
    at,
    list_group,
    list_parent,
    list_key,
    list_dead,
    list_near,
    list_far,
    counts,
    next_due,
    first_due,
    new_since,
    last_sequence,
    raise_floor,
    insert,
    insert_many,
    insert_payload,
    insert_relations,
    sequence_of,
    newest_of_key,
    predecessor,
    due,
    due_only,
    claim,
    count_ready,
    succeed,
    life,
    write_wait,
    write_checkpoint,
    write_hold,
    write_end,
    add_dead,
    end_relations,
    lane_is_taken,
    lane_open_next,
    group_enter,
    group_end,
    group_leave,
    group_drop,
    purge_find,
    purge_generation,
    purge_entry,
    purge_dead,
    purge_payload,
    purge_relations,
};

/// The queue's name, for statements that do not get it as a parameter.
inline constexpr std::string_view name_column = "(SELECT q.name FROM @queues q WHERE q.number = e.partition >> 2)";

/// The columns that `read_entry` reads, without the payload.
inline constexpr std::string_view entry_columns =
    R"(e.sequence, e.id, $queue, e.topic, r."key", r."group", r.lane, r.parent, r.predecessor, ifnull(r.generation, 1),
 e.attempts_max, e.expires_at, e.created_at, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.worker, e.last_error, e.updated_at, e.last_attempt_at, e.trail,
 e.headers, e.progress, e.result)";

/// The state; NULL if the entry is not in the partition of its state.
inline constexpr std::string_view state_column = "CASE WHEN e.partition & 3 = max(e.state - 2, 0) THEN e.state END";

/// Small payloads are in the entry's row. Larger ones have a row of their own, so that changing the entry does not
/// write them again.
inline constexpr std::string_view payload_column =
    "ifnull(e.payload, (SELECT p.payload FROM @payloads p WHERE p.sequence = e.sequence))";
inline constexpr std::size_t payload_in_row_max = 1024;

/// A new row. ?1 is now; the other parameters follow in this order.
inline constexpr std::string_view new_row =
    "($sequence, $partition, $gate, $state, 0, 0, 0, 0, $due_at, 0, ?1, NULL, '', "
    "'', $id, $topic, $tied, ?1, $attempts_max,"
    " $expires_at, $trail, $headers, $progress, $result, $payload)";
inline constexpr auto new_row_parameters = static_cast<std::size_t>(std::count(new_row.begin(), new_row.end(), '$'));
/// How many rows `insert_many` inserts. Most of the cost of a small INSERT is starting the statement.
inline constexpr std::size_t rows_at_once = 8;

struct sql_text {
    sql which;
    std::string_view text;
};

inline constexpr std::array statements{
    sql_text{sql::begin, "BEGIN IMMEDIATE"},
    sql_text{sql::begin_reading, "BEGIN"},
    sql_text{sql::commit, "COMMIT"},
    sql_text{sql::roll_back, "ROLLBACK"},
    sql_text{sql::savepoint, "SAVEPOINT vouch_call"},
    sql_text{sql::release, "RELEASE vouch_call"},
    sql_text{sql::roll_back_to, "ROLLBACK TO vouch_call"},
    sql_text{sql::data_version, "PRAGMA data_version"},
    // The number is only for people; this statement exists to write a page.
    sql_text{sql::settle_doubt,
             "INSERT INTO @meta VALUES ('doubts', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"},

    // A queue's number never changes.
    sql_text{sql::queue, "SELECT number FROM @queues WHERE name = ?1"},
    sql_text{sql::add_queue, "INSERT INTO @queues (name) VALUES (?1)"},

    // Reading. The lists: ?1 path, ?2 after, ?3 state, ?4 topic, ?5 limit, ?6 payloads, ?7 queue, ?8 key.
    sql_text{sql::find, R"(SELECT $entry, $payload FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.id = ?1)"},
    sql_text{sql::at, R"(SELECT $entry, CASE WHEN ?2 THEN $payload END FROM @entries e
 LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.sequence = ?1)"},
    sql_text{sql::list_group, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_group CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r."group" = ?1 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY r.sequence LIMIT ?5)"},
    sql_text{sql::list_parent, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_parent CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.parent = ?1 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY r.sequence LIMIT ?5)"},
    // Generations of a key grow with their sequences.
    sql_text{sql::list_key, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @relations r INDEXED BY @relations_key CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.queue = ?7 AND r."key" = ?8 AND r.sequence > ?2 AND (?3 IS NULL OR e.state = ?3)
 AND (?4 = '' OR e.topic = ?4) ORDER BY r.generation LIMIT ?5)"},
    sql_text{sql::list_dead, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END
 FROM @dead d CROSS JOIN @entries e ON e.sequence = d.sequence LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE d.queue = ?7 AND d.sequence > ?2 AND (?3 IS NULL OR e.state = ?3) AND (?4 = '' OR e.topic = ?4)
 ORDER BY d.sequence LIMIT ?5)"},
    // The partitions ?7 to ?8 of a queue. Near: sequences up to ?9, in the order of the table. Far: all sequences, from
    // the index, in no order.
    sql_text{sql::list_near, R"(SELECT $entry, CASE WHEN ?6 THEN $payload END FROM @entries e
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.sequence > ?2 AND e.sequence <= ?9 AND +e.partition BETWEEN ?7 AND ?8 AND (?3 IS NULL OR e.state = ?3)
 AND (?4 = '' OR e.topic = ?4) ORDER BY e.sequence LIMIT ?5)"},
    sql_text{sql::list_far, R"(SELECT sequence FROM @entries INDEXED BY @entries_gate WHERE partition BETWEEN ?4 AND ?5
 AND sequence > ?1 AND (?2 IS NULL OR state = ?2) AND (?3 = '' OR topic = ?3))"},
    // ?1 is the queue's first partition, the live one; those of succeeded and dead entries follow.
    sql_text{sql::counts, R"(SELECT sum(state = 0), sum(state = 1), sum(state = 2),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE partition = ?1 + 1),
 (SELECT count(*) FROM @entries INDEXED BY @entries_gate WHERE partition = ?1 + 2), count(*)
 FROM @entries INDEXED BY @entries_gate WHERE partition = ?1)"},
    // Blocked entries have no gate and come before all others in the index.
    sql_text{sql::next_due, R"(SELECT gate FROM @entries INDEXED BY @entries_gate
 WHERE partition = ?1 AND gate >= -9223372036854775808 ORDER BY gate LIMIT 1)"},

    sql_text{sql::first_due, R"(SELECT gate, sequence FROM @entries INDEXED BY @entries_gate
 WHERE partition = ?1 AND gate >= -9223372036854775808 ORDER BY gate, sequence LIMIT 1)"},
    // Whether the live partition ?1 has rows above ?2. Reads these rows only.
    sql_text{sql::new_since, R"(SELECT ifnull((SELECT max(sequence) FROM @entries), 0),
 EXISTS (SELECT 1 FROM @entries e WHERE e.sequence > ?2 AND +e.partition = ?1))"},

    // Enqueue. Sequences are never reused: the floor is the highest sequence that was purged from the end.
    sql_text{sql::last_sequence, R"(SELECT max(ifnull((SELECT max(sequence) FROM @entries), 0),
 (SELECT value FROM @meta WHERE name = 'sequence_floor')))"},
    sql_text{sql::raise_floor, "UPDATE @meta SET value = ?1 WHERE name = 'sequence_floor' AND value < ?1"},
    sql_text{sql::insert, "INSERT INTO @entries VALUES $row ON CONFLICT (id) DO NOTHING"},
    sql_text{sql::insert_many, "INSERT INTO @entries VALUES $rows ON CONFLICT (id) DO NOTHING"},
    sql_text{sql::insert_payload, "INSERT INTO @payloads VALUES (?1, ?2)"},
    sql_text{sql::insert_relations, "INSERT INTO @relations VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9)"},
    sql_text{sql::sequence_of, "SELECT sequence FROM @entries WHERE id = ?1"},
    sql_text{sql::newest_of_key, R"(SELECT e.id FROM @relations r INDEXED BY @relations_key
 CROSS JOIN @entries e ON e.sequence = r.sequence
 WHERE r.queue = ?1 AND r."key" = ?2 ORDER BY r.generation DESC LIMIT 1)"},
    sql_text{sql::predecessor, R"(SELECT e.sequence, $state, e.partition >> 2, r."key", r."group", r.lane,
 ifnull(r.generation, 1), (SELECT n.id FROM @relations s INDEXED BY @relations_replaces
 CROSS JOIN @entries n ON n.sequence = s.sequence WHERE s.replaces = e.sequence)
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?1)"},

    // Claim. First read: ?1 the queue's name, ?2 its partition, ?3 now, ?4 the limit or the one id. Then write, for
    // each run of consecutive sequences: ?1 first, ?2 last, ?3 now, ?4 end of the lease, ?5 worker. RETURNING would
    // keep every row in memory twice.
    sql_text{sql::due, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_gate
 LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.partition = ?2 AND e.gate <= ?3 ORDER BY e.gate, e.sequence LIMIT ?4)"},
    sql_text{sql::due_only, R"(SELECT $entry, $payload FROM @entries e INDEXED BY @entries_id
 LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.id = ?4 AND e.partition = ?2 AND e.gate <= ?3)"},
    sql_text{sql::claim, R"(UPDATE @entries SET state = 2, attempts = attempts + (state <> 2 OR lapses > 0),
 lapses = lapses + (state = 2), epoch = epoch + 1, gate = ?4, woken = 0, worker = ?5, updated_at = ?3, last_attempt_at = ?3
 WHERE sequence BETWEEN ?1 AND ?2 AND gate <= ?3 AND state < 3)"},

    // The usual settle, for a run of consecutive sequences: ?1 first, ?2 last, ?3 epoch, ?4 result, ?5 now. It skips an
    // entry in a wrong partition, so that the general settle reports the damage.
    sql_text{sql::count_ready, R"(SELECT count(*) FROM @entries
 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},
    sql_text{sql::succeed,
             R"(UPDATE @entries SET state = 3, partition = partition + 1, gate = ?5, result = ?4, updated_at = ?5,
 lapses = 0, woken = 0 WHERE sequence BETWEEN ?1 AND ?2 AND epoch = ?3 AND state = 2 AND tied = 0 AND $live)"},

    // The verbs: read, apply in memory, write back under the fence (?1 sequence, ?2 epoch, ?3 state).
    sql_text{sql::life, R"(SELECT e.sequence, $state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.gate, e.partition >> 2, $name, r."group", r.lane, r.parent
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence
 WHERE e.id = ?1)"},
    sql_text{sql::write_wait, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, lapses = ?11, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_checkpoint, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, lapses = ?11, progress = ?12, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_hold, R"(UPDATE @entries SET gate = ?4, woken = ?5, updated_at = ?6
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_end, R"(UPDATE @entries SET state = ?4, failures = ?5, epoch = ?6,
 last_error = ifnull(?7, last_error), result = ?8, updated_at = ?9, gate = ?9, partition = ?10, lapses = ?11, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::add_dead, "INSERT INTO @dead VALUES (?1, ?2)"},
    sql_text{sql::end_relations, "UPDATE @relations SET is_live = 0 WHERE sequence = ?1"},

    // Lanes: only the first live entry has a gate.
    sql_text{sql::lane_is_taken, R"(SELECT 1 FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 LIMIT 1)"},
    sql_text{sql::lane_open_next, R"(UPDATE @entries SET gate = due_at
 WHERE sequence = (SELECT sequence FROM @relations INDEXED BY @relations_lane
 WHERE queue = ?1 AND lane = ?2 AND is_live = 1 ORDER BY sequence LIMIT 1) AND gate IS NULL)"},

    // Groups: ?1 is the name. A dead member is unfinished until it has a successor.
    sql_text{sql::group_enter, R"(INSERT INTO @groups VALUES (?1, 1, 1, 1) ON CONFLICT (name) DO UPDATE
 SET members = members + 1, live = live + 1, unfinished = unfinished + ?2)"},
    sql_text{sql::group_end, R"(UPDATE @groups SET live = live - 1, unfinished = unfinished - ?2
 WHERE name = ?1 RETURNING unfinished)"},
    sql_text{sql::group_leave,
             "UPDATE @groups SET members = members - 1, unfinished = unfinished - ?2 WHERE name = ?1"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ?1 AND members = 0"},

    // Purge: ?1 and ?2 are the partitions, ?3 `before`, ?4 and ?5 the position to start after. It finds newest
    // generations and then follows them to their predecessors. It returns other generations as well, because skipping
    // them costs as much.
    sql_text{sql::purge_find, R"(SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE partition = ?1 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
 UNION ALL SELECT gate, sequence,
 EXISTS (SELECT 1 FROM @relations s INDEXED BY @relations_replaces WHERE s.replaces = e.sequence)
 FROM @entries e INDEXED BY @entries_gate WHERE partition = ?2 AND gate < ?3 AND (gate, sequence) > (?4, ?5)
 ORDER BY gate, sequence)"},
    sql_text{sql::purge_generation, R"(SELECT r.replaces, $state, r."group", r.sequence IS NOT NULL, e.payload IS NULL,
 EXISTS (SELECT 1 FROM @groups g WHERE g.name = r."group" AND g.live > 0)
 OR EXISTS (SELECT 1 FROM @relations c INDEXED BY @relations_live_child
 WHERE c.parent = e.id AND c.is_live = 1)
 FROM @entries e LEFT JOIN @relations r ON r.sequence = e.sequence WHERE e.sequence = ?1)"},
    sql_text{sql::purge_entry, "DELETE FROM @entries WHERE sequence = ?1 AND state >= 3"},
    sql_text{sql::purge_dead, "DELETE FROM @dead WHERE queue = ?1 AND sequence = ?2"},
    sql_text{sql::purge_payload, "DELETE FROM @payloads WHERE sequence = ?1"},
    sql_text{sql::purge_relations, "DELETE FROM @relations WHERE sequence = ?1"},
};

static_assert(
    [] {
        for (std::size_t i = 0; i < statements.size(); ++i) {
            if (statements[i].which != static_cast<sql>(i)) {
                return false;
            }
        }
        return statements.back().which == sql::purge_relations;
    }(),
    "the statements must be in the order of their enumerators");

/// `text` with every `what` replaced.
inline void replace_all(std::string& text, std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
}

/// `new_row` with numbered parameters, for the row of this index.
[[nodiscard]] inline std::string row_text(std::size_t index) {
    std::string out;
    auto next = 2 + index * new_row_parameters;
    for (std::size_t at = 0; at < new_row.size();) {
        if (new_row[at] != '$') {
            out += new_row[at++];
            continue;
        }
        at = new_row.find_first_of(",)", at);
        out += '?' + std::to_string(next++);
    }
    return out;
}

/// Whether ?1 is the name of the queue of all rows.
[[nodiscard]] constexpr bool has_queue_parameter(sql which) noexcept {
    return which == sql::due || which == sql::due_only || which == sql::list_near || which == sql::list_dead ||
           which == sql::list_key;
}

[[nodiscard]] inline std::string text_of(sql which, std::string_view prefix) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    replace_all(text, "$entry", entry_columns);
    // A claim reads the live partition only and reports any other state that it finds there as damage.
    const bool is_claim = which == sql::due || which == sql::due_only;
    replace_all(text, "$state", is_claim ? "e.state" : state_column);
    replace_all(text, "$live", "partition & 3 = 0 AND partition = CAST(partition AS INTEGER)");
    replace_all(text, "$payload", payload_column);
    replace_all(text, "$queue", has_queue_parameter(which) ? "?1" : "$name");
    replace_all(text, "$name", name_column);
    if (text.find("$rows") != std::string::npos) {
        std::string rows = row_text(0);
        for (std::size_t i = 1; i < rows_at_once; ++i) {
            rows += ", " + row_text(i);
        }
        replace_all(text, "$rows", rows);
    }
    replace_all(text, "$row", row_text(0));
    return with_prefix(text, prefix);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
