// SPDX-License-Identifier: MIT
// The defects that only a batch shows: answers in another order, values of a neighbour, buffers that are too small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>

#include "value_defects.hpp"
#include "variant.hpp"

namespace mutants {

inline constexpr std::size_t few_items = 16; ///< defects "of many" need more

inline void apply_receipt_defect(const variant& how, std::span<const vouch::draft> drafts,
                                 std::vector<vouch::receipt>& receipts) {
    using kind = vouch::receipt::kind;
    if (how.is(defect::receipts_of_many_are_sorted) && receipts.size() > few_items) {
        std::stable_partition(receipts.begin(), receipts.end(),
                              [](const vouch::receipt& r) { return r.what == kind::inserted; });
    }
    constexpr std::size_t chunk = 1000;
    for (std::size_t i = chunk; i < receipts.size() && how.is(defect::receipts_of_many_say_inserted); ++i) {
        receipts[i] = {kind::inserted, drafts[i].id};
    }
    for (std::size_t i = few_items; i < receipts.size() && how.is(defect::duplicate_names_its_neighbour); ++i) {
        receipts[i].id = receipts[i].what == kind::duplicate ? receipts[i - 1].id : receipts[i].id;
    }
}

inline void apply_claim_defect(const variant& how, std::vector<vouch::entry>& taken) {
    constexpr std::size_t chunk = 64;
    constexpr std::size_t budget = 256;
    for (std::size_t i = 1; i < taken.size() && how.is(defect::claim_reuses_its_buffers); ++i) {
        const auto& before = taken[i - 1];
        taken[i].headers = taken[i].headers.empty() ? before.headers : taken[i].headers;
        taken[i].trail = taken[i].trail.empty() ? before.trail : taken[i].trail;
    }
    for (std::size_t i = budget; i < taken.size() && how.is(defect::claim_omits_payloads_of_many); ++i) {
        taken[i].payload.clear();
    }
    if (how.is(defect::claim_sorts_in_chunks) && taken.size() > chunk) {
        std::rotate(taken.begin(), taken.begin() + chunk, taken.end());
    }
    if (how.is(defect::claim_returns_unsigned)) {
        std::sort(taken.begin(), taken.end(), [](const vouch::entry& a, const vouch::entry& b) {
            return std::tuple(as_unsigned(a.due_at), a.sequence) < std::tuple(as_unsigned(b.due_at), b.sequence);
        });
    }
}

/// The settles as this store reads them: in some mutants neighbours of the same kind get a value of the first.
[[nodiscard]] inline std::vector<vouch::settle> settles_as_read(const variant& how,
                                                                std::span<const vouch::settle> settles) {
    std::vector<vouch::settle> out(settles.begin(), settles.end());
    for (std::size_t n = 1; n < out.size(); ++n) {
        auto& mine = out[n].outcome;
        const auto& before = out[n - 1].outcome;
        if (mine.index() != before.index() || out[n].ticket.epoch != out[n - 1].ticket.epoch) {
            continue;
        }
        if (auto* const retry = std::get_if<vouch::retry>(&mine)) {
            const auto& first = std::get<vouch::retry>(before);
            retry->error = how.is(defect::settles_share_an_error) ? first.error : retry->error;
            retry->at = how.is(defect::settles_share_a_due_time) ? first.at : retry->at;
        } else if (auto* const bury = std::get_if<vouch::bury>(&mine)) {
            bury->result = how.is(defect::burials_share_a_result) ? std::get<vouch::bury>(before).result : bury->result;
        } else if (auto* const advance = std::get_if<vouch::advance>(&mine)) {
            advance->progress =
                how.is(defect::settles_share_progress) ? std::get<vouch::advance>(before).progress : advance->progress;
        }
    }
    return out;
}

/// How many items of a batch this store writes. It answers `applied` for the rest.
[[nodiscard]] inline std::size_t items_written(const variant& how, defect cut, std::size_t given) {
    constexpr std::size_t parameters_max = 999;
    return how.is(cut) ? std::min(given, parameters_max) : given;
}

inline void apply_settlement_defect(const variant& how, std::span<const vouch::settle> settles,
                                    std::vector<vouch::settlement>& answers) {
    using vouch::verdict;
    if (answers.size() <= few_items) {
        return;
    }
    if (how.is(defect::verdicts_of_many_are_grouped)) {
        std::stable_partition(answers.begin(), answers.end(),
                              [](const vouch::settlement& s) { return s.verdict == verdict::applied; });
    }
    if (how.is(defect::completion_moves_to_the_end)) {
        const auto ends = [](const vouch::settlement& s) { return s.group_completed; };
        const bool any = std::any_of(answers.begin(), answers.end(), ends);
        for (auto& a : answers) {
            a.group_completed = any && &a == &answers.back();
        }
    }
    constexpr std::size_t window = 64;
    for (std::size_t i = window; i < answers.size() && how.is(defect::settles_of_many_do_not_see_each_other); ++i) {
        const auto first = std::find_if(settles.begin(), settles.end(),
                                        [&](const vouch::settle& s) { return s.ticket == settles[i].ticket; });
        const auto place = static_cast<std::size_t>(first - settles.begin());
        if (answers[i].verdict == verdict::repeated && place + window < i) {
            answers[i].verdict = answers[place].verdict;
        }
    }
}

inline void apply_extend_defect(const variant& how, std::vector<vouch::verdict>& answers) {
    if (answers.size() <= few_items) {
        return;
    }
    if (how.is(defect::extend_answers_as_the_first)) {
        std::fill(answers.begin(), answers.end(), answers.front());
    }
    if (how.is(defect::extends_of_many_are_grouped)) {
        std::stable_partition(answers.begin(), answers.end(),
                              [](vouch::verdict v) { return v == vouch::verdict::applied; });
    }
}

} // namespace mutants
