// SPDX-License-Identifier: MIT
// Observers ready to use: a line logger and Prometheus metrics.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/observe/logger.hpp>
#include <vouch/observe/metrics.hpp>
#include <vouch/vouch.hpp>
