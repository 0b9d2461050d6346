// SPDX-License-Identifier: MIT
// Every statement the store can issue, as data: prepared once per connection when first used, and walked by the test
// that forbids table scans. `@` stands for the prefix, `$entry` for the columns `read_entry` reads. Where SQLite could
// choose among indexes, the statement names the one it was written for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/sqlite/schema.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

enum class sql : std::uint8_t {
    begin,
    commit,
    roll_back,
    savepoint,
    release,
    roll_back_to,
    data_version,
    find,
    list_group,
    list_parent,
    list_key,
    list_dead,
    list_live,
    list_all,
    counts,
    next_due,
    last_sequence,
    raise_floor,
    insert,
    has_id,
    newest_of_key,
    predecessor,
    due,
    due_only,
    claim,
    claim_only,
    succeed,
    life,
    write_wait,
    write_checkpoint,
    write_hold,
    write_end,
    lane_is_taken,
    lane_open_next,
    group_enter,
    group_end,
    group_leave,
    group_drop,
    purge_find,
    purge_generation,
    purge_delete,
};

inline constexpr std::string_view entry_columns =
    R"(sequence, id, queue, topic, "key", "group", lane, parent, predecessor, generation, attempts_max, expires_at,
 created_at, state, attempts, failures, epoch, due_at, lease_until, woken, worker, last_error, updated_at,
 last_attempt_at, trail, headers, progress, result)";

struct sql_text {
    sql which;
    std::string_view text;
};

