// SPDX-License-Identifier: MIT
// The history of attempts: the lines a sink gets, and outcomes that are held up while it fails.
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "runner_fixture.hpp"

namespace run_history_test {

using namespace runner_test;
using vouch::testing::sandbox;

namespace {

[[nodiscard]] std::vector<std::string> texts_of(const std::vector<vouch::attempt_line>& lines) {
    std::vector<std::string> out;
    for (const auto& l : lines) {
        out.push_back(std::to_string(l.epoch) + ' ' + std::string(name_of(l.what)) + ' ' + std::to_string(l.attempt) +
                      (l.error.empty() ? "" : ' ' + l.error));
    }
    return out;
}

} // namespace

TEST_CASE("history: every outcome is a line, retries, releases and checkpoints included") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}});
    vouch::memory::history_log history;
    box.runner().history(std::ref(history));
    int calls = 0;
    box.on("t", [&](delivery&) -> vouch::outcome {
        switch (++calls) {
        case 1: throw vouch::failure("timeout");
        case 2: return vouch::release{.at = box.outbox().now() + 1s};
        case 3: return vouch::advance{.progress = "half"};
        default: return vouch::succeed{};
        }
    });
    box.on("bad", [] { throw vouch::reject("no_good"); });
    const auto good = box.emit({.topic = "t"}).id;
    const auto bad = box.emit({.topic = "bad"}).id;
    box.run_until_idle();
    CHECK(texts_of(history.of(good)) ==
          std::vector<std::string>{"1 retrying 1 timeout", "2 released 2", "3 advanced 2", "4 succeeded 1"});
    CHECK(texts_of(history.of(bad)) == std::vector<std::string>{"1 dead 1 no_good"});
    const auto first = history.of(good).front();
    CHECK(first.id == good);
    CHECK(first.worker == box.find(good)->worker);
    CHECK(first.at >= first.claimed_at);
    CHECK(history.of(good)[1].claimed_at == first.at + 1s);
    CHECK(history.of(support::id_of(77)).empty());
}

TEST_CASE("history: a claim whose lease expires has no line, and its epoch is missing") {
    sandbox box;
    vouch::memory::history_log history;
    box.runner().history(std::ref(history));
    box.on("t", [] {});
    const auto id = box.emit({.topic = "t"}).id;
    REQUIRE(box.runner().claim().size() == 1); // and the process dies
    box.pass(1h);
    box.run_until_idle();
    CHECK(texts_of(history.of(id)) == std::vector<std::string>{"2 succeeded 1"});
}

TEST_CASE("history: while a sink fails, the outcome is kept and the handler is not called again") {
    sandbox box;
    int called = 0;
    bool down = true;
    int lines = 0;
    box.on("t", [&] { ++called; });
    box.runner().history([&](auto&, const vouch::attempt_line&) {
        if (down) {
            throw std::runtime_error("gone");
        }
        ++lines;
    });
    const auto id = box.emit({.topic = "t"}).id;
    CHECK(box.run_once().held_up == 1);
    CHECK(box.find(id)->state == state::claimed);
    down = false;
    CHECK(box.run_once().succeeded == 1);
    CHECK(called == 1);
    CHECK(lines == 1);
}

TEST_CASE("history: in memory, the newest lines of an entry are kept, and old entries are removed on request") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 10}});
    vouch::memory::history_log history(3);
    box.runner().history(std::ref(history));
    box.on("t", [] { throw vouch::failure("timeout"); });
    const auto id = box.emit({.topic = "t"}).id;
    box.run_until_idle();
    CHECK(texts_of(history.of(id)) ==
          std::vector<std::string>{"8 retrying 8 timeout", "9 retrying 9 timeout", "10 dead 10 timeout"});
    CHECK(history.purge(box.outbox().now()) == 0);
    CHECK(history.purge(box.outbox().now() + 1s) == 1);
    CHECK(history.of(id).empty());
}

TEST_CASE("history: a worker records attempts, too") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    std::stop_source done;
    router.on("t", [&] { done.request_stop(); });
    vouch::memory::history_log history;
    vouch::worker worker(outbox, {.name = "w-7"});
    worker.serve(router, {.queue = "q"});
    worker.history(std::ref(history));
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    worker.run(done.get_token());
    REQUIRE(history.of(id).size() == 1);
    CHECK(history.of(id).front().worker == store.find(id)->worker);
    CHECK(history.of(id).front().what == vouch::attempt_line::kind::succeeded);
}

} // namespace run_history_test
