// SPDX-License-Identifier: MIT
// The conformance suite: checks any store against the contract, and names the sentence that a store breaks.
//
//   struct fixture {
//       auto open(const vouch::conformance::location& at) { return acme::store{at.directory() / "acme.db"}; }
//   };
//   int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"acme", "1.4.0"}, argc, argv); }
//
// `check` does the same for use in another test framework. `any_store`, `recording` and `faulty` are for tests of your
// own, as are `expect` and its companions, which the tests printed for a failure use.
#pragma once

#include <vouch/version.hpp>                  // first: it says what the compiler lacks
#include <vouch/conformance/any_store.hpp>    // IWYU pragma: export
#include <vouch/conformance/check.hpp>        // IWYU pragma: export
#include <vouch/conformance/clause.hpp>       // IWYU pragma: export
#include <vouch/conformance/expect.hpp>       // IWYU pragma: export
#include <vouch/conformance/faulty.hpp>       // IWYU pragma: export
#include <vouch/conformance/location.hpp>     // IWYU pragma: export
#include <vouch/conformance/options.hpp>      // IWYU pragma: export
#include <vouch/conformance/recording.hpp>    // IWYU pragma: export
#include <vouch/conformance/report.hpp>       // IWYU pragma: export
#include <vouch/conformance/report_html.hpp>  // IWYU pragma: export
#include <vouch/conformance/report_json.hpp>  // IWYU pragma: export
#include <vouch/conformance/report_junit.hpp> // IWYU pragma: export
#include <vouch/conformance/report_text.hpp>  // IWYU pragma: export
#include <vouch/conformance/run.hpp>          // IWYU pragma: export
#include <vouch/conformance/values.hpp>       // IWYU pragma: export
