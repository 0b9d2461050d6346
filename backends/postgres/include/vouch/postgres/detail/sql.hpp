// SPDX-License-Identifier: MIT
// All statements of the store, as data. `table_names` explains `@`; a word in braces is a part that several statements
// share. The tests look at the plan of each statement with empty and with large tables.
//
// A write that has an answer also returns the number of its transaction, with which a commit in doubt is resolved.
// Rows are locked in one order: lanes by name, entries by sequence, groups by name. Only `succeed` locks entries in the
// order in which the caller names them, which is that of the claim.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/postgres/detail/sql_parts.hpp>
#include <vouch/postgres/detail/table_names.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

enum class sql : std::uint8_t {
    begin,
    begin_configured,
    commit,
    roll_back,
    savepoint,
    release,
    roll_back_to,
    expect_isolation,
    configure,
    notify,
    oldest_snapshot,
    find,
    list_group,
    list_parent,
    list_key,
    list_dead,
    list_live,
    list_all,
    counts,
    next_due,
    lock_new_lanes,
    insert,
    insert_ungrouped,
    insert_one,
    insert_all,
    open_lanes,
    drop_lanes,
    owner_by_id,
    owner_by_key,
    predecessor,
    successor,
    set_replaced,
    claim,
    claim_only,
    claim_unlapsed,
    is_due,
    succeed,
    succeed_all,
    lock_lanes,
    lock_entries,
    write,
    lock_groups,
    group_end,
    purge_look,
    purge_read,
    purge_lock,
    purge_delete,
    group_leave,
    group_drop,
};

/// The SQLSTATE with which `expect_isolation`, `insert_all` and `succeed_all` fail: division by zero. No other statement
/// divides.
inline constexpr std::string_view wrong_isolation = "22012";
inline constexpr std::string_view not_all_stored = "22012";
inline constexpr std::string_view not_all_applied = "22012";

struct sql_text {
    sql which;
    std::string_view text;
};

