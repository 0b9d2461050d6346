// SPDX-License-Identifier: MIT
// The one exception type of the contract, for faults of a store and for misuse. Facts of the domain, such as a stale
// ticket or a duplicate, are not errors: they are return values (`verdict.hpp`).
//
// A message names fields, limits and sizes. It never contains a payload or the text of another exception.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

/// What went wrong.
enum class error_kind : std::uint8_t {
    invalid_argument, ///< an argument breaks a rule; nothing was written and an open transaction stays open
    unsupported,      ///< the store does not declare the capability that is needed
    unrouted,         ///< an emission names no queue and no binding matches its topic
    conflict,  ///< another transaction won and this one is rolled back; repeat it from `begin`, as `transact` does
    busy,      ///< the store did not become available in time; the caller decides whether to wait longer
    full,      ///< no room: disk, quota or memory
    read_only, ///< the store can be read but not written
    corrupt,   ///< the stored data is damaged
    io,        ///< the disk or the connection failed
    misuse,    ///< a call that the contract forbids, such as using a closed transaction
};

/// The name of the enumerator.
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

/// Thrown by stores, and by vouch itself.
class error : public std::runtime_error {
  public:
    error(error_kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    /// What is known besides the kind.
    struct details {
        bool in_doubt = false;        ///< see `is_in_doubt`
        int code = 0;                 ///< see `code`
        std::string_view text_code{}; ///< see `text_code`; longer ones are cut
    };
    error(error_kind kind, const std::string& message, const details& more)
        : std::runtime_error(message), kind_(kind), is_in_doubt_(more.in_doubt), code_(more.code) {
        more.text_code.copy(text_code_.data(), text_code_max);
    }

    [[nodiscard]] error_kind kind() const noexcept { return kind_; }

    /// Whether the same call may succeed later without a change to the program or the data.
    [[nodiscard]] bool is_transient() const noexcept {
        return kind_ == error_kind::conflict || kind_ == error_kind::busy || kind_ == error_kind::full ||
               kind_ == error_kind::io;
    }

    /// Whether the commit that threw may have taken effect. The caller must forget the claims of that transaction, and
    /// repeat its settles and enqueues as a whole, with the same tickets and ids.
    [[nodiscard]] bool is_in_doubt() const noexcept { return is_in_doubt_; }

    /// The backend's own result code; 0 if it has none.
    [[nodiscard]] int code() const noexcept { return code_; }

    /// The backend's own code if that is a text, such as an SQLSTATE; empty if it has none.
    [[nodiscard]] std::string_view text_code() const noexcept { return text_code_.data(); }
    static constexpr std::size_t text_code_max = 15; ///< in bytes

  private:
    error_kind kind_;
    bool is_in_doubt_ = false;
    int code_ = 0;
    std::array<char, text_code_max + 1> text_code_{}; // not a std::string: copying an exception must not throw
};

} // namespace v0
} // namespace vouch
