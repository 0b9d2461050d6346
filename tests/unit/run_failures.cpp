// SPDX-License-Identifier: MIT
// Every failure of a handler, and the outcome it becomes.
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace shop {
struct card_declined : std::runtime_error {
    using std::runtime_error::runtime_error;
};
} // namespace shop

namespace run_failures_test {

using namespace support;
using vouch::delivery;
using vouch::state;
using vouch::testing::sandbox;

namespace {

template <class Handler>
vouch::entry entry_after(Handler handler, vouch::emission e = {.topic = "t"}, vouch::retry_policy retry = {},
                         vouch::duration claimed_after = {}) {
    sandbox box({.retry = std::move(retry)});
    box.on("t", handler);
    const auto got = box.emit(std::move(e));
    box.pass(claimed_after);
    box.run_once();
    return *box.find(got.id);
}

/// Counts its calls and records the endings. `work` always fails, `ended` only if `recovers` is false.
struct failing_handler {
    int* worked;
    std::vector<vouch::ending>* endings;
    bool recovers = true;

    void work(delivery&) {
        ++*worked;
        throw vouch::failure("away");
    }
    vouch::outcome ended(delivery&, vouch::ending why) {
        endings->push_back(why);
        if (!recovers) {
            throw vouch::failure("stuck");
        }
        return vouch::advance{.progress = "turned"};
    }
};

} // namespace

TEST_CASE("failure: any exception is retried by policy, and only its class name is stored") {
    const auto e = entry_after([](delivery&) { throw shop::card_declined("card 4111 1111 of Ada"); });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "shop::card_declined");
    CHECK(e.failures == 1);
    CHECK(e.due_at == e.updated_at + 30s);
}

TEST_CASE("failure: a code that the handler chose is stored instead") {
    const auto e = entry_after([](delivery&) { throw vouch::failure("smtp_timeout"); });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "smtp_timeout");
}

TEST_CASE("failure: a thrown value that is not an exception is retried") {
    const auto e = entry_after([](delivery&) { throw 42; });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "unknown_exception");
}

TEST_CASE("reject: the entry is dead at once, with the handler's code") {
    CHECK(entry_after([](delivery&) { throw vouch::reject(); }).last_error == "rejected");
    const auto e = entry_after([](delivery&) { throw vouch::reject("no_such_user"); });
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "no_such_user");
    CHECK(e.attempts == 1);
    CHECK(e.failures == 1);
}

TEST_CASE("failure: error codes are cut to the limit, not inside a character, and are valid names") {
    const std::string two_bytes = "\xc3\xa9";
    CHECK(vouch::error_code(std::string(100, 'a')) == std::string(100, 'a'));
    CHECK(vouch::error_code(std::string(101, 'a')) == std::string(100, 'a'));
    CHECK(vouch::error_code(std::string(99, 'a') + two_bytes) == std::string(99, 'a'));
    CHECK(vouch::error_code(std::string(98, 'a') + two_bytes + "b") == std::string(98, 'a') + two_bytes);
    CHECK(vouch::error_code("a\nb\x7f") == "a?b?");
    CHECK(vouch::error_code("a\xc2\x9b"
                            "b") == "a?b");
    CHECK(vouch::error_code("\xff\xc3") == "??");
    const auto e = entry_after([](delivery&) { throw vouch::reject(std::string(500, 'x') + '\n'); });
    CHECK(e.last_error == std::string(100, 'x'));
    const auto bytes = entry_after([](delivery&) { throw vouch::reject("code \xfe"); });
    CHECK(bytes.last_error == "code ?");
    const auto r = entry_after([](delivery& d) { return vouch::retry{std::string(500, 'y'), d.now()}; });
    CHECK(r.last_error == std::string(100, 'y'));
}

