// SPDX-License-Identifier: MIT
// The SQLite store: durable, shared between processes, and part of the application's own transactions. Needs the
// system's libsqlite3, 3.35 or newer.
#pragma once

#include <vouch/sqlite/joined.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/schema.hpp>
#include <vouch/sqlite/store.hpp>
