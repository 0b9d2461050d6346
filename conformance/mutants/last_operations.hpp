// SPDX-License-Identifier: MIT
// A transaction of the plain store that commits with an enqueue or a claim, and the defects these two operations may have.
// Used by one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/validate.hpp>

#include "plain_transaction.hpp"

namespace mutants {

class last_operations : public plain_transaction {
  protected: // for `settle_claim_and_commit`
    [[nodiscard]] bool is(committing_defect d) const noexcept { return variant_.is(d); }

    void publish_early() const {
        const std::lock_guard lock(shared_->mutex);
        open_->publish_early();
    }

    /// What mutants commit before the arguments are known to be valid.
    void commit_too_early(std::span<const vouch::draft> drafts, time_point now) {
        if (open_ && is(committing_defect::commits_before_it_validates)) {
            publish_early();
        }
        if (open_ && is(committing_defect::batch_is_committed_up_to_the_invalid_draft)) {
            const auto is_valid = [&](const vouch::draft& d) {
                try {
                    validate(std::span(&d, 1), accepted_by(variant_));
                    return true;
                } catch (const vouch::error&) {
                    return false;
                }
            };
            const auto wrong = std::find_if_not(drafts.begin(), drafts.end(), is_valid);
            if (wrong != drafts.end()) {
                enqueue({drafts.begin(), wrong}, now);
                publish_early();
            }
        }
    }

    template <class Validate>
    void check_arguments(const Validate& validate_it) {
        if (!open_ && shared_ && is(committing_defect::closed_begins_again)) {
            open_ = std::make_shared<open_transaction>(shared_);
        }
        try {
            check(defect::enqueue_checks_nothing, validate_it);
        } catch (const vouch::error& e) {
            if (e.kind() == vouch::error_kind::invalid_argument && is(committing_defect::invalid_argument_closes)) {
                open_ = nullptr;
            }
            throw;
        }
    }

    template <class Work>
    auto closed_by_errors(const Work& work, committing_defect hides_doubt = committing_defect::doubt_is_hidden) {
        const auto before = open_;
        try {
            return work();
        } catch (const vouch::error& e) {
            open_ = is(committing_defect::error_leaves_open) ? before : nullptr;
            if (e.is_in_doubt() && (is(committing_defect::doubt_is_hidden) || is(hides_doubt))) {
                throw vouch::error(e.kind(), e.what());
            }
            if (is(committing_defect::half_is_in_doubt)) {
                throw vouch::error(e.kind(), e.what(), {.in_doubt = true});
            }
            throw;
        }
    }

    void begin_last(bool forgets_earlier) {
        if (forgets_earlier) {
            open_->undo();
        }
        if (is(committing_defect::earlier_writes_have_their_own_commit) || is(committing_defect::half_is_in_doubt)) {
            commit_and_begin();
        }
    }

    /// Ends the transaction and begins the next one, as only mutants do.
    void commit_and_begin() {
        commit();
        std::this_thread::yield();
        shared_->hooks->pause("between two transactions");
        open_ = std::make_shared<open_transaction>(shared_);
    }

    void end(bool rolls_back, bool stays_open) {
        if (rolls_back) {
            open_ = nullptr;
        } else if (stays_open) {
            commit_and_begin();
        } else {
            try {
                commit();
            } catch (const vouch::error& e) {
                if (e.is_in_doubt() || !is(committing_defect::failed_commit_is_swallowed)) {
                    throw;
                }
            }
        }
    }

    /// Runs `work(workspace)` with the defect that only these operations have.
    template <class Work>
    [[nodiscard]] static auto with_defect(workspace& on, const Work& work) {
        const auto usual = on.variant.defect;
        on.variant.defect = on.variant.committing->only_here;
        auto answer = work(on);
        on.variant.defect = usual;
        return answer;
    }

    /// A workspace whose changes are dropped.
    [[nodiscard]] static workspace copy_of(const workspace& on) {
        auto out = on;
        out.between_steps = [](std::string_view, bool) {};
        return out;
    }

    /// Writes the rows that were computed in an earlier transaction, whatever is stored now.
    void write_later(std::vector<row> rows) {
        commit_and_begin();
        static_cast<void>(use([rows = std::move(rows)](workspace& on) {
            for (const auto& r : rows) {
                on.put(r);
            }
            return true;
        }));
    }

    [[nodiscard]] std::vector<vouch::receipt> enqueue_last(std::span<const vouch::draft> drafts, time_point now) {
        const auto later = std::make_shared<std::vector<row>>(); // commit may run the operation once more
        const bool is_lost = is(committing_defect::enqueue_commits_only_what_is_earlier);
        const bool is_later = is(committing_defect::enqueues_in_two_steps);
        auto receipts = use([=, this, all = std::vector(drafts.begin(), drafts.end())](workspace& on) {
            auto copy = copy_of(on);
            auto& used = is_lost || is_later ? copy : on;
            auto answers = with_defect(used, [&](workspace& in) {
                enqueuer batch(in);
                std::vector<vouch::receipt> out;
                for (auto d : all) {
                    d.group = is(committing_defect::group_is_forgotten) ? "" : d.group;
                    out.push_back(batch.enqueue(d, now));
                }
                return out;
            });
            for (const auto& r : answers) {
                if (is_later && r.what == vouch::receipt::kind::inserted) {
                    later->push_back(*copy.snapshot.find(r.id));
                }
            }
            if (is(committing_defect::wakes_nobody)) {
                on.woken_queues.clear();
            }
            return answers;
        });
        if (is_later) {
            write_later(std::move(*later));
        }
        return receipts;
    }

