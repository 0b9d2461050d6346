// SPDX-License-Identifier: MIT
// Observers, and the logger: one line per event, filtered by level.
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/observe.hpp>
#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "support.hpp"

namespace observe_observers_test {

using namespace support;
using vouch::event;
using vouch::event_kind;
using vouch::log_level;

namespace {

constexpr auto all_event_kinds = {event_kind::enqueued,  event_kind::claimed,         event_kind::started,
                                  event_kind::succeeded, event_kind::advanced,        event_kind::retried,
                                  event_kind::dead,      event_kind::released,        event_kind::stale,
                                  event_kind::unsettled, event_kind::group_completed, event_kind::lease_lost,
                                  event_kind::purged,    event_kind::store_error,     event_kind::polled};

struct lines {
    std::vector<std::pair<log_level, std::string>> got{};
    [[nodiscard]] vouch::log_sink sink() {
        return [this](log_level level, std::string_view line) { got.emplace_back(level, line); };
    }
};

} // namespace

TEST_CASE("observers: all observers get the same events in the same order, and those with flush are flushed") {
    struct watcher {
        std::vector<event_kind> seen{};
        int flushed = 0;
        void on(const event& e) noexcept { seen.push_back(e.what); }
        void flush() noexcept { ++flushed; }
    };
    struct simple {
        std::vector<event_kind> seen{};
        void on(const event& e) noexcept { seen.push_back(e.what); }
    };
    watcher one;
    simple two;
    vouch::observer_list list;
    list.add(one);
    list.add(two);
    for (const auto what : all_event_kinds) {
        list.on({.what = what});
    }
    list.flush();
    CHECK(one.seen == std::vector<event_kind>(all_event_kinds));
    CHECK(two.seen == one.seen);
    CHECK(one.flushed == 1);
    struct throwing {
        void on(const event&) {}
    };
    CHECK(vouch::observer<simple>);
    CHECK_FALSE(vouch::observer<throwing>);
}

TEST_CASE("observers: a runner reports an entry's age, the delay of its claim and the time of its handler") {
    vouch::memory::store store;
    const vouch::manual_clock clock;
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { clock.pass(3s); });
    vouch::runner runner(outbox, routes, {.queue = "q"});
    struct watcher {
        vouch::duration age{};
        vouch::duration late{};
        vouch::duration took{};
        void on(const event& e) noexcept {
            late = e.what == event_kind::claimed ? e.late : late;
            age = e.what == event_kind::succeeded ? e.age : age;
            took = e.what == event_kind::succeeded ? e.took.value() : took;
        }
    } seen;
    runner.observe(seen);
    outbox.emit({.queue = "q", .topic = "t", .due_in = 10s});
    clock.pass(15s);
    CHECK(runner.run_once().succeeded == 1);
    CHECK(seen.late == 5s);
    CHECK(seen.took == 3s);
    CHECK(seen.age == 18s);
}

