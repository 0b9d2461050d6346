// SPDX-License-Identifier: MIT
// The conformance kit for clients of brokers: checks any publisher and consumer against the rules of
// `relay/publisher.hpp` and `relay/consumer.hpp`, with a running broker, and names the sentence that a client breaks.
//
//   struct fixture {
//       auto publisher() { return acme::publisher{"localhost"}; }
//       auto consumer() { return acme::consumer{"localhost", "kit"}; }
//   };
//   int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"acme", "1.4.0"}, argc, argv); }
//
// `check_broker` does the same for use in another test framework. The kit needs no other library.
#pragma once

#include <vouch/version.hpp>                          // first: it says what the compiler lacks
#include <vouch/conformance/broker/any_consumer.hpp>  // IWYU pragma: export
#include <vouch/conformance/broker/any_publisher.hpp> // IWYU pragma: export
#include <vouch/conformance/broker/check.hpp>         // IWYU pragma: export
#include <vouch/conformance/broker/clause.hpp>        // IWYU pragma: export
#include <vouch/conformance/broker/hooks.hpp>         // IWYU pragma: export
#include <vouch/conformance/broker/options.hpp>       // IWYU pragma: export
#include <vouch/conformance/broker/report.hpp>        // IWYU pragma: export
#include <vouch/conformance/broker/run.hpp>           // IWYU pragma: export
