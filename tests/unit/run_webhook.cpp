// SPDX-License-Identifier: MIT
// Webhook deliveries, and what a recorded saga looks like as a diagram.
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/webhook.hpp>

#include "catch.hpp"
#include "saga_support.hpp"

namespace run_webhook_test {

using namespace saga_support;
using vouch::state;
using vouch::webhook;
using kind = vouch::receipt::kind;

namespace {

/// Subscriptions, a sender that answers as it is told, and a sandbox to deliver in.
struct delivering {
    delivering() {
        webhook hook(
            [this](std::string_view id) -> std::optional<webhook::subscription> {
                const auto found = known.find(std::string(id));
                return found == known.end() ? std::nullopt : std::optional(found->second);
            },
            [this](const webhook::request& r) {
                sent.push_back(r.event + " to " + r.subscription.url + ": " + r.body + ", attempt " +
                               std::to_string(r.attempt));
                if (status == 0) {
                    throw std::runtime_error("connection refused: secret");
                }
                return status;
            },
            {.backoff = vouch::fixed{1min}, .attempts_max = 3});
        box.on(std::string(webhook::topic), hook, hook.retry());
    }
    vouch::receipt route(const std::string& event, const std::string& to) {
        return box.emit(webhook::of({.queue = "test", .event = event, .to = known.at(to), .body = "{}"}));
    }

