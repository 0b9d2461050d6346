// SPDX-License-Identifier: MIT
// The signatures a handler may have, and which handler gets an entry.
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace run_handlers_test {

using namespace support;
using vouch::delivery;
using vouch::state;
using vouch::testing::sandbox;

namespace {

struct money {
    int cents = 0;
};

struct fragile {};

} // namespace

} // namespace run_handlers_test

template <>
struct vouch::codec<run_handlers_test::money> {
    static std::string encode(const run_handlers_test::money& m) { return std::to_string(m.cents); }
    static run_handlers_test::money decode(std::string_view bytes) { return {std::stoi(std::string(bytes))}; }
};

template <>
struct vouch::codec<run_handlers_test::fragile> {
    static run_handlers_test::fragile decode(std::string_view bytes) {
        if (bytes == "memory") {
            throw std::bad_alloc();
        }
        if (bytes == "reject") {
            throw vouch::reject("wrong_version");
        }
        throw 1;
    }
};

namespace run_handlers_test {

namespace {

vouch::entry run_one(sandbox& box, vouch::emission e = {.topic = "t"}) {
    const auto got = box.emit(std::move(e));
    box.run_once();
    return *box.find(got.id);
}

struct counting_record {
    int* worked;
    std::vector<std::string>* recorded;

    std::string work(delivery& d) {
        ++*worked;
        return "did " + d.payload();
    }
    void record(vouch::memory::transaction& tx, const std::string& what) {
        recorded->push_back(what);
        const vouch::draft row{.id = id_of(recorded->size()), .queue = "rows", .topic = "row", .payload = what};
        tx.enqueue(std::span(&row, 1), t0);
    }
};

struct silent_record {
    int* recorded;
    void work(delivery&) {}
    void record(vouch::memory::transaction&) { ++*recorded; }
};

struct only_work {
    int work(delivery&) { return 3; }
};

} // namespace

} // namespace run_handlers_test

template <>
struct vouch::codec<int> {
    static std::string encode(const int& i) { return std::to_string(i); }
};

namespace run_handlers_test {

TEST_CASE("handler: one that returns void succeeds with an empty result") {
    sandbox box;
    box.on("t", [](delivery&) {});
    const auto e = run_one(box);
    CHECK(e.state == state::succeeded);
    CHECK(e.result == std::string{});
}

TEST_CASE("handler: its return value is the result") {
    sandbox box;
    box.on("text", [](delivery&) { return "done"; });
    box.on("typed", [](delivery&) { return money{250}; });
    CHECK(run_one(box, {.topic = "text"}).result == "done");
    CHECK(run_one(box, {.topic = "typed"}).result == "250");
}

TEST_CASE("handler: it can return an outcome") {
    sandbox box;
    box.on("succeed", [](delivery&) -> vouch::outcome { return vouch::succeed{"r"}; });
    box.on("retry", [](delivery& d) { return vouch::retry{.error = "later", .at = d.now() + 9s}; });
    box.on("bury", [](delivery&) { return vouch::bury{.error = "never", .result = "why"}; });
    box.on("release", [](delivery& d) { return vouch::release{.at = d.now() + 3s}; });
    box.on("advance", [](delivery&) { return vouch::advance{.progress = "half"}; });

    CHECK(run_one(box, {.topic = "succeed"}).result == "r");
    const auto retried = run_one(box, {.topic = "retry"});
    CHECK(retried.state == state::retrying);
    CHECK(retried.last_error == "later");
    CHECK(retried.due_at == box.clock()() + 9s);
    const auto buried = run_one(box, {.topic = "bury"});
    CHECK(buried.state == state::dead);
    CHECK(buried.result == "why");
    const auto released = run_one(box, {.topic = "release"});
    CHECK(released.state == state::pending);
    CHECK(released.attempts == 0);
    CHECK(released.due_at == box.clock()() + 3s);
    const auto advanced = run_one(box, {.topic = "advance"});
    CHECK(advanced.state == state::pending);
    CHECK(advanced.progress == "half");
}

TEST_CASE("handler: typed payloads are decoded, and the delivery parameter is optional") {
    sandbox box;
    int sum = 0;
    box.on<money>("with", [&](const money& m, delivery& d) { sum += m.cents + static_cast<int>(d.attempt()); });
    box.on<money>("without", [&](const money& m) { sum += 100 * m.cents; });
    CHECK(run_one(box, {.topic = "with", .payload = "7"}).state == state::succeeded);
    CHECK(run_one(box, {.topic = "without", .payload = "3"}).state == state::succeeded);
    CHECK(sum == 308);
}

TEST_CASE("handler: an entry whose payload cannot be decoded is dead at once with undecodable") {
    sandbox box;
    box.on<money>("t", [](const money&) { FAIL("must not be called"); });
    const auto e = run_one(box, {.topic = "t", .payload = "not a number"});
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "undecodable");
    CHECK(e.attempts == 1);
}

