// SPDX-License-Identifier: MIT
// Settles a batch of completions in one transaction, in a fixed order: records, emissions, history and
// audit, settles, group callbacks, the next claim, commit. Every verdict must be `applied`. If one is not, or anything throws, the transaction
// is rolled back, the entry at fault is set apart, and the others are settled together again. No handler is called
// again. A `record` is called again exactly if its transaction was rolled back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/run/audit.hpp>
#include <vouch/run/detail/caught_exception.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/dispatcher.hpp>
#include <vouch/run/detail/isolation.hpp>
#include <vouch/run/history.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

/// What runs inside the settling transaction. If a hook throws, the outcome is kept and settled again later.
template <class Transaction>
struct settle_hooks {
    audit_sink<Transaction> audit{};
    history_sink<Transaction> history{};
    std::function<void(Transaction&, const std::string& group, const entry& last)> group_complete{};
};

/// The claim that is committed together with a settle.
struct next_claim {
    claim_request request{};
    claim_plan plan{};
};

template <class Store>
class batch_settler {
  public:
    using transaction = typename Store::transaction;

    /// All arguments must outlive the settler. With `calls_handlers` a failed `record` is converted at once, which may
    /// call the handler's `ended`. Otherwise the completion keeps its `record_failure`, and the caller has another
    /// thread convert it.
    batch_settler(Store& store, const clock& now, const dispatcher<Store>& dispatch,
                  const settle_hooks<transaction>& hooks, bool calls_handlers = true)
        : store_(store), clock_(now), dispatcher_(dispatch), hooks_(hooks), calls_handlers_(calls_handlers) {}

    /// Settles every completion of the batch that has no result yet. Afterwards each has a result, is `held_up` by a
    /// hook, or has a `record_failure`. If `next` is given and every completion gets a result, claims in the same commit
    /// and returns the claims; otherwise returns nothing and claims nothing. Throws the store's faults; then the same
    /// batch may be settled again.
    [[nodiscard]] std::optional<claims> operator()(std::span<completion<Store>> batch, const next_claim* next) {
        waiting unsettled;
        for (auto& h : batch) {
            if (!h.result) {
                h.held_up.clear();
                h.is_untried = false;
                h.record_failure.reset();
                unsettled.push_back(&h);
            }
        }
        return settle_together(std::move(unsettled), next);
    }

  private:
    using waiting = std::vector<completion<Store>*>;

    /// After this many entries at fault, the others are no longer tried together.
    static constexpr int culprits_max = 3;

    /// What runs for one entry. A fault of the store inside a `record` counts as a hook's: it costs no attempt.
    enum class part : std::uint8_t { record, emission, hook };

    /// Thrown through the transaction: a part of one entry has failed.
    struct culprit {
        std::size_t index;
        part what;
        caught_exception why;
    };

    struct attempt {
        std::vector<std::size_t> refused{}; ///< entries whose verdict was not `applied`; if any, all is rolled back
        std::optional<claims> claimed{};
    };

    /// Whether the store itself has failed, rather than refused the request.
    [[nodiscard]] static bool is_fault(const error& e) noexcept {
        return e.is_in_doubt() || e.kind() == error_kind::busy || e.kind() == error_kind::full ||
               e.kind() == error_kind::io || e.kind() == error_kind::read_only || e.kind() == error_kind::corrupt ||
               e.kind() == error_kind::conflict;
    }

    std::optional<claims> settle_together(waiting unsettled, const next_claim* next) {
        int culprits = 0;
        for (int doubts = 0;;) {
            resolve_doubts(unsettled);
            if (unsettled.empty()) {
                return std::nullopt;
            }
            try {
                auto tried = try_once(unsettled, next);
                if (tried.refused.empty()) {
                    return std::move(tried.claimed);
                }
                mark_stale(unsettled, tried.refused);
            } catch (const culprit& c) {
                if (!set_apart(unsettled, c)) {
                    next = nullptr;
                }
                if (++culprits == culprits_max) {
                    return settle_rest(std::move(unsettled));
                }
            } catch (const error& e) {
                if (e.is_in_doubt() && ++doubts < transact_tries) {
                    // Its claims are dropped: the ticket of a rolled-back claim may equal that of the next claim.
                    std::for_each(unsettled.begin(), unsettled.end(), [](auto* h) { h->in_doubt = true; });
                } else if (e.kind() == error_kind::conflict && !e.is_in_doubt()) {
                    return settle_conflicting(std::move(unsettled));
                } else if (is_fault(e)) {
                    std::for_each(unsettled.begin(), unsettled.end(), [&](auto* h) { h->in_doubt |= e.is_in_doubt(); });
                    throw;
                } else if (unsettled.size() > 1) {
                    return settle_rest(std::move(unsettled));
                } else {
                    refuse(*unsettled.front(), e);
                    unsettled.clear();
                }
            }
        }
    }

