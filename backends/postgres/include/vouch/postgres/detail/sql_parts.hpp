// SPDX-License-Identifier: MIT
// Parts that several statements share, and the longest statement. See `sql.hpp`.
#pragma once

#include <array>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct sql_part {
    std::string_view name;
    std::string_view text;
};

inline constexpr std::array sql_parts{
    // The columns that `read_entry` reads.
    sql_part{"{entry}", R"(e.sequence, e.id, e.queue, e.topic, e.key, e."group", e.lane, e.parent, e.predecessor,
 e.generation, e.attempts_max, e.expires_at, e.created_at, e.state, e.attempts, e.lapses, e.failures, e.epoch, e.due_at,
 CASE WHEN e.state = 2 THEN e.gate END, e.woken, e.worker, e.last_error, e.updated_at, e.last_attempt_at, e.trail,
 e.headers, e.progress, e.result)"},
    // The columns that `read_claimed` reads: the others have known values after a claim.
    sql_part{"{unknown}", R"(e.sequence, e.id, e.topic, e.key, e."group", e.lane, e.parent, e.predecessor, e.generation,
 e.attempts_max, e.expires_at, e.created_at, e.attempts, e.lapses, e.failures, e.epoch, e.due_at, e.last_error, e.trail,
 e.headers, e.progress, e.payload)"},
    sql_part{"{payload}", "CASE WHEN $6::boolean THEN e.payload END"},
    sql_part{"{filters}", R"(e.sequence > $2::bigint AND ($3::smallint IS NULL OR e.state = $3::smallint)
 AND ($4::text = '' OR e.topic = $4::text))"},
    sql_part{"{claimed}",
             R"(state = 2, attempts = e.attempts + CASE WHEN e.state = 2 AND e.lapses = 0 THEN 0 ELSE 1 END,
 lapses = e.lapses + CASE WHEN e.state = 2 THEN 1 ELSE 0 END, epoch = e.epoch + 1, gate = $4::bigint, woken = false,
 worker = $5::text, updated_at = $2::bigint, last_attempt_at = $2::bigint)"},
    // Ends entries that reach no others, if their tickets hold. $1 now, $2 ids, $3 epochs, $4 results.
    sql_part{"{succeed}", R"(UPDATE @entries e SET state = 3, gate = NULL, result = s.result, updated_at = $1::bigint,
 lapses = 0, woken = false FROM unnest($2::uuid[], $3::bigint[], $4::bytea[]) AS s (id, epoch, result)
 WHERE e.id = s.id AND e.epoch = s.epoch AND e.state = 2
 AND e."group" IS NULL AND e.lane IS NULL AND e.parent IS NULL)"},
    // Stores drafts. $1 now, $20 and $21 the queue and topic of drafts that have NULL there; the other parameters are arrays
    // with an element for each draft, or empty if all are NULL: each array costs the server time. It skips drafts whose id
    // or key is stored, after waiting for the transaction that has stored it.
    sql_part{"{insert}", R"(INSERT INTO @entries
 (sequence, id, gate, due_at, attempts, lapses, failures, epoch, updated_at, created_at, expires_at, attempts_max,
 generation, replaces, state, woken, newest, parent, predecessor, queue, topic, key, "group", lane, worker, last_error,
 trail, headers, progress, result, payload)
 SELECT nextval('@sequence'), d.id,
 CASE WHEN d.result IS NULL AND d.lane IS NULL THEN coalesce(d.due_at, $1::bigint) END, coalesce(d.due_at, $1::bigint),
 0, 0, 0, 0, $1::bigint, $1::bigint, d.expires_at, coalesce(d.attempts_max, 0), coalesce(d.generation, 1), d.replaces,
 CASE WHEN d.result IS NULL THEN 0 ELSE 3 END, false, true, d.parent, d.predecessor, coalesce(d.queue, $20::text),
 coalesce(d.topic, $21::text), d.key, d."group", d.lane, '', '', d.trail, d.headers, d.progress, d.result, d.payload
 FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::bigint[],
 $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[], $16::bytea[], $17::uuid[],
 $18::bigint[], $19::bigint[]) AS d (id, queue, topic, key, "group", lane, parent, due_at, expires_at, attempts_max, trail,
 headers, progress, result, payload, predecessor, replaces, generation)
 ON CONFLICT DO NOTHING)"},
    // The columns that the purge reads. The last one says whether a live entry needs this one. Its subqueries are such that
    // the server cannot read all groups or children at once.
    sql_part{"{ended}", R"(e.updated_at, e.sequence, e.id, e.state, e."group", e.predecessor, e.replaces, e.newest,
 coalesce((SELECT g.live > 0 FROM @groups g WHERE g.name = e."group"), false)
 OR (SELECT 1 FROM @entries c WHERE c.parent = e.id AND c.state < 3 LIMIT 1) IS NOT NULL)"},
};

/// Stores drafts and counts the members of their groups; see the part `{insert}`. The successor of a dead entry adds nothing
/// to the unfinished members of its group: its predecessor was one.
inline constexpr std::string_view insert_text = R"(WITH stored AS ({insert} RETURNING id, "group", replaces),
 counted AS (INSERT INTO @groups AS g (name, members, live, unfinished)
 SELECT s."group", count(*), count(*), count(*) FILTER (WHERE s.replaces IS NULL)
 FROM stored s WHERE s."group" IS NOT NULL GROUP BY s."group" ORDER BY s."group"
 ON CONFLICT (name) DO UPDATE SET members = g.members + excluded.members, live = g.live + excluded.live,
 unfinished = g.unfinished + excluded.unfinished)
 SELECT s.id, txid_current() FROM stored s)";

/// Stores one draft that has neither group nor lane nor predecessor, and wakes those who listen. $1 now, $2 the channel.
inline constexpr std::string_view insert_one_text = R"(INSERT INTO @entries
 (sequence, id, gate, due_at, attempts, lapses, failures, epoch, updated_at, created_at, expires_at, attempts_max,
 generation, state, woken, newest, parent, queue, topic, key, worker, last_error, trail, headers, progress, result,
 payload)
 VALUES (nextval('@sequence'), $3::uuid, CASE WHEN $14::bytea IS NULL THEN $8::bigint END, $8::bigint, 0, 0, 0, 0,
 $1::bigint, $1::bigint, $9::bigint, $10::bigint, 1, CASE WHEN $14::bytea IS NULL THEN 0 ELSE 3 END, false, true,
 $7::uuid, $4::text, $5::text, $6::text, '', '', $11::bytea, $12::bytea, $13::bytea, $14::bytea, $15::bytea)
 ON CONFLICT DO NOTHING RETURNING txid_current(), CASE WHEN $14::bytea IS NULL AND EXISTS (SELECT 1 FROM @listeners)
 THEN pg_notify($2::text, $4::text)::text END)";

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
