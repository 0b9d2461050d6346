// SPDX-License-Identifier: MIT
// Recorded sagas as Mermaid sequence diagrams.
#include <string>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_support.hpp"

namespace testing_diagram_test {

using namespace saga_support;

TEST_CASE("diagram: a recorded saga becomes a Mermaid diagram") {
    stage on;
    const auto d = define({.compensated = "order.failed", .queue = "mail"})
                       .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund"})
                       .step("stock", on.rejects("stock", "insufficient_stock"))
                       .build();
    on.play(d);
    int calls = 0;
    on.on("payment", "charge", [&](vouch::delivery&) {
        if (++calls == 1) {
            throw vouch::failure("busy");
        }
    });
    on.on("payment", "refund", [](vouch::delivery&) {});
    on.on("mail", "order.failed", [](vouch::delivery&) {});
    on.begin(d);
    on.run_all();
    CHECK(vouch::testing::sequence_diagram(on.recorder.events()) == R"(sequenceDiagram
    participant q0 as sagas
    participant q1 as payment
    participant q2 as mail
    Note over q0: order
    q0->>q1: charge
    q1->>q1: charge again (busy)
    q1-->>q0: charge succeeded
    q0->>q1: refund
    q1-->>q0: refund succeeded
    Note over q0: order succeeded (compensated)
    q0->>q2: order.failed
    q2-->>q0: order.failed succeeded
)");
}

TEST_CASE("diagram: a skipped step is shown as skipped") {
    stage on;
    const auto d = define()
                       .command("payment", {.queue = "payment", .topic = "charge"})
                       .step("gift wrap", on.does("wrap"))
                       .when([](const std::string& payload) { return payload == "gift"; })
                       .build();
    on.play(d);
    on.on("payment", "charge", [](vouch::delivery&) {});
    on.begin(d);
    on.run_all();
    CHECK(vouch::testing::sequence_diagram(on.recorder.events()) == R"(sequenceDiagram
    participant q0 as sagas
    participant q1 as payment
    Note over q0: order
    q0->>q1: charge
    q1-->>q0: charge succeeded
    Note over q0: order (skipped gift wrap)
    Note over q0: order succeeded (completed)
)");
}

} // namespace testing_diagram_test
