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

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        if (r.limit == 0) {
            return {};
        }
        on_.set_doing("claim");
        const auto until = r.now + r.lease;
        if (r.only.is_nil()) {
            begin_look(r);
        }
        const auto found =
            r.only.is_nil()
                ? on_.ask(sql::claim, parameters(r.queue, r.now, std::uint64_t{r.limit}, until, r.worker, look_.from))
                : on_.ask(sql::claim_only, parameters(r.queue, r.now, r.only, until, r.worker));
        std::vector<entry> claimed(found.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            auto one = found[i];
            read_entry(one, claimed[i]);
            one.read(session_.transaction_number);
        }
        claimed = sorted(std::move(claimed));
        if (r.only.is_nil()) {
            end_look(r, claimed);
        }
        return claimed;
    }

    /// Adds a claim that takes nothing if one of the entries has an expired lease. Returns the place of its answer.
    [[nodiscard]] std::size_t add_unlapsed(const claim_request& r) {
        on_.set_doing("claim");
        begin_look(r);
        return on_.add(sql::claim_unlapsed,
                       parameters(r.queue, r.now, std::uint64_t{r.limit}, r.now + r.lease, r.worker, look_.from));
    }

    /// Its answer. Nothing: one of the entries has an expired lease.
    [[nodiscard]] std::optional<std::vector<entry>> read_unlapsed(const claim_request& r, const rows& found) {
        std::vector<entry> claimed;
        claimed.reserve(found.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            auto one = found[i];
            bool has_lapsed = false;
            std::optional<std::uint64_t> number;
            one.read(has_lapsed, number);
            if (has_lapsed) {
                return std::nullopt;
            }
            if (number) { // else the row says only that nothing is due
                session_.transaction_number = *number;
                read_entry(one, claimed.emplace_back());
            }
        }
        claimed = sorted(std::move(claimed));
        end_look(r, claimed);
        return claimed;
    }

  private:
    void begin_look(const claim_request& r) {
        look_.from = claim_heads::everywhere;
        if (heads_ != nullptr) {
            look_.began = claim_heads::clock::now();
            look_.from = heads_->of(r.queue, look_.began);
            if (const auto own = session_.woken_queues.find(r.queue); own != session_.woken_queues.end()) {
                look_.from = std::min(look_.from, own->second); // a transaction sees its own writes
            }
        }
    }
    void end_look(const claim_request& r, const std::vector<entry>& claimed) {
        if (heads_ != nullptr) {
            look_.now = r.now;
            look_.first = claimed.empty() ? std::nullopt : std::optional(claimed.front().due_at);
            look_.ended = claim_heads::clock::now();
            heads_->note(r.queue, look_);
        }
    }

    [[nodiscard]] static std::vector<entry> sorted(std::vector<entry> claimed) {
        std::sort(claimed.begin(), claimed.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
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