    /// Too many entries are at fault to settle them together, so they are settled one by one. Hooks that keep failing
    /// are likely to fail for the rest too: the rest is then held up untried, and tried first the next time.
    std::optional<claims> settle_rest(waiting unsettled) {
        int held_up = 0; // in a row
        for (auto* const h : unsettled) {
            if (held_up == culprits_max) {
                h->held_up = "hook_failed";
                h->is_untried = true;
                continue;
            }
            std::ignore = settle_together({h}, nullptr);
            held_up = h->held_up.empty() ? 0 : held_up + 1;
        }
        return std::nullopt;
    }

    /// A part of one entry may cause a conflict that never ends. Only that entry is then held up.
    std::optional<claims> settle_conflicting(waiting unsettled) {
        if (unsettled.size() > 1) {
            return settle_rest(std::move(unsettled));
        }
        unsettled.front()->held_up = name_of(error_kind::conflict);
        return std::nullopt;
    }

    /// Returns whether the entry can still be settled with the others.
    bool set_apart(waiting& unsettled, const culprit& c) {
        auto& h = *unsettled[c.index];
        if (c.what == part::record && calls_handlers_) {
            dispatcher_.fail_recording(h, c.why);
            return true;
        }
        if (c.what == part::record) {
            h.record_failure = c.why;
        } else if (c.what == part::hook) {
            h.held_up = c.why.code;
            h.held_up_text = c.why.text;
        } else {
            h.result = settle_result{.what = settle_result::kind::unsettled, .error = c.why.code};
        }
        unsettled.erase(unsettled.begin() + static_cast<std::ptrdiff_t>(c.index));
        return false;
    }

    /// The store refuses the request. A `record` that continues after an error of the store can cause that.
    void refuse(completion<Store>& h, const error& e) {
        const caught_exception why{std::string(name_of(e.kind()))};
        if (h.record) {
            waiting alone{&h};
            std::ignore = set_apart(alone, {0, part::record, why});
            if (!alone.empty()) {
                std::ignore = settle_together(std::move(alone), nullptr);
            }
        } else {
            h.result = settle_result{.what = settle_result::kind::unsettled, .error = why.code};
        }
    }

    static void mark_stale(waiting& unsettled, const std::vector<std::size_t>& refused) {
        for (const auto i : refused) {
            unsettled[i]->result = settle_result{.what = settle_result::kind::stale};
        }
        std::erase_if(unsettled, [](const auto* h) { return h->result.has_value(); });
    }

    /// Finds out which completions of a commit in doubt were applied: settles them again in a transaction that is rolled
    /// back, and reads the verdicts. Changes nothing.
    void resolve_doubts(waiting& unsettled) {
        waiting doubted;
        std::vector<settle> again;
        for (auto* const h : unsettled) {
            if (h->in_doubt) {
                doubted.push_back(h);
                again.push_back({ticket_of(h->entry), h->outcome});
            }
        }
        if (doubted.empty()) {
            return;
        }
        const auto answers = ask(again);
        for (std::size_t i = 0; i < doubted.size(); ++i) {
            auto& h = *doubted[i];
            if (answers[i].verdict == verdict::repeated || answers[i].verdict == verdict::unknown) {
                h.result = settle_result{.group_completed = h.completes_group};
            } else if (answers[i].verdict == verdict::stale) {
                h.result = settle_result{.what = settle_result::kind::stale};
            }
            h.in_doubt = h.in_doubt && h.result.has_value(); // otherwise it was not applied, and is settled again
        }
        std::erase_if(unsettled, [](const auto* h) { return h->result.has_value(); });
    }