    /// The answer as mutants give it.
    void note_as_answered(const id& drafted, std::size_t n, std::vector<vouch::receipt>& receipts) {
        using kind = vouch::receipt::kind;
        if (n >= receipts.size()) {
            receipts.push_back({kind::inserted, drafted});
        }
        if ((receipts[n].what == kind::duplicate && is(committing_defect::duplicate_is_inserted)) ||
            (receipts[n].what == kind::refused && is(committing_defect::refused_is_inserted))) {
            receipts[n] = {kind::inserted, drafted};
        }
        if (receipts[n].what == kind::inserted && is(committing_defect::is_lost_in_a_crash)) {
            const std::lock_guard lock(shared_->mutex);
            shared_->not_written.insert(drafted);
        }
    }

    /// Whether one of the chosen entries has a lapse after the claim, as far as the mutant looks.
    [[nodiscard]] bool sees_expired(const workspace& on, const std::vector<entry>& chosen, bool is_of_one) const {
        const auto is_expired = [&](const entry& e) {
            return is(committing_defect::claims_earlier_lapses)
                       ? on.snapshot.find(e.id)->entry.state == vouch::state::claimed
                       : e.lapses > 0;
        };
        if (is(committing_defect::takes_over_expired) || (is_of_one && is(committing_defect::takes_over_expired_one)) ||
            chosen.empty()) {
            return false;
        }
        if (is(committing_defect::takes_over_expired_behind_others)) {
            return is_expired(*std::min_element(chosen.begin(), chosen.end(), [&](const entry& a, const entry& b) {
                return on.snapshot.find(a.id)->gate < on.snapshot.find(b.id)->gate;
            }));
        }
        return std::any_of(chosen.begin(), chosen.end(), is_expired);
    }

    /// Claims, or leaves the claim. `later`: what is to be written in another transaction, as only a mutant does.
    [[nodiscard]] std::optional<std::vector<entry>> claim_last_in(workspace& on, const vouch::claim_request& request,
                                                                  std::vector<row>* later = nullptr) const {
        const auto claim_in = [&](workspace& in) { return claimer(in).claim(request); };
        if (is(committing_defect::left_claim_is_an_empty_list)) {
            return std::vector<entry>{};
        }
        if (on.variant.committing->leaves_claims) {
            return std::nullopt;
        }
        auto copy = copy_of(on);
        auto chosen = with_defect(copy, claim_in);
        if (sees_expired(on, chosen, !request.only.is_nil())) {
            if (is(committing_defect::nothing_has_claimed)) {
                static_cast<void>(with_defect(on, claim_in));
            }
            if (is(committing_defect::expired_is_skipped)) {
                on.variant.defect = defect::claim_skips_lapsed;
                auto rest = claim_in(on);
                on.variant.defect = defect::none;
                return rest;
            }
            return is(committing_defect::expired_is_an_empty_list) ? std::optional(std::vector<entry>{}) : std::nullopt;
        }
        if (later != nullptr) {
            for (const auto& e : chosen) {
                later->push_back(*copy.snapshot.find(e.id));
            }
            return chosen;
        }
        if (is(committing_defect::wakes_nobody)) {
            on.woken_queues.clear();
        }
        return with_defect(on, claim_in);
    }

    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const vouch::claim_request& request) {
        const auto later = std::make_shared<std::vector<row>>(); // commit may run the operation once more
        const bool is_later = is(committing_defect::claims_in_two_steps);
        auto answer =
            use([=, this](workspace& on) { return claim_last_in(on, request, is_later ? later.get() : nullptr); });
        if (is_later) {
            write_later(std::move(*later));
        }
        return answer;
    }

  public:
    explicit last_operations(plain_transaction from) : plain_transaction(std::move(from)) {}

    std::vector<vouch::receipt> enqueue_and_commit(std::span<const vouch::draft> drafts, time_point now) {
        commit_too_early(drafts, now);
        check_arguments([&](const auto& can) { validate(drafts, can); });
        return closed_by_errors([&] {
            const auto kept = is(committing_defect::batch_loses_all_but_the_first)
                                  ? std::min<std::size_t>(drafts.size(), 1)
                                  : drafts.size();
            begin_last(is(committing_defect::enqueue_commits_nothing_earlier));
            auto receipts = enqueue_last(drafts.first(kept), now);
            end(is(committing_defect::enqueue_rolls_back), is(committing_defect::enqueue_stays_open));
            for (std::size_t n = 0; n < drafts.size(); ++n) {
                note_as_answered(drafts[n].id, n, receipts);
            }
            return receipts;
        });
    }

    [[nodiscard]] std::optional<std::vector<entry>> claim_and_commit(const vouch::claim_request& request) {
        if (open_ && is(committing_defect::commits_before_it_validates)) {
            publish_early();
        }
        check_arguments([&](const auto& can) { validate(request, can.limits); });
        return closed_by_errors([&] {
            begin_last(is(committing_defect::claim_commits_nothing_earlier));
            auto claimed = claim_last(request);
            if (is(committing_defect::failed_claim_is_kept)) {
                publish_early();
            }
            const bool leaves = !claimed;
            end(leaves ? is(committing_defect::nothing_rolls_back) : is(committing_defect::claim_rolls_back),
                leaves ? is(committing_defect::nothing_stays_open) : is(committing_defect::claim_stays_open));
            return claimed;
        });
    }
};

} // namespace mutants
