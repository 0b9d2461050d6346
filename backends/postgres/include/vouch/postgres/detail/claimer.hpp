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
    claimer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        if (r.limit == 0) {
            return {};
        }
        on_.set_doing("claim");
        const auto until = r.now + r.lease;
        const auto found =
            r.only.is_nil() ? on_.ask(sql::claim, parameters(r.queue, r.now, std::uint64_t{r.limit}, until, r.worker))
                            : on_.ask(sql::claim_only, parameters(r.queue, r.now, r.only, until, r.worker));
        std::vector<entry> claimed(found.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            auto one = found[i];
            read_entry(one, claimed[i]);
            one.read(session_.transaction_number);
        }
        return sorted(std::move(claimed));
    }

    /// Adds a claim that takes nothing if one of the entries has an expired lease. Returns the place of its answer.
    [[nodiscard]] std::size_t add_unlapsed(const claim_request& r) {
        on_.set_doing("claim");
        return on_.add(sql::claim_unlapsed,
                       parameters(r.queue, r.now, std::uint64_t{r.limit}, r.now + r.lease, r.worker));
    }

    /// Its answer. Nothing: one of the entries has an expired lease.
    [[nodiscard]] std::optional<std::vector<entry>> read_unlapsed(const rows& found) {
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
        return sorted(std::move(claimed));
    }

  private:
    [[nodiscard]] static std::vector<entry> sorted(std::vector<entry> claimed) {
        std::sort(claimed.begin(), claimed.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return claimed;
    }

    connection& on_;
    session& session_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
