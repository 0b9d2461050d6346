// SPDX-License-Identifier: MIT
// The broken stores, as data: a name in plain words, the sentence of the contract that is not kept, and what is wrong.
// They were written from the contract alone. None of them may pass the suite.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>

#include "claim_mutants.hpp"
#include "draft_mutants.hpp"
#include "read_mutants.hpp"
#include "relation_mutants.hpp"
#include "settle_mutants.hpp"
#include "sqlite_rewrites.hpp"
#include "transaction_mutants.hpp"
#include "violation.hpp"

namespace mutants {

struct mutant {
    std::string name{};
    std::string sentence{};
    mutants::temper temper{};           ///< of a plain store
    const rewrite* statement = nullptr; ///< set: it is the SQLite store, with a statement of its rewritten
};

namespace detail {

inline void add_breaches(std::vector<mutant>& to, std::span<const breach> some) {
    for (const auto& b : some) {
        for (const auto& s : b.stores) {
            to.push_back({std::string(s.name), std::string(b.sentence), {.defect = s.defect}});
        }
    }
}

/// One for each field that a store can forget and still go on.
inline void add_forgotten_fields(std::vector<mutant>& to) {
    constexpr std::array needed_to_go_on{"id", "queue", "sequence", "state", "lease_until"};
    vouch::entry any;
    vouch::for_each_field(
        [&](std::string_view name, auto&) {
            for (const std::string_view needed : needed_to_go_on) {
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

struct named_standing {
    vouch::standing at;
    std::string_view name;
};

inline constexpr std::array standings{
    named_standing{vouch::standing::waiting, "waiting"}, named_standing{vouch::standing::held, "held"},
    named_standing{vouch::standing::lapsed, "lapsed"},   named_standing{vouch::standing::succeeded, "succeeded"},
    named_standing{vouch::standing::dead, "dead"},       named_standing{vouch::standing::absent, "absent"}};

/// One for each cell of the table of verdicts, that of extend apart from that of settle.
inline void add_wrong_verdicts(std::vector<mutant>& to) {
    struct line {
        verb_row verb;
        vouch::asked asked;
        std::string_view name;
        bool is_for_live_only;
    };
    using vouch::asked;
    constexpr std::array lines{line{verb_row::settle, asked::settle, "settle", false},
                               line{verb_row::settle, asked::settle_behind, "settle with another epoch", false},
                               line{verb_row::extend, asked::settle, "extend", false},
                               line{verb_row::extend, asked::settle_behind, "extend with another epoch", false},
                               line{verb_row::nudge, asked::nudge, "nudge", false},
                               line{verb_row::nudge, asked::nudge_again, "second nudge", true},
                               line{verb_row::cancel, asked::cancel, "cancel", false}};
    for (const auto& l : lines) {
        for (const auto& s : standings) {
            const bool is_same_cell = (l.is_for_live_only && s.at >= vouch::standing::succeeded) ||
                                      (l.asked == asked::settle_behind && s.at == vouch::standing::absent);
            if (!is_same_cell) {
                to.push_back({std::string(l.name) + " of " + std::string(s.name) + " has the wrong verdict",
                              "Every verb on every entry has its verdict.",
                              {.defect = defect::verdict_is_wrong, .cell = {l.verb, l.asked, s.at}}});
            }
        }
    }
}

} // namespace detail

[[nodiscard]] inline std::vector<mutant> all_mutants() {
    std::vector<mutant> all;
    for (const auto* const some :
         {&broken_claims, &broken_settles, &broken_drafts, &broken_together, &broken_transactions, &broken_reads}) {
        detail::add_breaches(all, *some);
    }
    detail::add_forgotten_fields(all);
    detail::add_wrong_verdicts(all);
    for (const auto& r : rewrites) {
        all.push_back({"sqlite: " + std::string(r.name), std::string(r.sentence), {}, &r});
    }
    return all;
}

struct oddity {
    std::string_view name;
    mutants::habit habit;
};

/// Stores that are unlike the others and break nothing. All of them must pass.
inline constexpr std::array oddities{
    oddity{"the plain store, which blocks at begin", habit::none},
    oddity{"is slow", habit::slow},
    oddity{"notices conflicts only at commit", habit::conflicts_at_commit},
    oddity{"claims around what others have touched", habit::skips_touched},
    oddity{"leaves gaps between sequences", habit::leaves_gaps},
    oddity{"has no groups, lanes and wakes", habit::does_without},
    oddity{"has a conflict now and then", habit::conflicts_at_random},
    oddity{"has larger limits", habit::has_larger_limits},
    oddity{"wakes every queue with every commit", habit::wakes_for_anything},
    oddity{"counts sequences over rollbacks", habit::forgets_nothing},
};

} // namespace mutants
