// SPDX-License-Identifier: MIT
// The settling transaction: its fixed order, that it is all or nothing, and what happens when it cannot be had.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "scripted_store.hpp"
#include "support.hpp"

namespace run_settling_test {

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::state;
using vouch::testing::sandbox;

namespace {

/// A runner on a scripted store, whose handler counts its calls and emits a follow-up.
struct stage {
    scripted_store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox<scripted_store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::router<scripted_store> router{outbox};
    int called = 0;
    std::vector<std::string> log{};
    vouch::runner<scripted_store> runner{outbox, router, {.queue = "q"}};

    stage() {
        router.on("t", [this](delivery& d) {
            ++called;
            d.emit({.queue = "next", .topic = "follow"});
        });
    }
    void put(std::uint64_t n, std::string group = {}) {
        auto d = draft_of(n);
        d.group = std::move(group);
        vouch::enqueue(store.plain(), std::span(&d, 1), clock());
    }
    [[nodiscard]] vouch::state_counts counts() const { return store.counts("q"); }
    [[nodiscard]] std::size_t follow_ups() const { return store.counts("next").total(); }
};

struct recording {
    std::function<void()> then;
    std::string work(delivery&) { return "r"; }
    void record(vouch::memory::transaction&, const std::string&) { then(); }
};

} // namespace

TEST_CASE("settling: records, then emissions, then audit, then the change of state, then the group's callback") {
    sandbox box;
    std::vector<std::string> log;
    const auto state_in = [](auto& tx, const vouch::id& i) { return std::string(name_of(tx.find(i)->state)); };
    box.on("t", recording{[&] { log.push_back("record"); }});
    box.runner().audit([&](auto& tx, const vouch::audit_line& l) {
        log.push_back("audit " + std::string(name_of(l.what)) + ", entry " + state_in(tx, l.id));
    });
    box.runner().on_group_complete([&](auto& tx, const std::string& group, const vouch::entry& last) {
        log.push_back("group " + group + ", entry " + state_in(tx, last.id));
    });
    box.emit({.topic = "t", .group = "g"});
    box.run_once();
    CHECK(log == std::vector<std::string>{"record", "audit succeeded, entry claimed",
                                          "audit group_completed, entry succeeded", "group g, entry succeeded"});

    sandbox other;
    log.clear();
    other.on("t", [](delivery& d) { d.emit({.queue = "next", .topic = "follow"}); });
    other.runner().audit([&](auto& tx, const vouch::audit_line&) {
        log.push_back(std::to_string(tx.counts("next").total()) + " follow-ups");
    });
    other.emit({.topic = "t"});
    other.run_once();
    CHECK(log == std::vector<std::string>{"1 follow-ups"});
}

TEST_CASE("audit: terminal outcomes and completed groups are told, failed attempts are not") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}});
    std::vector<std::string> lines;
    box.on("bad", [] { throw vouch::failure("broken"); });
    box.on("good", [] {});
    box.runner().audit([&](auto&, const vouch::audit_line& l) {
        lines.push_back(std::string(name_of(l.what)) + ' ' + l.topic + ' ' + std::to_string(l.attempts) + ' ' +
                        l.error);
    });
    box.emit({.topic = "bad"});
    box.emit({.topic = "good"});
    box.run_until_idle();
    CHECK(lines == std::vector<std::string>{"succeeded good 1 ", "dead bad 2 broken"});
}

TEST_CASE("audit: while a sink fails the outcome is kept, and the handler is not called again") {
    sandbox box;
    int called = 0;
    bool down = true;
    std::vector<vouch::id> lines;
    box.on("t", [&] { ++called; });
    box.runner().audit([&](auto&, const vouch::audit_line& l) {
        if (down) {
            throw std::runtime_error("disk of the audit log is gone");
        }
        lines.push_back(l.id);
    });
    const auto got = box.emit({.topic = "t"});
    const auto done = box.run_once();
    CHECK(done.held_up == 1);
    CHECK(done.trace.front().error == "std::runtime_error");
    CHECK(box.find(got.id)->state == state::claimed);
    CHECK(box.run_once().claimed == 0);

    down = false;
    box.pass(5min);
    CHECK(box.run_once().succeeded == 1);
    CHECK(called == 1);
    CHECK(lines == std::vector{got.id});
}

