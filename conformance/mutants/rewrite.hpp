// SPDX-License-Identifier: MIT
// Defects of the SQLite store, as changes to the text of its statements. Every parameter stays in use, so that the
// statement still runs.
//
// Transactions of one process take turns, so a missing lock shows only among several: those marked `apart` are opened
// as if each handle were in a process of its own. Left out is a write without the fence of epoch and state: between the
// BEGIN IMMEDIATE of a transaction and its end nobody else can write, so there the fence never has anything to stop.
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
    const char* from;   ///< a regular expression over the statement on one line
    const char* to;     ///< what it becomes, everywhere in the statement
    bool apart = false; ///< handles share nothing but the file
};

/// The statement as this store has it; none if it is not concerned.
[[nodiscard]] inline std::optional<std::string> rewritten(std::string_view statement, const rewrite& by) {
    const auto line = std::regex_replace(std::string(statement), std::regex("\\s+"), " ");
    const std::regex from(by.from);
    return std::regex_search(line, from) ? std::optional(std::regex_replace(line, from, by.to)) : std::nullopt;
}

/// No defect: handles that share nothing but the file.
inline constexpr rewrite handles_apart{"handles apart", "", "^$", "", true};

inline constexpr std::array rewrites{
    rewrite{"does not lock at begin", "Nobody else comes between the reads and the writes of a transaction.",
            R"(^BEGIN IMMEDIATE$)", "BEGIN", true},
    rewrite{"rollback commits", "Rollback leaves nothing.", R"(^ROLLBACK$)", "COMMIT"},

    rewrite{"claims what is due before now", "Claim: eligible is exactly gate <= now.", R"(gate <= \?2 ORDER BY)",
            "gate < ?2 ORDER BY"},
    rewrite{"claims one that is due before now", "Claim: eligible is exactly gate <= now, also for one id only.",
            R"((WHERE id = \?\d AND queue = \?1 AND gate) <= \?2)", "$1 < ?2"},
    rewrite{"claims by sequence", "Claim: takes the first `limit` by (gate, sequence).",
            R"(ORDER BY gate, sequence LIMIT)", "ORDER BY sequence LIMIT"},
    rewrite{"claims the latest", "Claim: takes the first `limit` by (gate, sequence).",
            R"(ORDER BY gate, sequence LIMIT)", "ORDER BY gate DESC, sequence LIMIT"},
    rewrite{"claims one at least", "Claim: limit 0 takes nothing.", R"(gate, sequence LIMIT (\?\d))",
            "gate, sequence LIMIT max($1, 1)"},
    rewrite{"claims as many as there are", "Claim: takes the first `limit`.", R"(gate, sequence LIMIT (\?\d))",
            "gate, sequence LIMIT $1 + 1000000"},
    rewrite{"claims from every queue", "Claims are per queue.", R"(queue = \?1 (AND gate <= \?2 ORDER))",
            "(queue = ?1 OR 1) $1"},
    rewrite{"claims one of any queue", "Claims are per queue.", R"((WHERE id = \?\d AND) queue = \?1)",
            "$1 (queue = ?1 OR 1)"},
    rewrite{"does not count a claim of the lapsed", "Claimed: attempts+1.", R"(attempts = attempts \+ 1)",
            "attempts = attempts + (state <> 2)"},
    rewrite{"keeps the epoch of the lapsed", "Claimed: epoch+1.", R"(epoch = epoch \+ 1)",
            "epoch = epoch + (state <> 2)"},
    rewrite{"keeps the wake mark of the lapsed", "Claimed: wake mark cleared.", R"(woken = 0, (worker = \?\d))", "$1"},
    rewrite{"remembers the first attempt", "last_attempt_at: the now of the last claim.", R"(last_attempt_at = \?2)",
            "last_attempt_at = ifnull(last_attempt_at, ?2)"},

    rewrite{"forgets the error of a retry", "retry{error, at}.",
            R"(gate = \?8, last_error = ifnull\(\?9, last_error\))", "gate = ?8, last_error = ifnull(last_error, ?9)"},
    rewrite{"keeps the first progress", "advance: progress replaced.", R"(progress = \?11)",
            "progress = ifnull(progress, ?11)"},
    rewrite{"keeps the lease of what is not claimed", "lease_until: claimed only.", R"(lease_until = NULL, woken = 0)",
            "woken = 0"},
    rewrite{"extends without the gate", "gate: lease_until if claimed.", R"(SET lease_until = \?4, gate = \?4,)",
            "SET lease_until = ?4,"},
    rewrite{"gives the dead an empty result", "bury{error, result}: none is none.", R"(result = \?8)",
            "result = ifnull(?8, x'')"},
    rewrite{"does not note the end", "Purge: that ended before `before`.", R"(ended_at = \?\d, gate = NULL)",
            "gate = NULL"},
    rewrite{"keeps the epoch of the cancelled", "cancel: epoch+1 if it was claimed.", R"(epoch = \?6,)",
            "epoch = max(epoch, 0 * ?6),"},
    rewrite{"forgets the parent", "When an entry becomes terminal its parent is nudged.", R"(lane, parent FROM)",
            "lane, NULL FROM"},

    rewrite{"never opens a lane", "The next entry of its lane gets its gate.", R"(SET gate = due_at)",
            "SET gate = NULL"},
    rewrite{"lets drafts pass a retrying head", "The head holds its lane until terminal.",
            R"(AND ended_at IS NULL LIMIT 1)", "AND ended_at IS NULL AND state <> 1 LIMIT 1"},
    rewrite{"counts the replaced in a group", "The successor counts in the place of the dead one.",
            R"(unfinished = unfinished \+ \?2)", "unfinished = unfinished + max(?2, 1)"},
    rewrite{"takes the dead for finished", "A dead member counts until it has a successor.",
            R"(unfinished = unfinished - \?2 (WHERE name = \?1 RETURNING))", "unfinished = unfinished - max(?2, 1) $1"},
    rewrite{"keeps counting the purged dead", "group_completed when no member is left that has not succeeded.",
            R"((members = members - 1), unfinished = unfinished - \?2)", "$1, unfinished = unfinished - 0 * ?2"},

    rewrite{"names the oldest duplicate", "A stored (queue, key) is a duplicate of the newest.",
            R"(ORDER BY generation DESC)", "ORDER BY generation"},
    rewrite{"keeps eight bits of attempts_max", "A committed entry is complete to the byte.", R"(\?11, \?12, \?13)",
            "?11, ?12 & 255, ?13"},
    rewrite{"uses sequences again", "Sequences are never reused.", R"(SET value = \?1 WHERE name = 'sequence_floor')",
            "SET value = value WHERE ?1 > 0 AND name = 'sequence_floor'"},

    rewrite{"repeats the edge of a page", "list: only sequences greater than this.", R"(sequence > \?2)",
            "sequence >= ?2"},
    rewrite{"lists backwards", "list: by ascending sequence.", R"(ORDER BY sequence LIMIT \?5)",
            "ORDER BY sequence DESC LIMIT ?5"},
    rewrite{"lists every topic", "list: exactly this topic.", R"(OR topic = \?4\))", "OR topic = ?4 OR 1)"},
    rewrite{"lists every state", "list: filters.", R"(OR state = \?3\) AND \(\?4)", "OR state = ?3 OR 1) AND (?4"},
    rewrite{"does not count the blocked", "Blocked entries are counted.", R"(sum\(state = 0\))",
            "sum(state = 0 AND gate IS NOT NULL)"},
    rewrite{"waits for nothing claimed", "next_due: lease end if claimed.", R"(gate IS NOT NULL ORDER BY gate)",
            "gate IS NOT NULL AND state <> 2 ORDER BY gate"},
    rewrite{"purges the boundary", "Purge: that ended before `before`.", R"(ended_at < \?2)", "ended_at <= ?2"},
    rewrite{"purges newest first", "Purge: oldest first.", R"(ORDER BY ended_at, sequence)",
            "ORDER BY ended_at DESC, sequence"},
    rewrite{"purges what a group needs", "Purge: none that a live entry still needs: same group.", R"(g\.live > 0)",
            "g.live > 1000000"},
    rewrite{"purges what children need", "Purge: none that a live entry still needs: its parent.",
            R"(c\.ended_at IS NULL\))", "c.ended_at IS NULL AND c.sequence < 0)"},
};

} // namespace mutants
