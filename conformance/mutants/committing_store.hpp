// SPDX-License-Identifier: MIT
// The plain store with transactions that commit with their last operation, and the defects that `settle_claim_and_commit`
// may have. As thread-safe as the plain store.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>

#include "last_operations.hpp"
#include "plain_fixture.hpp"
#include "plain_store.hpp"
#include "plain_transaction.hpp"
#include "settler.hpp"

namespace mutants {

class committing_transaction : public last_operations {
    using answer = vouch::settled_and_claimed;
    using settles_of = std::vector<vouch::settle>;

    /// Whether the settles are refused, as far as the mutant looks.
    [[nodiscard]] bool sees_refusal(const std::vector<vouch::settlement>& settlements) const {
        if (is(committing_defect::settle_commits_although_refused)) {
            return false;
        }
        if (is(committing_defect::settle_looks_at_the_first_verdict)) {
            return !all_applied(std::span(settlements).first(std::min<std::size_t>(settlements.size(), 1)));
        }
        return std::any_of(settlements.begin(), settlements.end(), [&](const vouch::settlement& s) {
            return s.verdict != vouch::verdict::applied &&
                   !(s.verdict == vouch::verdict::repeated && is(committing_defect::settle_accepts_repeated));
        });
    }

    [[nodiscard]] vouch::claim_request as_claimed(vouch::claim_request request, time_point now) const {
        request.limit += is(committing_defect::settle_claims_one_more) ? 1U : 0U;
        request.now = is(committing_defect::settle_claims_at_its_own_time) ? now : request.now;
        return request;
    }

    [[nodiscard]] std::optional<std::vector<entry>> claim_in(workspace& on, const vouch::claim_request& request) const {
        if (is(committing_defect::settle_takes_over_expired)) {
            return with_defect(on, [&](workspace& in) { return claimer(in).claim(request); });
        }
        return claim_last_in(on, request);
    }

    [[nodiscard]] static std::vector<vouch::settlement> settle_in(workspace& on, const settles_of& settles,
                                                                  time_point now) {
        enqueuer batch(on);
        std::vector<vouch::settlement> out;
        for (const auto& s : settles) {
            out.push_back(settler(on, batch.before_batch()).settle(s, now));
        }
        return out;
    }

    /// Settles, and claims if no settle is refused. Mutants keep more of a refused one.
    [[nodiscard]] answer settle_and_claim_in(workspace& on, const settles_of& settles, time_point now,
                                             const vouch::claim_request& request) const {
        answer out;
        if (is(committing_defect::claims_before_it_settles)) {
            out.claimed = claim_in(on, request);
        }
        const auto before = copy_of(on);
        out.settlements = settle_in(on, settles, now);
        const auto is_refused = sees_refusal(out.settlements);
        if (is_refused && is(committing_defect::refused_keeps_the_claim)) {
            on.snapshot = before.snapshot;
        }
        if (is_refused && is(committing_defect::refused_keeps_earlier_writes)) {
            on.snapshot = before.snapshot;
        } else if (is_refused && !is(committing_defect::refused_keeps_the_claim)) {
            out.claimed.reset();
        } else if (!is(committing_defect::claims_before_it_settles)) {
            out.claimed = claim_in(on, request);
        }
        if (is(committing_defect::settle_wakes_nobody)) {
            on.woken_queues.clear();
        }
        return out;
    }

    /// Settles in one transaction and claims in the next one, as only a mutant does.
    [[nodiscard]] answer settle_then_claim(const settles_of& settles, time_point now,
                                           const vouch::claim_request& request) {
        answer out;
        out.settlements = use([=](workspace& on) { return settle_in(on, settles, now); });
        if (!sees_refusal(out.settlements)) {
            commit_and_begin();
            out.claimed = use([=, this](workspace& on) { return claim_in(on, request); });
        }
        return out;
    }

