// SPDX-License-Identifier: MIT
// The failures of a report by family, which is the first part of a clause's id. One mistake in a store often breaks many
// clauses of a family, so a report shows one of them in full and, where one mistake is likely, a hint.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct family {
    std::string_view name{};
    std::vector<const clause_report*> failures{};
    const clause_report* shown = nullptr; ///< the one with the shortest transcript

    [[nodiscard]] bool shows_better(const clause_report& c) const {
        const auto& a = c.failure.transcript;
        const auto& b = shown->failure.transcript;
        return !a.empty() && (b.empty() || a.size() < b.size());
    }
};

[[nodiscard]] constexpr std::string_view family_of(std::string_view clause_id) noexcept {
    return clause_id.substr(0, clause_id.find('-'));
}

/// The families with failures, in the order of their first failures.
[[nodiscard]] inline std::vector<family> failed_families(const report& r) {
    std::vector<family> out;
    for (const auto& c : r.clauses) {
        if (!is_failure(c.result)) {
            continue;
        }
        const auto name = family_of(c.clause.id);
        auto at = out.begin();
        while (at != out.end() && at->name != name) {
            ++at;
        }
        if (at == out.end()) {
            at = out.insert(at, {.name = name, .shown = &c});
        }
        at->failures.push_back(&c);
        if (at->shows_better(c)) {
            at->shown = &c;
        }
    }
    return out;
}

/// A question for the author of a store in which at least `failures` clauses fail whose ids start with `prefix`.
struct hint {
    std::string_view prefix;
    std::size_t failures;
    std::string_view question;
};

inline constexpr std::array hints{
    hint{"FIX-01", 1,
         "does every location have its own folder, database or table? All later clauses need an empty store."},
    hint{"FIX-04", 1,
         "does the store read a clock? Every time, `due_at` by default included, comes from the caller's `now`."},
    hint{"FIDELITY-12", 1, "are times stored as whole microseconds, signed and in 64 bits?"},
    hint{"FIDELITY-0", 4,
         "does one field get lost or cut on its way to the storage and back? `for_each_field` lists them all."},
    hint{"VALID", 3,
         "does `enqueue` call `validate(drafts, capabilities())` before it writes, and does every other call check its "
         "arguments in the same way? `validated_writer.hpp` and `validated_reader.hpp` do it for you."},
    hint{"VERDICT", 3,
         "do settle, extend, nudge and cancel use `apply` of `lifecycle.hpp`? It has the whole table of verdicts."},
    hint{"TX-0", 3, "does a transaction keep its writes to itself until `commit`, and drop all of them otherwise?"},
    hint{"LANE", 4, "does every way in which the head of a lane ends (succeed, bury, cancel) unblock the next entry?"},
    hint{"PARENT", 4,
         "does every way in which a child ends (succeed, bury, cancel) nudge its parent, in the same transaction?"},
    hint{"GROUP", 4, "is a group's count of members not yet succeeded kept in the transaction that changes a member?"},
    hint{"READ", 6, "are lists in ascending order of `sequence`, and do counts and `next_due` read the same entries?"},
    hint{"COST", 1,
         "does a claim search an index on queue, due time and sequence that has only the entries it may take?"},
};

/// The questions that this report raises about one family.
[[nodiscard]] inline std::vector<std::string_view> hints_for(const family& f) {
    std::vector<std::string_view> out;
    for (const auto& h : hints) {
        std::size_t matching = 0;
        for (const auto* const c : f.failures) {
            matching += c->result == result::fail && c->clause.id.starts_with(h.prefix) ? 1U : 0U;
        }
        if (matching >= h.failures) {
            out.push_back(h.question);
        }
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
