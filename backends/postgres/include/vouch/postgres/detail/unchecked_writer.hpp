// SPDX-License-Identifier: MIT
// The writing operations of `writer` on one connection, inside a transaction. Requires valid arguments.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/claim_heads.hpp>
#include <vouch/postgres/detail/claimer.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/draft_inserter.hpp>
#include <vouch/postgres/detail/entry_writer.hpp>
#include <vouch/postgres/detail/purge_positions.hpp>
#include <vouch/postgres/detail/purger.hpp>
#include <vouch/postgres/detail/session.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline constexpr capabilities supported{
    .groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true, .committing = true};

class unchecked_writer {
  public:
    unchecked_writer(connection& on, session& in, purge_positions& positions, claim_heads* heads = nullptr) noexcept
        : on_(on), session_(in), positions_(positions), heads_(heads) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return draft_inserter(on_, session_).enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return claimer(on_, session_, heads_).claim(request);
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return entry_writer(on_, session_).settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return entry_writer(on_, session_).extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return entry_writer(on_, session_).nudge(wanted, now);
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return entry_writer(on_, session_).cancel(wanted, error, now);
    }
    [[nodiscard]] std::size_t purge(const purge_request& request) {
        return purger(on_, session_, positions_).purge(request);
    }

  private:
    connection& on_;
    session& session_;
    purge_positions& positions_;
    claim_heads* heads_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
