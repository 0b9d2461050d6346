// SPDX-License-Identifier: MIT
// The times, ids and bytes that printed tests are made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline id& id_in(draft& d) noexcept { return d.id; }
[[nodiscard]] inline id& id_in(ticket& t) noexcept { return t.id; }
[[nodiscard]] inline id& id_in(settle& s) noexcept { return s.ticket.id; }

} // namespace detail

/// The time at which the suite's tests start.
inline constexpr time_point start{std::chrono::hours{24 * 365 * 50}};

/// `us` microseconds after the start.
[[nodiscard]] constexpr time_point at(std::int64_t us) noexcept { return start + duration{us}; }

/// The suite's ids are numbers. 0 is the nil id.
[[nodiscard]] constexpr id id_of(std::uint64_t n) noexcept { return {.high = n == 0 ? 0U : 7U, .low = n}; }

[[nodiscard]] inline std::vector<id> ids_of(const std::vector<entry>& entries) {
    std::vector<id> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id);
    }
    return out;
}

[[nodiscard]] inline std::vector<ticket> tickets_of(const std::vector<entry>& entries) {
    std::vector<ticket> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(ticket_of(e));
    }
    return out;
}

/// Nothing: `claim_and_commit` has left the claim to another transaction.
[[nodiscard]] inline std::optional<std::vector<ticket>> tickets_of(const std::optional<std::vector<entry>>& entries) {
    return entries ? std::optional(tickets_of(*entries)) : std::nullopt;
}

/// `size` pseudo-random bytes, the same on every call.
[[nodiscard]] inline std::string pattern(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t x = 1;
    for (auto& c : out) {
        x = x * 1664525U + 1013904223U;
        c = static_cast<char>(x >> 24U);
    }
    return out;
}

/// `count` copies of a draft, ticket or settle with ascending ids.
template <class T>
[[nodiscard]] std::vector<T> numbered(std::size_t count, const T& first) {
    std::vector<T> out(count, first);
    for (std::size_t i = 0; i < count; ++i) {
        detail::id_in(out[i]).low += i;
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