TEST_CASE("logger: logs warnings and errors by default, and each event has its level") {
    const auto levels = [](log_level least) {
        lines out;
        vouch::logger log(least, out.sink());
        for (const auto what : all_event_kinds) {
            log.on({.what = what, .at = t0, .queue = "q"});
        }
        return out.got.size();
    };
    CHECK(levels(log_level::debug) == 15);
    CHECK(levels(log_level::info) == 12);
    CHECK(levels(log_level::warning) == 6);
    CHECK(levels(log_level::error) == 2);
    CHECK(levels(log_level::off) == 0);
    CHECK(level_of(event{.what = event_kind::claimed}) == log_level::debug);
    CHECK(level_of(event{.what = event_kind::succeeded}) == log_level::info);
    CHECK(level_of(event{.what = event_kind::retried}) == log_level::warning);
    CHECK(level_of(event{.what = event_kind::dead}) == log_level::warning);
    CHECK(level_of(event{.what = event_kind::dead, .error = "undecodable"}) == log_level::error);
    CHECK(level_of(event{.what = event_kind::released}) == log_level::info);
    CHECK(level_of(event{.what = event_kind::released, .tag = "unknown_version"}) == log_level::warning);
    CHECK(level_of(event{.what = event_kind::store_error}) == log_level::error);

    lines out;
    vouch::logger by_default(log_level::warning, out.sink());
    by_default.on({.what = event_kind::retried,
                   .at = vouch::time_point{1'700'000'000'123'456us},
                   .queue = "mail",
                   .topic = "user.created",
                   .worker = "w-1",
                   .error = "smtp_timeout",
                   .id = id_of(1),
                   .attempt = 2,
                   .took = 30ms});
    REQUIRE(out.got.size() == 1);
    CHECK(out.got.front().second == "2023-11-14T22:13:20.123456Z warning retried queue=mail topic=user.created id=" +
                                        to_string(id_of(1)) + " attempt=2 took_us=30000 error=smtp_timeout worker=w-1");
}

TEST_CASE("logger: names are escaped, so that an event is one line and its fields are separate") {
    lines out;
    vouch::logger log(log_level::debug, out.sink());
    log.on({.what = event_kind::dead, .at = t0, .queue = "a b=c", .topic = "x\ny\"\\\x01", .error = "\xc3\xa4"});
    REQUIRE(out.got.size() == 1);
    const auto& line = out.got.front().second;
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.find(R"( queue="a b=c" topic="x\x0ay\"\\\x01" error="\xc3\xa4")") != std::string::npos);
    CHECK(vouch::to_utc(vouch::time_point{-1us}) == "1969-12-31T23:59:59.999999Z");

    vouch::logger broken(log_level::debug, [](log_level, std::string_view) { throw std::runtime_error("no disk"); });
    broken.on({.what = event_kind::dead}); // the line is dropped
}

TEST_CASE("logger and metrics: they contain no payload and no exception text") {
    lines out;
    vouch::logger log(log_level::debug, out.sink());
    vouch::metrics counted;
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) { throw std::runtime_error("secret text"); });
    vouch::runner runner(outbox, routes, {.queue = "q", .retry = {.backoff = vouch::schedule{}}});
    runner.observe(log);
    runner.observe(counted);
    outbox.emit({.queue = "q", .topic = "t", .payload = "secret payload"});
    CHECK(runner.run_once().dead == 1);
    CHECK(out.got.size() == 3);
    for (const auto& [level, line] : out.got) {
        CHECK(line.find("secret") == std::string::npos);
    }
    CHECK(counted.text().find("secret") == std::string::npos);
    CHECK(counted.text().find("vouch_settled_total{queue=\"q\",outcome=\"dead\"} 1\n") != std::string::npos);
}

TEST_CASE("logger: a sink that causes further log lines neither deadlocks nor recurses") {
    vouch::memory::store store;
    const vouch::outbox<vouch::memory::store>* through = nullptr;
    int calls = 0;
    vouch::logger log(log_level::debug, [&](log_level, std::string_view line) {
        ++calls;
        through->emit({.queue = "log", .topic = "line", .payload = std::string(line)}); // which is an event again
    });
    vouch::outbox outbox(store);
    outbox.observe(log);
    through = &outbox;
    log.on({.what = event_kind::dead, .at = t0});
    CHECK(calls == 1);
    CHECK(store.counts("log").total() == 1);
    log.on({.what = event_kind::dead, .at = t0});
    CHECK(calls == 2);

    SECTION("also after a sink has thrown") {
        vouch::logger broken(log_level::debug, [](log_level, std::string_view) { throw std::runtime_error("full"); });
        broken.on({.what = event_kind::dead, .at = t0});
        log.on({.what = event_kind::dead, .at = t0});
        CHECK(calls == 3);
    }
}