    /// Settles in one transaction and writes the result in the next one, as only a mutant does.
    [[nodiscard]] answer check_then_settle(const settles_of& settles, time_point now,
                                           const vouch::claim_request& request) {
        const auto later = std::make_shared<std::vector<row>>();
        auto out = use([=, this](workspace& on) {
            auto copy = copy_of(on);
            auto done = settle_and_claim_in(copy, settles, now, request);
            if (!sees_refusal(done.settlements)) {
                for (const auto& which : copy.written) {
                    if (const auto changed = copy.snapshot.find(which)) {
                        later->push_back(*changed);
                    }
                }
            }
            return done;
        });
        if (!sees_refusal(out.settlements)) {
            write_later(std::move(*later));
        }
        return out;
    }

    [[nodiscard]] answer settle_last(const settles_of& settles, time_point now, const vouch::claim_request& request) {
        if (is(committing_defect::settles_in_two_commits)) {
            return settle_then_claim(settles, now, request);
        }
        if (is(committing_defect::settles_in_two_steps)) {
            return check_then_settle(settles, now, request);
        }
        return use([=, this](workspace& on) { return settle_and_claim_in(on, settles, now, request); });
    }

    /// Commits, or rolls back if a settle was refused.
    void end_settled(const answer& done) {
        const bool keeps =
            is(committing_defect::refused_keeps_the_claim) || is(committing_defect::refused_keeps_earlier_writes);
        if (sees_refusal(done.settlements) && is(committing_defect::refused_stays_open)) {
            open_->undo();
        } else if (sees_refusal(done.settlements)) {
            end(!keeps, false);
        } else {
            end(is(committing_defect::settle_rolls_back) ||
                    (!done.claimed && is(committing_defect::left_claim_rolls_settles_back)),
                is(committing_defect::settle_stays_open));
        }
    }

    /// The answer as mutants give it.
    [[nodiscard]] answer as_answered(answer out) const {
        const bool is_refused = sees_refusal(out.settlements);
        for (auto& s : out.settlements) {
            s.group_completed = s.group_completed && !is(committing_defect::group_completed_is_lost);
            s.verdict = is(committing_defect::refused_is_applied) ? vouch::verdict::applied : s.verdict;
        }
        if (is_refused && is(committing_defect::refused_is_an_empty_list)) {
            out.claimed.emplace();
        }
        if (is_refused && is(committing_defect::refused_keeps_the_claim)) {
            out.claimed.reset();
        }
        if (is(committing_defect::settlements_are_reversed)) {
            std::reverse(out.settlements.begin(), out.settlements.end());
        }
        return out;
    }

  public:
    explicit committing_transaction(plain_transaction from) : last_operations(std::move(from)) {}

    [[nodiscard]] vouch::settled_and_claimed settle_claim_and_commit(std::span<const vouch::settle> settles,
                                                                     time_point now,
                                                                     const vouch::claim_request& request) {
        if (open_ && is(committing_defect::commits_before_it_validates)) {
            publish_early();
        }
        check_arguments([&](const auto& can) { validate(settles, can.limits); });
        check_arguments([&](const auto& can) {
            try {
                validate(request, can.limits);
            } catch (const vouch::error&) {
                if (is(committing_defect::settles_before_it_validates_the_claim)) {
                    static_cast<void>(settle(settles, now));
                }
                throw;
            }
        });
        return closed_by_errors(
            [&] {
                begin_last(is(committing_defect::settle_commits_nothing_earlier));
                auto done = settle_last({settles.begin(), settles.end()}, now, as_claimed(request, now));
                end_settled(done);
                return as_answered(std::move(done));
            },
            committing_defect::settle_hides_doubt);
    }
};

class committing_store : public plain_store {
  public:
    using transaction = committing_transaction;

    explicit committing_store(plain_store from) : plain_store(std::move(from)) {}

    [[nodiscard]] transaction begin() { return transaction(plain_store::begin()); }
};

static_assert(vouch::store<committing_store> && vouch::committing_transaction<committing_store::transaction>);

class committing_fixture : public plain_fixture {
  public:
    using plain_fixture::plain_fixture;

    [[nodiscard]] committing_store open(const location& at) { return committing_store(plain_fixture::open(at)); }
};

} // namespace mutants
