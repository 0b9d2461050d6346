// SPDX-License-Identifier: MIT
// What a saga does at its edges: definitions, versions and progress it cannot read, its end, a late settle.
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_three_steps.hpp"

namespace saga_versions_test {

using namespace saga_support;
using vouch::event_kind;
using vouch::state;
using vouch::step_call;

TEST_CASE("saga: an unknown definition or version is released for later and reported, never buried or run") {
    stage on;
    const auto v1 = three(on, 0, on.does(""));
    on.play(three(on, 0, on.does(""), {}, {.version = 2}));
    SECTION("of a version that is not here") {
        const auto id = on.begin(v1);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_version"});
        CHECK(on.entry(id).state == state::pending);
        CHECK(on.entry(id).attempts == 0);
        CHECK(on.entry(id).due_at == on.start + vouch::detail::saga_recheck_interval);
    }
    SECTION("of another definition") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        auto p = *vouch::decode_progress(e.progress);
        p.definition = "invoice";
        e.progress = vouch::encode_progress(p);
        const auto id = on.emit(e);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_definition"});
        CHECK(on.entry(id).progress == e.progress);
    }
    SECTION("of the same version with other steps") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.progress =
            vouch::encode_progress({.definition = "order", .version = 2, .steps = {{.name = "something else"}}});
        on.emit(e);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_version"});
    }
    SECTION("also when it has expired") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.expires_in = 1s;
        const auto id = on.emit(e);
        on.pass(1s);
        CHECK(on.run().released == 1);
        CHECK(on.entry(id).state == state::pending);
    }
    CHECK(on.log.empty());
}

TEST_CASE("saga: versions run side by side; an entry without progress has the newest") {
    stage on;
    const auto v1 = define().step("old", on.does("old")).build();
    const auto v2 = define({.version = 2}).step("new", on.does("new")).build();
    on.play({v2, v1});
    on.begin(v1);
    on.begin(v2);
    on.emit({.queue = "sagas", .topic = "order"});
    on.run();
    CHECK(on.log == lines{"old", "new", "new"});
}

TEST_CASE("saga: progress that cannot be read is left unchanged, and the entry is claimed again later") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.progress.back() = static_cast<char>(e.progress.back() + 1);
    const auto id = on.emit(e);
    CHECK(on.run().released == 1);
    CHECK(on.tags() == lines{"unreadable_progress"});
    CHECK(on.entry(id).progress == e.progress);
    CHECK(on.log.empty());
}

TEST_CASE("saga: a result that is too large makes it compensate, and its step is undone without it") {
    stage on;
    const std::string large(vouch::limits{}.progress_max - 600, 'x');
    const std::size_t which = GENERATE(2U, 3U);
    const auto d = three(on, which, on.does("do large", large + std::string(300, 'x')));
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.status(id).reason == "progress_too_large");
    const lines undone =
        which == 2 ? lines{"undo 2 <>", "undo 1 <r1>"} : lines{"undo 3 <>", "undo 2 <r2>", "undo 1 <r1>"};
    CHECK(lines(on.log.end() - static_cast<std::ptrdiff_t>(which), on.log.end()) == undone);
}

TEST_CASE("saga: its end emits its topic, in the settling transaction, with the reason") {
    stage on(vouch::bindings{}.bind("order.#", "mail"));
    const auto d = three(on, 2,
                         [](const std::string& payload) {
                             if (payload == "bad") {
                                 throw vouch::reject("no");
                             }
                         },
                         {}, {.completed = "order.confirmed", .compensated = "order.failed"});
    on.play(d);
    on.begin(d, "good");
    on.begin(d, "bad");
    on.run();
    const auto mails = on.store.list({.by = vouch::query::path::all, .queue = "mail", .payloads = true});
    REQUIRE(mails.size() == 2);
    const bool good_first = mails[0].payload == "good";
    const auto& good = mails[good_first ? 0 : 1];
    const auto& bad = mails[good_first ? 1 : 0];
    CHECK(good.topic == "order.confirmed");
    CHECK(bad.topic == "order.failed");
    CHECK(bad.headers.back() == std::pair<std::string, std::string>("saga-reason", "no"));
}

TEST_CASE("saga: one whose topic is not bound waits until it is") {
    stage on;
    const auto d = three(on, 0, on.does(""), {}, {.completed = "order.confirmed"});
    on.play(d);
    const auto id = on.begin(d);
    CHECK(on.run().released == 1);
    CHECK(on.tags() == lines{"unrouted"});
    CHECK(on.entry(id).state == state::pending);
    CHECK(on.log.size() == 3);
}

TEST_CASE("saga: a payload that does not decode is dead at once, but waits once a step is done") {
    stage on;
    auto d = define().step("s1", on.does("do 1"), on.does("undo 1")).step("s2", on.does("do 2")).build();
    d.check = [](const vouch::delivery& x) {
        if (x.payload() == "bad") {
            throw vouch::reject("undecodable");
        }
    };
    on.play(d);
    const auto bad = on.begin(d, "bad");
    on.run();
    CHECK(on.entry(bad).last_error == "undecodable");

    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("bad"));
    e.progress = vouch::encode_progress({.definition = "order", .version = 1, .steps = {{.name = "s1"}}});
    const auto later = on.emit(e);
    on.run();
    CHECK(on.entry(later).state == state::pending);
    CHECK(on.tags() == lines{"undecodable"});
    CHECK(on.log.empty());
}

TEST_CASE("saga: a runner that settles too late changes nothing") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    const auto id = on.begin(d);
    auto slow = on.runner();
    auto late = slow.handle_all(slow.claim());
    on.pass(5min);
    on.runner().run_once();
    CHECK(slow.settle(late).stale == 1);
    on.run();
    CHECK(on.log == lines{"do 1", "do 1", "do 2", "do 3"});
    CHECK(on.status(id).is_completed());
}

} // namespace saga_versions_test
