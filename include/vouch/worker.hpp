// SPDX-License-Identifier: MIT
// Running handlers for real: the worker with its threads, and stopping by signals.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/run/stop_signals.hpp>
#include <vouch/run/worker.hpp>
#include <vouch/vouch.hpp>
