// SPDX-License-Identifier: MIT
// Metrics: values counted from events and read from the store, as Prometheus text.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <vouch/observe.hpp>
#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "saga_support.hpp"
#include "support.hpp"

namespace observe_metrics_test {

using namespace support;
using vouch::event;
using vouch::event_kind;

namespace {

constexpr auto every_kind = {event_kind::enqueued,  event_kind::claimed,         event_kind::started,
                             event_kind::succeeded, event_kind::advanced,        event_kind::retried,
                             event_kind::dead,      event_kind::released,        event_kind::stale,
                             event_kind::unsettled, event_kind::group_completed, event_kind::lease_lost,
                             event_kind::purged,    event_kind::store_error,     event_kind::polled};

[[nodiscard]] bool has_line(const std::string& text, const std::string& line) {
    return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
}

/// Every metric, also for names that need escaping.
[[nodiscard]] std::string metrics_of_everything() {
    vouch::metrics counted;
    for (const std::string_view queue : {"mail", "odd \"queue\"\\\n\xc3\xa4"}) {
        for (const auto what : every_kind) {
            counted.on({.what = what,
                        .at = t0,
                        .queue = queue,
                        .error = "io",
                        .count = 3,
                        .age = 2s,
                        .late = 7ms,
                        .took = 30ms});
        }
        const auto end_saga = [&](std::string_view how, vouch::duration age) {
            counted.on({.what = event_kind::succeeded, .queue = queue, .tag = how, .is_saga = true, .age = age});
        };
        end_saga("completed", 10s);
        end_saga("compensated", 20s);
        end_saga("compensated", 30s);
    }
    vouch::memory::store store;
    put(store, draft_of(1, "mail"));
    counted.look_at(store, "mail", t0 + 10min, {.saga_topics = {"t", "odd \"topic\"\\\n"}});
    counted.look_at(store, "empty", t0);
    return counted.text();
}

} // namespace

TEST_CASE("metrics: counts events, distinguishes completed from compensated sagas, and reads the depth of queues") {
    const auto text = metrics_of_everything();
    CHECK(has_line(text, "vouch_claimed_total{queue=\"mail\"} 1"));
    CHECK(has_line(text, "vouch_purged_total{queue=\"mail\"} 3"));
    CHECK(has_line(text, "vouch_settled_total{queue=\"mail\",outcome=\"succeeded\"} 4"));
    CHECK(has_line(text, "vouch_settled_total{queue=\"mail\",outcome=\"retried\"} 1"));
    CHECK(has_line(text, "vouch_sagas_total{queue=\"mail\",outcome=\"completed\"} 1"));
    CHECK(has_line(text, "vouch_sagas_total{queue=\"mail\",outcome=\"compensated\"} 2"));
    CHECK(has_line(text, "vouch_saga_seconds_sum{queue=\"mail\",outcome=\"completed\"} 10.000000"));
    CHECK(has_line(text, "vouch_saga_seconds_sum{queue=\"mail\",outcome=\"compensated\"} 50.000000"));
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
    "metrics: look_at finds a stuck entry behind any number of waiting ones, or reports how many it has not read") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 1500; ++n) { // older than the stuck entry, and due later
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

TEST_CASE("metrics: active sagas are read from the store, also those started by another process") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 4; ++n) {
        auto d = draft_of(n, "orders");
        d.topic = n == 4 ? "other" : "order";
        put(store, d);
    }
    REQUIRE(vouch::transact(store, [](auto& tx) { return tx.cancel(id_of(1), "abandoned", t0); }) ==
            vouch::verdict::applied);
    vouch::metrics fresh; // as after a restart: it has counted no event
    fresh.look_at(store, "orders", t0, {.saga_topics = {"order", "refund"}});
    CHECK(has_line(fresh.text(), "vouch_sagas_active{queue=\"orders\",topic=\"order\"} 2"));
    CHECK(has_line(fresh.text(), "vouch_sagas_active{queue=\"orders\",topic=\"refund\"} 0"));
    CHECK(fresh.text().find("topic=\"other\"") == std::string::npos);
}

