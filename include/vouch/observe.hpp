// SPDX-License-Identifier: MIT
// Observers ready to use: a line logger and Prometheus metrics.
#pragma once

#include <vouch/version.hpp> // first: it tells the split headers from the single one
#include <vouch/observe/logger.hpp>
#include <vouch/observe/metrics.hpp>
#include <vouch/vouch.hpp>
