// SPDX-License-Identifier: MIT
// Tools for unit tests: a sandbox for handlers, a recorder of events, tables and diagrams, and the saga verifier.
#pragma once

#include <vouch/version.hpp>        // first: it says what the compiler lacks
#include <vouch/memory/history.hpp> // IWYU pragma: export
#include <vouch/testing/recorder.hpp>
#include <vouch/testing/saga/verify.hpp>
#include <vouch/testing/sandbox.hpp>
#include <vouch/testing/sequence_diagram.hpp>
#include <vouch/testing/table.hpp>
