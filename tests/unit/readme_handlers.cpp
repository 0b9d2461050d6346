// SPDX-License-Identifier: MIT
// The handlers, the webhook and the tracking scope that include/vouch/run/README.md shows, compiled and run.
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/webhook.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace readme_handlers_test {

using namespace support;

namespace {

struct order {
    std::string number;
    int cents = 0;
};

std::vector<std::string> sent;
bool is_ready = false;
bool bank_is_up = false;

void send(const std::string& mail) { sent.push_back(mail); }
bool ready() { return is_ready; }
bool charge(const order&) { return bank_is_up; }

} // namespace

} // namespace readme_handlers_test

template <>
struct vouch::codec<readme_handlers_test::order> {
    static readme_handlers_test::order decode(std::string_view bytes) { return {"A-1", std::stoi(std::string(bytes))}; }
};

namespace readme_handlers_test {

TEST_CASE("readme: its handlers do what it says") {
    vouch::testing::sandbox router; // takes handlers as a router does
    // clang-format off
    router.on("mail.#", [](vouch::delivery& d) { send(d.payload()); });              // succeeds when it returns
    router.on("quote", [](vouch::delivery&) { return std::string("42 EUR"); });      // succeeds with a result
    router.on("poll", [](vouch::delivery& d) -> vouch::outcome {                     // decides the outcome itself
        return ready() ? vouch::outcome{vouch::succeed{}} : vouch::release{.at = d.now() + 10s};
    });
    router.on<order>("order.placed", [](const order& o, vouch::delivery& d) {        // typed, through vouch::codec<order>
        if (o.cents <= 0) throw vouch::reject("nothing_to_charge");                  // never tried again
        if (!charge(o)) throw vouch::failure("bank_timeout");                        // tried again, by policy
        d.emit({.queue = "shipping", .topic = "order.charged", .payload = o.number}); // committed with the success
    });
    // clang-format on
    const auto run = [&](vouch::emission e) {
        const auto got = router.emit(std::move(e));
        router.run_once();
        return *router.find(got.id);
    };
    run({.topic = "mail.welcome.again", .payload = "hi"});
    CHECK(sent == std::vector<std::string>{"hi"});
    CHECK(run({.topic = "quote"}).result == "42 EUR");

    const auto polled = run({.topic = "poll"});
    CHECK(polled.state == vouch::state::pending);
    CHECK(polled.due_at == router.clock()() + 10s);
    is_ready = true;
    CHECK(run({.topic = "poll"}).state == vouch::state::succeeded);

    CHECK(run({.topic = "order.placed", .payload = "0"}).last_error == "nothing_to_charge");
    CHECK(run({.topic = "order.placed", .payload = "100"}).last_error == "bank_timeout");
    CHECK(router.emitted("order.charged") == 0);
    bank_is_up = true;
    CHECK(run({.topic = "order.placed", .payload = "100"}).state == vouch::state::succeeded);
    CHECK(router.emitted("order.charged") == 1);
}

namespace {

std::vector<bool> publish(const vouch::delivery_batch& batch) {
    std::vector<bool> confirmed;
    for (const auto& d : batch) {
        confirmed.push_back(d.payload() != "lost");
    }
    return confirmed;
}

} // namespace

TEST_CASE("readme: a batch handler has one outcome per entry") {
    vouch::testing::sandbox router;
    // clang-format off
    router.on_batch("relay.#", [](vouch::delivery_batch& batch) {
        const std::vector<bool> confirmed = publish(batch);                    // yours: one round trip for all of them
        std::vector<vouch::outcome> outcomes(batch.size());                    // all succeed, unless this is changed
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (!confirmed[i]) outcomes[i] = vouch::retry{"not_confirmed"};    // without a time: tried again, by policy
        }
        return outcomes;
    }, {.size_max = 100, .wait = 5ms});
    // clang-format on
    router.emit({.topic = "relay.a", .payload = "sent"});
    const auto lost = router.emit({.topic = "relay.b", .payload = "lost"}).id;
    const auto done = router.run_once();
    CHECK(done.succeeded == 1);
    CHECK(done.retried == 1);
    CHECK(router.find(lost)->last_error == "not_confirmed");
}

TEST_CASE("readme: a webhook is a route, and a delivery per event and subscription") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    const vouch::webhook::subscription crm{.id = "crm", .url = "/crm"};
    std::vector<std::string> posted;
    const auto find_subscription = [&](std::string_view) { return std::optional(crm); };
    const auto post = [&](const vouch::webhook::request& r) {
        posted.push_back(r.subscription.url);
        return 204;
    };

    // clang-format off
    const vouch::webhook hook(find_subscription, post); // yours: the subscription of an id; the HTTP status of a request
    router.on(hook);
    outbox.emit(vouch::webhook::of({.queue = "webhooks", .event = "order.paid/7", .to = crm, .body = "{}"}));
    // clang-format on

    outbox.emit(vouch::webhook::of({.queue = "webhooks", .event = "order.paid/7", .to = crm, .body = "{}"}));
    vouch::runner(outbox, router, {.queue = "webhooks"}).run_until_idle();
    CHECK(posted == std::vector<std::string>{"/crm"});
}

TEST_CASE("readme: the emissions of a scope share its trail") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);

    // clang-format off
    const vouch::tracking request(outbox);
    outbox.emit({.queue = "mail", .topic = "user.created", .payload = "ada"}); // this thread's emissions share the scope's trail
    // clang-format on

    const auto stored = store.list(vouch::query::all("mail"));
    REQUIRE(stored.size() == 1);
    CHECK(stored.front().trail.front() == request.trail().front());
}

} // namespace readme_handlers_test
