// SPDX-License-Identifier: MIT
// The one root of everything that goes wrong below a caller: faults of the store, and misuse of it. Facts of the domain
// (a stale ticket, a duplicate) are not errors; they are values (`verdict.hpp`).
//
// A message names fields, limits and sizes; it never contains a payload or another exception's text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

enum class error_kind : std::uint8_t {
    invalid_argument, ///< refused at the boundary; nothing was written and an open transaction stays open
    unsupported,      ///< the store does not declare the capability this asks for
    unrouted,         ///< an emission names no queue and no binding matches its topic
    conflict,         ///< another transaction won; this one is rolled back, repeat it from `begin`
    busy,             ///< the store could not be had in time
    full,             ///< no room: disk, quota or memory
    read_only,        ///< the store may be read but not written
    corrupt,          ///< what is stored is not what was written
    io,               ///< the medium or the connection failed
    misuse,           ///< a call the contract does not allow, such as using a closed transaction
};

[[nodiscard]] constexpr std::string_view name_of(error_kind kind) noexcept {
    switch (kind) {
    case error_kind::invalid_argument: return "invalid_argument";
    case error_kind::unsupported: return "unsupported";
    case error_kind::unrouted: return "unrouted";
    case error_kind::conflict: return "conflict";
    case error_kind::busy: return "busy";
    case error_kind::full: return "full";
    case error_kind::read_only: return "read_only";
    case error_kind::corrupt: return "corrupt";
    case error_kind::io: return "io";
    case error_kind::misuse: return "misuse";
    }
    return "?";
}

class error : public std::runtime_error {
  public:
    error(error_kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    /// An error whose commit may or may not have happened. `code` is the backend's own, 0 if it has none.
    struct details {
        bool in_doubt = false;
        int code = 0;
    };
    error(error_kind kind, const std::string& message, details more)
        : std::runtime_error(message), kind_(kind), details_(more) {}

    [[nodiscard]] error_kind kind() const noexcept { return kind_; }

    /// Whether the same call may succeed later with nobody changing the program or the data.
    [[nodiscard]] bool is_transient() const noexcept {
        return kind_ == error_kind::conflict || kind_ == error_kind::busy || kind_ == error_kind::full ||
               kind_ == error_kind::io;
    }

    /// Whether the commit that failed may have happened all the same. Claims of that transaction are to be forgotten;
    /// settles and enqueues are to be repeated whole under the same tickets and ids.
    [[nodiscard]] bool is_in_doubt() const noexcept { return details_.in_doubt; }

    /// The backend's own result code, 0 if there is none.
    [[nodiscard]] int code() const noexcept { return details_.code; }

  private:
    error_kind kind_;
    details details_{};
};

} // namespace v0
} // namespace vouch
