// SPDX-License-Identifier: MIT
// SQLite's result codes, mapped once to vouch's kinds. A message says what was being done and SQLite's words for the
// code; never SQLite's own message about the statement, which may quote what is stored.
#pragma once

#include <string>
#include <string_view>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

[[nodiscard]] constexpr error_kind kind_of(int code) noexcept {
    if (code == SQLITE_BUSY_SNAPSHOT) {
        return error_kind::conflict; // what the transaction has read is no longer the newest: only a repeat helps
    }
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT: return error_kind::busy;
    case SQLITE_FULL:
    case SQLITE_NOMEM: return error_kind::full;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return error_kind::read_only;
    case SQLITE_ERROR: // a table or column of ours is not there
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: return error_kind::corrupt;
    case SQLITE_TOOBIG:
    case SQLITE_NOLFS: return error_kind::unsupported;
    case SQLITE_ABORT: // somebody rolled back under a running statement
    case SQLITE_MISUSE:
    case SQLITE_RANGE: return error_kind::misuse;
    default: return error_kind::io;
    }
}

/// Made ahead, because there may be no memory left to say so: copying it allocates nothing.
inline const error out_of_memory{error_kind::full, "sqlite: out of memory"};

/// The error for an extended result code.
[[nodiscard]] inline error error_of(int code, std::string_view doing, bool in_doubt = false) {
    std::string message = "sqlite: ";
    message += doing;
    message += ": ";
    message += sqlite3_errstr(code);
    message += " (" + std::to_string(code) + ')';
    return {kind_of(code), message, {.in_doubt = in_doubt, .code = code}};
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