TEST_CASE("audit: a sink that is down for hours costs no entry an attempt, and no handler is called twice") {
    sandbox box;
    int called = 0;
    bool down = true;
    box.on("t", [&] { ++called; });
    box.runner().audit([&](auto&, const vouch::audit_line&) {
        if (down) {
            throw std::runtime_error("gone");
        }
    });
    for (int n = 0; n < 200; ++n) {
        box.emit({.topic = "t"});
    }
    for (int minute = 0; minute < 180; ++minute) {
        CHECK(box.run_once().held_up == 50); // a batch is kept; more is not claimed
        box.pass(1min);
    }
    CHECK(called == 50);
    CHECK(box.runner().run_until_idle().held_up == 50);
    down = false;
    CHECK(box.runner().run_until_idle().succeeded == 200);
    CHECK(called == 200);
    for (const auto& e : box.entries()) {
        CHECK(e.attempts == 1);
        CHECK(e.state == state::succeeded);
    }
    const auto events = box.events();
    CHECK(std::count_if(events.begin(), events.end(),
                        [](const auto& e) { return e.what == event_kind::hook_failed; }) == 50); // once each
}

TEST_CASE("audit: if the process dies while a sink fails, the lease heals the entry") {
    stage s;
    s.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("gone"); });
    s.put(1);
    CHECK(s.runner.run_once().held_up == 1);
    vouch::runner another(s.outbox, s.router, {.queue = "q"});
    CHECK(another.run_once().claimed == 0);
    s.clock.pass(5min);
    CHECK(another.run_once().succeeded == 1);
    CHECK(s.called == 2);
    CHECK(s.runner.run_once().stale == 1); // the first runner was only slow, and gives up what it has kept
    CHECK(s.follow_ups() == 1);
}

TEST_CASE(
    "groups: the callback runs once, with the settle that completes the group; if it throws nothing is recorded") {
    stage s;
    bool down = true;
    std::vector<std::string> completed;
    s.runner.on_group_complete([&](auto&, const std::string& group, const vouch::entry&) {
        if (down) {
            throw std::runtime_error("not now");
        }
        completed.push_back(group);
    });
    s.put(1, "g");
    s.put(2, "g");
    s.put(3);
    const auto first = s.runner.run_once();
    CHECK(first.succeeded == 2); // the first of the group and the one outside it
    CHECK(first.held_up == 1);
    CHECK(completed.empty());
    CHECK(s.follow_ups() == 2);

    down = false;
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(s.called == 3);
    CHECK(completed == std::vector<std::string>{"g"});
    CHECK(s.follow_ups() == 3);
}

TEST_CASE("settling: a batch is settled in one commit, and fused with the next claim") {
    stage s;
    for (std::uint64_t n = 1; n <= 120; ++n) {
        s.put(n);
    }
    CHECK(s.runner.run_until_idle().succeeded == 120);
    CHECK(s.store.plan().commits == 1 + 3); // the first claim, then three settles of 50, 50 and 20
    CHECK(s.called == 120);
}

TEST_CASE("settling: one late entry does not hold up the others, and no handler is called again") {
    stage s;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        s.put(n);
    }
    auto batch = s.runner.handle_all(s.runner.claim());
    s.clock.pass(5min);
    const auto other = take(s.store.plain(), s.clock(), {.limit = 1, .only = id_of(2)});
    REQUIRE(other.size() == 1);
    const auto done = s.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 1);
    CHECK(s.called == 3);
    CHECK(s.follow_ups() == 2);
    CHECK(s.store.find(id_of(2))->state == state::claimed);
    CHECK(settle(s.store.plain(), ticket_of(other.front()), vouch::succeed{}, s.clock()).verdict ==
          vouch::verdict::applied);
}

TEST_CASE("settling: a conflict is repeated without calling the handler again") {
    stage s;
    s.put(1);
    s.store.plan().fates = {commit_fate::conflict, commit_fate::fine, commit_fate::conflict, commit_fate::conflict};
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(s.called == 1);
    CHECK(s.follow_ups() == 1);
}

TEST_CASE("in doubt: a claim is forgotten, never run, and healed by its lease") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        s.put(1);
        s.store.plan().fates = {fate};
        CHECK(error_of([&] { s.runner.run_once(); })->is_in_doubt());
        CHECK(s.called == 0);
        s.clock.pass(5min);
        CHECK(s.runner.run_once().succeeded == 1);
        CHECK(s.called == 1);
    }
}

