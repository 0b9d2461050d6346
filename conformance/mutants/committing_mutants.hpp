// SPDX-License-Identifier: MIT
// Mutants of the store whose transactions commit with their last operation (committing_store.hpp), and such stores that
// violate nothing.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "variant.hpp"

namespace mutants {

struct committing_violation {
    struct by {
        std::string_view name;
        committing_variant how;
    };
    std::string_view sentence;
    std::vector<by> stores;
};

namespace detail {

/// A defect that the store has only in these operations.
[[nodiscard]] constexpr committing_variant only(defect d) noexcept { return {.only_here = d}; }
[[nodiscard]] constexpr committing_variant does(committing_defect d) noexcept { return {.defect = d}; }

} // namespace detail

inline const std::vector<committing_violation> committing_mutants{
    {"enqueue_and_commit does and returns what enqueue does.",
     {{"says inserted for a duplicate", detail::does(committing_defect::duplicate_is_inserted)},
      {"says inserted for a refused draft", detail::does(committing_defect::refused_is_inserted)},
      {"batch loses all but the first", detail::does(committing_defect::batch_loses_all_but_the_first)},
      {"group is forgotten", detail::does(committing_defect::group_is_forgotten)},
      {"drafts are not stored", detail::does(committing_defect::enqueue_commits_only_what_is_earlier)},
      {"key is ignored", detail::only(defect::key_is_ignored)},
      {"stored id is overwritten", detail::only(defect::enqueue_overwrites)},
      {"duplicate names the draft", detail::only(defect::duplicate_names_the_draft)},
      {"batch does not see itself", detail::only(defect::batch_does_not_see_itself)},
      {"due_at is ignored", detail::only(defect::enqueue_ignores_due_at)},
      {"result leaves pending", detail::only(defect::result_leaves_pending)},
      {"successor of a live entry", detail::only(defect::successor_of_live)},
      {"second successor is inserted", detail::only(defect::second_successor_is_inserted)},
      {"successor loses its key", detail::only(defect::successor_loses_key)},
      {"lane is ignored", detail::only(defect::lane_is_ignored)}}},
    {"enqueue_and_commit and claim_and_commit commit the transaction.",
     {{"enqueue is rolled back", detail::does(committing_defect::enqueue_rolls_back)},
      {"claim is rolled back", detail::does(committing_defect::claim_rolls_back)},
      {"enqueue drops earlier writes", detail::does(committing_defect::enqueue_commits_nothing_earlier)},
      {"claim drops earlier writes", detail::does(committing_defect::claim_commits_nothing_earlier)}}},
    {"After each of the two the transaction is closed, whatever it returns or throws.",
     {{"enqueue leaves it open", detail::does(committing_defect::enqueue_stays_open)},
      {"claim leaves it open", detail::does(committing_defect::claim_stays_open)},
      {"nothing leaves it open", detail::does(committing_defect::nothing_stays_open)},
      {"closed one begins again", detail::does(committing_defect::closed_begins_again)},
      {"error leaves it open", detail::does(committing_defect::error_leaves_open)}}},
    {"An invalid argument throws before anything is written, and leaves the transaction open.",
     {{"invalid argument closes", detail::does(committing_defect::invalid_argument_closes)},
      {"commits before it validates", detail::does(committing_defect::commits_before_it_validates)},
      {"commits drafts up to the invalid one",
       detail::does(committing_defect::batch_is_committed_up_to_the_invalid_draft)}}},
    {"If it throws, nothing of the transaction remains, unless the error is in doubt.",
     {{"failed commit is swallowed", detail::does(committing_defect::failed_commit_is_swallowed)},
      {"doubt is hidden", detail::does(committing_defect::doubt_is_hidden)},
      {"earlier writes have their own commit", detail::does(committing_defect::earlier_writes_have_their_own_commit)},
      {"half is in doubt", detail::does(committing_defect::half_is_in_doubt)},
      {"failed claim is kept", detail::does(committing_defect::failed_claim_is_kept)}}},
    {"claim_and_commit does and returns what claim does.",
     {{"claim ignores limit", detail::only(defect::claim_ignores_limit)},
      {"claim of zero takes all", detail::only(defect::claim_of_zero_takes_all)},
      {"claim marks one more", detail::only(defect::claim_marks_one_more)},
      {"claim ignores only", detail::only(defect::claim_ignores_only)},
      {"claim of one ignores due", detail::only(defect::claim_of_one_ignores_due)},
      {"claim of one ignores queue", detail::only(defect::claim_of_one_ignores_queue)},
      {"claim ignores queue", detail::only(defect::claim_ignores_queue)},
      {"claim ignores lease", detail::only(defect::claim_ignores_lease)},
      {"claim ignores worker", detail::only(defect::claim_ignores_worker)},
      {"claim is due before now", detail::only(defect::claim_is_due_before_now)},
      {"claim skips retrying", detail::only(defect::claim_skips_retrying)},
      {"claim selects by sequence", detail::only(defect::claim_selects_by_sequence)},
      {"claim returns by sequence", detail::only(defect::claim_returns_by_sequence)},
      {"claim returns the old state", detail::only(defect::claim_returns_the_old_state)},
      {"claim omits payloads", detail::only(defect::claim_omits_payloads)}}},
    {"Or it claims nothing, commits and returns nothing.",
     {{"nothing has claimed", detail::does(committing_defect::nothing_has_claimed)},
      {"nothing rolls earlier writes back", detail::does(committing_defect::nothing_rolls_back)},
      {"left claim is an empty list", detail::does(committing_defect::left_claim_is_an_empty_list)}}},
    {"It must do so if an entry that it would claim would have lapses above 0, now or from an earlier claim.",
     {{"expired is taken over", detail::does(committing_defect::takes_over_expired)},
      {"handed back with a lapse is claimed", detail::does(committing_defect::claims_earlier_lapses)},
      {"expired is taken over behind others", detail::does(committing_defect::takes_over_expired_behind_others)},
      {"expired is taken over by a claim of one", detail::does(committing_defect::takes_over_expired_one)},
      {"expired is an empty list", detail::does(committing_defect::expired_is_an_empty_list)},
      {"expired is skipped", detail::does(committing_defect::expired_is_skipped)}}},
    {"Every write is conditional: the condition still holds when the write takes effect.",
     {{"claims, then marks", detail::does(committing_defect::claims_in_two_steps)},
      {"checks, then inserts", detail::does(committing_defect::enqueues_in_two_steps)}}},
    {"A queue's number changes with every commit that may have made work due sooner.",
     {{"wakes are forgotten", detail::does(committing_defect::wakes_nobody)}}},
    {"Durable: committed work survives a crash.",
     {{"drafts are lost in a crash", detail::does(committing_defect::is_lost_in_a_crash)}}},
    {"settle_claim_and_commit does what settle and claim_and_commit do.",
     {{"settlements are reversed", detail::does(committing_defect::settlements_are_reversed)},
      {"group_completed is lost", detail::does(committing_defect::group_completed_is_lost)},
      {"settle claims one more", detail::does(committing_defect::settle_claims_one_more)},
      {"settle claims at its own time", detail::does(committing_defect::settle_claims_at_its_own_time)},
      {"settle is rolled back", detail::does(committing_defect::settle_rolls_back)},
      {"settle drops earlier writes", detail::does(committing_defect::settle_commits_nothing_earlier)},
      {"settle takes over expired", detail::does(committing_defect::settle_takes_over_expired)},
      {"left claim rolls settles back", detail::does(committing_defect::left_claim_rolls_settles_back)},
      {"settle wakes nobody", detail::does(committing_defect::settle_wakes_nobody)},
      {"settle leaves it open", detail::does(committing_defect::settle_stays_open)},
      {"settle hides doubt", detail::does(committing_defect::settle_hides_doubt)},
      {"settles before it validates the claim", detail::does(committing_defect::settles_before_it_validates_the_claim)},
      {"settles, then claims, in two commits", detail::does(committing_defect::settles_in_two_commits)},
      {"checks, then settles", detail::does(committing_defect::settles_in_two_steps)}}},
    {"It can claim what the settles have made due.",
     {{"claims before it settles", detail::does(committing_defect::claims_before_it_settles)}}},
    {"If a verdict is not applied, nothing of the transaction remains, and nothing is claimed.",
     {{"commits although a settle is refused", detail::does(committing_defect::settle_commits_although_refused)},
      {"commits although a settle is repeated", detail::does(committing_defect::settle_accepts_repeated)},
      {"looks at the first verdict only", detail::does(committing_defect::settle_looks_at_the_first_verdict)},
      {"refused settle keeps earlier writes", detail::does(committing_defect::refused_keeps_earlier_writes)},
      {"refused settle keeps the claim", detail::does(committing_defect::refused_keeps_the_claim)},
      {"refused settle is applied", detail::does(committing_defect::refused_is_applied)},
      {"refused settle claims an empty list", detail::does(committing_defect::refused_is_an_empty_list)},
      {"refused settle leaves it open", detail::does(committing_defect::refused_stays_open)}}},
    {"A store declares committing exactly if its transactions model committing_transaction.",
     {{"is not declared", detail::does(committing_defect::is_not_declared)}}},
};

struct conforming_committing_store {
    std::string_view name;
    mutants::trait trait;
    committing_variant how;
};

/// Stores that commit with the last operation and violate nothing.
inline constexpr std::array conforming_committing{
    conforming_committing_store{"commits with the last operation", trait::none, {}},
    conforming_committing_store{"leaves every claim to another transaction", trait::none, {.leaves_claims = true}},
    conforming_committing_store{"commits with the last operation, conflicts at commit", trait::conflicts_at_commit, {}},
    conforming_committing_store{"commits with the last operation, skips touched", trait::skips_touched, {}},
    conforming_committing_store{"commits with the last operation, conflicts often", trait::conflicts_often, {}},
    conforming_committing_store{"commits with the last operation, has nothing else", trait::lacks_capabilities, {}},
};

} // namespace mutants
