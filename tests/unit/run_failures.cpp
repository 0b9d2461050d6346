// SPDX-License-Identifier: MIT
// Everything a handler can do wrong, and the one outcome it comes to.
#include <stdexcept>
#include <string>
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
vouch::entry ended_with(Handler handler, vouch::emission e = {.topic = "t"}, vouch::retry_policy retry = {},
                        vouch::duration claimed_after = {}) {
    sandbox box({.retry = std::move(retry)});
    box.on("t", handler);
    const auto got = box.emit(std::move(e));
    box.pass(claimed_after);
    box.run_once();
    return *box.find(got.id);
}

/// Counts its calls, and what `ended` is told; fails in both unless told otherwise.
struct stubborn {
    int* worked;
    std::vector<vouch::ending>* told;
    bool turns_round = true;

    void work(delivery&) {
        ++*worked;
        throw vouch::failure("away");
    }
    vouch::outcome ended(delivery&, vouch::ending why) {
        told->push_back(why);
        if (!turns_round) {
            throw vouch::failure("stuck");
        }
        return vouch::advance{.progress = "turned"};
    }
};

} // namespace

TEST_CASE("failure: any exception is a retry by policy, and only its class is kept") {
    const auto e = ended_with([](delivery&) { throw shop::card_declined("card 4111 1111 of Ada"); });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "shop::card_declined");
    CHECK(e.failures == 1);
    CHECK(e.due_at == e.updated_at + 30s);
}

TEST_CASE("failure: a code the handler chose is kept instead") {
    const auto e = ended_with([](delivery&) { throw vouch::failure("smtp_timeout"); });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "smtp_timeout");
}

TEST_CASE("failure: what is no exception class at all is a retry too") {
    const auto e = ended_with([](delivery&) { throw 42; });
    CHECK(e.state == state::retrying);
    CHECK(e.last_error == "unknown_exception");
}

TEST_CASE("reject: is dead at once, with its code") {
    CHECK(ended_with([](delivery&) { throw vouch::reject(); }).last_error == "rejected");
    const auto e = ended_with([](delivery&) { throw vouch::reject("no_such_user"); });
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "no_such_user");
    CHECK(e.attempts == 1);
    CHECK(e.failures == 1);
}

TEST_CASE("failure: error codes are cut to the limit, never inside a character, and lose control characters") {
    const std::string two_bytes = "\xc3\xa9";
    CHECK(vouch::error_code(std::string(100, 'a')) == std::string(100, 'a'));
    CHECK(vouch::error_code(std::string(101, 'a')) == std::string(100, 'a'));
    CHECK(vouch::error_code(std::string(99, 'a') + two_bytes) == std::string(99, 'a'));
    CHECK(vouch::error_code(std::string(98, 'a') + two_bytes + "b") == std::string(98, 'a') + two_bytes);
    CHECK(vouch::error_code("a\nb\x7f") == "a?b?");
    const auto e = ended_with([](delivery&) { throw vouch::reject(std::string(500, 'x') + '\n'); });
    CHECK(e.last_error == std::string(100, 'x'));
    const auto r = ended_with([](delivery& d) { return vouch::retry{std::string(500, 'y'), d.now()}; });
    CHECK(r.last_error == std::string(100, 'y'));
}

TEST_CASE("limits: a result that is too large is dead as result_too_large") {
    const auto most = vouch::limits{}.result_max;
    CHECK(ended_with([&](delivery&) { return std::string(most, 'r'); }).state == state::succeeded);
    const auto e = ended_with([&](delivery&) { return std::string(most + 1, 'r'); });
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "result_too_large");
    const auto buried = ended_with([&](delivery&) { return vouch::bury{"why", std::string(most + 1, 'r')}; });
    CHECK(buried.last_error == "result_too_large");
    const auto advanced = ended_with([&](delivery&) { return vouch::advance{.progress = std::string(most + 1, 'p')}; });
    CHECK(advanced.last_error == "progress_too_large");
}

TEST_CASE("emissions: an invalid one is dead as invalid_emission, and nothing is enqueued") {
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

TEST_CASE("emissions: one without queue or binding is dead as unrouted") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("t", [](delivery& d) { d.emit({.topic = "nobody.listens"}); });
    vouch::transact(store, [&](auto& tx) { outbox.emit(tx, {.queue = "q", .topic = "t"}); });
    const auto done = vouch::runner(outbox, router, {.queue = "q"}).run_once();
    REQUIRE(done.trace.size() == 1);
    CHECK(done.trace.front().error == "unrouted");
    CHECK(done.dead == 1);
}

TEST_CASE("emissions: go with succeed and advance only") {
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

TEST_CASE("expiry: an entry claimed at its expiry is dead as expired, its handler not called") {
    const auto handler = [](delivery&) { FAIL("must not be called"); };
    const auto e = ended_with(handler, {.topic = "t", .expires_in = 1s}, {}, 1s);
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "expired");
    CHECK(ended_with([](delivery&) {}, {.topic = "t", .expires_in = 1s}, {}, 1s - tick).state == state::succeeded);
}

