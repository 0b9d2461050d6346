// SPDX-License-Identifier: MIT
// Claim on one connection, inside a transaction: one statement, which skips rows that another transaction has locked.
// Requires valid arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/postgres/detail/claim_heads.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/entry_row.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class claimer {
  public:
    /// Without `heads` it looks everywhere.
    claimer(connection& on, session& in, claim_heads* heads) noexcept : on_(on), session_(in), heads_(heads) {}
    claimer(const claimer&) = delete;
    claimer& operator=(const claimer&) = delete;
    ~claimer() {
        if (heads_ != nullptr) {
            heads_->drop(look_); // if it has not ended
        }
    }

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        if (r.limit == 0) {
            return {};
        }
        on_.set_doing("claim");
        const auto until = r.now + r.lease;
        if (!r.only.is_nil()) {
            return read(r, on_.ask(sql::claim_only, parameters(r.queue, r.now, r.only, until, r.worker)));
        }
        begin_look(r);
        auto claimed = read(
            r, on_.ask(sql::claim, parameters(r.queue, r.now, std::uint64_t{r.limit}, until, r.worker, look_.from)));
        end_look(r, claimed);
        return claimed;
    }

    /// The places of the answers to a claim that takes nothing if one of the entries has an expired lease.
    struct unlapsed {
        std::size_t claimed = 0;
        std::optional<std::size_t> is_due{};
        [[nodiscard]] std::size_t last() const noexcept { return is_due.value_or(claimed); }
    };

    /// Adds such a claim. In the middle of a backlog it does not ask whether anything is due.
    [[nodiscard]] unlapsed add_unlapsed(const claim_request& r) {
        on_.set_doing("claim");
        begin_look(r);
        unlapsed at{.claimed = on_.add(sql::claim_unlapsed, parameters(r.queue, r.now, std::uint64_t{r.limit},
                                                                       r.now + r.lease, r.worker, look_.from))};
        if (heads_ == nullptr || !heads_->has_backlog()) {
            at.is_due = on_.add(sql::is_due, parameters(r.queue, r.now, look_.from));
        }
        return at;
    }

    /// Its answers. Nothing: an entry has an expired lease, other transactions have locked what is due, or nothing is due
    /// and it did not ask.
    [[nodiscard]] std::optional<std::vector<entry>> read_unlapsed(const claim_request& r, const unlapsed& at,
                                                                  const std::vector<rows>& answers) {
        auto claimed = read(r, answers[at.claimed]);
        bool is_due = true;
        if (at.is_due) {
            answers[*at.is_due][0].read(is_due);
        }
        if (claimed.empty() && is_due) { // says nothing about where the first entry is
            note_backlog(false);
            return std::nullopt;
        }
        end_look(r, claimed);
        return claimed;
    }

  private:
    void begin_look(const claim_request& r) {
        if (heads_ != nullptr) {
            look_ = heads_->begin(r.queue, claim_heads::clock::now());
            if (const auto own = session_.woken_queues.find(r.queue); own != session_.woken_queues.end()) {
                look_.from = std::min(look_.from, own->second); // a transaction sees its own writes
            }
        }
    }
    void end_look(const claim_request& r, const std::vector<entry>& claimed) {
        if (heads_ != nullptr) {
            const auto first = claimed.empty() ? std::nullopt : std::optional(claimed.front().due_at);
            heads_->end(look_, r.queue, {.now = r.now, .first = first}, claim_heads::clock::now());
        }
        note_backlog(claimed.size() == r.limit);
    }
    void note_backlog(bool is_full) noexcept {
        if (heads_ != nullptr) {
            heads_->note_backlog(is_full);
        }
    }

    [[nodiscard]] std::vector<entry> read(const claim_request& r, const rows& found) {
        std::vector<entry> claimed(found.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            auto one = found[i];
            one.read(session_.transaction_number);
            read_claimed(one, r, claimed[i]);
        }
        const auto is_before = [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        };
        if (!std::is_sorted(claimed.begin(), claimed.end(), is_before)) { // else a sort would move all of them
            std::sort(claimed.begin(), claimed.end(), is_before);
        }
        return claimed;
    }

    connection& on_;
    session& session_;
    claim_heads* heads_;
    claim_heads::look look_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
