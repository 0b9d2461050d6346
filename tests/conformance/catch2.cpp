// SPDX-License-Identifier: MIT
// The suite as Catch2 test cases for the memory store, which FORGETFUL breaks.
#include <vouch/conformance_catch2.hpp>

#include "maybe_forgetful.hpp"

namespace {

const vouch::conformance::catch2_cases<maybe_forgetful::fixture> memory_cases({"memory", "0.1.0"});

/// The code in the header's comment. Never called, so that the cases are registered once.
template <class fixture>
[[maybe_unused]] void as_in_the_comment() {
    static const vouch::conformance::catch2_cases<fixture> cases({"acme", "1.4.0"});
}

} // namespace