TEST_CASE("in doubt: a settle is repeated under the same tickets, and lands exactly once either way") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        int audited = 0;
        s.runner.audit([&](auto& tx, const vouch::audit_line& l) {
            const vouch::draft line{.id = derive(l.id, "audit"), .queue = "audit", .topic = "line"};
            tx.enqueue(std::span(&line, 1), t0);
            ++audited;
        });
        s.put(1);
        s.put(2);
        s.store.plan().fates = {commit_fate::fine, fate};
        const auto done = s.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(s.called == 2);
        CHECK(s.counts()[state::succeeded] == 2);
        CHECK(s.follow_ups() == 2);
        CHECK(s.store.counts("audit").total() == 2);
        CHECK(audited == (fate == commit_fate::lost_in_doubt ? 4 : 2));
    }
}

TEST_CASE("in doubt: of settle and claim in one commit, the settle is repeated and the claim forgotten") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        for (std::uint64_t n = 1; n <= 60; ++n) {
            s.put(n);
        }
        s.store.plan().fates = {commit_fate::fine, fate};
        // Landed: ten are claimed by nobody, and wait for the lease. Lost: they are claimed after all.
        const std::size_t at_once = fate == commit_fate::landed_in_doubt ? 50 : 60;
        CHECK(s.runner.run_until_idle().succeeded == at_once);
        CHECK(s.called == static_cast<int>(at_once));
        s.clock.pass(5min);
        CHECK(s.runner.run_until_idle().succeeded == 60 - at_once);
        CHECK(s.called == 60);
        CHECK(s.follow_ups() == 60);
    }
}

TEST_CASE("in doubt: what a group's completion brought is told once, also when the commit had landed") {
    stage s;
    int completed = 0;
    s.runner.on_group_complete([&](auto&, const std::string&, const vouch::entry&) { ++completed; });
    vouch::testing::recorder seen;
    s.runner.observe(seen);
    s.put(1, "g");
    s.store.plan().fates = {commit_fate::fine, commit_fate::landed_in_doubt};
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(completed == 1);
    CHECK(seen.count(event_kind::group_completed) == 1);
    CHECK(seen.count(event_kind::enqueued, "follow") == 1);
}

TEST_CASE("in doubt: an enqueue by itself is repeated with the same ids, and lands once") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        s.store.plan().fates = {fate, fate};
        const auto got = s.outbox.emit({{.queue = "q", .topic = "t"}, {.queue = "q", .topic = "t"}});
        REQUIRE(got.size() == 2);
        CHECK(got[0].what == vouch::receipt::kind::inserted);
        CHECK(got[1].what == vouch::receipt::kind::inserted);
        CHECK(s.counts().total() == 2);
    }
    stage s;
    s.store.plan().fates.assign(100, commit_fate::lost_in_doubt);
    CHECK(error_of([&] { s.outbox.emit({.queue = "q", .topic = "t"}); })->is_in_doubt());
}

TEST_CASE("settling: a fault of the store goes to the caller, who may settle the same batch again") {
    stage s;
    s.put(1);
    s.put(2);
    auto batch = s.runner.handle_all(s.runner.claim());
    s.store.plan().fates = {commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::claimed] == 2);
    // In doubt, and when that is resolved the store fails.
    s.store.plan().fates = {commit_fate::lost_in_doubt, commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::claimed] == 2);
    const auto done = s.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 0);
    CHECK(s.called == 2);
    CHECK(s.follow_ups() == 2);
}

TEST_CASE("record: what it throws is the handler's failure, and nothing of the attempt is kept") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 3}});
    int tried = 0;
    box.on("t", recording{[&] {
               ++tried;
               throw vouch::failure("constraint");
           }});
    box.on("fine", [] {});
    const auto got = box.emit({.topic = "t"});
    const auto other = box.emit({.topic = "fine"});
    const auto done = box.run_once();
    CHECK(done.retried == 1);
    CHECK(done.succeeded == 1);
    CHECK(box.find(got.id)->last_error == "constraint");
    CHECK(box.find(got.id)->due_at == box.clock()() + 1s);
    CHECK(box.find(other.id)->state == state::succeeded);
    box.run_until_idle();
    CHECK(box.find(got.id)->state == state::dead);
    CHECK(box.find(got.id)->attempts == 3);

    box.on("never", recording{[] { throw vouch::reject("no_such_row"); }});
    const auto rejected = box.emit({.topic = "never"});
    box.run_once();
    CHECK(box.find(rejected.id)->last_error == "no_such_row");
}

