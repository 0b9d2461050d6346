// SPDX-License-Identifier: MIT
// SQLite's result codes, mapped once to vouch's kinds. A message says what was being done and SQLite's words for the
// code; never SQLite's own message about the statement, which may quote what is stored.
#pragma once

#include <new>
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

// Made ahead, because there may be no memory left to say so: copying them allocates nothing.
inline const error out_of_memory{error_kind::full, "sqlite: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "sqlite: commit: out of memory", {.in_doubt = true}};

/// The error for an extended result code; if there is no memory for it, that one.
[[nodiscard]] inline error error_of(int code, std::string_view doing, bool in_doubt = false) noexcept {
    try {
        std::string message = "sqlite: ";
        message += doing;
        message += ": ";
        message += sqlite3_errstr(code);
        message += " (" + std::to_string(code) + ')';
        return {kind_of(code), message, {.in_doubt = in_doubt, .code = code}};
    } catch (const std::bad_alloc&) {
        return in_doubt ? out_of_memory_in_doubt : out_of_memory;
    }
}

/// What `f` returns. That there is no memory for it is an error like the others.
template <class F>
auto in_memory(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
