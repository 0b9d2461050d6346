// SPDX-License-Identifier: MIT
// All mutants, as data: the name, the sentence of the contract that it violates, and the defect. They were written from
// the contract alone, without looking at the checks. None of them may pass the suite.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>

#include "claim_mutants.hpp"
#include "committing_mutants.hpp"
#include "concurrency_mutants.hpp"
#include "draft_mutants.hpp"
#include "lifecycle_mutants.hpp"
#include "name_mutants.hpp"
#include "read_mutants.hpp"
#include "relation_mutants.hpp"
#include "row_lock_mutants.hpp"
#include "settle_mutants.hpp"
#include "size_mutants.hpp"
#include "sqlite_rewrites.hpp"
#include "thread_mutants.hpp"
#include "time_mutants.hpp"
#include "transaction_mutants.hpp"
#include "violation.hpp"
#include "waiting_mutants.hpp"

namespace mutants {

struct mutant {
    std::string name{};
    std::string sentence{};
    mutants::variant variant{};         ///< of the plain store
    const rewrite* statement = nullptr; ///< set: the SQLite store with this rewrite
};

namespace detail {

inline void add_violations(std::vector<mutant>& to, std::span<const violation> some) {
    for (const auto& b : some) {
        for (const auto& s : b.stores) {
            to.push_back({std::string(s.name), std::string(b.sentence), {.defect = s.defect}});
        }
    }
}

/// One for each field that a store can forget and still work.
inline void add_forgotten_fields(std::vector<mutant>& to) {
    constexpr std::array required{"id", "queue", "sequence", "state", "lease_until"};
    vouch::entry any;
    vouch::for_each_field(
        [&](std::string_view name, auto&) {
            for (const std::string_view needed : required) {
                if (name == needed) {
                    return;
                }
            }
            to.push_back({"entry forgets " + std::string(name),
                          "A committed entry is complete to the byte.",
                          {.defect = defect::field_is_forgotten, .field = name}});
        },
        any);
}

struct named_column {
    verdict_column at;
    std::string_view name;
};

inline constexpr std::array columns{
    named_column{verdict_column::waiting, "waiting"}, named_column{verdict_column::held, "held"},
    named_column{verdict_column::lapsed, "lapsed"},   named_column{verdict_column::succeeded, "succeeded"},
    named_column{verdict_column::dead, "dead"},       named_column{verdict_column::absent, "absent"}};

/// One for each cell of the verdict table; settle and extend have separate cells.
inline void add_wrong_verdicts(std::vector<mutant>& to) {
    struct line {
        verb_row verb;
        verdict_row row;
        std::string_view name;
        bool is_for_live_only;
    };
    constexpr std::array lines{
        line{verb_row::settle, verdict_row::settle, "settle", false},
        line{verb_row::settle, verdict_row::settle_other_epoch, "settle with another epoch", false},
        line{verb_row::extend, verdict_row::settle, "extend", false},
        line{verb_row::extend, verdict_row::settle_other_epoch, "extend with another epoch", false},
        line{verb_row::nudge, verdict_row::nudge, "nudge", false},
        line{verb_row::nudge, verdict_row::nudge_again, "second nudge", true},
        line{verb_row::cancel, verdict_row::cancel, "cancel", false}};
    for (const auto& l : lines) {
        for (const auto& s : columns) {
            const bool is_same_cell = (l.is_for_live_only && s.at >= verdict_column::succeeded) ||
                                      (l.row == verdict_row::settle_other_epoch && s.at == verdict_column::absent);
            if (!is_same_cell) {
                to.push_back({std::string(l.name) + " of " + std::string(s.name) + " has the wrong verdict",
                              "Each verb returns the verdict that the table gives for the entry's state.",
                              {.defect = defect::verdict_is_wrong, .cell = {l.verb, l.row, s.at}}});
            }
        }
    }
}

/// One for each field and each way to confuse or change its names.
inline void add_wrong_names(std::vector<mutant>& to) {
    const auto add = [&](std::string name, std::string sentence, defect d, std::string_view field, fold how) {
        to.push_back({std::move(name), std::move(sentence), {.defect = d, .field = field, .fold = how}});
    };
    for (const auto field : compared_names) {
        for (const auto& f : loose_comparisons) {
            if (field == "key" && f.fold == fold::case_of_letters) {
                continue; // a draft mutant
            }
            add(std::string(field) + " ignores " + std::string(f.name),
                "Two names are the same only if all their bytes are equal.", defect::name_is_compared_loosely, field,
                f.fold);
        }
    }
    const auto add_kept = [&](std::string_view field, const named_fold& f) {
        add(std::string(field) + " is kept " + std::string(f.name), "A committed entry is complete to the byte.",
            defect::name_is_changed, field, f.fold);
    };
    for (const auto field : kept_names) {
        for (const auto& f : changes) {
            add_kept(field, f);
        }
    }
    for (const auto field : compared_and_kept_names) {
        for (const auto& f : changes_of_compared) {
            add_kept(field, f);
        }
    }
    add("queue is a hash of twelve bits", "Two names are the same only if all their bytes are equal.",
        defect::name_is_compared_loosely, "queue", fold::hash_of_twelve_bits);
}

inline void add_committing_mutants(std::vector<mutant>& to) {
    for (const auto& v : committing_mutants) {
        for (const auto& s : v.stores) {
            to.push_back({"committing: " + std::string(s.name), std::string(v.sentence), {.committing = s.how}});
        }
    }
}

inline void add_row_lock_mutants(std::vector<mutant>& to) {
    for (const auto& v : row_lock_mutants) {
        for (const auto& s : v.stores) {
            to.push_back({"row locks: " + std::string(s.name),
                          std::string(v.sentence),
                          {.row_locks = row_lock_store{.defect = s.defect}}});
        }
    }
}

} // namespace detail

[[nodiscard]] inline std::vector<mutant> all_mutants() {
    std::vector<mutant> all;
    for (const auto* const some : {&claim_mutants, &settle_mutants, &draft_mutants, &relation_mutants,
                                   &transaction_mutants, &read_mutants, &thread_mutants, &concurrency_mutants,
                                   &size_mutants, &name_mutants, &time_mutants, &lifecycle_mutants, &waiting_mutants}) {
        detail::add_violations(all, *some);
    }
    detail::add_forgotten_fields(all);
    detail::add_wrong_verdicts(all);
    detail::add_wrong_names(all);
    detail::add_committing_mutants(all);
    detail::add_row_lock_mutants(all);
    for (const auto& r : rewrites) {
        all.push_back({"sqlite: " + std::string(r.name), std::string(r.sentence), {}, &r});
    }
    return all;
}

struct conforming_store {
    std::string_view name;
    mutants::trait trait;
};

/// Unusual stores that violate nothing. All of them must pass.
inline constexpr std::array conforming_stores{
    conforming_store{"the plain store, where begin waits", trait::none},
    conforming_store{"is slow", trait::slow},
    conforming_store{"detects conflicts at commit", trait::conflicts_at_commit},
    conforming_store{"skips what other transactions have touched", trait::skips_touched},
    conforming_store{"leaves gaps between sequences", trait::leaves_gaps},
    conforming_store{"has no groups, lanes or wakes", trait::lacks_capabilities},
    conforming_store{"has random conflicts", trait::conflicts_at_random},
    conforming_store{"has larger limits", trait::has_larger_limits},
    conforming_store{"wakes every queue at every commit", trait::wakes_every_queue},
    conforming_store{"does not reset sequences on rollback", trait::keeps_counting},
    conforming_store{"has a conflict in nine of ten commits", trait::conflicts_in_most_commits},
    conforming_store{"has a conflict in one of a hundred calls", trait::conflicts_in_some_calls},
    conforming_store{"has conflicts in most commits and some calls", trait::conflicts_often},
    conforming_store{"has conflicts often, and rollbacks leave gaps", trait::conflicts_often_and_leaves_gaps},
    conforming_store{"has a conflict in the first transaction of a handle", trait::conflicts_at_first},
    conforming_store{"has conflicts at begin", trait::conflicts_at_begin},
    conforming_store{"has a conflict instead of waiting at begin", trait::conflicts_instead_of_waiting},
    conforming_store{"has a conflict in the next call after another commit", trait::conflicts_at_the_next_call},
    conforming_store{"has a conflict at any overlap", trait::conflicts_at_any_overlap},
    conforming_store{"skips what others have touched, with many conflicts", trait::skips_and_conflicts},
    conforming_store{"counts sequences in steps of 1000", trait::counts_in_thousands},
    conforming_store{"counts sequences for all locations", trait::counts_for_all_locations},
    conforming_store{"begins slowly", trait::begins_slowly},
    conforming_store{"commits slowly", trait::commits_slowly},
    conforming_store{"yields in every call", trait::yields},
    conforming_store{"has wake numbers that begin high", trait::wakes_begin_high},
    conforming_store{"has wake numbers that jump", trait::wakes_jump},
    conforming_store{"has wake numbers that count down", trait::wakes_count_down},
    conforming_store{"has wake numbers that follow later", trait::wakes_follow_later},
    conforming_store{"has no groups", trait::lacks_groups},
    conforming_store{"has no lanes", trait::lacks_lanes},
    conforming_store{"has no wakes", trait::lacks_wakes},
    conforming_store{"is not shared", trait::lacks_sharing},
    conforming_store{"has longer names", trait::has_longer_names},
    conforming_store{"has larger batches", trait::has_larger_batches},
    conforming_store{"has wider leases", trait::has_wider_leases},
    conforming_store{"has long error messages", trait::says_much},
};

} // namespace mutants