TEST_CASE("record: a failure of the last attempt, or past the expiry, goes to `ended` like any other") {
    struct turning {
        int* ended_calls;
        std::string work(delivery&) { return "r"; }
        void record(vouch::memory::transaction&, const std::string&) { throw vouch::failure("constraint"); }
        vouch::outcome ended(delivery&, vouch::ending) {
            ++*ended_calls;
            return vouch::advance{.progress = "turned"};
        }
    };
    int ended_calls = 0;
    sandbox box({.retry = {.backoff = vouch::fixed{10s}}});
    box.on("t", turning{&ended_calls});
    const auto last = box.emit({.topic = "t", .attempts_max = 1});
    const auto late = box.emit({.topic = "t", .expires_in = 5s});
    box.run_once();
    CHECK(ended_calls == 2);
    CHECK(box.find(last.id)->progress == "turned");
    CHECK(box.find(late.id)->progress == "turned");
}

TEST_CASE("hooks: one that fails for one entry does not hold up the others, whatever it throws") {
    using kind = vouch::error_kind;
    for (const auto thrown : {kind::invalid_argument, kind::unrouted, kind::misuse, kind::busy, kind::io}) {
        stage s;
        s.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id == id_of(2)) {
                throw vouch::error(thrown, "from the sink");
            }
        });
        s.put(1);
        s.put(2);
        s.put(3);
        const auto done = s.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(done.held_up == 1);
        CHECK(done.trace[1].error == name_of(thrown));
        CHECK(s.called == 3);
        CHECK(s.store.find(id_of(2))->state == state::claimed);
    }
}

TEST_CASE("hooks: one that leaves the transaction unusable costs its own entry only") {
    stage s;
    s.runner.on_group_complete([&](auto& tx, const std::string&, const vouch::entry&) {
        const std::vector<vouch::draft> bad(1);
        tx.enqueue(bad, t0); // invalid: no id
    });
    s.put(1, "g");
    s.put(2);
    const auto done = s.runner.run_once();
    CHECK(done.succeeded == 1);
    CHECK(done.held_up == 1);
}

TEST_CASE("settling: one bad record is set apart, and the others are settled together") {
    stage s;
    int records = 0;
    struct picky {
        int* records;
        std::string bad;
        std::string work(delivery& d) { return to_string(d.id()); }
        void record(scripted_store::transaction&, const std::string& whose) {
            ++*records;
            if (whose == bad) {
                throw vouch::failure("constraint");
            }
        }
    };
    s.router.on("picky", picky{&records, to_string(id_of(30))});
    for (std::uint64_t n = 1; n <= 50; ++n) {
        auto d = draft_of(n);
        d.topic = "picky";
        vouch::enqueue(s.store.plain(), std::span(&d, 1), s.clock());
    }
    const auto done = s.runner.run_once();
    CHECK(done.succeeded == 49);
    CHECK(done.retried == 1);
    CHECK(s.store.plan().commits == 2); // the claim, and one settle of all
    CHECK(records == 30 + 49);          // once each, and again for those whose transaction was rolled back
}

TEST_CASE("settling: late entries are set apart all at once, and the others are settled together") {
    stage s;
    for (std::uint64_t n = 1; n <= 50; ++n) {
        s.put(n);
    }
    auto batch = s.runner.handle_all(s.runner.claim());
    s.clock.pass(5min);
    for (std::uint64_t n = 1; n <= 20; ++n) {
        REQUIRE(take(s.store.plain(), s.clock(), {.limit = 1, .only = id_of(n)}).size() == 1);
    }
    const auto before = s.store.plan().commits;
    const auto done = s.runner.settle(batch);
    CHECK(done.stale == 20);
    CHECK(done.succeeded == 30);
    CHECK(s.store.plan().commits == before + 1);
}

TEST_CASE("record: a fault of the store is not held against the entry, and its work is not done again") {
    using kind = vouch::error_kind;
    for (const auto thrown : {kind::full, kind::io, kind::busy, kind::read_only, kind::corrupt}) {
        sandbox box({.retry = {.attempts_max = 1}});
        bool down = true;
        int worked = 0;
        struct recording_effect {
            int* worked;
            std::function<void()> then;
            void work(delivery&) { ++*worked; }
            void record(vouch::memory::transaction&) { then(); }
        };
        box.on("t", recording_effect{&worked, [&] {
                                         if (down) {
                                             throw vouch::error(thrown, "planned");
                                         }
                                     }});
        const auto got = box.emit({.topic = "t"});
        for (int n = 0; n < 20; ++n) {
            CHECK(box.run_once().held_up == 1);
            box.pass(1min);
        }
        down = false;
        CHECK(box.run_once().succeeded == 1);
        CHECK(worked == 1);
        CHECK(box.find(got.id)->attempts == 1);
        CHECK(box.find(got.id)->failures == 0);
    }
}

