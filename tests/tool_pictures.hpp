// SPDX-License-Identifier: MIT
// Sagas, copies and pictures of the operator's tool, on a store of any kind; see tool_scenarios.hpp.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "tool.hpp"
#include "tool_export.hpp"
#include "tool_scenarios.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace tool_test {

/// An order of two commands, of which the second is rejected, so that the first is undone.
template <class Operated>
[[nodiscard]] vouch::id compensated_order(Operated& o, bool is_finished = true) {
    static const auto order =
        vouch::define_saga<std::string>("order")
            .command("pay", {.queue = "pay", .topic = "charge", .undo = "refund", .timeout = 1h})
            .command("ship \"now\"", {.queue = "ship", .topic = "send", .undo = "recall", .timeout = 1h})
            .build();
    const auto id = o.outbox.start(order, "orders", std::string("a lamp"));
    vouch::router orders(o.outbox);
    orders.on(order);
    vouch::router others(o.outbox);
    others.on("charge", [](vouch::delivery&) {});
    others.on("refund", [](vouch::delivery&) {});
    others.on("send", [](vouch::delivery&) { throw vouch::reject("no_stock"); });
    for (int pass = 0; pass < (is_finished ? 10 : 1); ++pass) {
        vouch::runner(o.outbox, orders, {.queue = "orders"}).run_until_idle();
        vouch::runner(o.outbox, others, {.queue = "pay"}).run_until_idle();
        vouch::runner(o.outbox, others, {.queue = "ship"}).run_until_idle();
    }
    return id;
}

template <class Operated>
void a_compensated_saga_looks_compensated(Operated& o) {
    const auto id = compensated_order(o);
    REQUIRE(o.store.find(id)->state == vouch::state::succeeded);
    CHECK(has_row(ask_tool("list --queue orders " + o.at), to_string(id) + " orders order compensated "));
    CHECK(says(ask_tool("list --queue orders --json " + o.at), R"("shown_state":"compensated")"));
    CHECK(ids_in("list " + o.at + "--state compensated") == these(id));
    CHECK(says(ask_tool("show " + o.at + to_string(id)), "state            compensated\n"));
    CHECK(says(ask_tool("saga --json " + o.at + to_string(id)), R"("state":"compensated")"));
}

template <class Operated>
void saga_shows_steps_times_and_a_diagram(Operated& o) {
    const auto ended = compensated_order(o);
    const auto a = ask_tool("saga " + o.at + to_string(ended));
    CHECK(a.code == 0);
    CHECK(says(a, "order v1 compensated because no_stock [pay undone, ship \"now\" failed]"));
    CHECK(has_row(a, "STEP STATE BEGAN COMMAND COMPENSATION"));
    CHECK(has_row(a, "pay undone 20"));
    CHECK(says(a, "charge succeeded, took 0."));
    CHECK(says(a, "refund succeeded, took 0."));
    CHECK(says(a, "send dead, took 0."));
    const auto diagram = ask_tool("saga --mermaid " + o.at + to_string(ended));
    CHECK(says(diagram, "flowchart LR\n"));
    CHECK(says(diagram, "start --> s0[\"pay<br/>undone\"]:::undone\n"));
    CHECK(says(diagram, "s0 --> s1[\"ship #34;now#34;<br/>failed\"]:::failed\n")); // a name cannot end its label
    CHECK(says(diagram, "s1 --> finish([\"compensated\"])\n"));

    const auto waiting = compensated_order(o, false);
    const auto b = ask_tool("saga " + o.at + to_string(waiting));
    CHECK(says(b, "order v1 forward at pay [pay begun], waits for pay charge succeeded, timeout in 59 min"));
    CHECK_FALSE(says(b, "until -"));
    CHECK(says(ask_tool("saga --json " + o.at + to_string(waiting)), R"("at":"pay")"));
    const auto none = ask_tool("saga " + o.at + to_string(o.due));
    CHECK(none.code == 1);
    CHECK(says(none, "is not a saga"));
}