inline constexpr std::array statements{
    // The verdicts rest on row locks, and a snapshot that is older than a lock would show what was true before it.
    sql_text{sql::begin, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    sql_text{sql::begin_configured, "BEGIN"}, // where these are settings of the connection
    sql_text{sql::commit, "COMMIT"},
    sql_text{sql::roll_back, "ROLLBACK"},
    sql_text{sql::savepoint, "SAVEPOINT vouch_call"},
    sql_text{sql::release, "RELEASE SAVEPOINT vouch_call"},
    sql_text{sql::roll_back_to, "ROLLBACK TO SAVEPOINT vouch_call"},
    // A check without an answer to read: it divides by zero if a verdict could rest on a snapshot older than its locks.
    sql_text{sql::expect_isolation,
             "SELECT 1 / CASE current_setting('transaction_isolation') WHEN 'repeatable read' THEN 0 ELSE 1 END"},
    // For one transaction: what the pool sets once on connections that are the store's alone.
    sql_text{sql::configure, R"(SELECT set_config('lock_timeout', $1::text, true),
 set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
 set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
 set_config('jit', 'off', true))"},
    // NOTIFY makes commits wait for each other, so it is used only if a process listens.
    sql_text{sql::notify, R"(SELECT pg_notify($1::text, q) FROM unnest($2::text[]) AS q
 WHERE EXISTS (SELECT 1 FROM @listeners))"},

    // The transaction up to which the oldest snapshot sees all: of another session, a standby, or a prepared transaction. (Only
    // autovacuum has no user, and only a standby no database. The type of a session is hidden from most roles.)
    sql_text{sql::oldest_snapshot, R"(SELECT x::text FROM (SELECT backend_xmin AS x FROM pg_stat_activity
 WHERE pid <> pg_backend_pid() AND usesysid IS NOT NULL AND (datid IS NULL OR datname = current_database()) UNION ALL SELECT xmin FROM pg_replication_slots UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()) s
 WHERE x IS NOT NULL ORDER BY age(x) DESC LIMIT 1)"},

    // Reading. The lists: $1 path, $2 after, $3 state, $4 topic, $5 limit, $6 payloads, $7 queue.
    sql_text{sql::find, "SELECT {entry}, e.payload FROM @entries e WHERE e.id = $1::uuid"},
    sql_text{sql::list_group, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e."group" = $1::text AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::list_parent, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.parent = $1::uuid AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    // From the newest generation to its predecessors, because only the newest is in the index of keys.
    sql_text{sql::list_key, R"(WITH RECURSIVE family AS (
 SELECT n.id, n.predecessor, n.replaces FROM @entries n WHERE n.queue = $7::text AND n.key = $1::text AND n.newest
 UNION ALL SELECT p.id, p.predecessor, p.replaces
 FROM family f JOIN @entries p ON p.id = f.predecessor AND p.sequence = f.replaces)
 SELECT {entry}, {payload} FROM family f JOIN @entries e ON e.id = f.id
 WHERE {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::list_dead, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.queue = $1::text AND e.state = 4 AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    // Live entries are found by their gates, or by their lanes if they are blocked: there may be many ended ones.
    sql_text{sql::list_live, R"(SELECT {entry}, {payload} FROM @entries e WHERE e.id = ANY (ARRAY(SELECT s.id FROM (
 SELECT e.id, e.sequence FROM @entries e WHERE e.queue = $1::text AND e.gate IS NOT NULL AND {filters}
 UNION ALL SELECT e.id, e.sequence FROM @entries e
 WHERE e.queue = $1::text AND e.lane IS NOT NULL AND e.state < 3 AND e.gate IS NULL AND {filters}
 ) s ORDER BY s.sequence LIMIT $5::bigint)) ORDER BY e.sequence)"},
    sql_text{sql::list_all, R"(SELECT {entry}, {payload} FROM @entries e
 WHERE e.queue = $1::text AND {filters} ORDER BY e.sequence LIMIT $5::bigint)"},
    sql_text{sql::counts, R"(SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
 count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3), count(*) FILTER (WHERE state = 4)
 FROM @entries WHERE queue = $1::text)"},
    sql_text{sql::next_due, R"(SELECT gate FROM @entries
 WHERE queue = $1::text AND gate >= $2::bigint ORDER BY gate, sequence LIMIT 1)"},

    // Enqueue. A lane has a row as long as it has a live entry. Sequences are drawn after the lane is locked, so that
    // they follow the order of commits in the lane. Entries with a lane are stored blocked; then the lane is opened.
    sql_text{sql::lock_new_lanes, R"(INSERT INTO @lanes SELECT * FROM unnest($1::text[], $2::text[])
 ON CONFLICT (queue, lane) DO UPDATE SET lane = excluded.lane)"},
    sql_text{sql::insert, insert_text},
    sql_text{sql::insert_ungrouped, "{insert} RETURNING id, txid_current()"},
    sql_text{sql::insert_one, insert_one_text},
    // All of them, or an error and none: it divides by zero if one was not stored.
    sql_text{sql::insert_all, R"(WITH stored AS ({insert} RETURNING 1)
 SELECT txid_current() / CASE count(*) WHEN cardinality($2::uuid[]) THEN 1 ELSE 0 END FROM stored)"},
    sql_text{sql::open_lanes, R"(UPDATE @entries e SET gate = e.due_at
 FROM unnest($1::text[], $2::text[]) AS l (queue, lane)
 WHERE e.queue = l.queue AND e.sequence = (SELECT h.sequence FROM @entries h
 WHERE h.queue = l.queue AND h.lane = l.lane AND h.state < 3 ORDER BY h.sequence LIMIT 1)
 AND e.gate IS NULL AND e.state < 3 RETURNING e.queue, e.gate)"},
    sql_text{sql::drop_lanes, R"(DELETE FROM @lanes d USING unnest($1::text[], $2::text[]) AS l (queue, lane)
 WHERE d.queue = l.queue AND d.lane = l.lane AND NOT EXISTS (SELECT 1 FROM @entries h
 WHERE h.queue = l.queue AND h.lane = l.lane AND h.state < 3))"},
    // The owner of an id or key is kept from being purged or replaced, but can be claimed and settled.
    sql_text{sql::owner_by_id, "SELECT e.id FROM @entries e WHERE e.id = $1::uuid FOR KEY SHARE"},
    sql_text{sql::owner_by_key, R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.key = $2::text AND e.newest
 AND NOT EXISTS (SELECT 1 FROM @entries i WHERE i.id = $3::uuid) FOR KEY SHARE)"},
    sql_text{sql::predecessor, R"(SELECT e.sequence, e.state, e.queue, e.key, e."group", e.lane, e.generation, e.newest
 FROM @entries e WHERE e.id = $1::uuid FOR UPDATE)"},
    sql_text{sql::successor, R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.replaces = $2::bigint FOR KEY SHARE)"},
    sql_text{sql::set_replaced, R"(UPDATE @entries SET newest = false
 WHERE queue = $1::text AND sequence = $2::bigint AND newest)"},

    // Claim: $1 queue, $2 now, $3 limit or the one id, $4 end of the lease, $5 worker, $6 the lowest gate to look at. Rows
    // are named by id, here and in the purge: the server has only one index to find them, whatever it knows about the
    // tables.
    sql_text{sql::claim, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY (ARRAY(
 SELECT c.id FROM @entries c WHERE c.queue = $1::text AND c.gate >= $6::bigint AND c.gate <= $2::bigint
 ORDER BY c.gate, c.sequence LIMIT $3::bigint FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING txid_current(), {unknown})"},
    sql_text{sql::claim_only, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY (ARRAY(
 SELECT c.id FROM @entries c WHERE c.id = $3::uuid AND (c.queue = $1::text AND c.gate <= $2::bigint) IS TRUE
 FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING txid_current(), {unknown})"},

    // The same in one round trip with the commit. It claims none if one of the entries has an expired lease; `is_due` then
    // says whether there are any. $2 now, $3 the lowest gate.
    sql_text{sql::claim_unlapsed, R"(UPDATE @entries e SET {claimed} WHERE e.id = ANY ((
 SELECT CASE WHEN NOT bool_or(d.state = 2 OR d.lapses > 0) THEN array_agg(d.id) END FROM (
 SELECT c.id, c.state, c.lapses FROM @entries c WHERE c.queue = $1::text AND c.gate >= $6::bigint AND c.gate <= $2::bigint
 ORDER BY c.gate, c.sequence LIMIT $3::bigint FOR NO KEY UPDATE SKIP LOCKED) d)::uuid[])
 RETURNING txid_current(), {unknown})"},
    sql_text{sql::is_due, R"(SELECT EXISTS (SELECT 1 FROM @entries c
 WHERE c.queue = $1::text AND c.gate >= $3::bigint AND c.gate <= $2::bigint))"},

    // The usual settle: successes that reach no other entry. $1 now. It returns how many were applied; and which, if not
    // all were.
    sql_text{sql::succeed,
             R"(WITH done AS ({succeed} RETURNING e.id)
 SELECT n.number, d.id FROM (SELECT count(*) AS count, CASE WHEN count(*) > 0 THEN txid_current() END AS number FROM done) n
 LEFT JOIN done d ON n.count <> cardinality($2::uuid[]) WHERE n.count > 0)"},
    // The same in one round trip with the next claim and the commit: it divides by zero if one was not applied.
    sql_text{sql::succeed_all, R"(WITH done AS ({succeed} RETURNING 1)
 SELECT txid_current() / CASE count(*) WHEN cardinality($2::uuid[]) THEN 1 ELSE 0 END FROM done)"},

    // The verbs: lock and read, apply in memory, write back under the fence of epoch and state. $1 ids; $2 those of them
    // that may end, whose lanes are locked first. Their parents are locked with them, but only if they will end: a claim
    // of another transaction passes over what is locked. $3 the epoch that a settle needs, or NULL for a cancel; $4 now.
    sql_text{sql::lock_lanes, R"(SELECT l.queue, l.lane FROM @lanes l WHERE (l.queue, l.lane) IN (
 SELECT e.queue, e.lane FROM @entries e WHERE e.id = ANY ($1::uuid[]) AND e.lane IS NOT NULL)
 ORDER BY l.queue, l.lane FOR UPDATE)"},
    sql_text{sql::lock_entries, R"(SELECT e.sequence, e.id, e.queue, e."group", e.lane, e.parent, e.state, e.attempts,
 e.lapses, e.failures, e.epoch, e.due_at, e.gate, e.woken
 FROM @entries e WHERE e.id = ANY ($1::uuid[] || ARRAY(
 SELECT p.parent FROM unnest($2::uuid[], $3::bigint[]) AS w (id, epoch) JOIN @entries p ON p.id = w.id
 WHERE p.parent IS NOT NULL AND ((p.state = 2 AND p.epoch = w.epoch)
 OR (w.epoch IS NULL AND (p.state < 2 OR (p.state = 2 AND p.gate <= $4::bigint))))))
 ORDER BY e.sequence FOR NO KEY UPDATE)"},
    sql_text{sql::write, R"(UPDATE @entries e SET state = w.state, attempts = w.attempts, lapses = w.lapses,
 failures = w.failures, epoch = w.epoch, due_at = w.due_at, gate = w.gate, woken = w.woken, updated_at = w.updated_at,
 last_error = coalesce(w.last_error, e.last_error), result = coalesce(w.result, e.result),
 progress = coalesce(w.progress, e.progress)
 FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[],
 $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bigint[], $14::text[], $15::bytea[],
 $16::bytea[]) AS w (queue, sequence, state_was, epoch_was, state, attempts, lapses, failures, epoch, due_at, gate,
 woken, updated_at, last_error, result, progress)
 WHERE e.queue = w.queue AND e.sequence = w.sequence AND e.state = w.state_was AND e.epoch = w.epoch_was
 RETURNING txid_current())"},

    // Groups. A dead member is unfinished until it has a successor.
    sql_text{sql::lock_groups,
             R"(SELECT 1 FROM @groups WHERE name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE)"},
    sql_text{sql::group_end, R"(UPDATE @groups g SET live = g.live - n.ended, unfinished = g.unfinished - n.succeeded
 FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (name, ended, succeeded)
 WHERE g.name = n.name RETURNING g.name, g.unfinished)"},

    // Purge: $1 queue, $2 state, $3 before, $4 and $5 the position to start after, $6 limit. It finds newest generations
    // and then follows them to their predecessors. It leaves what another transaction has locked.
    sql_text{sql::purge_look, R"(SELECT {ended} FROM @entries e
 WHERE e.queue = $1::text AND e.state = $2::smallint AND e.state >= 3 AND e.newest AND e.updated_at < $3::bigint
 AND (e.updated_at, e.sequence) > ($4::bigint, $5::bigint) ORDER BY e.updated_at, e.sequence LIMIT $6::bigint)"},
    sql_text{sql::purge_read, "SELECT {ended} FROM @entries e WHERE e.id = ANY ($1::uuid[])"},
    sql_text{sql::purge_lock, R"(SELECT e.id FROM @entries e
 WHERE e.id = ANY ($1::uuid[]) ORDER BY e.sequence FOR UPDATE SKIP LOCKED)"},
    sql_text{sql::purge_delete, R"(DELETE FROM @entries e
 WHERE e.id = ANY ($1::uuid[]) AND e.state >= 3 RETURNING txid_current())"},
    sql_text{sql::group_leave, R"(UPDATE @groups g SET members = g.members - n.gone, unfinished = g.unfinished - n.dead
 FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS n (name, gone, dead) WHERE g.name = n.name)"},
    sql_text{sql::group_drop, "DELETE FROM @groups WHERE name = ANY ($1::text[]) AND members = 0"},
};

static_assert(
    [] {
        for (std::size_t i = 0; i < statements.size(); ++i) {
            if (statements[i].which != static_cast<sql>(i)) {
                return false;
            }
        }
        return statements.back().which == sql::group_drop;
    }(),
    "the statements must be in the order of their enumerators");

/// The text that is sent to the server.
[[nodiscard]] inline std::string text_of(sql which, const table_names& names) {
    std::string text(statements[static_cast<std::size_t>(which)].text);
    for (const auto& part : sql_parts) {
        for (auto at = text.find(part.name); at != std::string::npos;
             at = text.find(part.name, at + part.text.size())) {
            text.replace(at, part.name.size(), part.text);
        }
    }
    return names.in(text);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