TEST_CASE("handler: work runs outside the settling transaction, record inside") {
    sandbox box;
    int worked = 0;
    std::vector<std::string> recorded;
    box.on("t", counting_record{&worked, &recorded});
    const auto e = run_one(box, {.topic = "t", .payload = "x"});
    CHECK(e.state == state::succeeded);
    CHECK(e.result == "did x");
    CHECK(worked == 1);
    CHECK(recorded == std::vector<std::string>{"did x"});
    CHECK(box.store().counts("rows").total() == 1);

    int silent = 0;
    box.on("silent", silent_record{&silent});
    CHECK(run_one(box, {.topic = "silent"}).state == state::succeeded);
    CHECK(silent == 1);

    box.on("worker", only_work{});
    CHECK(run_one(box, {.topic = "worker"}).result == "3");
}

TEST_CASE("handler: the delivery has topic, queue, attempt, trail, headers, id and time") {
    sandbox box;
    box.on("a.*", [&](delivery& d) {
        CHECK(d.topic() == "a.b");
        CHECK(d.queue() == "test");
        CHECK(d.attempt() == 1);
        CHECK(d.trail() == vouch::id_list{d.id()});
        CHECK(d.header("lang") == std::optional<std::string_view>("en"));
        CHECK_FALSE(d.header("Lang"));
        CHECK(d.id() == d.entry().id);
        CHECK(d.now() == box.clock()());
        CHECK_FALSE(d.stop().stop_requested());
    });
    CHECK(run_one(box, {.topic = "a.b", .headers = {{"lang", "en"}}}).state == state::succeeded);
}

TEST_CASE("handler: a codec's bad_alloc is retried, its reject keeps its code, any other exception is undecodable") {
    sandbox box;
    box.on<fragile>("t", [](const fragile&) {});
    const auto oom = run_one(box, {.topic = "t", .payload = "memory"});
    CHECK(oom.state == state::retrying);
    CHECK(oom.last_error == "std::bad_alloc");
    CHECK(run_one(box, {.topic = "t", .payload = "reject"}).last_error == "wrong_version");
    CHECK(run_one(box, {.topic = "t", .payload = "else"}).last_error == "undecodable");
}

TEST_CASE("handler: its return value may refer to its payload") {
    sandbox box;
    box.on<std::string>("t", [](const std::string& s) -> const std::string& { return s; });
    box.on("view", [](delivery& d) { return std::string_view(d.payload()); });
    const std::string longer_than_any_small_string(100, 'x');
    CHECK(run_one(box, {.topic = "t", .payload = longer_than_any_small_string}).result == longer_than_any_small_string);
    CHECK(run_one(box, {.topic = "view", .payload = "v"}).result == "v");
}

TEST_CASE("handler: work may take a typed payload, and record may ignore the result of work") {
    struct typed {
        std::vector<std::string>* log;
        int work(const money& m, delivery&) { return m.cents; }
        void record(vouch::memory::transaction&) { log->push_back("recorded"); }
    };
    sandbox box;
    std::vector<std::string> log;
    box.on<money>("t", typed{&log});
    CHECK(run_one(box, {.topic = "t", .payload = "7"}).result == "7");
    CHECK(log == std::vector<std::string>{"recorded"});
}

