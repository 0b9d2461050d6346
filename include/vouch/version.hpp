// SPDX-License-Identifier: MIT
// The library's version, written here once; CMake and Meson read it from this file.
#pragma once

#define VOUCH_VERSION_MAJOR 0
#define VOUCH_VERSION_MINOR 1
#define VOUCH_VERSION_PATCH 0
