// SPDX-License-Identifier: MIT
// The library's version, written here once (CMake and Meson read it from this file), and what the library needs of a
// compiler. Every other header includes this one, so a compiler that lacks something says so in one sentence.
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

// After an #error a compiler goes on, and the sentence drowns in what follows from it. After a missing file it stops.
#if __cplusplus < 202002L
#error "vouch needs C++20: compile with -std=c++20 or later, with GCC 12 or Clang 14 or later"
#include <vouch/see_the_error_above>
#endif

#ifndef __cpp_exceptions
#error "vouch needs exceptions: compile without -fno-exceptions"
#include <vouch/see_the_error_above>
#endif

#include <version>
#ifndef __cpp_lib_jthread
#error "vouch needs std::stop_token: use libstdc++, libc++ 20 or later, or libc++ 18 with -fexperimental-library"
#include <vouch/see_the_error_above>
#endif
