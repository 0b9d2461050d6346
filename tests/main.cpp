// SPDX-License-Identifier: MIT
// Catch2's main, for installations of Catch2 2 that bring headers only.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
