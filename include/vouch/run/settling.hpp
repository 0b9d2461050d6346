// SPDX-License-Identifier: MIT
// Settles handled entries in one transaction, in a fixed order: records, emissions, audit, settles, group callbacks, the
// next claim, commit. Every verdict must be `applied`; if one is not, or anything throws, the whole is rolled back and the
// entries are settled one by one under the same rule. No handler is called again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
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
#include <vouch/observe/audit.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/handling.hpp>

namespace vouch {
inline namespace v0 {

/// What runs inside the settling transaction. What throws there leaves the entry claimed; its lease heals it.
template <class Transaction>
struct settling_hooks {
    audit_sink<Transaction> audit{};
    std::function<void(Transaction&, const std::string& group, const entry& last)> group_complete{};
};

template <class Store>
class settling {
  public:
    using transaction = typename Store::transaction;

    settling(Store& store, const outbox& from, const settling_hooks<transaction>& hooks)
        : store_(store), outbox_(from), hooks_(hooks) {}

    /// Settles every entry of the batch that has no landing yet and gives it one. If `next` is given and all goes well at
    /// once, claims in the same commit and returns what was claimed. Throws the store's faults; then the same batch may be
    /// given again.
    [[nodiscard]] std::vector<entry> operator()(std::span<handled<Store>> batch, const claim_request* next) {
        if (std::none_of(batch.begin(), batch.end(), [](const auto& h) { return h.landing || h.in_doubt; })) {
            try {
                if (auto tried = try_once(batch, next); tried.committed) {
                    return std::move(tried.claimed);
                }
            } catch (const error& e) {
                if (!e.is_in_doubt()) {
                    throw;
                }
                // What it claimed is forgotten: a rolled-back claim's ticket may equal the next claimer's.
                for (auto& h : batch) {
                    h.in_doubt = true;
                }
            } catch (...) { // NOLINT(bugprone-empty-catch): whose fault it was comes out one by one
            }
        }
        for (auto& h : batch) {
            if (!h.landing) {
                settle_alone(h);
            }
        }
        return {};
    }

  private:
    struct attempt {
        bool committed = false;
        std::vector<entry> claimed{};
    };

    /// Thrown past the transaction when a handler's own `record` failed.
    struct record_failed {
        detail::caught why;
    };

    void settle_alone(handled<Store>& h) {
        for (int left = transact_tries; !h.landing; --left) {
            try {
                if (h.in_doubt && had_landed(h)) {
                    h.landing = landing{};
                } else if (!try_once(std::span(&h, 1), nullptr).committed) {
                    h.landing = landing{.what = landing::kind::stale};
                }
            } catch (const record_failed& e) {
                handling<Store>::fail_recording(h, e.why, outbox_.now());
            } catch (const error& e) {
                h.in_doubt = h.in_doubt || e.is_in_doubt();
                if (!e.is_in_doubt() || left == 1) {
                    throw;
                }
            } catch (...) {
                h.landing = landing{.what = landing::kind::unsettled, .error = detail::caught::current().code};
            }
        }
    }

    /// Whether a settle whose commit was in doubt has taken place: the ticket is used up, or the entry already purged.
    [[nodiscard]] bool had_landed(const handled<Store>& h) const {
        const auto stored = store_.find(h.entry.id);
        return !stored || (stored->epoch == h.entry.epoch && stored->state != state::claimed);
    }

    [[nodiscard]] attempt try_once(std::span<handled<Store>> batch, const claim_request* next) {
        for (int left = transact_tries;; --left) {
            try {
                return in_transaction(batch, next);
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt in_transaction(std::span<handled<Store>> batch, const claim_request* next) {
        const auto now = outbox_.now();
        transaction tx = store_.begin();
        for (const auto& h : batch) {
            record(tx, h);
        }
        std::vector<settle> settles;
        settles.reserve(batch.size());
        for (const auto& h : batch) {
            if (!h.emissions.empty()) {
                tx.enqueue(h.emissions, now);
            }
        }
        for (const auto& h : batch) {
            audit_outcome(tx, h, now);
            settles.push_back({ticket_of(h.entry), h.outcome});
        }
        const auto settlements = tx.settle(settles, now);
        for (const auto& s : settlements) {
            if (s.verdict != verdict::applied) {
                return {}; // rolls back
            }
        }
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            if (settlements[i].group_completed) {
                complete_group(tx, batch[i].entry, now);
            }
        }
        attempt out;
        if (next != nullptr) {
            out.claimed = tx.claim(*next);
        }
        tx.commit();
        out.committed = true;
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            batch[i].landing = landing{.group_completed = settlements[i].group_completed};
        }
        return out;
    }

    /// What goes wrong in a handler's own part is the handler's failure; what goes wrong in the store is the store's.
    void record(transaction& tx, const handled<Store>& h) const {
        if (!h.record) {
            return;
        }
        try {
            h.record(tx);
        } catch (const error& e) {
            if (e.is_transient() || e.is_in_doubt()) {
                throw;
            }
            throw record_failed{detail::caught::current()};
        } catch (...) {
            throw record_failed{detail::caught::current()};
        }
    }

    void audit_outcome(transaction& tx, const handled<Store>& h, time_point now) const {
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
    const outbox& outbox_;
    const settling_hooks<transaction>& hooks_;
};

} // namespace v0
} // namespace vouch