TEST_CASE("limits: an entry whose result is too large is dead with result_too_large") {
    const auto most = vouch::limits{}.result_max;
    CHECK(entry_after([&](delivery&) { return std::string(most, 'r'); }).state == state::succeeded);
    const auto e = entry_after([&](delivery&) { return std::string(most + 1, 'r'); });
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "result_too_large");
    const auto buried = entry_after([&](delivery&) { return vouch::bury{"why", std::string(most + 1, 'r')}; });
    CHECK(buried.last_error == "result_too_large");
    const auto advanced =
        entry_after([&](delivery&) { return vouch::advance{.progress = std::string(most + 1, 'p')}; });
    CHECK(advanced.last_error == "progress_too_large");
}

TEST_CASE("emissions: an entry with an invalid emission is dead with invalid_emission, and nothing is enqueued") {
    sandbox box;
    box.on("t", [](delivery& d) {
        d.emit({.topic = "fine"});
        d.emit({.queue = "test", .topic = ""});
    });
    const auto got = box.emit({.topic = "t"});
    box.run_once();
    CHECK(box.find(got.id)->last_error == "invalid_emission");
    CHECK(box.find(got.id)->state == state::dead);
    CHECK(box.emitted("fine") == 0);
    CHECK(box.store().counts("test").total() == 1);
}

TEST_CASE("emissions: an entry with an emission without queue or binding is dead with unrouted") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("t", [](delivery& d) { d.emit({.topic = "not.bound"}); });
    vouch::transact(store, [&](auto& tx) { outbox.emit(tx, {.queue = "q", .topic = "t"}); });
    const auto done = vouch::runner(outbox, router, {.queue = "q"}).run_once();
    REQUIRE(done.trace.size() == 1);
    CHECK(done.trace.front().error == "unrouted");
    CHECK(done.dead == 1);
}

TEST_CASE("emissions: are stored only with succeed and advance") {
    sandbox box;
    const auto emits_and = [&](std::string topic, vouch::outcome then) {
        box.on(topic, [then](delivery& d) {
            d.emit({.topic = "follow." + d.topic()});
            return then;
        });
        box.emit({.topic = topic});
    };
    emits_and("succeed", vouch::succeed{});
    emits_and("advance", vouch::advance{.progress = "p", .at = box.start() + 1h});
    emits_and("retry", vouch::retry{"r", box.start() + 1h});
    emits_and("bury", vouch::bury{"b"});
    emits_and("release", vouch::release{box.start() + 1h});
    box.run_once();
    CHECK(box.emitted("follow.succeed") == 1);
    CHECK(box.emitted("follow.advance") == 1);
    CHECK(box.emitted("follow.*") == 2);
}

TEST_CASE("expiry: an entry claimed at its expiry is dead with expired, and its handler is not called") {
    const auto handler = [](delivery&) { FAIL("must not be called"); };
    const auto e = entry_after(handler, {.topic = "t", .expires_in = 1s}, {}, 1s);
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "expired");
    CHECK(entry_after([](delivery&) {}, {.topic = "t", .expires_in = 1s}, {}, 1s - tick).state == state::succeeded);
}

TEST_CASE("expiry: a retry at or after the expiry is dead with expired") {
    const auto fails = [](delivery&) { throw vouch::failure("x"); };
    const vouch::retry_policy in_5s{.backoff = vouch::fixed{5s}};
    CHECK(entry_after(fails, {.topic = "t", .expires_in = 5s + tick}, in_5s).state == state::retrying);
    CHECK(entry_after(fails, {.topic = "t", .expires_in = 5s}, in_5s).last_error == "expired");
    const auto chosen = entry_after(
        [](delivery& d) {
            return vouch::retry{"x", d.now() + 1h};
        },
        {.topic = "t", .expires_in = 1h});
    CHECK(chosen.last_error == "expired");
}

TEST_CASE("attempts: a poison handler is called attempts_max times, then the entry is dead") {
    sandbox box;
    int called = 0;
    box.on("t", [&] { ++called, throw std::runtime_error("poison"); });
    const auto got = box.emit({.topic = "t"});
    const auto done = box.run_until_idle();
    const auto e = box.find(got.id);
    CHECK(called == 8);
    CHECK(e->state == state::dead);
    CHECK(e->attempts == 8);
    CHECK(e->failures == 8);
    CHECK(e->last_error == "std::runtime_error");
    CHECK(done.retried == 7);
    CHECK(done.dead == 1);
    // 30 s, doubled seven times, never above the hour
    CHECK(box.clock()() - box.start() == 30s + 1min + 2min + 4min + 8min + 16min + 32min);
}

