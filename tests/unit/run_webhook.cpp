// SPDX-License-Identifier: MIT
// Webhook deliveries.
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

/// Subscriptions, a sender with a settable status, and a sandbox to deliver in.
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
        box.on(hook);
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

TEST_CASE("webhook: one delivery per event and subscription, however often it is emitted") {
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

TEST_CASE("webhook: limits and delays are the subscription's, or else the default's") {
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

TEST_CASE("webhook: a subscription's schedule is used to its end, whatever its length") {
    webhook_fixture f;
    f.known["patient"] = {.id = "patient", .backoff = vouch::schedule(std::vector<vouch::duration>(12, 1min))};
    f.status = 503;
    const auto id = f.emit("e1", "patient").id;
    f.box.run_until_idle();
    CHECK(f.sent.size() == 13);
    CHECK(f.box.find(id)->state == state::dead);
    CHECK(f.box.clock()() == f.box.start() + 12min);
}

TEST_CASE("webhook: a limit that changes later applies from the next attempt on") {
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

TEST_CASE("webhook: a delivery that crashes its process every time ends at the subscription's limit") {
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

TEST_CASE("webhook: the final error is kept after a success, as a code and not as a message") {
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

TEST_CASE("webhook: a delivery to a removed subscription, or an entry that is not a delivery, is dead at once") {
    webhook_fixture f;
    const auto id = f.emit("e1", "crm").id;
    f.known.clear();
    const auto none = f.box.emit({.topic = "webhook"}).id;
    f.box.run_once();
    CHECK(f.box.find(id)->last_error == "no_subscription");
    CHECK(f.box.find(none)->last_error == "no_webhook");
    CHECK(f.sent.empty());
}

TEST_CASE("webhook: the dead-letter hook shares the transaction in which the delivery dies") {
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

TEST_CASE("webhook: a requeue is a new delivery; the dead one never changes") {
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

} // namespace run_webhook_test
