// SPDX-License-Identifier: MIT
// The handlers the README shows, doing what it says they do.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

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
    router.on("mail.#", [](vouch::delivery& d) { send(d.payload()); });              // done when it returns
    router.on("quote", [](vouch::delivery&) { return std::string("42 EUR"); });      // done, with a result
    router.on("poll", [](vouch::delivery& d) -> vouch::outcome {                     // says itself what became of it
        return ready() ? vouch::outcome{vouch::succeed{}} : vouch::release{.at = d.now() + 10s};
    });
    router.on<order>("order.placed", [](const order& o, vouch::delivery& d) {        // typed, through vouch::codec<order>
        if (o.cents <= 0) throw vouch::reject("nothing_to_charge");                  // never again
        if (!charge(o)) throw vouch::failure("bank_timeout");                        // again, by policy
        d.emit({.queue = "shipping", .topic = "order.charged", .payload = o.number}); // in the commit of its success
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

} // namespace readme_handlers_test
