// SPDX-License-Identifier: MIT
// Maps SQLite's result codes to errors. A message names the operation and describes the code. It never contains
// SQLite's message about the statement, which may quote stored data.
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
        return error_kind::conflict; // the transaction has read an old state; it must be repeated
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
    case SQLITE_ERROR: // a table or column is missing
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA: return error_kind::corrupt;
    case SQLITE_TOOBIG:
    case SQLITE_NOLFS: return error_kind::unsupported;
    case SQLITE_ABORT: // a rollback while a statement was running
    case SQLITE_MISUSE:
    case SQLITE_RANGE: return error_kind::misuse;
    default: return error_kind::io;
    }
}

// Made in advance, because copying them allocates nothing.
inline const error out_of_memory{error_kind::full, "sqlite: out of memory"};
inline const error out_of_memory_in_doubt{error_kind::full, "sqlite: commit: out of memory", {.in_doubt = true}};

/// The error for an extended result code; `out_of_memory` if there is no memory for its message.
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

/// Returns `f()`. Throws `out_of_memory` in place of `std::bad_alloc`.
template <class F>
auto translate_bad_alloc(F&& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw out_of_memory;
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