inline constexpr std::array statements{
    sql_text{sql::begin, "BEGIN IMMEDIATE"},
    sql_text{sql::commit, "COMMIT"},
    sql_text{sql::roll_back, "ROLLBACK"},
    sql_text{sql::savepoint, "SAVEPOINT vouch_call"},
    sql_text{sql::release, "RELEASE vouch_call"},
    sql_text{sql::roll_back_to, "ROLLBACK TO vouch_call"},
    sql_text{sql::data_version, "PRAGMA data_version"},

    // Reading. The lists: ?1 path, ?2 after, ?3 state, ?4 topic, ?5 limit, ?6 payloads, ?7 key.
    sql_text{sql::find, "SELECT $entry, payload FROM @entries WHERE id = ?1"},
    sql_text{sql::list_group, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_group
 WHERE "group" = ?1 AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY sequence LIMIT ?5)"},
    sql_text{sql::list_parent, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_parent
 WHERE parent = ?1 AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY sequence LIMIT ?5)"},
    // Generations of a key grow with their sequences.
    sql_text{sql::list_key, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_key
 WHERE queue = ?1 AND "key" = ?7 AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY generation LIMIT ?5)"},
    sql_text{sql::list_dead, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_dead
 WHERE queue = ?1 AND state = 4 AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY sequence LIMIT ?5)"},
    sql_text{sql::list_live, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_ended
 WHERE queue = ?1 AND ended_at IS NULL AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY sequence LIMIT ?5)"},
    sql_text{sql::list_all, R"(SELECT $entry, CASE WHEN ?6 THEN payload END FROM @entries INDEXED BY @entries_queue
 WHERE queue = ?1 AND sequence > ?2 AND (?3 IS NULL OR state = ?3) AND (?4 = '' OR topic = ?4)
 ORDER BY sequence LIMIT ?5)"},
    sql_text{sql::counts, R"(SELECT sum(state = 0), sum(state = 1), sum(state = 2), sum(state = 3), sum(state = 4)
 FROM @entries INDEXED BY @entries_queue WHERE queue = ?1)"},
    sql_text{sql::next_due, R"(SELECT gate FROM @entries INDEXED BY @entries_gate
 WHERE queue = ?1 AND gate IS NOT NULL ORDER BY gate LIMIT 1)"},

    // Enqueue. Sequences are never reused: the floor remembers the highest that was purged from the end.
    sql_text{sql::last_sequence, R"(SELECT max(ifnull((SELECT max(sequence) FROM @entries), 0),
 (SELECT value FROM @meta WHERE name = 'sequence_floor')))"},
    sql_text{sql::raise_floor, "UPDATE @meta SET value = ?1 WHERE name = 'sequence_floor' AND value < ?1"},
    sql_text{sql::insert, R"(INSERT INTO @entries (sequence, id, queue, topic, "key", "group", lane, parent,
 predecessor, replaces, generation, attempts_max, expires_at, created_at, state, attempts, failures, epoch, due_at,
 lease_until, gate, woken, worker, last_error, updated_at, last_attempt_at, ended_at, trail, headers, progress, result,
 payload)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, 0, 0, ?16, NULL, ?17, 0, '', '', ?14,
 NULL, ?18, ?19, ?20, ?21, ?22, ?23) ON CONFLICT (id) DO NOTHING)"},
    sql_text{sql::has_id, "SELECT 1 FROM @entries WHERE id = ?1"},
    sql_text{sql::newest_of_key, R"(SELECT id FROM @entries INDEXED BY @entries_key
 WHERE queue = ?1 AND "key" = ?2 ORDER BY generation DESC LIMIT 1)"},
    sql_text{sql::predecessor, R"(SELECT sequence, state, queue, "key", "group", lane, generation,
 (SELECT s.id FROM @entries s INDEXED BY @entries_replaces WHERE s.replaces = e.sequence)
 FROM @entries e WHERE id = ?1)"},

    // Claim: ?1 queue, ?2 now, ?3 limit or the one id, ?4 lease end, ?5 worker. First read, then written: RETURNING
    // would keep every row a second time.
    sql_text{sql::due, R"(SELECT $entry, payload FROM @entries INDEXED BY @entries_gate
 WHERE queue = ?1 AND gate <= ?2 ORDER BY gate, sequence LIMIT ?3)"},
    sql_text{sql::due_only, "SELECT $entry, payload FROM @entries WHERE id = ?3 AND queue = ?1 AND gate <= ?2"},
    sql_text{sql::claim, R"(UPDATE @entries SET state = 2, attempts = attempts + 1, epoch = epoch + 1,
 lease_until = ?4, gate = ?4, woken = 0, worker = ?5, updated_at = ?2, last_attempt_at = ?2
 WHERE sequence IN (SELECT sequence FROM @entries INDEXED BY @entries_gate WHERE queue = ?1 AND gate <= ?2
 ORDER BY gate, sequence LIMIT ?3))"},
    sql_text{sql::claim_only, R"(UPDATE @entries SET state = 2, attempts = attempts + 1, epoch = epoch + 1,
 lease_until = ?4, gate = ?4, woken = 0, worker = ?5, updated_at = ?2, last_attempt_at = ?2
 WHERE id = ?3 AND queue = ?1 AND gate <= ?2)"},

    // What most settles come to, in one statement: ?1 id, ?2 epoch, ?3 result, ?4 now.
    sql_text{sql::succeed, R"(UPDATE @entries SET state = 3, result = ?3, updated_at = ?4, ended_at = ?4, gate = NULL,
 lease_until = NULL, woken = 0
 WHERE id = ?1 AND epoch = ?2 AND state = 2 AND "group" IS NULL AND lane IS NULL AND parent IS NULL)"},

    // The verbs: read, applied in memory, written back under the fence (?1 sequence, ?2 epoch, ?3 state).
    sql_text{sql::life, R"(SELECT sequence, state, attempts, failures, epoch, due_at, lease_until, woken, gate, queue,
 "group", lane, parent FROM @entries WHERE id = ?1)"},
    sql_text{sql::write_wait, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, lease_until = NULL, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_checkpoint, R"(UPDATE @entries SET state = ?4, attempts = ?5, failures = ?6, due_at = ?7,
 gate = ?8, last_error = ifnull(?9, last_error), updated_at = ?10, progress = ?11, lease_until = NULL, woken = 0
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_hold, R"(UPDATE @entries SET lease_until = ?4, gate = ?4, woken = ?5, updated_at = ?6
 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},
    sql_text{sql::write_end, R"(UPDATE @entries SET state = ?4, failures = ?5, epoch = ?6,
 last_error = ifnull(?7, last_error), result = ?8, updated_at = ?9, ended_at = ?9, gate = NULL, lease_until = NULL,
 woken = 0 WHERE sequence = ?1 AND epoch = ?2 AND state = ?3)"},

    // Lanes: the first live entry has a gate, the others have none.
    sql_text{sql::lane_is_taken, R"(SELECT 1 FROM @entries INDEXED BY @entries_lane
 WHERE queue = ?1 AND lane = ?2 AND ended_at IS NULL LIMIT 1)"},
    sql_text{sql::lane_open_next, R"(UPDATE @entries SET gate = due_at
 WHERE sequence = (SELECT sequence FROM @entries INDEXED BY @entries_lane
 WHERE queue = ?1 AND lane = ?2 AND ended_at IS NULL ORDER BY sequence LIMIT 1) AND gate IS NULL)"},

    // Groups: ?1 name. A dead member is unfinished until it has a successor.
    sql_text{sql::group_enter, R"(INSERT INTO @groups VALUES (?1, 1, 1, 1) ON CONFLICT (name) DO UPDATE
 SET members = members + 1, live = live + 1, unfinished = unfinished + ?2)"},
    sql_text{sql::group_end, R"(UPDATE @groups SET live = live - 1, unfinished = unfinished - ?2
 WHERE name = ?1 RETURNING unfinished)"},
    sql_text{sql::group_leave,
             "UPDATE @groups SET members = members - 1, unfinished = unfinished - ?2 WHERE name = ?1"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ?1 AND members = 0"},

    // Purge: ?1 queue, ?2 before, ?3 state. Newest generations first found, then followed back to their predecessors.
    sql_text{sql::purge_find, R"(SELECT sequence FROM @entries e INDEXED BY @entries_ended
 WHERE queue = ?1 AND ended_at < ?2 AND (?3 IS NULL OR state = ?3)
 AND NOT EXISTS (SELECT 1 FROM @entries s INDEXED BY @entries_replaces WHERE s.replaces = e.sequence)
 ORDER BY ended_at, sequence)"},
    sql_text{sql::purge_generation, R"(SELECT replaces, state, "group",
 EXISTS (SELECT 1 FROM @groups g WHERE g.name = e."group" AND g.live > 0)
 OR EXISTS (SELECT 1 FROM @entries c INDEXED BY @entries_parent WHERE c.parent = e.id AND c.ended_at IS NULL)
 FROM @entries e WHERE sequence = ?1)"},
    sql_text{sql::purge_delete, "DELETE FROM @entries WHERE sequence = ?1 AND state >= 3"},
};

static_assert(
    [] {
        for (std::size_t i = 0; i < statements.size(); ++i) {
            if (statements[i].which != static_cast<sql>(i)) {
                return false;
            }
        }
        return statements.back().which == sql::purge_delete;
    }(),
    "the statements stand in the order of their names");

[[nodiscard]] inline std::string text_of(sql which, std::string_view prefix) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    constexpr std::string_view columns = "$entry";
    if (const auto at = text.find(columns); at != std::string::npos) {
        text.replace(at, columns.size(), entry_columns);
    }
    return with_prefix(text, prefix);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
