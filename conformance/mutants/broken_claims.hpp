// SPDX-License-Identifier: MIT
// Stores that claim wrongly.
#pragma once

#include <vector>

#include "breach.hpp"

namespace mutants {

inline const std::vector<breach> broken_claims{
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
      {"claim of zero is of all", defect::claim_of_zero_is_of_all},
      {"claim ignores limit", defect::claim_ignores_limit},
      {"claim of one ignores limit", defect::claim_of_one_ignores_limit},
      {"claim takes at most 100", defect::claim_takes_at_most_100},
      {"claim goes by sequence", defect::claim_goes_by_sequence},
      {"claim breaks ties badly", defect::claim_breaks_ties_badly},
      {"claim prefers retries", defect::claim_prefers_retries},
      {"claim selects then updates", defect::claim_selects_then_updates},
      {"claim goes row by row", defect::claim_goes_row_by_row}}},
    {"Claim: returns them by (due_at, sequence), as they are after the claim.",
     {{"claim answers by sequence", defect::claim_answers_by_sequence},
      {"claim answers backwards", defect::claim_answers_backwards},
      {"claim shows what was", defect::claim_shows_what_was},
      {"claim leaves payloads out", defect::claim_leaves_payloads_out},
      {"claim leaves lists out", defect::claim_leaves_lists_out}}},
    {"Claim: queue, limit, now, lease, worker; optionally one id only.",
     {{"claim ignores queue", defect::claim_ignores_queue},
      {"claim of one ignores queue", defect::claim_of_one_ignores_queue},
      {"claim ignores only", defect::claim_ignores_only},
      {"claim ignores worker", defect::claim_ignores_worker},
      {"claim ignores lease", defect::claim_ignores_lease}}},
    {"Claimed: attempts+1, epoch+1, lease_until = now + lease, worker, last_attempt_at; wake mark cleared.",
     {{"claim does not count again", defect::claim_does_not_count_again},
      {"claim keeps epoch again", defect::claim_keeps_epoch_again},
      {"claim by same worker keeps epoch", defect::claim_by_same_worker_keeps_epoch},
      {"claim leases from due", defect::claim_leases_from_due},
      {"claim keeps wake mark", defect::claim_keeps_wake_mark},
      {"claim forgets updated at", defect::claim_forgets_updated_at},
      {"claim clears error", defect::claim_clears_error},
      {"claim counts failure of lapsed", defect::claim_counts_failure_of_lapsed}}},
    {"A claim does not touch due_at.", {{"claim moves due at", defect::claim_moves_due_at}}},
    {"Only purge removes entries.",
     {{"claim deletes the often lapsed", defect::claim_deletes_the_often_lapsed},
      {"cancel deletes", defect::cancel_deletes}}},
    {"A claim may pass over entries another open transaction has touched, and only those.",
     {{"claim skips touched for ever", defect::claim_skips_touched_for_ever}}},
    {"No store reads a clock.",
     {{"claim has its own clock", defect::claim_has_its_own_clock},
      {"claim leases by its own clock", defect::claim_leases_by_its_own_clock},
      {"settle has its own clock", defect::settle_has_its_own_clock},
      {"enqueue has its own clock", defect::enqueue_has_its_own_clock}}},
};

} // namespace mutants