namespace {

/// `record` and `ended` as templates and as overloads, so that neither has a unique address.
struct generic_parts {
    std::vector<std::string>* log;
    std::string work(delivery& d) {
        if (d.payload() == "fail") {
            throw vouch::failure("failed");
        }
        return "done";
    }
    template <class Transaction>
    void record(Transaction&, const std::string& result) {
        log->push_back("recorded " + result);
    }
    template <class Why>
    vouch::outcome ended(delivery&, Why) {
        log->push_back("ended");
        return vouch::succeed{};
    }
};

struct overloaded_parts {
    std::vector<std::string>* log;
    int work(delivery&, int) { return 0; }
    void work(delivery& d) {
        if (d.payload() == "fail") {
            throw vouch::failure("failed");
        }
    }
    void record(int) { log->push_back("wrong"); }
    void record(vouch::memory::transaction&) { log->push_back("recorded"); }
    void ended(int) { log->push_back("wrong"); }
    vouch::outcome ended(delivery&, vouch::ending) {
        log->push_back("ended");
        return vouch::succeed{};
    }
};

struct final_parts final {
    std::vector<std::string>* log;
    void work(delivery&) {}
    void record(vouch::memory::transaction&) { log->push_back("recorded"); }
};

} // namespace

TEST_CASE("handler: record and ended may be templates or overloaded") {
    std::vector<std::string> log;
    sandbox box({.retry = {.attempts_max = 1}});
    box.on("generic", generic_parts{&log});
    box.on("overloaded", overloaded_parts{&log});
    box.on("final", final_parts{&log});
    for (const auto* const topic : {"generic", "overloaded"}) {
        run_one(box, {.topic = topic});
        run_one(box, {.topic = topic, .payload = "fail"});
    }
    run_one(box, {.topic = "final"});
    CHECK(log == std::vector<std::string>{"recorded done", "ended", "recorded", "ended", "recorded"});
}

TEST_CASE("handler: functions, const callables and std::function are accepted") {
    sandbox box;
    const auto constant = [](delivery&) { return "const"; };
    const std::function<std::string(delivery&)> wrapped = [](delivery&) { return std::string("wrapped"); };
    box.on("const", constant);
    box.on("wrapped", wrapped);
    box.on(
        "function", +[](delivery&) { return "function"; });
    box.on("generic", [](auto&) { return "generic"; });
    CHECK(run_one(box, {.topic = "const"}).result == "const");
    CHECK(run_one(box, {.topic = "wrapped"}).result == "wrapped");
    CHECK(run_one(box, {.topic = "function"}).result == "function");
    CHECK(run_one(box, {.topic = "generic"}).result == "generic");
}

TEST_CASE("router: the most specific pattern wins, regardless of the order of registration") {
    sandbox box;
    std::string got;
    box.on("#", [&] { got = "#"; });
    box.on("user.*", [&] { got = "user.*"; });
    box.on("user.created", [&] { got = "user.created"; });
    box.on("*.*", [&] { got = "*.*"; });
    const auto route = [&](const char* topic) {
        run_one(box, {.topic = topic});
        return got;
    };
    CHECK(route("user.created") == "user.created");
    CHECK(route("user.deleted") == "user.*");
    CHECK(route("order.placed") == "*.*");
    CHECK(route("order.placed.twice") == "#");
}

TEST_CASE("router: among equally specific patterns the first registered wins") {
    sandbox box;
    std::string got;
    box.on("*.created", [&] { got = "first"; });
    box.on("user.*", [&] { got = "second"; });
    run_one(box, {.topic = "user.created"});
    CHECK(got == "first");
}

TEST_CASE("router: an entry without a handler is dead with no_handler") {
    sandbox box;
    const auto e = run_one(box);
    CHECK(e.state == state::dead);
    CHECK(e.last_error == "no_handler");
    CHECK(e.attempts == 1);
}

