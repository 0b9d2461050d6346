// SPDX-License-Identifier: MIT
// Maps SQLSTATEs to errors, in one table. A message names the operation and the SQLSTATE. It never contains the
// server's message, which may quote stored data.
#pragma once

#include <array>
#include <new>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// What a code, or every code of a class, means. The explanation completes the sentence of the message.
struct sqlstate_meaning {
    std::string_view code; ///< five characters, or the two of a class
    error_kind kind;
    std::string_view text;
};

inline constexpr std::array sqlstates{
    sqlstate_meaning{"40001", error_kind::conflict, "another transaction has changed the same rows"},
    sqlstate_meaning{"40P01", error_kind::conflict, "transactions waited for each other"},
    sqlstate_meaning{"23505", error_kind::conflict, "another transaction has stored the same id or key"},
    sqlstate_meaning{"40", error_kind::conflict, "the server has rolled back the transaction"},
    sqlstate_meaning{"55P03", error_kind::busy, "a lock was not granted in time"},
    sqlstate_meaning{"57014", error_kind::busy, "the statement was cancelled or ran out of time"},
    sqlstate_meaning{"57P03", error_kind::busy, "the server is starting up or shutting down"},
    sqlstate_meaning{"53300", error_kind::busy, "the server has too many connections"},
    sqlstate_meaning{"53", error_kind::full, "the server is out of disk, memory or another resource"},
    sqlstate_meaning{"25006", error_kind::read_only, "the server, or the transaction, is read-only"},
    sqlstate_meaning{"42501", error_kind::read_only, "the role lacks a permission"},
    sqlstate_meaning{"28P01", error_kind::invalid_argument, "the password is wrong"},
    sqlstate_meaning{"28", error_kind::invalid_argument, "the server does not let the role in"},
    sqlstate_meaning{"3D000", error_kind::invalid_argument, "the database does not exist"},
    sqlstate_meaning{"0A", error_kind::unsupported, "the server does not support a feature that is needed"},
    sqlstate_meaning{"54", error_kind::unsupported, "a limit of the server is exceeded"},
    sqlstate_meaning{"25", error_kind::misuse, "the transaction has failed or was ended"},
    sqlstate_meaning{"2D", error_kind::misuse, "the transaction was ended"},
    sqlstate_meaning{"3B", error_kind::misuse, "a savepoint was ended"},
    sqlstate_meaning{"25P03", error_kind::io, "the server has ended an idle transaction and its connection"},
    sqlstate_meaning{"42", error_kind::corrupt, "a table, column or index is missing or different"},
    sqlstate_meaning{"3F", error_kind::corrupt, "the schema does not exist"},
    sqlstate_meaning{"22", error_kind::corrupt, "a stored value is out of range"},
    sqlstate_meaning{"23", error_kind::corrupt, "a constraint of the tables is violated"},
    sqlstate_meaning{"XX001", error_kind::corrupt, "the server reports damaged data"},
    sqlstate_meaning{"XX002", error_kind::corrupt, "the server reports a damaged index"},
    sqlstate_meaning{"08", error_kind::io, "the connection failed"},
    sqlstate_meaning{"57", error_kind::io, "the server has ended the connection"},
    sqlstate_meaning{"58", error_kind::io, "the server reports a system error"},
};

/// The meaning of a SQLSTATE: that of the code, else that of its class, else `io`.
[[nodiscard]] constexpr sqlstate_meaning meaning_of(std::string_view code) noexcept {
    sqlstate_meaning found{code, error_kind::io,
                           code.empty() ? "the connection was lost" : "the server reports an error"};
    for (const auto& one : sqlstates) {
        if (one.code == code) {
            return one;
        }
        if (one.code == code.substr(0, 2)) {
            found = one;
        }
    }
    return found;
}

/// The error for a SQLSTATE; an empty one means that the connection was lost.
[[nodiscard]] inline error error_of(std::string_view code, std::string_view doing, bool in_doubt = false) {
    const auto meaning = meaning_of(code);
    std::string message = "postgres: ";
    message.append(doing).append(": ").append(meaning.text);
    if (!code.empty()) {
        message.append(" (SQLSTATE ").append(code).append(1, ')');
    }
    return {meaning.kind, message, {.in_doubt = in_doubt, .text_code = code}};
}

// Made before they are needed, because an error that is in doubt must not turn into one that is not for want of memory.
inline const error out_of_memory{error_kind::full, "postgres: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "postgres: commit: out of memory", {.in_doubt = true}};
inline const error commit_in_doubt{error_kind::io,
                                   "postgres: commit: the connection was lost, or the wait for a standby was "
                                   "cancelled, and whether the transaction is "
                                   "stored for good cannot be found out",
                                   {.in_doubt = true}};

/// Returns `f()`. Throws `out_of_memory` in place of `std::bad_alloc`.
template <class F>
auto translate_bad_alloc(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