TEST_CASE("metrics: queues beyond the maximum number of labels are summed under other, for events and for look_at") {
    vouch::memory::store store;
    vouch::metrics crowded;
    constexpr auto most = vouch::metrics::labels_max;
    for (std::size_t i = 0; i < most + 3; ++i) {
        const auto queue = "q" + std::to_string(i);
        put(store, draft_of(i + 1, queue));
        crowded.look_at(store, queue, t0 + 1s * i);
    }
    crowded.look_at(store, "q" + std::to_string(most), t0); // replaces its earlier values
    const auto text = crowded.text();
    CHECK(has_line(text, "vouch_entries{queue=\"q0\",state=\"pending\"} 1"));
    CHECK(has_line(text, "vouch_entries{queue=\"other\",state=\"pending\"} 3"));
    CHECK(has_line(text, "vouch_overdue_seconds{queue=\"other\"} 1002.000000"));
    CHECK(text.find("queue=\"q" + std::to_string(most) + '"') == std::string::npos);

    crowded.on({.what = event_kind::claimed, .queue = "yet another"}); // events and look_at share the labels
    CHECK(has_line(crowded.text(), "vouch_claimed_total{queue=\"other\"} 1"));
}

TEST_CASE("metrics: error codes beyond a hundred per queue are summed under other, known ones keep their label") {
    vouch::metrics counted;
    const auto fail = [&](event_kind what, const std::string& code) {
        counted.on({.what = what, .queue = "q", .error = code});
    };
    for (const auto what : {event_kind::retried, event_kind::store_error}) {
        for (int round = 0; round < 2; ++round) {
            for (int n = 0; n < 110; ++n) {
                fail(what, "e" + std::to_string(n));
            }
        }
    }
    for (const std::string name : {"vouch_failures_total", "vouch_store_errors_total"}) {
        CHECK(has_line(counted.text(), name + "{queue=\"q\",error=\"e0\"} 2"));
        CHECK(has_line(counted.text(), name + "{queue=\"q\",error=\"e99\"} 2"));
        CHECK(has_line(counted.text(), name + "{queue=\"q\",error=\"other\"} 20"));
    }
}

TEST_CASE("metrics: failures are counted by code, retries by delay, and dead entries by reason") {
    vouch::testing::sandbox box({.retry = {.backoff = vouch::schedule{1s, 10s}}});
    vouch::metrics counted;
    box.runner().observe(counted);
    box.on("poison", [] { throw vouch::failure("away"); });
    box.on("refused", [] { throw vouch::reject("no_such_user"); });
    box.on("given up", []() -> vouch::outcome { return vouch::bury{.error = "hopeless"}; });
    box.on("late", [] {});
    box.on("too much", [] { return std::string(vouch::limits{}.result_max + 1, 'x'); });
    for (const std::string topic : {"poison", "refused", "given up", "unhandled", "too much"}) {
        box.emit({.topic = topic});
    }
    box.emit({.topic = "late", .expires_in = 1s});
    const auto crashed = box.emit({.topic = "refused", .due_in = 1h, .attempts_max = 1});
    box.pass(1s);
    box.run_until_idle();
    const auto text = counted.text();
    CHECK(has_line(text, "vouch_failures_total{queue=\"test\",error=\"away\"} 3"));
    CHECK(has_line(text, "vouch_failures_total{queue=\"test\",error=\"no_such_user\"} 2"));
    CHECK(has_line(text, "vouch_retry_delay_seconds_bucket{queue=\"test\",le=\"0.5\"} 0"));
    CHECK(has_line(text, "vouch_retry_delay_seconds_bucket{queue=\"test\",le=\"1\"} 1"));
    CHECK(has_line(text, "vouch_retry_delay_seconds_bucket{queue=\"test\",le=\"30\"} 2"));
    CHECK(has_line(text, "vouch_retry_delay_seconds_count{queue=\"test\"} 2"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"exhausted\"} 1"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"rejected\"} 2"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"buried\"} 1"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"expired\"} 1"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"no_handler\"} 1"));
    CHECK(has_line(text, "vouch_dead_total{queue=\"test\",reason=\"invalid\"} 1"));
    CHECK(box.find(crashed.id)->state == vouch::state::dead);
}

