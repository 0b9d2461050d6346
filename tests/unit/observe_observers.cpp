// SPDX-License-Identifier: MIT
// The ready-made observers: a line per event by level, and numbers as Prometheus text.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/observe.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "support.hpp"

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

[[nodiscard]] bool has_line(const std::string& text, const std::string& line) {
    return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
}

/// Some of everything, with names nobody should use.
[[nodiscard]] std::string metrics_of_everything() {
    vouch::metrics counted;
    for (const std::string_view queue : {"mail", "odd \"queue\"\\\n\xc3\xa4"}) {
        for (const auto what : all_event_kinds) {
            counted.on({.what = what,
                        .at = t0,
                        .queue = queue,
                        .error = "io",
                        .count = 3,
                        .age = 2s,
                        .late = 7ms,
                        .took = 30ms});
        }
        counted.on({.what = event_kind::succeeded, .queue = queue, .tag = "completed", .age = 10s, .took = 1ms});
        counted.on({.what = event_kind::succeeded, .queue = queue, .tag = "compensated", .age = 20s, .took = 1ms});
        counted.on({.what = event_kind::succeeded, .queue = queue, .tag = "compensated", .age = 30s, .took = 1ms});
    }
    vouch::memory::store store;
    put(store, draft_of(1, "mail"));
    counted.look_at(store, "mail", t0 + 10min, {.saga_topics = {"t", "odd \"topic\"\\\n"}});
    counted.look_at(store, "empty", t0);
    return counted.text();
}

} // namespace

