// SPDX-License-Identifier: MIT
// The history of attempts in the tables of a store of any kind. `Place` has a `store`, `options()` for its history table,
// `history_of(id)`, and `at`, which names the store for the tool.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "tool.hpp"

namespace history_test {

using namespace std::chrono_literals;

/// A queue whose handler fails three times.
template <class Store>
struct failing_work {
    explicit failing_work(Store& in) : outbox(in, {.clock = clock}) {
        router.on("t", [this](vouch::delivery& d) {
            if (d.attempt() <= failures) {
                throw vouch::failure("smtp_timeout");
            }
        });
    }
    vouch::id emit() { return outbox.emit({.queue = "q", .topic = "t"}).front().id; }

    std::uint32_t failures = 3;
    vouch::manual_clock clock{std::chrono::time_point_cast<vouch::duration>(std::chrono::system_clock::now())};
    vouch::outbox<Store> outbox;
    vouch::router<Store> router{outbox};
    vouch::runner<Store> runner{
        outbox,
        router,
        {.queue = "q", .worker = "w-1", .retry = {.backoff = vouch::fixed{1min}, .attempts_max = 1000}}};
};

template <class Place, class Table>
void lines_are_committed_with_outcomes(Place& in) {
    CHECK(in.history_of(vouch::id{.high = 1, .low = 1}).empty()); // there is no table yet
    const Table history(in.store, in.options());
    const Table again(in.store, in.options()); // it is there already
    failing_work work(in.store);
    work.runner.history(history);
    bool is_refused = true;
    work.runner.audit([&](auto&, const auto&) { // after the history's line, in the same transaction
        if (is_refused) {
            throw std::runtime_error("no");
        }
    });
    const auto id = work.emit();
    work.runner.run_until_idle(work.clock);
    CHECK(in.history_of(id).size() == 3); // the fourth outcome is held up, and its line with it
    is_refused = false;
    CHECK(work.runner.run_once().succeeded == 1);
    const auto lines = in.history_of(id);
    REQUIRE(lines.size() == 4);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CHECK(lines[i].id == id);
        CHECK(lines[i].epoch == i + 1);
        CHECK(lines[i].attempt == i + 1);
        CHECK(lines[i].worker == "w-1");
        CHECK(lines[i].error == (i < 3 ? "smtp_timeout" : ""));
    }
    CHECK(lines[0].what == vouch::attempt_line::kind::retrying);
    CHECK(lines[3].what == vouch::attempt_line::kind::succeeded);
    CHECK(lines[1].claimed_at == lines[0].at + 1min);
}

template <class Place, class Table>
void the_table_stays_bounded(Place& in) {
    auto few = in.options();
    few.lines_max = 5;
    few.keep = 1h;
    const Table history(in.store, few);
    failing_work work(in.store);
    work.failures = 20;
    work.runner.history(history);
    const auto id = work.emit();
    work.runner.run_until_idle(work.clock);
    const auto lines = in.history_of(id);
    CHECK(lines.size() == 5);
    CHECK(lines.back().epoch == 21);
    work.clock.pass(2h);
    work.failures = 0;
    std::vector<vouch::id> later;
    for (int i = 0; i < 3; ++i) { // each removes two that are old
        later.push_back(work.emit());
        work.runner.run_until_idle();
    }
    CHECK(in.history_of(id).empty());
    for (const auto& one : later) {
        CHECK(in.history_of(one).size() == 1);
    }
}

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off
template <class Place, class Table>
void show_prints_the_attempts(Place& in) {
    const Table history(in.store, in.options());
    failing_work work(in.store);
    work.runner.history(history);
    const auto id = work.emit();
    CHECK(work.runner.run_once().retried == 1);
    work.clock.pass(1min);
    REQUIRE(work.runner.claim(id).size() == 1); // and the process dies
    work.clock.pass(10min);
    work.runner.run_until_idle(work.clock);
    using tool_test::ask_tool;
    using tool_test::has_row;
    const auto a = ask_tool("show " + in.at + to_string(id));
    CHECK(a.code == 0);
    CHECK(has_row(a, "CLAIM OUTCOME ERROR WORKER TOOK ENDED"));
    CHECK(has_row(a, "1 retrying smtp_timeout w-1 0.0 s 20"));
    CHECK(has_row(a, "2 none: the lease expired"));
    CHECK(has_row(a, "3 retrying smtp_timeout w-1"));
    CHECK(tool_test::says(a, "succeeded"));
    CHECK(tool_test::says(ask_tool("show --json " + in.at + to_string(id)),
                          R"("history":[{"claim":1,"outcome":"retrying","error":"smtp_timeout","worker":"w-1")"));
}
#endif

} // namespace history_test
