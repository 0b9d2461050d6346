// SPDX-License-Identifier: MIT
// Mutants whose claims are wrong.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> claim_mutants{
    {"Claim: eligible is exactly gate <= now.",
     {{"claim is due before now", defect::claim_is_due_before_now},
      {"claim skips lapsed", defect::claim_skips_lapsed},
      {"claim skips retrying", defect::claim_skips_retrying},
      {"claim skips exhausted", defect::claim_skips_exhausted},
      {"claim skips expired", defect::claim_skips_expired},
      {"claim skips its own worker", defect::claim_skips_its_own_worker},
      {"claim of one ignores due", defect::claim_of_one_ignores_due},
      {"claim of one ignores lane", defect::claim_of_one_ignores_lane}}},
    {"Claim: takes the first `limit` by (gate, sequence).",
     {{"claim marks one more", defect::claim_marks_one_more},
      {"claim of zero takes all", defect::claim_of_zero_takes_all},
      {"claim ignores limit", defect::claim_ignores_limit},
      {"claim of one ignores limit", defect::claim_of_one_ignores_limit},
      {"claim takes at most 100", defect::claim_takes_at_most_100},
      {"claim selects by sequence", defect::claim_selects_by_sequence},
      {"claim breaks ties backwards", defect::claim_breaks_ties_backwards},
      {"claim prefers retries", defect::claim_prefers_retries},
      {"claim selects then updates", defect::claim_selects_then_updates},
      {"claim selects row by row", defect::claim_selects_row_by_row}}},
    {"Claim: returns them ordered by (due_at, sequence), as they are after the claim.",
     {{"claim returns by sequence", defect::claim_returns_by_sequence},
      {"claim returns in reverse", defect::claim_returns_in_reverse},
      {"claim returns the old state", defect::claim_returns_the_old_state},
      {"claim omits payloads", defect::claim_omits_payloads},
      {"claim omits trail and headers", defect::claim_omits_trail_and_headers}}},
    {"Claim: queue, limit, now, lease, worker; optionally one id only.",
     {{"claim ignores queue", defect::claim_ignores_queue},
      {"claim of one ignores queue", defect::claim_of_one_ignores_queue},
      {"claim ignores only", defect::claim_ignores_only},
      {"claim ignores worker", defect::claim_ignores_worker},
      {"claim ignores lease", defect::claim_ignores_lease}}},
    {"A takeover after the first lapse in a row is not an attempt; later takeovers are.",
     {{"claim counts no takeover", defect::claim_counts_no_takeover},
      {"claim counts the first lapse", defect::claim_counts_the_first_lapse},
      {"claim forgives the second lapse", defect::claim_forgives_the_second_lapse}}},
    {"lapses: the number of claims in a row whose lease has expired.",
     {{"claim counts no lapse", defect::claim_counts_no_lapse},
      {"claim counts all as lapsed", defect::claim_counts_all_as_lapsed},
      {"claim of waiting clears lapses", defect::claim_of_waiting_clears_lapses},
      {"extend clears lapses", defect::extend_clears_lapses},
      {"nudge clears lapses", defect::nudge_clears_lapses}}},
    {"Claimed: attempts+1, epoch+1, lease_until = now + lease, worker, last_attempt_at; wake mark cleared.",
     {{"claim of lapsed keeps epoch", defect::claim_of_lapsed_keeps_epoch},
      {"claim by same worker keeps epoch", defect::claim_by_same_worker_keeps_epoch},
      {"claim leases from due", defect::claim_leases_from_due},
      {"claim keeps wake mark", defect::claim_keeps_wake_mark},
      {"claim forgets updated at", defect::claim_forgets_updated_at},
      {"claim clears error", defect::claim_clears_error},
      {"claim counts lapse as failure", defect::claim_counts_lapse_as_failure}}},
    {"A claim does not touch due_at.", {{"claim moves due at", defect::claim_moves_due_at}}},
    {"Only purge removes entries.",
     {{"claim deletes often lapsed", defect::claim_deletes_often_lapsed}, {"cancel deletes", defect::cancel_deletes}}},
    {"A claim may skip entries that another open transaction has touched, and only those.",
     {{"claim skips touched forever", defect::claim_skips_touched_forever}}},
    {"A store never reads a clock.",
     {{"claim reads a clock", defect::claim_reads_a_clock},
      {"claim leases by a clock", defect::claim_leases_by_a_clock},
      {"settle reads a clock", defect::settle_reads_a_clock},
      {"enqueue reads a clock", defect::enqueue_reads_a_clock}}},
};

} // namespace mutants
