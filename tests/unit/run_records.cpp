// SPDX-License-Identifier: MIT
// A handler's `record`: what follows from its failure, and from faults of the store.
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
#include "run_stage.hpp"

namespace run_records_test {

using namespace run_stage;
using vouch::testing::sandbox;

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

} // namespace run_records_test