TEST_CASE("router: a queue can keep entries without a handler until there is one") {
    sandbox box;
    vouch::router none(box.outbox());
    vouch::runner early(box.outbox(), none, {.queue = "test", .unhandled = vouch::unhandled::look_again});
    const auto got = box.emit({.topic = "new.kind"});
    for (int n = 0; n < 20; ++n) {
        CHECK(early.run_once().released == 1);
        CHECK(early.run_once().claimed == 0); // not before a minute has passed
        box.pass(1min);
    }
    CHECK(box.find(got.id)->attempts == 0);
    const auto brief = box.emit({.topic = "new.kind", .expires_in = 30s});
    CHECK(early.run_once().released == 2);
    box.pass(1min);
    CHECK(early.run_once().dead == 1);
    CHECK(box.find(brief.id)->last_error == "expired");
    box.pass(1min);
    box.on("new.kind", [] {});
    CHECK(box.run_once().succeeded == 1);
}

TEST_CASE("router: a started saga goes only to its own handler, even if another route matches") {
    sandbox box;
    int called = 0;
    vouch::router none(box.outbox());
    vouch::router any(box.outbox());
    any.on("#", [&] { ++called; });
    auto d = draft_of(1, "test");
    d.progress = std::string("saga\x01", 5) + "order";
    put(box.store(), d, box.clock()());
    for (const auto* const routes : {&none, &any}) {
        vouch::testing::recorder seen;
        vouch::runner runner(box.outbox(), *routes, {.queue = "test"});
        runner.observe(seen);
        CHECK(runner.run_once().released == 1);
        CHECK(seen.events().back().tag == "no_saga_handler");
        box.pass(1min);
    }
    CHECK(called == 0);
    const auto left = box.find(id_of(1));
    CHECK(left->state == state::pending);
    CHECK(left->progress == d.progress);
    CHECK(left->attempts == 0);
}

TEST_CASE("router: fields that a route's policy leaves unset come from the runner's policy") {
    const vouch::retry_policy runners{.backoff = vouch::fixed{3s}, .attempts_max = 4};
    sandbox box({.retry = runners});
    box.on("attempts", [] { throw vouch::failure("x"); }, {.attempts_max = 2});
    box.on("backoff", [] { throw vouch::failure("x"); }, {.backoff = vouch::fixed{7s}});
    const auto first = box.emit({.topic = "attempts"});
    const auto second = box.emit({.topic = "backoff"});
    box.run_once();
    CHECK(box.find(first.id)->due_at == box.start() + 3s);
    CHECK(box.find(second.id)->due_at == box.start() + 7s);
    box.run_until_idle();
    CHECK(box.find(first.id)->attempts == 2);
    CHECK(box.find(second.id)->attempts == 4);
}

TEST_CASE("router: a handler's retry policy overrides the default, and an entry's attempts_max overrides both") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}});
    box.on("default", [] { throw vouch::failure("x"); });
    box.on(
        "own", [] { throw vouch::failure("x"); }, vouch::retry_policy{.backoff = vouch::schedule{5s, 30s}});
    box.on(
        "none", [] { throw vouch::failure("x"); }, vouch::retry_policy{.backoff = vouch::schedule{}});
    const auto attempts = [&](vouch::emission e) {
        const auto got = box.emit(std::move(e));
        box.run_until_idle();
        return box.find(got.id)->attempts;
    };
    CHECK(attempts({.topic = "default"}) == 2);
    CHECK(attempts({.topic = "own"}) == 3);
    CHECK(attempts({.topic = "none"}) == 1);
    CHECK(attempts({.topic = "default", .attempts_max = 5}) == 5);
    box.on("backoff", [] { throw vouch::failure("x"); }, {.backoff = vouch::fixed{2s}});
    CHECK(attempts({.topic = "backoff"}) == 2); // an unset attempts_max comes from the default
}

} // namespace run_handlers_test
