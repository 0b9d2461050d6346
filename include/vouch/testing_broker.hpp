// SPDX-License-Identifier: MIT
// A broker in memory, for tests of services that talk through one.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/testing/broker.hpp>
