// SPDX-License-Identifier: MIT
// The memory store: the whole contract in one process, with nothing on disk. Use it in unit tests, and for work that
// may be lost when the process ends.
#pragma once

#include <vouch/version.hpp>      // first: it says what the compiler lacks
#include <vouch/memory/store.hpp> // IWYU pragma: export