    [[nodiscard]] std::vector<settlement> ask(const std::vector<settle>& again) {
        for (int left = transact_tries;; --left) {
            try {
                transaction tx = store_.begin();
                return tx.settle(again, clock_());
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt try_once(const waiting& unsettled, const next_claim* next) {
        for (int left = transact_tries;; --left) {
            try {
                return in_transaction(unsettled, next);
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt in_transaction(const waiting& unsettled, const next_claim* next) {
        const auto now = clock_();
        transaction tx = store_.begin();
        for_each(unsettled, part::record, [&](auto& h) {
            const trail_scope scope(h.entry.trail);
            h.record ? h.record(tx) : void();
        });
        for_each(unsettled, part::emission, [&](auto& h) {
            if (!h.emissions.empty()) {
                h.receipts = tx.enqueue(h.emissions, now);
            }
        });
        if (hooks_.history) {
            for_each(unsettled, part::hook,
                     [&](auto& h) { hooks_.history(tx, attempt_line_of(h.entry, h.outcome, now)); });
        }
        for_each(unsettled, part::hook, [&](auto& h) { audit_outcome(tx, h, now); });
        std::vector<settle> settles(unsettled.size());
        for (std::size_t i = 0; i < settles.size(); ++i) {
            settles[i] = {ticket_of(unsettled[i]->entry), unsettled[i]->outcome};
        }
        attempt out;
        if (settle_at_once(tx, unsettled, settles, next, now, out)) {
            return out;
        }
        note_settlements(unsettled, tx.settle(settles, now), out);
        if (!out.refused.empty()) {
            return out; // rolls back
        }
        for_each(unsettled, part::hook,
                 [&](auto& h) { h.completes_group ? complete_group(tx, h.entry, now) : void(); });
        out.claimed = claim_and_commit(tx, next, now);
        note_committed(unsettled);
        return out;
    }

    static void note_settlements(const waiting& unsettled, const std::vector<settlement>& settlements, attempt& out) {
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            unsettled[i]->completes_group = settlements[i].group_completed;
            if (settlements[i].verdict != verdict::applied) {
                out.refused.push_back(i);
            }
        }
    }

    static void note_committed(const waiting& unsettled) {
        for (auto* const h : unsettled) {
            h->result = settle_result{.group_completed = h->completes_group};
        }
    }

    [[nodiscard]] static std::optional<claims> as_claims(std::optional<std::vector<entry>> claimed) {
        return claimed ? std::optional(claims{.entries = std::move(*claimed)}) : std::nullopt;
    }

    /// Settles, claims and commits in one operation, if the store has it and nothing happens between them: whether a group
    /// is complete must be known before the commit.
    [[nodiscard]] static bool settle_at_once(transaction& tx, const waiting& unsettled,
                                             const std::vector<settle>& settles, const next_claim* next, time_point now,
                                             attempt& out) {
        if constexpr (committing_transaction<transaction>) {
            if (next == nullptr || std::any_of(unsettled.begin(), unsettled.end(),
                                               [](const auto* h) { return !h->entry.group.empty(); })) {
                return false;
            }
            auto done = tx.settle_claim_and_commit(settles, now, request_at(*next, now));
            note_settlements(unsettled, done.settlements, out);
            if (out.refused.empty()) {
                out.claimed = as_claims(std::move(done.claimed));
                note_committed(unsettled);
            }
            return true;
        }
        return false;
    }

    /// At the time of the settle, so that what the transaction makes due can be claimed by it.
    [[nodiscard]] static claim_request request_at(const next_claim& next, time_point now) {
        auto request = next.request;
        request.now = now;
        return request;
    }

    /// Nothing if nothing was to be claimed, or if the store leaves the claim to another transaction.
    [[nodiscard]] static std::optional<claims> claim_and_commit(transaction& tx, const next_claim* next,
                                                                time_point now) {
        if (next == nullptr) {
            tx.commit();
            return std::nullopt;
        }
        const auto request = request_at(*next, now);
        if constexpr (committing_transaction<transaction>) {
            return as_claims(tx.claim_and_commit(request));
        } else {
            auto claimed = claim_apart(tx, request, next->plan);
            tx.commit();
            return claimed;
        }
    }

    /// A part that throws identifies the entry at fault, so the others can be settled without it. A failed store shows
    /// itself when they are.
    template <class Part>
    static void for_each(const waiting& unsettled, part what, Part&& run) {
        for (std::size_t i = 0; i < unsettled.size(); ++i) {
            try {
                run(*unsettled[i]);
            } catch (const error& e) {
                if (e.kind() == error_kind::conflict || (what == part::emission && is_fault(e))) {
                    throw;
                }
                throw culprit{i, is_fault(e) ? part::hook : what, caught_exception::current()};
            } catch (...) {
                throw culprit{i, what, caught_exception::current()};
            }
        }
    }

    void audit_outcome(transaction& tx, const completion<Store>& h, time_point now) const {
        if (!hooks_.audit) {
            return;
        }
        if (std::holds_alternative<succeed>(h.outcome)) {
            hooks_.audit(tx, line(audit_line::kind::succeeded, h.entry, now));
        } else if (const auto* const dead = std::get_if<bury>(&h.outcome)) {
            auto l = line(audit_line::kind::dead, h.entry, now);
            l.error = dead->error;
            hooks_.audit(tx, l);
        }
    }

    void complete_group(transaction& tx, const entry& last, time_point now) const {
        if (hooks_.audit) {
            hooks_.audit(tx, line(audit_line::kind::group_completed, last, now));
        }
        if (hooks_.group_complete) {
            hooks_.group_complete(tx, last.group, last);
        }
    }

    [[nodiscard]] static audit_line line(audit_line::kind what, const entry& e, time_point now) {
        return {.what = what,
                .at = now,
                .id = e.id,
                .queue = e.queue,
                .topic = e.topic,
                .group = e.group,
                .worker = e.worker,
                .attempts = e.attempts};
    }

    Store& store_;
    const clock& clock_;
    const dispatcher<Store>& dispatcher_;
    const settle_hooks<transaction>& hooks_;
    bool calls_handlers_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