TEST_CASE("logger: two loggers whose sinks log to each other do not deadlock") {
    struct pair {
        std::atomic<int> lines = 0;
        vouch::logger one{log_level::debug, [this](log_level, std::string_view) { log_to(two); }};
        vouch::logger two{log_level::debug, [this](log_level, std::string_view) { log_to(one); }};
        void log_to(vouch::logger& other) {
            ++lines;
            other.on({.what = event_kind::dead, .at = t0});
        }
    } both;
    constexpr int times = 2000;
    const auto log_often = [](vouch::logger& log) {
        for (int n = 0; n < times; ++n) {
            log.on({.what = event_kind::dead, .at = t0});
        }
    };
    std::thread first(log_often, std::ref(both.one));
    std::thread second(log_often, std::ref(both.two));
    first.join();
    second.join();
    CHECK(both.lines == 2 * times);
}

TEST_CASE("logger: with exception_text the line has the exception's text, escaped, and the store never has it") {
    const std::string message = "card 4111 of Ada\n2026 error \x1b[31m\"quoted\"";
    const auto line_of = [&](bool exception_text) {
        lines out;
        vouch::logger log(log_level::warning, out.sink());
        vouch::metrics counted;
        vouch::memory::store store;
        const vouch::outbox outbox(store);
        vouch::router routes(outbox);
        routes.on("t", [&](vouch::delivery&) { throw std::runtime_error(message); });
        vouch::runner runner(outbox, routes, {.queue = "q", .exception_text = exception_text});
        runner.observe(log);
        runner.observe(counted);
        const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
        REQUIRE(runner.run_once().retried == 1);
        CHECK(store.find(id)->last_error == "std::runtime_error");
        CHECK(counted.text().find("4111") == std::string::npos);
        REQUIRE(out.got.size() == 1);
        return out.got.front().second;
    };
    CHECK(line_of(false).find("4111") == std::string::npos);
    const auto line = line_of(true);
    CHECK(line.find(R"( text="card 4111 of Ada\x0a2026 error \x1b[31m\"quoted\"")") != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("logger: exception_text is cut to its limit, and covers hooks, `ended` and sagas") {
    struct watcher {
        std::vector<std::string> texts{};
        void on(const event& e) noexcept {
            if (!e.text.empty()) {
                texts.emplace_back(name_of(e.what)).append(" ").append(e.text);
            }
        }
    } seen;
    vouch::memory::store store;
    const vouch::manual_clock clock;
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::router routes(outbox);
    routes.on("long", [](vouch::delivery&) { throw std::runtime_error(std::string(5000, 'x')); });
    routes.on("fine", [](vouch::delivery&) {});
    struct ends {
        void work(vouch::delivery&) const {}
        vouch::outcome ended(vouch::delivery&, vouch::ending) const { throw std::runtime_error("no way back"); }
    };
    routes.on("ends", ends{});
    const auto saga = vouch::define_saga<std::string>("order").step(
        "pay", []() -> std::string { throw std::runtime_error("bank is closed"); });
    routes.on(saga.build());
    vouch::runner runner(outbox, routes, {.queue = "q", .exception_text = true});
    runner.observe(seen);
    runner.audit([](auto&, const vouch::audit_line& line) {
        if (line.topic == "fine") {
            throw std::runtime_error("audit is full");
        }
    });
    const auto texts_of = [&](const vouch::emission& e) {
        seen.texts.clear();
        outbox.emit(e);
        clock.pass(1s);
        runner.run_once();
        return seen.texts;
    };
    using texts = std::vector<std::string>;
    CHECK(texts_of({.queue = "q", .topic = "long"}) == texts{"retried " + std::string(1000, 'x')});
    CHECK(texts_of({.queue = "q", .topic = "fine"}) == texts{"hook_failed audit is full"});
    CHECK(texts_of({.queue = "q", .topic = "ends", .expires_in = 1s}) == texts{"retried no way back"});
    CHECK(texts_of({.queue = "q", .topic = "order"}) == texts{"retried bank is closed"});
}

} // namespace observe_observers_test
