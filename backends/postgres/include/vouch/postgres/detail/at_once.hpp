// SPDX-License-Identifier: MIT
// Transactions that commit in the round trip of their last operation. If it throws, nothing was written, unless the error
// is in doubt. Requires valid arguments.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/claimer.hpp>
#include <vouch/postgres/detail/database.hpp>
#include <vouch/postgres/detail/draft_inserter.hpp>
#include <vouch/postgres/detail/entry_writer.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Returns what `commit()` returns: whether it has committed. Returns false if it fails because of a statement that divides
/// by zero: then nothing was written, and another transaction can begin.
template <class Commit>
[[nodiscard]] bool commit_unless_refused(loan& lent, std::string_view refusal, const Commit& commit) {
    try {
        return commit();
    } catch (const error& e) {
        if (e.is_in_doubt() || e.text_code() != refusal) {
            throw;
        }
        lent.roll_back();
        return false;
    }
}

/// Returns whether the drafts were stored. If not, one is a duplicate.
[[nodiscard]] inline bool enqueue_at_once(loan& lent, session& in, std::span<const draft> drafts, time_point now) {
    draft_inserter inserter(lent.on(), in);
    const auto place = inserter.add_all(drafts, now);
    return commit_unless_refused(lent, not_all_stored, [&] {
        bool are_stored = false;
        lent.commit_with(in, place, [&](const std::vector<rows>& answers) {
            are_stored = inserter.read_all(drafts, now, answers[place]);
        });
        return are_stored;
    });
}

/// Also commits what the transaction did before. Nothing: the claim is left to another transaction.
[[nodiscard]] inline std::optional<std::vector<entry>> claim_at_once(loan& lent, session& in,
                                                                     const claim_request& request) {
    std::optional<std::vector<entry>> claimed;
    claimer claimer(lent.on(), in, &lent.in().heads());
    const auto at = claimer.add_unlapsed(request);
    lent.commit_with(in, at.last(),
                     [&](const std::vector<rows>& answers) { claimed = claimer.read_unlapsed(request, at, answers); });
    return claimed;
}

struct settles_and_claim {
    std::span<const vouch::settle> settles;
    time_point now;
    const claim_request& request;
};

/// Returns whether all settles were applied. If not, a ticket does not hold, or an entry reaches others.
[[nodiscard]] inline bool settle_at_once(loan& lent, session& in, const settles_and_claim& what,
                                         settled_and_claimed& out) {
    std::vector<settlement> all_applied(what.settles.size(), settlement{.verdict = verdict::applied});
    entry_writer writer(lent.on(), in);
    claimer claimer(lent.on(), in, &lent.in().heads());
    const auto settled = writer.add_successes(what.settles, what.now);
    const auto at = claimer.add_unlapsed(what.request);
    lent.on().set_doing("settle and claim");
    const bool is_done = commit_unless_refused(lent, not_all_applied, [&] {
        lent.commit_with(in, at.last(), [&](const std::vector<rows>& answers) {
            writer.read_successes(answers[settled]);
            out.claimed = claimer.read_unlapsed(what.request, at, answers);
        });
        return true;
    });
    if (is_done) {
        out.settlements = std::move(all_applied);
    } else {
        lent.in().plain().note(what.request.queue, false);
    }
    return is_done;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