TEST_CASE("attempts: an entry whose runner always crashes ends dead, without a further call of its handler") {
    sandbox box;
    int called = 0;
    box.on("t", [&] { ++called; });
    const auto got = box.emit({.topic = "t"});
    for (int crash = 0; crash < 9; ++crash) {      // the first crash costs no attempt
        REQUIRE(box.runner().claim().size() == 1); // then the process crashes
        box.pass(5min);
    }
    const auto done = box.run_once();
    CHECK(called == 0);
    CHECK(done.dead == 1);
    CHECK(box.find(got.id)->last_error == "attempts_exhausted");
    CHECK(box.find(got.id)->attempts == 9);
}

TEST_CASE("ended: is called instead of burying when the attempts are used up") {
    sandbox box;
    int worked = 0;
    std::vector<vouch::ending> endings;
    box.on("t", failing_handler{&worked, &endings}, vouch::retry_policy{.backoff = vouch::fixed{}, .attempts_max = 3});
    const auto got = box.emit({.topic = "t"});
    for (int pass = 0; pass < 3; ++pass) {
        box.run_once();
    }
    CHECK(worked == 3);
    CHECK(endings == std::vector{vouch::ending::exhausted});
    CHECK(box.find(got.id)->progress == "turned");
    CHECK(box.find(got.id)->attempts == 0);
}

TEST_CASE("ended: is called for an expired entry, and after crashes") {
    int worked = 0;
    std::vector<vouch::ending> endings;
    const auto handler = failing_handler{&worked, &endings};
    const auto expired = entry_after(handler, {.topic = "t", .expires_in = 1s}, {}, 1s);
    CHECK(expired.progress == "turned");
    const auto retried_too_late = entry_after(handler, {.topic = "t", .expires_in = 30s});
    CHECK(retried_too_late.progress == "turned");
    CHECK(worked == 1);
    CHECK(endings == std::vector{vouch::ending::expired, vouch::ending::expired});

    sandbox box;
    box.on("t", handler);
    const auto got = box.emit({.topic = "t", .attempts_max = 1});
    REQUIRE(box.runner().claim().size() == 1);
    box.pass(5min);
    box.run_once();
    CHECK(endings.back() == vouch::ending::exhausted);
    CHECK(box.find(got.id)->progress == "turned");
}

TEST_CASE("ended: emissions of the failed attempt are dropped") {
    struct eager {
        void work(delivery& d) {
            d.emit({.queue = "next", .topic = "forward"});
            throw vouch::failure("x");
        }
        vouch::outcome ended(delivery& d, vouch::ending) {
            d.emit({.queue = "next", .topic = "back"});
            return vouch::succeed{};
        }
    };
    sandbox box;
    box.on("t", eager{});
    box.emit({.topic = "t", .attempts_max = 1});
    box.run_once();
    CHECK(box.emitted("forward") == 0);
    CHECK(box.emitted("back") == 1);
}

TEST_CASE("attempts: a retry returned by the last attempt makes the entry dead with the handler's code") {
    const auto e = entry_after(
        [](delivery& d) {
            return vouch::retry{"bank_down", d.now() + 1h};
        },
        {.topic = "t", .attempts_max = 1});
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "bank_down");
}

TEST_CASE("failure: the backoff counts from the end of the attempt") {
    sandbox box({.retry = {.backoff = vouch::fixed{30s}}});
    box.on("t", [&](delivery&) {
        box.pass(60s);
        throw vouch::failure("slow");
    });
    const auto got = box.emit({.topic = "t"});
    box.run_once();
    CHECK(box.find(got.id)->due_at == box.start() + 90s);
}

