// SPDX-License-Identifier: MIT
// Mutants of the SQLite store, as changes to the text of its statements. Every parameter stays in use, so that the
// statement still runs.
//
// Transactions of one process take turns, so a missing lock shows only between processes. Rewrites marked `separate`
// open each handle as if it were in its own process. There is no mutant that writes without comparing epoch and state:
// no other transaction can write between BEGIN IMMEDIATE and the end, so that comparison never fails.
#pragma once

#include <array>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace mutants {

struct rewrite {
    std::string_view name;
    std::string_view sentence;
    const char* from;      ///< a regular expression, matched against the statement on one line
    const char* to;        ///< replaces every match
    bool separate = false; ///< handles share nothing but the file
};

/// The rewritten statement; none if nothing matches.
[[nodiscard]] inline std::optional<std::string> rewritten(std::string_view statement, const rewrite& by) {
    const auto line = std::regex_replace(std::string(statement), std::regex("\\s+"), " ");
    const std::regex from(by.from);
    return std::regex_search(line, from) ? std::optional(std::regex_replace(line, from, by.to)) : std::nullopt;
}

/// Not a mutant: changes no statement; handles share nothing but the file.
inline constexpr rewrite separate_handles{"separate handles", "", "^$", "", true};

inline constexpr std::array rewrites{
    rewrite{"does not lock at begin", "No other transaction writes between the reads and the writes of a transaction.",
            R"(^BEGIN IMMEDIATE$)", "BEGIN", true},
    rewrite{"rollback commits", "Rollback leaves nothing.", R"(^ROLLBACK$)", "COMMIT"},

    rewrite{"claims what is due before now", "Claim: eligible is exactly gate <= now.", R"(e\.gate <= \?3 ORDER BY)",
            "e.gate < ?3 ORDER BY"},
    rewrite{"claims one that is due before now", "Claim: eligible is exactly gate <= now, also for one id only.",
            R"((e\.id = \?4 AND e\.partition = \?2 AND e\.gate) <= \?3)", "$1 < ?3"},
    rewrite{"claims by sequence", "Claim: takes the first `limit` by (gate, sequence).",
            R"(ORDER BY e\.gate, e\.sequence LIMIT)", "ORDER BY e.sequence LIMIT"},
    rewrite{"claims the latest", "Claim: takes the first `limit` by (gate, sequence).",
            R"(ORDER BY e\.gate, e\.sequence LIMIT)", "ORDER BY e.gate DESC, e.sequence LIMIT"},
    rewrite{"claims at least two", "Claim: takes the first `limit`.", R"(e\.gate, e\.sequence LIMIT (\?\d))",
            "e.gate, e.sequence LIMIT max($1, 2)"},
    rewrite{"claims without a limit", "Claim: takes the first `limit`.", R"(e\.gate, e\.sequence LIMIT (\?\d))",
            "e.gate, e.sequence LIMIT $1 + 1000000"},
    rewrite{"claims from every queue", "Claims are per queue.", R"(e\.partition = \?2 (AND e\.gate <= \?3 ORDER))",
            "(e.partition = ?2 OR e.state < 3) $1"},
    rewrite{"claims one of any queue", "Claims are per queue.", R"((e\.id = \?4 AND) e\.partition = \?2)",
            "$1 (e.partition = ?2 OR e.state < 3)"},
    rewrite{"counts no takeover", "A takeover after a second lapse is an attempt.", R"(state <> 2 OR lapses > 0)",
            "state <> 2"},
    rewrite{"counts the first lapse", "A takeover after the first lapse in a row is not an attempt.",
            R"(state <> 2 OR lapses > 0)", "1"},
    rewrite{"counts no lapses", "lapses: the number of claims in a row whose lease has expired.",
            R"(lapses = lapses \+ \(state = 2\),)", ""},
    rewrite{"counts every claim as lapsed", "lapses: the number of claims in a row whose lease has expired.",
            R"(lapses \+ \(state = 2\))", "lapses + 1"},
    rewrite{"reads no lapses", "A committed entry is complete to the byte.", R"(e\.lapses, e\.failures, (.*) e\.trail)",
            "0, e.failures, $1 e.trail"},
    rewrite{"keeps the epoch of lapsed", "Claimed: epoch+1.", R"(epoch = epoch \+ 1)", "epoch = epoch + (state <> 2)"},
    rewrite{"keeps the wake mark of lapsed", "Claimed: wake mark cleared.", R"(woken = 0, (worker = \?\d))", "$1"},
    rewrite{"keeps the first last_attempt_at", "last_attempt_at: the now of the last claim.",
            R"(last_attempt_at = \?3)", "last_attempt_at = ifnull(last_attempt_at, ?3)"},

    rewrite{"settles a range with any epoch", "settle; any other epoch: stale.",
            R"((sequence BETWEEN \?1 AND \?2 AND) epoch = \?3)", "$1 (epoch = ?3 OR ?1 < ?2)"},
    rewrite{"forgets the error of a retry", "retry{error, at}.",
            R"(gate = \?8, last_error = ifnull\(\?9, last_error\))", "gate = ?8, last_error = ifnull(last_error, ?9)"},
    rewrite{"keeps the first progress", "advance: progress replaced.", R"(progress = \?12)",
            "progress = ifnull(progress, ?12)"},
    rewrite{"keeps lapses on success", "An outcome sets lapses to 0.", R"(lapses = 0, woken = 0 WHERE)",
            "woken = 0 WHERE"},
    rewrite{"keeps lapses on retry", "An outcome sets lapses to 0.", R"((updated_at = \?10,) lapses = \?11, woken)",
            "$1 lapses = max(lapses, ?11), woken"},
    rewrite{"keeps lapses on advance", "An outcome sets lapses to 0.", R"(lapses = \?11, progress)",
            "lapses = max(lapses, ?11), progress"},
    rewrite{"keeps lapses on bury", "An outcome sets lapses to 0.", R"((partition = \?10,) lapses = \?11)",
            "$1 lapses = max(lapses, ?11)"},
    rewrite{"clears lapses on release", "A release keeps lapses.", R"((updated_at = \?10,) lapses = \?11, woken)",
            "$1 lapses = 0 * ?11, woken"},
    rewrite{"clears lapses on cancel", "A cancel keeps lapses.", R"((partition = \?10,) lapses = \?11)",
            "$1 lapses = 0 * ?11"},
    rewrite{"reads every gate as lease_until", "lease_until: claimed only.",
            R"(CASE WHEN e\.state = 2 THEN e\.gate END, e\.woken, e\.worker)", "e.gate, e.woken, e.worker"},
    rewrite{"extends nothing", "extend: lease_until = max(lease_until, now + lease).", R"(SET gate = \?4, woken = \?5)",
            "SET gate = max(gate, 0 * ?4), woken = ?5"},
    rewrite{"stores an empty result on bury", "bury{error, result}: without a result there is none.", R"(result = \?8)",
            "result = ifnull(?8, x'')"},
    rewrite{"does not store the end time", "Purge: only entries that ended before `before`.",
            R"(gate = \?9, partition)", "gate = NULL, partition"},
    rewrite{"stores the lease end as the end time", "Purge: only entries that ended before `before`.",
            R"(gate = \?5, result = \?4)", "result = ?4"},
    rewrite{"keeps the epoch on cancel", "cancel: epoch+1 if it was claimed.", R"(epoch = \?6,)",
            "epoch = max(epoch, 0 * ?6),"},
    rewrite{"forgets the parent", "When an entry becomes terminal by any verb, its parent is nudged.",
            R"(r\.lane, r\.parent FROM)", "r.lane, NULL FROM"},
    rewrite{"does not index dead entries", "list: (queue, dead).", R"(^INSERT INTO vouch_dead VALUES \(\?1, \?2\))",
            "SELECT ?1, ?2"},

    rewrite{"never opens a lane", "When an entry becomes terminal, the next entry of its lane gets a gate.",
            R"(SET gate = due_at)", "SET gate = NULL"},
    rewrite{"lets terminal entries hold their lane", "The head is the live entry of lowest sequence.",
            R"(SET is_live = 0)", "SET is_live = 1"},
    rewrite{"lets drafts pass a retrying head", "The head holds its lane until terminal.", R"(is_live = 1 LIMIT 1)",
            "is_live = 1 AND sequence NOT IN (SELECT sequence FROM vouch_entries WHERE state = 1) LIMIT 1"},
    rewrite{"counts replaced members", "A successor counts instead of the dead entry.",
            R"(unfinished = unfinished \+ \?2)", "unfinished = unfinished + max(?2, 1)"},
    rewrite{"counts dead members as finished", "A dead member counts until it has a successor.",
            R"(unfinished = unfinished - \?2 (WHERE name = \?1 RETURNING))", "unfinished = unfinished - max(?2, 1) $1"},
    rewrite{"counts purged members", "group_completed: when every member has succeeded.",
            R"((members = members - 1), unfinished = unfinished - \?2)", "$1, unfinished = unfinished - 0 * ?2"},

    rewrite{"names the oldest duplicate", "A stored (queue, key) is a duplicate of the newest.",
            R"(ORDER BY r\.generation DESC)", "ORDER BY r.generation"},
    rewrite{"keeps eight bits of attempts_max", "A committed entry is complete to the byte.", R"(\?10, \?11, \?12)",
            "?10 & 255, ?11, ?12"},
    rewrite{"truncates large payloads", "A committed entry is complete to the byte.",
            R"(INTO vouch_payloads VALUES \(\?1, \?2\))", "INTO vouch_payloads VALUES (?1, substr(?2, 1, 65536))"},
    rewrite{"reuses sequences", "Sequences are never reused.", R"(SET value = \?1 WHERE name = 'sequence_floor')",
            "SET value = value WHERE ?1 > 0 AND name = 'sequence_floor'"},

    rewrite{"repeats the last row of a page", "list: only sequences greater than `after`.",
            R"(sequence > (\?[12]) AND)", "sequence >= $1 AND"},
    rewrite{"lists in reverse", "list: by ascending sequence.", R"(ORDER BY (\w)\.sequence LIMIT \?5)",
            "ORDER BY $1.sequence DESC LIMIT ?5"},
    rewrite{"lists every topic", "list: exactly this topic.", R"(OR (e\.)?topic = (\?[34])\))",
            "OR $1topic = $2 OR 1)"},
    rewrite{"lists every state", "list: exactly this state.", R"(OR (e\.)?state = (\?[23])\) AND)",
            "OR $1state = $2 OR 1) AND"},
    rewrite{"does not count blocked", "Blocked entries are counted.", R"(sum\(state = 0\))",
            "sum(state = 0 AND gate IS NOT NULL)"},
    rewrite{"next_due ignores claimed", "next_due: the end of the lease of a claimed entry.",
            R"(gate >= (-\d+) ORDER BY gate)", "gate >= $1 AND state <> 2 ORDER BY gate"},
    rewrite{"purges the boundary", "Purge: only entries that ended before `before`.", R"(gate < \?3)", "gate <= ?3"},
    rewrite{"purges newest first", "Purge: oldest first.", R"(ORDER BY gate, sequence$)",
            "ORDER BY gate DESC, sequence"},
    rewrite{"purges what a group needs", "Purge: never an entry that a live entry still needs: same group.",
            R"(g\.live > 0)", "g.live > 1000000"},
    rewrite{"purges what children need", "Purge: never an entry that a live entry still needs: its parent.",
            R"(c\.is_live = 1\))", "c.is_live = 1 AND c.sequence < 0)"},

    // Sizes. A run of successes is one statement, so a slip in it gives neighbours one result.
    rewrite{
        "gives neighbours one result", "Each settle carries its own outcome.", R"(gate = \?5, result = \?4,)",
        "gate = ?5, result = ifnull((SELECT n.result FROM vouch_entries n WHERE n.sequence = ?1 - 1 AND n.state = 3 "
        "AND n.updated_at = ?5), ?4),"},
    rewrite{"claims at most 1024", "claim takes the first `limit`.", R"(e\.gate, e\.sequence LIMIT (\?\d))",
            "e.gate, e.sequence LIMIT min($1, 1024)"},
    rewrite{"lists at most 256 members", "list returns every entry on its path, up to `limit`.",
            R"((r\."group" = \?1 .*) LIMIT \?5)", "$1 LIMIT min(?5, 256)"},
    rewrite{"counts ended entries up to 1000", "counts returns the number of entries of the queue in every state.",
            R"(SELECT count\(\*\) FROM vouch_entries INDEXED BY vouch_entries_gate WHERE partition = \?1 \+)",
            "SELECT min(count(*), 1000) FROM vouch_entries INDEXED BY vouch_entries_gate WHERE partition = ?1 +"},
    rewrite{"truncates checkpoints", "Every store accepts the default limits, and keeps what it accepts.",
            R"(progress = \?12)", "progress = substr(?12, 1, 65535)"},
    rewrite{"truncates results", "Every store accepts the default limits, and keeps what it accepts.",
            R"(gate = \?5, result = \?4,)", "gate = ?5, result = substr(?4, 1, 65535),"},
    rewrite{"keeps groups in eight bits", "group_completed: when every member has succeeded.",
            R"(RETURNING unfinished)", "RETURNING unfinished & 255"},

    // Names.
    rewrite{"finds queues without case", "Two names are the same only if all their bytes are equal.",
            R"((FROM vouch_queues WHERE name = \?1))", "$1 COLLATE NOCASE"},
    rewrite{"finds queues without trailing spaces", "Two names are the same only if all their bytes are equal.",
            R"((FROM vouch_queues WHERE name = \?1))", "$1 COLLATE RTRIM"},
    rewrite{"lists topics by pattern", "list: exactly this topic, no pattern.", R"(OR (e\.)?topic = (\?[34])\))",
            "OR $1topic LIKE $2)"},
    rewrite{
        "keeps lanes as numbers", "A committed entry is complete to the byte.",
        R"(vouch_relations VALUES \(\?1, \?2, \?3, \?4, \?5, \?6)",
        "vouch_relations VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?6 GLOB '[0-9]*' THEN CAST(?6 AS NUMERIC) ELSE ?6 END"},
    rewrite{"counts groups without case", "Two names are the same only if all their bytes are equal.",
            R"(WHERE name = \?1 (RETURNING unfinished))", "WHERE name = ?1 COLLATE NOCASE $1"},

    // Times.
    rewrite{"keeps retry times as doubles", "Times are microseconds.", R"(due_at = \?7, gate = \?8, last_error)",
            "due_at = CAST(CAST(?7 AS REAL) AS INTEGER), gate = ?8, last_error"},
    rewrite{"keeps no last_attempt_at of 1970", "An unset time differs from every time.", R"(last_attempt_at = \?3)",
            "last_attempt_at = nullif(?3, 0)"},
    rewrite{"next_due ignores times before 1970", "next_due returns the smallest gate of the queue.",
            R"(gate >= (-\d+) ORDER BY gate)", "gate >= 0 ORDER BY gate"},
    rewrite{"next_due ignores the first time", "next_due returns the smallest gate of the queue.",
            R"(gate >= (-\d+) ORDER BY gate)", "gate > $1 ORDER BY gate"},
    rewrite{"purges nothing that ended before 1970", "purge removes the entries that ended before `before`.",
            R"(gate < \?3)", "gate < ?3 AND gate >= 0"},
    rewrite{"claims nothing due before 1970", "claim takes the entries whose gate is at or before `now`.",
            R"(e\.gate <= \?3 ORDER BY)", "e.gate <= ?3 AND e.gate >= 0 ORDER BY"},
};

} // namespace mutants