TEST_CASE("hooks: some that always fail hold up nobody else, however many there are") {
    for (const std::uint64_t bad : {3U, 10U, 30U}) {
        stage s;
        s.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id.low <= bad) {
                throw std::runtime_error("never");
            }
        });
        for (std::uint64_t n = 1; n <= 60; ++n) {
            s.put(n);
        }
        for (int pass = 0; pass < 40; ++pass) {
            s.runner.run_once();
            s.clock.pass(1min);
        }
        CHECK(s.counts()[state::succeeded] == 60 - bad);
        CHECK(s.called == 60);
    }
}

TEST_CASE("hooks: an outcome that is held up is given up when another runner has taken its claim over") {
    stage s;
    s.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("never"); });
    s.put(1);
    CHECK(s.runner.run_once().held_up == 1);
    s.clock.pass(5min);
    REQUIRE(take(s.store.plain(), s.clock(), {.limit = 1}).size() == 1);
    CHECK(s.runner.run_once().stale == 1);
    CHECK(s.runner.run_once().held_up == 0);
}

TEST_CASE("record: one that meets a conflict every time holds up its own entry only") {
    stage s;
    struct conflicting {
        void work(delivery&) {}
        void record(scripted_store::transaction&) { throw vouch::error(vouch::error_kind::conflict, "always"); }
    };
    s.router.on("conflicts", conflicting{});
    auto bad = draft_of(1);
    bad.topic = "conflicts";
    vouch::enqueue(s.store.plain(), std::span(&bad, 1), s.clock());
    for (std::uint64_t n = 2; n <= 5; ++n) {
        s.put(n);
    }
    const auto done = s.runner.run_once();
    CHECK(done.succeeded == 4);
    CHECK(done.held_up == 1);
    CHECK(s.called == 4);
}

TEST_CASE("settling: a pass whose settle fails keeps its outcomes, and the next one settles them") {
    for (const auto fate : {commit_fate::io, commit_fate::lost_in_doubt}) {
        stage s;
        for (std::uint64_t n = 1; n <= 5; ++n) {
            s.put(n);
        }
        s.store.plan().fates.assign(20, fate);
        s.store.plan().fates.push_front(commit_fate::fine); // the claim
        CHECK(error_of([&] { s.runner.run_once(); }));
        CHECK(s.called == 5);
        s.store.plan().fates.clear();
        CHECK(s.runner.run_once().succeeded == 5);
        CHECK(s.called == 5);
        CHECK(s.follow_ups() == 5);
    }
}

TEST_CASE("settling: conflicts that do not end for a batch are tried one by one") {
    stage s;
    s.put(1);
    s.put(2);
    auto batch = s.runner.handle_all(s.runner.claim());
    s.store.plan().fates.assign(16, commit_fate::conflict);
    CHECK(s.runner.settle(batch).succeeded == 2);
    CHECK(s.called == 2);
}

TEST_CASE("run_until_idle: goes on after a batch that had to be settled one by one") {
    sandbox box;
    int recorded = 0;
    box.on("t", recording{[&] {
               if (++recorded == 1) {
                   throw vouch::reject("first");
               }
           }});
    for (int n = 0; n < 100; ++n) {
        box.emit({.topic = "t"});
    }
    const auto done = box.runner().run_until_idle();
    CHECK(done.succeeded + done.dead == 100);
    CHECK(box.store().counts("test").live() == 0);
}

TEST_CASE("run_until_idle: the next claim sees what the settle in the same commit made due") {
    // A clock that moves on whenever it is asked, as real ones do.
    auto ticks = std::make_shared<std::int64_t>(0);
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = [ticks] { return t0 + vouch::duration{++*ticks}; }});
    vouch::router router(outbox);
    int steps = 0;
    router.on("t", [&](delivery&) -> vouch::outcome {
        return ++steps < 6 ? vouch::outcome{vouch::advance{.progress = std::to_string(steps)}} : vouch::succeed{};
    });
    outbox.emit({.queue = "q", .topic = "t"});
    CHECK(vouch::runner(outbox, router, {.queue = "q"}).run_until_idle().succeeded == 1);
    CHECK(steps == 6);
}

TEST_CASE("emissions: a duplicate is not told as enqueued") {
    sandbox box;
    box.on("t", [](delivery& d) { d.emit({.queue = "next", .topic = "follow", .key = "once"}); });
    box.emit({.topic = "t"});
    box.emit({.topic = "t"});
    box.run_once();
    const auto events = box.events();
    CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) { return e.what == event_kind::enqueued; }) ==
          1);
    CHECK(box.emitted("follow") == 1);
}

} // namespace run_settling_test
