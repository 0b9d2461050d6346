// SPDX-License-Identifier: MIT
// The SQLite store: durable, shared between processes, and able to write in the application's own transactions.
// Requires libsqlite3 3.35 or newer.
#pragma once

#include <vouch/version.hpp>           // first: it says what the compiler lacks
#include <vouch/contract/transact.hpp> // IWYU pragma: export
#include <vouch/sqlite/audit.hpp>      // IWYU pragma: export
#include <vouch/sqlite/history.hpp>    // IWYU pragma: export
#include <vouch/sqlite/inspect.hpp>    // IWYU pragma: export
#include <vouch/sqlite/joined.hpp>     // IWYU pragma: export
#include <vouch/sqlite/options.hpp>    // IWYU pragma: export
#include <vouch/sqlite/prefix.hpp>     // IWYU pragma: export
#include <vouch/sqlite/schema.hpp>     // IWYU pragma: export
#include <vouch/sqlite/store.hpp>      // IWYU pragma: export