    std::map<std::string, webhook::subscription> known{
        {"crm", {.id = "crm", .url = "http://crm"}},
        {"slow", {.id = "slow", .url = "http://slow", .attempts_max = 2, .backoff = vouch::fixed{1h}}}};
    int status = 200;
    lines sent{};
    vouch::testing::sandbox box{};
};

} // namespace

TEST_CASE("webhook: one delivery per event and subscription, however often it is routed") {
    delivering on;
    const auto first = on.route("e1", "crm");
    CHECK(first.what == kind::inserted);
    CHECK(on.route("e1", "crm") == vouch::receipt{kind::duplicate, first.id});
    CHECK(on.route("e1", "slow").what == kind::inserted);
    CHECK(on.route("e2", "crm").what == kind::inserted);
    on.box.run_until_idle();
    CHECK(on.sent.size() == 3);
    CHECK(on.sent.front() == "e1 to http://crm: {}, attempt 1");
    CHECK(on.route("e1", "crm").what == kind::duplicate);
    CHECK(webhook::of({.queue = "q", .event = "a/b", .to = {.id = "c"}}).key !=
          webhook::of({.queue = "q", .event = "a", .to = {.id = "b/c"}}).key);
    CHECK(kind_of([] { std::ignore = webhook::of({.queue = "q", .to = {.id = "c"}}); }) ==
          vouch::error_kind::invalid_argument);
}

TEST_CASE("webhook: limits and delays are the subscription's where it has them, else the default's") {
    delivering on;
    on.status = 503;
    const auto crm = on.route("e1", "crm").id;
    const auto slow = on.route("e1", "slow").id;
    on.box.run_once();
    CHECK(on.box.find(crm)->state == state::retrying);
    CHECK(on.box.find(crm)->due_at == on.box.start() + 1min);
    CHECK(on.box.find(slow)->due_at == on.box.start() + 1h);
    on.box.run_until_idle();
    CHECK(on.box.find(crm)->failures == 3);
    CHECK(on.box.find(slow)->failures == 2);
    CHECK(on.box.find(slow)->state == state::dead);
    CHECK(on.box.find(slow)->last_error == "http_503");
}

TEST_CASE("webhook: a subscription's schedule is used to its end, however long it is") {
    delivering on;
    on.known["patient"] = {.id = "patient", .backoff = vouch::schedule(std::vector<vouch::duration>(12, 1min))};
    on.status = 503;
    const auto id = on.route("e1", "patient").id;
    on.box.run_until_idle();
    CHECK(on.sent.size() == 13);
    CHECK(on.box.find(id)->state == state::dead);
    CHECK(on.box.clock()() == on.box.start() + 12min);
}

TEST_CASE("webhook: a limit that changes after routing holds from the next attempt on") {
    delivering on;
    on.status = 503;
    const auto id = on.route("e1", "slow").id; // two attempts, an hour apart
    on.box.run_once();
    SECTION("raised") {
        on.known["slow"].attempts_max = 5;
        on.box.run_until_idle();
        CHECK(on.sent.size() == 5);
    }
    SECTION("lowered: there is no further attempt") {
        on.known["slow"].attempts_max = 1;
        on.box.run_until_idle();
        CHECK(on.sent.size() == 1);
        CHECK(on.box.find(id)->last_error == "attempts_exhausted");
    }
    SECTION("taken away: the default's, with its delays") {
        on.known["slow"] = {.id = "slow"};
        on.box.run_until_idle();
        CHECK(on.sent.size() == 3);
        CHECK(on.box.clock()() == on.box.start() + 1h + 1min);
    }
    CHECK(on.box.find(id)->state == state::dead);
}

TEST_CASE("webhook: a delivery that kills its process every time ends at the subscription's limit") {
    delivering on;
    const auto id = on.route("e1", "slow").id;
    for (int crashes = 0; crashes < 3; ++crashes) { // a first lapse costs no attempt
        std::ignore = on.box.runner().claim();
        on.box.pass(5min);
    }
    on.box.run_until_idle();
    CHECK(on.sent.empty());
    CHECK(on.box.find(id)->last_error == "attempts_exhausted");
}

TEST_CASE("webhook: the final error is kept after a success, as a code and not as a message") {
    delivering on;
    on.status = 0;
    const auto id = on.route("e1", "crm").id;
    on.box.run_once();
    on.status = 204;
    on.box.run_until_idle();
    CHECK(on.box.find(id)->state == state::succeeded);
    CHECK(on.box.find(id)->last_error == "std::runtime_error");
    CHECK(on.box.find(id)->failures == 1);
}

TEST_CASE("webhook: a subscription that is gone, or an entry that is no delivery, is dead at once") {
    delivering on;
    const auto id = on.route("e1", "crm").id;
    on.known.clear();
    const auto none = on.box.emit({.topic = "webhook"}).id;
    on.box.run_once();
    CHECK(on.box.find(id)->last_error == "no_subscription");
    CHECK(on.box.find(none)->last_error == "no_webhook");
    CHECK(on.sent.empty());
}

TEST_CASE("webhook: the dead-letter hook is in the transaction in which the delivery dies, or neither is") {
    delivering on;
    on.status = 410;
    bool is_broken = false;
    on.box.runner().audit(webhook::dead_letters<vouch::memory::transaction>([&](vouch::memory::transaction& tx,
                                                                                const vouch::audit_line& line) {
        const std::array letter{vouch::draft{
            .id = derive(line.id, "letter"), .queue = "letters", .topic = line.error, .payload = to_string(line.id)}};
        tx.enqueue(letter, line.at);
        if (is_broken) {
            throw std::runtime_error("no");
        }
    }));
    const auto id = on.route("e1", "slow").id;
    on.box.run_once();
    on.box.pass(1h);
    is_broken = true;
    CHECK(on.box.run_once().held_up == 1);
    CHECK(on.box.find(id)->state == state::claimed);
    CHECK(on.box.emitted("http_410") == 0);
    is_broken = false;
    on.box.run_until_idle();
    CHECK(on.box.find(id)->state == state::dead);
    const auto letters = on.box.store().list(vouch::query::all("letters"));
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].topic == "http_410");
}

TEST_CASE("webhook: a requeue is a brand-new delivery; the dead one never changes") {
    delivering on;
    on.status = 500;
    const auto id = on.route("e1", "crm").id;
    on.box.run_until_idle();
    const auto dead = *on.box.find(id);
    on.status = 200;
    const auto fresh = vouch::transact(on.box.store(), [&](auto& tx) {
        return vouch::requeue(tx, {.dead = id, .successor = on.box.outbox().fresh_id(), .now = on.box.clock()()});
    });
    const auto born = *on.box.find(fresh.id);
    CHECK(born.attempts + born.failures == 0);
    CHECK(born.due_at == on.box.clock()());
    CHECK(born.generation == 2);
    on.box.run_until_idle();
    CHECK(on.box.find(fresh.id)->state == state::succeeded);
    CHECK(*on.box.find(id) == dead);
    CHECK(on.route("e1", "crm") == vouch::receipt{kind::duplicate, fresh.id});
}

TEST_CASE("diagram: a recorded saga as Mermaid draws it") {
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

} // namespace run_webhook_test
