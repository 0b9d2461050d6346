// SPDX-License-Identifier: MIT
// Settles handled entries in one transaction, in a fixed order: records, emissions, audit, settles, group callbacks,
// the next claim, commit. Every verdict must be `applied`; if one is not, or anything throws, the whole is rolled back
// and the entries are settled one by one under the same rule. No handler is called again.
#pragma once

#include <algorithm>
#include <cstddef>
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
#include <vouch/observe/audit.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/tracking.hpp>
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

    settling(Store& store, const outbox& from, const handling<Store>& rules, const settling_hooks<transaction>& hooks)
        : store_(store), outbox_(from), handling_(rules), hooks_(hooks) {}

    /// Settles every entry of the batch that has no landing yet and gives it one. If `next` is given and all goes well
    /// at once, claims in the same commit and returns what was claimed; else returns nothing, and nothing was claimed.
    /// Throws the store's faults; then the same batch may be given again.
    [[nodiscard]] std::optional<std::vector<entry>> operator()(std::span<handled<Store>> batch,
                                                               const claim_request* next) {
        if (std::none_of(batch.begin(), batch.end(), [](const auto& h) { return h.landing || h.in_doubt; })) {
            try {
                if (auto tried = try_once(batch, next); tried.answer == verdict::applied) {
                    return std::move(tried.claimed);
                }
            } catch (const error& e) {
                if (is_fault(e) && !e.is_in_doubt()) {
                    throw;
                }
                // What it claimed is forgotten: a rolled-back claim's ticket may equal the next claimer's.
                for (auto& h : batch) {
                    h.in_doubt = e.is_in_doubt();
                }
            } catch (...) { // NOLINT(bugprone-empty-catch): whose fault it was comes out one by one
            }
        }
        for (auto& h : batch) {
            if (!h.landing) {
                settle_alone(h);
            }
        }
        return std::nullopt;
    }

  private:
    struct attempt {
        verdict answer = verdict::applied; ///< else: of the first settle that was refused; all is rolled back
        std::vector<entry> claimed{};
    };

    /// Thrown past the transaction when a handler's own `record` failed.
    struct record_failed {
        detail::caught why;
    };
    /// Thrown past the transaction when an audit sink or a group callback failed.
    struct hook_failed {
        detail::caught why;
    };

    /// Whether it is the store that is in trouble, and not what was asked of it.
    [[nodiscard]] static bool is_fault(const error& e) noexcept {
        return e.is_in_doubt() || e.kind() == error_kind::busy || e.kind() == error_kind::full ||
               e.kind() == error_kind::io || e.kind() == error_kind::read_only || e.kind() == error_kind::corrupt;
    }

    void settle_alone(handled<Store>& h) {
        const auto landed = [&](verdict answer) {
            const bool had_landed = h.in_doubt && (answer == verdict::repeated || answer == verdict::unknown);
            if (had_landed) {
                h.landing = landing{.group_completed = h.completes_group};
            } else if (answer != verdict::applied) {
                h.landing = landing{.what = landing::kind::stale};
            }
        };
        for (int left = transact_tries; !h.landing; --left) {
            try {
                if (h.in_doubt) {
                    landed(ask(h));
                }
                if (!h.landing) {
                    landed(try_once(std::span(&h, 1), nullptr).answer);
                }
            } catch (const record_failed& e) {
                handling_.fail_recording(h, e.why);
            } catch (const hook_failed& e) {
                h.landing = landing{.what = landing::kind::unsettled, .error = e.why.code, .text = e.why.text};
            } catch (const error& e) {
                h.in_doubt = h.in_doubt || e.is_in_doubt();
                if (e.is_in_doubt() ? left == 1 : is_fault(e) || e.kind() == error_kind::conflict) {
                    throw;
                }
                if (!e.is_in_doubt()) {
                    h.landing = landing{.what = landing::kind::unsettled, .error = std::string(name_of(e.kind()))};
                }
            }
        }
    }

    /// What a settle would be answered. Tells whether one whose commit was in doubt has landed, and changes nothing.
    [[nodiscard]] verdict ask(const handled<Store>& h) {
        transaction tx = store_.begin();
        const settle again{ticket_of(h.entry), h.outcome};
        return tx.settle(std::span(&again, 1), outbox_.now()).front().verdict;
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
        for (auto& h : batch) {
            guard<record_failed>([&] {
                const detail::trail_scope scope(h.entry.trail);
                h.record ? h.record(tx) : void();
            });
        }
        for (auto& h : batch) {
            if (!h.emissions.empty()) {
                h.receipts = tx.enqueue(h.emissions, now);
            }
        }
        std::vector<settle> settles;
        settles.reserve(batch.size());
        for (auto& h : batch) {
            guard<hook_failed>([&] { audit_outcome(tx, h, now); });
            settles.push_back({ticket_of(h.entry), h.outcome});
        }
        const auto settlements = tx.settle(settles, now);
        for (const auto& s : settlements) {
            if (s.verdict != verdict::applied) {
                return {.answer = s.verdict}; // rolls back
            }
        }
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            batch[i].completes_group = settlements[i].group_completed;
            if (batch[i].completes_group) {
                guard<hook_failed>([&] { complete_group(tx, batch[i].entry, now); });
            }
        }
        attempt out;
        if (next != nullptr) {
            auto request = *next;
            request.now = now; // what this transaction made due is claimed with it
            out.claimed = tx.claim(request);
        }
        tx.commit();
        for (auto& h : batch) {
            h.landing = landing{.group_completed = h.completes_group};
        }
        return out;
    }

    /// What goes wrong in people's own parts is theirs; a conflict is the transaction's, and so is a commit in doubt.
    template <class Failed, class Part>
    static void guard(Part&& part) {
        try {
            part();
        } catch (const error& e) {
            if (e.kind() == error_kind::conflict || e.is_in_doubt()) {
                throw;
            }
            throw Failed{detail::caught::current()};
        } catch (...) {
            throw Failed{detail::caught::current()};
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
    const handling<Store>& handling_;
    const settling_hooks<transaction>& hooks_;
};

} // namespace v0
} // namespace vouch
