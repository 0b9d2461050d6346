// SPDX-License-Identifier: MIT
// The conformance suite: vouches for any store, or says in which sentence of the contract it fails.
//
//   struct fixture { auto open(const vouch::conformance::place& p) { return acme::store{p.directory() / "acme.db"}; }
//   }; int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"acme", "1.4.0"}, argc, argv); }
#pragma once

#include <vouch/version.hpp>                               // first: it says what the compiler lacks
#include <vouch/conformance/any_store.hpp>                 // IWYU pragma: export
#include <vouch/conformance/check.hpp>                     // IWYU pragma: export
#include <vouch/conformance/detail/replay/test_writer.hpp> // IWYU pragma: export
#include <vouch/conformance/detail/show.hpp>               // IWYU pragma: export
#include <vouch/conformance/detail/steps.hpp>              // IWYU pragma: export
#include <vouch/conformance/expect.hpp>                    // IWYU pragma: export
#include <vouch/conformance/report.hpp>                    // IWYU pragma: export
#include <vouch/conformance/run.hpp>                       // IWYU pragma: export
