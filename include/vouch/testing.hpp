// SPDX-License-Identifier: MIT
// For unit tests of code that uses vouch.
#pragma once

#include <vouch/version.hpp> // first: it tells the split headers from the single one
#include <vouch/testing/recorder.hpp>
#include <vouch/testing/sandbox.hpp>
#include <vouch/testing/table.hpp>
