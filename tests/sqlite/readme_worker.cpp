// SPDX-License-Identifier: MIT
// The worker that include/vouch/run/README.md shows, stopped by a signal after its first success.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <vouch/observe.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"

using namespace std::chrono_literals;

TEST_CASE("readme: a worker with everything an operator wants") {
    const sqlite_test::folder in;
    vouch::sqlite::store store(in.fresh_path());
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    vouch::router bank(outbox);
    router.on("t", [](vouch::delivery&) {});
    outbox.emit({.queue = "mail", .topic = "t"});
    const std::jthread operator_with_a_signal([&] {
        while (store.counts("mail")[vouch::state::succeeded] == 0) {
            std::this_thread::sleep_for(1ms);
        }
        std::raise(SIGTERM);
    });

    // clang-format off
    const vouch::stop_signals signals;                        // SIGINT and SIGTERM; a second one ends the process at once
    vouch::metrics metrics;                                   // metrics.text() is the answer to a Prometheus scrape
    outbox.observe(metrics);                                  // sees this outbox and every worker built from it
    const vouch::sqlite::audit_table audit(store);            // one row per ended entry, in the commit of its outcome

    vouch::worker worker(outbox, {.name = "mailer-1", .stop_within = 30s});
    worker.serve(router, {.queue = "mail", .concurrency = 8, .retention = {.succeeded = vouch::purge_rule::after(24h * 30)}});
    worker.serve(bank, {.queue = "bank", .lease = 1min});
    worker.audit(audit);
    worker.run(signals.token());
    // clang-format on

    CHECK(metrics.text().find("vouch_settled_total{queue=\"mail\",outcome=\"succeeded\"} 1") != std::string::npos);
}