TEST_CASE("expiry: a retry at or after it is dead as expired") {
    const auto fails = [](delivery&) { throw vouch::failure("x"); };
    const vouch::retry_policy in_5s{.backoff = vouch::fixed{5s}};
    CHECK(ended_with(fails, {.topic = "t", .expires_in = 5s + tick}, in_5s).state == state::retrying);
    CHECK(ended_with(fails, {.topic = "t", .expires_in = 5s}, in_5s).last_error == "expired");
    const auto chosen = ended_with(
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

TEST_CASE("attempts: an entry whose runner dies every time still ends, and the handler is not called once more") {
    sandbox box;
    int called = 0;
    box.on("t", [&] { ++called; });
    const auto got = box.emit({.topic = "t"});
    for (int crash = 0; crash < 9; ++crash) {      // the first is not held against it
        REQUIRE(box.runner().claim().size() == 1); // and the process is gone
        box.pass(5min);
    }
    const auto done = box.run_once();
    CHECK(called == 0);
    CHECK(done.dead == 1);
    CHECK(box.find(got.id)->last_error == "attempts_exhausted");
    CHECK(box.find(got.id)->attempts == 9);
}

TEST_CASE("ended: is called instead of burying when attempts run out") {
    sandbox box;
    int worked = 0;
    std::vector<vouch::ending> told;
    box.on("t", stubborn{&worked, &told}, vouch::retry_policy{.backoff = vouch::fixed{}, .attempts_max = 3});
    const auto got = box.emit({.topic = "t"});
    for (int pass = 0; pass < 3; ++pass) {
        box.run_once();
    }
    CHECK(worked == 3);
    CHECK(told == std::vector{vouch::ending::exhausted});
    CHECK(box.find(got.id)->progress == "turned");
    CHECK(box.find(got.id)->attempts == 0);
}

TEST_CASE("ended: is called when time runs out, and after crashes") {
    int worked = 0;
    std::vector<vouch::ending> told;
    const auto handler = stubborn{&worked, &told};
    const auto expired = ended_with(handler, {.topic = "t", .expires_in = 1s}, {}, 1s);
    CHECK(expired.progress == "turned");
    const auto retried_too_late = ended_with(handler, {.topic = "t", .expires_in = 30s});
    CHECK(retried_too_late.progress == "turned");
    CHECK(worked == 1);
    CHECK(told == std::vector{vouch::ending::expired, vouch::ending::expired});

    sandbox box;
    box.on("t", handler);
    const auto got = box.emit({.topic = "t", .attempts_max = 1});
    REQUIRE(box.runner().claim().size() == 1);
    box.pass(5min);
    box.run_once();
    CHECK(told.back() == vouch::ending::exhausted);
    CHECK(box.find(got.id)->progress == "turned");
}

TEST_CASE("ended: nothing the failed attempt emitted goes with it") {
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

TEST_CASE("attempts: a retry the handler asks for on its last attempt is dead with the handler's code") {
    const auto e = ended_with(
        [](delivery& d) {
            return vouch::retry{"bank_down", d.now() + 1h};
        },
        {.topic = "t", .attempts_max = 1});
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "bank_down");
}

TEST_CASE("failure: the wait for the next attempt begins when this one ends") {
    sandbox box({.retry = {.backoff = vouch::fixed{30s}}});
    box.on("t", [&](delivery&) {
        box.pass(60s);
        throw vouch::failure("slow");
    });
    const auto got = box.emit({.topic = "t"});
    box.run_once();
    CHECK(box.find(got.id)->due_at == box.start() + 90s);
}

TEST_CASE("failure: an error of ours is kept by its kind") {
    const auto e = ended_with([](delivery&) { throw vouch::error(vouch::error_kind::busy, "somewhere"); });
    CHECK(e.last_error == "busy");
}

TEST_CASE("ended: an entry is claimed twice attempts_max times at most, then it is buried") {
    sandbox box;
    int worked = 0;
    std::vector<vouch::ending> told;
    box.on("t", stubborn{&worked, &told, false}, vouch::retry_policy{.backoff = vouch::fixed{}, .attempts_max = 3});
    const auto got = box.emit({.topic = "t"});
    box.run_until_idle();
    CHECK(worked == 3);
    CHECK(told.size() == 4); // with the last failure, and with each claim after it
    CHECK(box.find(got.id)->attempts == 6);
    CHECK(box.find(got.id)->state == state::dead);
    CHECK(box.find(got.id)->last_error == "stuck");

    // Dying in it every time ends as well.
    const auto other = box.emit({.topic = "t", .attempts_max = 2});
    for (int crash = 0; crash < 6; ++crash) {
        std::ignore = box.runner().claim();
        box.pass(5min);
    }
    told.clear();
    box.run_once();
    CHECK(told.empty());
    CHECK(box.find(other.id)->last_error == "attempts_exhausted");
}

} // namespace run_failures_test
