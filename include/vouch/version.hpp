// SPDX-License-Identifier: MIT
// The library's version, written here once; CMake and Meson read it from this file.
#pragma once

// amalgamate: split only
#ifdef VOUCH_SINGLE_HEADER
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif
#define VOUCH_SPLIT_HEADERS
// amalgamate: end

#define VOUCH_VERSION_MAJOR 0
#define VOUCH_VERSION_MINOR 1
#define VOUCH_VERSION_PATCH 0
