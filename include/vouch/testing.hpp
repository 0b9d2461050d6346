// SPDX-License-Identifier: MIT
// For unit tests of code that uses vouch.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/testing/recorder.hpp>
#include <vouch/testing/saga/verify.hpp>
#include <vouch/testing/sandbox.hpp>
#include <vouch/testing/sequence_diagram.hpp>
#include <vouch/testing/table.hpp>