TEST_CASE("metrics: handler time is counted only for handlers that were called, even if they took no time") {
    vouch::testing::sandbox box;
    vouch::metrics counted;
    box.runner().observe(counted);
    box.on("t", [] {});
    box.on("back", []() -> vouch::outcome { return vouch::release{.at = vouch::time_point::max()}; });
    box.emit({.topic = "unhandled"});
    box.emit({.topic = "t", .expires_in = 1s});
    box.pass(1s);
    box.run_once();
    CHECK(has_line(counted.text(), "vouch_settled_total{queue=\"test\",outcome=\"dead\"} 2"));
    CHECK(has_line(counted.text(), "vouch_handler_seconds_count{queue=\"test\"} 0"));

    std::stop_source stop;
    stop.request_stop();
    box.emit({.topic = "t"});
    box.runner().run_once(stop.get_token());
    CHECK(has_line(counted.text(), "vouch_settled_total{queue=\"test\",outcome=\"released\"} 1"));
    CHECK(has_line(counted.text(), "vouch_handler_seconds_count{queue=\"test\"} 0"));

    box.emit({.topic = "back"});
    box.run_once();
    CHECK(has_line(counted.text(), "vouch_handler_seconds_count{queue=\"test\"} 2"));
}

TEST_CASE("metrics: an entry counts as a saga by its progress, not by its handler's tag") {
    saga_support::stage on;
    vouch::metrics counted;
    bool refuses = false;
    const auto d = saga_support::define()
                       .step(
                           "one", [&] { on.pass(10s); }, [] {})
                       .step("two",
                             [&] {
                                 if (refuses) {
                                     throw vouch::reject("no");
                                 }
                             })
                       .build();
    on.play(d);
    on.on("sagas", "plain", [](vouch::delivery& call) { call.tag("completed"); });
    on.on("sagas", "blue", [](vouch::delivery& call) { call.tag("blue"); });
    const auto run = [&] {
        auto runner = on.runner();
        runner.observe(counted);
        runner.run_until_idle();
        return counted.text();
    };
    on.emit({.queue = "sagas", .topic = "plain"});
    on.emit({.queue = "sagas", .topic = "blue", .progress = "saga of a handler's own"});
    auto text = run();
    CHECK(has_line(text, "vouch_sagas_total{queue=\"sagas\",outcome=\"completed\"} 0"));
    CHECK(has_line(text, "vouch_saga_seconds_count{queue=\"sagas\",outcome=\"completed\"} 0"));
    CHECK(has_line(text, "vouch_saga_seconds_count{queue=\"sagas\",outcome=\"compensated\"} 0"));

    on.begin(d);
    text = run();
    refuses = true;
    on.emit({.queue = "sagas", .topic = d.name, .payload = "begun without begin()"});
    text = run();
    CHECK(has_line(text, "vouch_sagas_total{queue=\"sagas\",outcome=\"completed\"} 1"));
    CHECK(has_line(text, "vouch_sagas_total{queue=\"sagas\",outcome=\"compensated\"} 1"));
    CHECK(has_line(text, "vouch_saga_seconds_sum{queue=\"sagas\",outcome=\"completed\"} 10.000000"));
    CHECK(has_line(text, "vouch_saga_seconds_sum{queue=\"sagas\",outcome=\"compensated\"} 10.000000"));
}

TEST_CASE("metrics: a saga that waits for a participant without a worker is stuck, an entry that is due later is not") {
    saga_support::stage on;
    const auto d = saga_support::define().command("pay", {.queue = "bank", .topic = "pay", .timeout = 1h}).build();
    on.play(d);
    on.begin(d);
    on.emit({.queue = "sagas", .topic = "plain", .due_in = 1h});
    auto delayed = d.begin(on.outbox, {.queue = "sagas"}, std::string("tomorrow"));
    delayed.due_in = 24h;
    on.emit(delayed);
    on.run();
    vouch::metrics counted;
    const auto look_after = [&](vouch::duration by) {
        on.pass(by);
        counted.look_at(on.store, "sagas", on.clock());
        return counted.text();
    };
    const auto early = look_after(5min);
    CHECK(has_line(early, "vouch_sagas_active{queue=\"sagas\",topic=\"order\"} 2"));
    CHECK(has_line(early, "vouch_sagas_stuck{queue=\"sagas\",topic=\"order\"} 0"));
    CHECK(has_line(early, "vouch_stuck_entries{queue=\"sagas\"} 0"));
    const auto late = look_after(1s);
    CHECK(has_line(late, "vouch_sagas_stuck{queue=\"sagas\",topic=\"order\"} 1"));
    CHECK(has_line(late, "vouch_stuck_entries{queue=\"sagas\"} 1"));
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

} // namespace observe_metrics_test
