// SPDX-License-Identifier: MIT
// The memory store: the whole contract in one process, with nothing kept on disk. For unit tests, for work that may die
// with the process, and as the executable explanation of the contract.
#pragma once

#include <vouch/version.hpp>      // first: it says what the compiler lacks
#include <vouch/memory/store.hpp> // IWYU pragma: export
