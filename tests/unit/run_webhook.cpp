// SPDX-License-Identifier: MIT
// Webhook deliveries, and the diagram of a recorded saga.
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

/// Subscriptions, a sender that returns `status`, and a sandbox to deliver in.
struct webhook_fixture {
    webhook_fixture() {
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
    vouch::receipt emit(const std::string& event, const std::string& to) {
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

TEST_CASE("webhook: an event is delivered once per subscription, however often it is emitted") {
    webhook_fixture f;
    const auto first = f.emit("e1", "crm");
    CHECK(first.what == kind::inserted);
    CHECK(f.emit("e1", "crm") == vouch::receipt{kind::duplicate, first.id});
    CHECK(f.emit("e1", "slow").what == kind::inserted);
    CHECK(f.emit("e2", "crm").what == kind::inserted);
    f.box.run_until_idle();
    CHECK(f.sent.size() == 3);
    CHECK(f.sent.front() == "e1 to http://crm: {}, attempt 1");
    CHECK(f.emit("e1", "crm").what == kind::duplicate);
    CHECK(webhook::of({.queue = "q", .event = "a/b", .to = {.id = "c"}}).key !=
          webhook::of({.queue = "q", .event = "a", .to = {.id = "b/c"}}).key);
    CHECK(kind_of([] { std::ignore = webhook::of({.queue = "q", .to = {.id = "c"}}); }) ==
          vouch::error_kind::invalid_argument);
}

TEST_CASE("webhook: a subscription's limits and delays override the defaults") {
    webhook_fixture f;
    f.status = 503;
    const auto crm = f.emit("e1", "crm").id;
    const auto slow = f.emit("e1", "slow").id;
    f.box.run_once();
    CHECK(f.box.find(crm)->state == state::retrying);
    CHECK(f.box.find(crm)->due_at == f.box.start() + 1min);
    CHECK(f.box.find(slow)->due_at == f.box.start() + 1h);
    f.box.run_until_idle();
    CHECK(f.box.find(crm)->failures == 3);
    CHECK(f.box.find(slow)->failures == 2);
    CHECK(f.box.find(slow)->state == state::dead);
    CHECK(f.box.find(slow)->last_error == "http_503");
}

TEST_CASE("webhook: a subscription's schedule is used to its end, even beyond the default attempts") {
    webhook_fixture f;
    f.known["patient"] = {.id = "patient", .backoff = vouch::schedule(std::vector<vouch::duration>(12, 1min))};
    f.status = 503;
    const auto id = f.emit("e1", "patient").id;
    f.box.run_until_idle();
    CHECK(f.sent.size() == 13);
    CHECK(f.box.find(id)->state == state::dead);
    CHECK(f.box.clock()() == f.box.start() + 12min);
}

TEST_CASE("webhook: a changed limit applies from the next attempt on") {
    webhook_fixture f;
    f.status = 503;
    const auto id = f.emit("e1", "slow").id; // two attempts, an hour apart
    f.box.run_once();
    SECTION("raised") {
        f.known["slow"].attempts_max = 5;
        f.box.run_until_idle();
        CHECK(f.sent.size() == 5);
    }
    SECTION("lowered: there is no further attempt") {
        f.known["slow"].attempts_max = 1;
        f.box.run_until_idle();
        CHECK(f.sent.size() == 1);
        CHECK(f.box.find(id)->last_error == "attempts_exhausted");
    }
    SECTION("removed: the default applies, with its delays") {
        f.known["slow"] = {.id = "slow"};
        f.box.run_until_idle();
        CHECK(f.sent.size() == 3);
        CHECK(f.box.clock()() == f.box.start() + 1h + 1min);
    }
    CHECK(f.box.find(id)->state == state::dead);
}

TEST_CASE("webhook: a delivery that kills its process every time ends at the subscription's limit") {
    webhook_fixture f;
    const auto id = f.emit("e1", "slow").id;
    for (int crashes = 0; crashes < 3; ++crashes) { // a first lapse costs no attempt
        std::ignore = f.box.runner().claim();
        f.box.pass(5min);
    }
    f.box.run_until_idle();
    CHECK(f.sent.empty());
    CHECK(f.box.find(id)->last_error == "attempts_exhausted");
}

TEST_CASE("webhook: the last error is kept after a success, as a code and not as a message") {
    webhook_fixture f;
    f.status = 0;
    const auto id = f.emit("e1", "crm").id;
    f.box.run_once();
    f.status = 204;
    f.box.run_until_idle();
    CHECK(f.box.find(id)->state == state::succeeded);
    CHECK(f.box.find(id)->last_error == "std::runtime_error");
    CHECK(f.box.find(id)->failures == 1);
}

TEST_CASE("webhook: a delivery to a removed subscription and an entry that is not a delivery are dead at once") {
    webhook_fixture f;
    const auto id = f.emit("e1", "crm").id;
    f.known.clear();
    const auto none = f.box.emit({.topic = "webhook"}).id;
    f.box.run_once();
    CHECK(f.box.find(id)->last_error == "no_subscription");
    CHECK(f.box.find(none)->last_error == "no_webhook");
    CHECK(f.sent.empty());
}

TEST_CASE("webhook: the dead-letter hook and the dead delivery are committed together or not at all") {
    webhook_fixture f;
    f.status = 410;
    bool is_broken = false;
    f.box.runner().audit(webhook::dead_letters<vouch::memory::transaction>([&](vouch::memory::transaction& tx,
                                                                               const vouch::audit_line& line) {
        const std::array letter{vouch::draft{
            .id = derive(line.id, "letter"), .queue = "letters", .topic = line.error, .payload = to_string(line.id)}};
        tx.enqueue(letter, line.at);
        if (is_broken) {
            throw std::runtime_error("no");
        }
    }));
    const auto id = f.emit("e1", "slow").id;
    f.box.run_once();
    f.box.pass(1h);
    is_broken = true;
    CHECK(f.box.run_once().held_up == 1);
    CHECK(f.box.find(id)->state == state::claimed);
    CHECK(f.box.emitted("http_410") == 0);
    is_broken = false;
    f.box.run_until_idle();
    CHECK(f.box.find(id)->state == state::dead);
    const auto letters = f.box.store().list(vouch::query::all("letters"));
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].topic == "http_410");
}

TEST_CASE("webhook: a requeue is a new delivery, and the dead one does not change") {
    webhook_fixture f;
    f.status = 500;
    const auto id = f.emit("e1", "crm").id;
    f.box.run_until_idle();
    const auto dead = *f.box.find(id);
    f.status = 200;
    const auto fresh = vouch::transact(f.box.store(), [&](auto& tx) {
        return vouch::requeue(tx, {.dead = id, .successor = f.box.outbox().fresh_id(), .now = f.box.clock()()});
    });
    const auto born = *f.box.find(fresh.id);
    CHECK(born.attempts + born.failures == 0);
    CHECK(born.due_at == f.box.clock()());
    CHECK(born.generation == 2);
    f.box.run_until_idle();
    CHECK(f.box.find(fresh.id)->state == state::succeeded);
    CHECK(*f.box.find(id) == dead);
    CHECK(f.emit("e1", "crm") == vouch::receipt{kind::duplicate, fresh.id});
}

TEST_CASE("diagram: a recorded saga is a Mermaid sequence diagram") {
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
