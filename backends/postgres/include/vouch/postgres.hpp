// SPDX-License-Identifier: MIT
// The PostgreSQL store: durable, shared between processes that write at the same time, and able to write in the
// application's own transactions. Requires libpq 14 or newer and PostgreSQL 12 or newer.
#pragma once

#include <vouch/version.hpp>           // first: it says what the compiler lacks
#include <vouch/contract/transact.hpp> // IWYU pragma: export
#include <vouch/postgres/audit.hpp>    // IWYU pragma: export
#include <vouch/postgres/history.hpp>  // IWYU pragma: export
#include <vouch/postgres/inspect.hpp>  // IWYU pragma: export
#include <vouch/postgres/joined.hpp>   // IWYU pragma: export
#include <vouch/postgres/options.hpp>  // IWYU pragma: export
#include <vouch/postgres/prefix.hpp>   // IWYU pragma: export
#include <vouch/postgres/roles.hpp>    // IWYU pragma: export
#include <vouch/postgres/schema.hpp>   // IWYU pragma: export
#include <vouch/postgres/store.hpp>    // IWYU pragma: export
