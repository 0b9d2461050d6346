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
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/draft_inserter.hpp>
#include <vouch/sqlite/detail/entry_writer.hpp>
#include <vouch/sqlite/detail/purger.hpp>
#include <vouch/sqlite/detail/session.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

inline constexpr capabilities supported{.groups = true, .lanes = true, .wakes = true, .durable = true, .shared = true};

class unchecked_writer {
  public:
    unchecked_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return draft_inserter(on_, session_).enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) { return entries().claim(request); }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return entries().settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return entries().extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) { return entries().nudge(wanted, now); }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return entries().cancel(wanted, error, now);
    }
    [[nodiscard]] std::size_t purge(const purge_request& request) { return purger(on_).purge(request); }

  private:
    [[nodiscard]] entry_writer entries() noexcept { return entry_writer(on_, session_); }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