TEST_CASE("failure: a vouch::error is stored as its kind") {
    const auto e = entry_after([](delivery&) { throw vouch::error(vouch::error_kind::busy, "somewhere"); });
    CHECK(e.last_error == "busy");
}

TEST_CASE("ended: a burial without a code has the code of the failure that ended the entry") {
    struct handler {
        std::string code;
        void work(delivery&) { throw vouch::failure("away"); }
        vouch::outcome ended(delivery&, vouch::ending) { return vouch::bury{.error = code}; }
    };
    const vouch::retry_policy once{.attempts_max = 1};
    CHECK(entry_after(handler{}, {.topic = "t"}, once).last_error == "away");
    CHECK(entry_after(handler{"own"}, {.topic = "t"}, once).last_error == "own");
    CHECK(entry_after(handler{}, {.topic = "t", .expires_in = 1s}, once, 2s).last_error == "expired");
}

namespace {

/// Owes an answer for every entry, and gives it as `how` says.
struct answering_handler {
    static constexpr bool answers_burials = true;
    std::function<void(delivery&)> act;
    std::function<vouch::outcome(delivery&, const vouch::bury&)> how;

    void work(delivery& d) { act(d); }
    vouch::outcome buried(delivery& d, const vouch::bury& dead) { return how(d, dead); }
};

} // namespace

TEST_CASE("burial: a handler that owes an answer gives it instead, whatever the entry would be buried for") {
    const auto answers = [](delivery&, const vouch::bury& dead) -> vouch::outcome {
        return vouch::succeed{.result = "answer to " + dead.error};
    };
    const vouch::retry_policy once{.attempts_max = 1};
    const auto result_of = [&](std::function<void(delivery&)> act) {
        const auto e = entry_after(answering_handler{std::move(act), answers}, {.topic = "t"}, once);
        CHECK(e.state == state::succeeded);
        return e.result.value_or("none");
    };
    CHECK(result_of([](delivery&) { throw vouch::reject("no"); }) == "answer to no");
    CHECK(result_of([](delivery&) { throw vouch::failure("away"); }) == "answer to away");
    CHECK(result_of([](delivery& d) { d.emit({.queue = "q", .topic = ""}); }) == "answer to invalid_emission");
}

TEST_CASE("burial: an answer that the store would refuse leaves the burial, and one that throws comes later") {
    const auto rejects = [](delivery&) { throw vouch::reject("no"); };
    const auto refused = entry_after(answering_handler{rejects, [](delivery& d, const vouch::bury&) -> vouch::outcome {
                                                           d.emit({.queue = "q", .topic = ""});
                                                           return vouch::succeed{};
                                                       }});
    CHECK(refused.state == state::dead);
    CHECK(refused.last_error == "no");
    const auto thrown = entry_after(answering_handler{
        rejects, [](delivery&, const vouch::bury&) -> vouch::outcome { throw std::runtime_error("no answer"); }});
    CHECK(thrown.state == state::pending);
    CHECK(thrown.attempts == 0);
}

TEST_CASE("ended: after 2 * attempts_max claims the entry is buried") {
    sandbox box;
    int worked = 0;
    std::vector<vouch::ending> endings;
    box.on("t", failing_handler{&worked, &endings, false},
           vouch::retry_policy{.backoff = vouch::fixed{}, .attempts_max = 3});
    const auto got = box.emit({.topic = "t"});
    box.run_until_idle();
    CHECK(worked == 3);
    CHECK(endings.size() == 4); // for the last failure, and for each later claim
    CHECK(box.find(got.id)->attempts == 6);
    CHECK(box.find(got.id)->state == state::dead);
    CHECK(box.find(got.id)->last_error == "stuck");

    // An entry that crashes its process in `ended` every time ends as well.
    const auto other = box.emit({.topic = "t", .attempts_max = 2});
    for (int crash = 0; crash < 6; ++crash) {
        std::ignore = box.runner().claim();
        box.pass(5min);
    }
    endings.clear();
    box.run_once();
    CHECK(endings.empty());
    CHECK(box.find(other.id)->last_error == "attempts_exhausted");
}

} // namespace run_failures_test