TEST_CASE("observers: several see the same events, in the same order, and those that can are flushed") {
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

TEST_CASE("observers: a runner tells how old an entry was, how late its claim, and what its handler took") {
    vouch::memory::store store;
    const vouch::manual_clock clock;
    const vouch::outbox outbox({.clock = clock});
    vouch::router<vouch::memory::store> routes;
    routes.on("t", [&](vouch::delivery&) { clock.pass(3s); });
    vouch::runner runner(store, outbox, routes, {.queue = "q"});
    struct keeper {
        vouch::duration age{};
        vouch::duration late{};
        vouch::duration took{};
        void on(const event& e) noexcept {
            late = e.what == event_kind::claimed ? e.late : late;
            age = e.what == event_kind::succeeded ? e.age : age;
            took = e.what == event_kind::succeeded ? e.took : took;
        }
    } kept;
    runner.observe(kept);
    outbox.emit(store, {.queue = "q", .topic = "t", .due_in = 10s});
    clock.pass(15s);
    CHECK(runner.run_once().succeeded == 1);
    CHECK(kept.late == 5s);
    CHECK(kept.took == 3s);
    CHECK(kept.age == 18s);
}

TEST_CASE("logger: warnings and errors by default, each event at its level") {
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

TEST_CASE("logger: whatever a name contains, a line stays one line and its fields stay apart") {
    lines out;
    vouch::logger log(log_level::debug, out.sink());
    log.on({.what = event_kind::dead, .at = t0, .queue = "a b=c", .topic = "x\ny\"\\\x01", .error = "\xc3\xa4"});
    REQUIRE(out.got.size() == 1);
    const auto& line = out.got.front().second;
    CHECK(line.find('\n') == std::string::npos);
    CHECK(line.find(R"( queue="a b=c" topic="x\x0ay\"\\\x01" error="\xc3\xa4")") != std::string::npos);
    CHECK(vouch::to_utc(vouch::time_point{-1us}) == "1969-12-31T23:59:59.999999Z");

    vouch::logger broken(log_level::debug, [](log_level, std::string_view) { throw std::runtime_error("no disk"); });
    broken.on({.what = event_kind::dead}); // is dropped
}

TEST_CASE("logger and metrics: no payload and no exception's text") {
    lines out;
    vouch::logger log(log_level::debug, out.sink());
    vouch::metrics counted;
    vouch::memory::store store;
    const vouch::outbox outbox;
    vouch::router<vouch::memory::store> routes;
    routes.on("t", [](vouch::delivery&) { throw std::runtime_error("secret text"); });
    vouch::runner runner(store, outbox, routes, {.queue = "q", .retry = {.backoff = vouch::schedule{}}});
    runner.observe(log);
    runner.observe(counted);
    outbox.emit(store, {.queue = "q", .topic = "t", .payload = "secret payload"});
    CHECK(runner.run_once().dead == 1);
    CHECK(out.got.size() == 3);
    for (const auto& [level, line] : out.got) {
        CHECK(line.find("secret") == std::string::npos);
    }
    CHECK(counted.text().find("secret") == std::string::npos);
    CHECK(has_line(counted.text(), "vouch_settled_total{queue=\"q\",outcome=\"dead\"} 1"));
}

TEST_CASE("metrics: counts what it sees, completed and compensated sagas apart, and looks at the depth of queues") {
    const auto text = metrics_of_everything();
    CHECK(has_line(text, "vouch_claimed_total{queue=\"mail\"} 1"));
    CHECK(has_line(text, "vouch_purged_total{queue=\"mail\"} 3"));
    CHECK(has_line(text, "vouch_settled_total{queue=\"mail\",outcome=\"succeeded\"} 4"));
    CHECK(has_line(text, "vouch_settled_total{queue=\"mail\",outcome=\"retried\"} 1"));
    CHECK(has_line(text, "vouch_sagas_total{queue=\"mail\",outcome=\"completed\"} 1"));
    CHECK(has_line(text, "vouch_sagas_total{queue=\"mail\",outcome=\"compensated\"} 2"));
    CHECK(has_line(text, "vouch_saga_seconds_sum{queue=\"mail\"} 60.000000"));
    CHECK(has_line(text, "vouch_store_errors_total{queue=\"mail\",error=\"io\"} 1"));
    CHECK(has_line(text, "vouch_wait_seconds_bucket{queue=\"mail\",le=\"0.005\"} 0"));
    CHECK(has_line(text, "vouch_wait_seconds_bucket{queue=\"mail\",le=\"0.01\"} 1"));
    CHECK(has_line(text, "vouch_wait_seconds_bucket{queue=\"mail\",le=\"+Inf\"} 1"));
    CHECK(has_line(text, "vouch_wait_seconds_sum{queue=\"mail\"} 0.007000"));
    CHECK(has_line(text, "vouch_entries{queue=\"mail\",state=\"pending\"} 1"));
    CHECK(has_line(text, "vouch_entries{queue=\"empty\",state=\"dead\"} 0"));
    CHECK(has_line(text, "vouch_overdue_seconds{queue=\"mail\"} 600.000000"));
    CHECK(has_line(text, "vouch_stuck_entries{queue=\"mail\"} 1"));
    CHECK(text.find("queue=\"odd \\\"queue\\\"\\\\\\n\xc3\xa4\"") != std::string::npos);

    vouch::metrics crowded;
    for (std::size_t i = 0; i < vouch::metrics::labels_max + 10; ++i) {
        crowded.on({.what = event_kind::claimed, .queue = "q" + std::to_string(i)});
    }
    CHECK(has_line(crowded.text(), "vouch_claimed_total{queue=\"other\"} 10"));
}

TEST_CASE(
    "metrics: a look finds what is stuck behind any number of entries that wait, or says how many it has not seen") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 1500; ++n) { // older than what is stuck, and due some day
        auto d = draft_of(n, "q");
        d.due_at = t0 + 24h;
        put(store, d);
    }
    put(store, draft_of(2000, "q"));
    vouch::metrics counted;
    const auto look = [&](std::size_t entries_max) {
        counted.look_at(store, "q", t0 + 10min, {.entries_max = entries_max});
        return counted.text();
    };
    const auto whole = look(1501);
    CHECK(has_line(whole, "vouch_stuck_entries{queue=\"q\"} 1"));
    CHECK(has_line(whole, "vouch_entries_not_looked_at{queue=\"q\"} 0"));
    const auto cut = look(1500);
    CHECK(has_line(cut, "vouch_stuck_entries{queue=\"q\"} 0"));
    CHECK(has_line(cut, "vouch_entries_not_looked_at{queue=\"q\"} 1"));
    const auto none = look(0);
    CHECK(has_line(none, "vouch_entries_not_looked_at{queue=\"q\"} 1501"));
}

TEST_CASE("metrics: sagas under way are those that have not ended, whoever started them") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 4; ++n) {
        auto d = draft_of(n, "orders");
        d.topic = n == 4 ? "other" : "order";
        put(store, d);
    }
    REQUIRE(vouch::transact(store, [](auto& tx) { return tx.cancel(id_of(1), "abandoned", t0); }) ==
            vouch::verdict::applied);
    vouch::metrics fresh; // as after a restart: it has seen no event
    fresh.look_at(store, "orders", t0, {.saga_topics = {"order", "refund"}});
    CHECK(has_line(fresh.text(), "vouch_sagas_active{queue=\"orders\",topic=\"order\"} 2"));
    CHECK(has_line(fresh.text(), "vouch_sagas_active{queue=\"orders\",topic=\"refund\"} 0"));
    CHECK(fresh.text().find("topic=\"other\"") == std::string::npos);
}

TEST_CASE("metrics: promtool accepts the text") {
    const char* const promtool = std::getenv("VOUCH_PROMTOOL"); // tests/checks/promtool.py sets it
    if (promtool == nullptr) {
        WARN("skipped here: VOUCH_PROMTOOL does not name a promtool; checks.promtool finds one");
        return;
    }
    const auto file =
        std::filesystem::temp_directory_path() / ("vouch-metrics-" + std::to_string(std::rand()) + ".txt");
    std::ofstream(file) << metrics_of_everything();
    const auto command = std::string(promtool) + " check metrics <" + file.string();
    CHECK(std::system(command.c_str()) == 0);
    std::filesystem::remove(file);
}