#if __has_include(<nlohmann/json.hpp>)
template <class Operated>
void export_loses_nothing(Operated& o) {
    static_cast<void>(compensated_order(o));
    static_cast<void>(o.emit({.topic = "gr\xc3\xbc\xc3\x9f",
                              .payload = std::string("\0\xff\x1b[2J\n", 7),
                              .key = "k \"1\"",
                              .group = "g",
                              .headers = {{"h", "\xfe\xff"}, {"\xe2\x80\xae", "\xe2\x80\xae"}}}));
    const auto huge = o.emit({.topic = "huge", .payload = std::string(1024 * 1024, '\xff')});
    const auto a = ask_tool("export " + o.at);
    CHECK(a.code == 0);
    for (const char c : a.said) {
        if (c != '\n' && (c < ' ' || c > '~')) {
            FAIL("a byte that is not printable");
        }
    }
    const auto got = entries_of(a.said);
    std::size_t stored = 0;
    for (const auto& queue : {"q", "orders", "pay", "ship"}) {
        stored += o.store.counts(queue).total();
    }
    CHECK(got.size() == stored);
    for (const auto& e : got) {
        CHECK((e == *o.store.find(e.id)));
    }
    const auto one = entries_of(ask_tool("export --topic huge " + o.at).said);
    CHECK(one.size() == 1);
    CHECK(one.at(0).id == huge);
}
#endif

template <class Operated>
void watch_draws_what_changes(Operated& o) {
    const auto a = ask_tool("watch --every 200ms --count 2 " + o.at);
    CHECK(a.code == 0);
    CHECK(has_row(a, "QUEUE WAITING RUNNING SUCCEEDED DEAD DONE/S NEW DEAD NEXT DUE"));
    CHECK(has_row(a, "q 6 1 1 1 overdue 0."));
    CHECK(has_row(a, "q 6 1 1 1 0.0 overdue 0.")); // the second picture has a rate
    CHECK(a.said.find('\x1b') == std::string::npos);
    const auto drawn = ask("TERM=xterm script -qec '" + std::string(VOUCH_TOOL) + " watch --every 100ms --count 2 " +
                           o.quoted_at + "' /dev/null");
    CHECK(says(drawn, "\x1b[H\x1b[J"));
    const auto ended = ask("timeout --preserve-status -s INT 0.5 " + std::string(VOUCH_TOOL) + " watch " + o.at);
    CHECK(ended.code == 0);
    CHECK(has_row(ended, "q 6 1 1 1"));
    CHECK(ask_tool("watch --every 1ms " + o.at).code == 2);
}

/// 100,000 entries in one queue, one of them with a rare worker.
template <class Operated>
void many_entries_are_read_in_pages(Operated& o) {
    constexpr std::size_t count = 100'000;
    constexpr std::size_t at_once = 10'000;
    for (std::size_t first = 0; first < count; first += at_once) {
        std::vector<vouch::emission> some(at_once, vouch::emission{.queue = "many", .topic = "t", .due_in = 1h});
        static_cast<void>(o.outbox.emit(some));
    }
    const auto rare = o.outbox.emit({.queue = "many", .topic = "rare", .lane = "rare"}).front().id;
    const auto start = std::chrono::steady_clock::now();
    CHECK(has_row(ask_tool("stats " + o.at), "many 100001 0 0 0 0"));
    const auto page = ask_tool("list --queue many --limit 2 " + o.at);
    CHECK(std::count(page.said.begin(), page.said.end(), '\n') == 4);
    CHECK(says(page, "there are more; --after "));
    CHECK(ids_in("list " + o.at + "--queue many --topic rare") == these(rare));
    CHECK(ids_in("list " + o.at + "--queue many --lane rare --scan 200000") == these(rare));
    const auto cut = ask_tool("list --queue many --lane rare --scan 1000 " + o.at);
    CHECK(cut.code == 0);
    CHECK(says(cut, "stopped after reading 1000 entries; --after "));
    CHECK_FALSE(says(cut, to_string(rare)));
    CHECK(says(ask_tool("ages --queue many --scan 1000000 " + o.at), "1 due, the oldest for "));
    CHECK(says(ask_tool("ages --queue many --scan 5000 " + o.at), "stopped after reading 5000 entries"));
    CHECK(says(ask_tool("why " + o.at + to_string(rare)), "Is a worker running for queue many?"));
    CHECK(says(ask_tool("retry --queue many --dry-run " + o.at), "would retry 100001 entries"));
    CHECK(says(ask_tool("retry --queue many --yes --scan 20000 " + o.at), "20000 due now"));
    const auto all = ask_tool("export --queue many " + o.at + "| wc -l");
    CHECK(says(all, "100001"));
    CHECK(std::chrono::steady_clock::now() - start <
          120s); // about 10 s; reading all for every page would take much longer
}

} // namespace tool_test

#endif
