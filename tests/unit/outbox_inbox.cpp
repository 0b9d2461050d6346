// SPDX-License-Identifier: MIT
// The inbox: the work of a message runs once, whatever crashes or races.
#include <array>
#include <string>
#include <tuple>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "commit_fault_store.hpp"
#include "saga_support.hpp"

namespace outbox_inbox_test {

using namespace saga_support;
using vouch::error_kind;

TEST_CASE("inbox: the work runs once per consumer and message, and every repeat gets the stored result") {
    vouch::memory::store store;
    int calls = 0;
    const auto once = [&](const std::string& consumer, const vouch::id& message) {
        return vouch::transact(store, [&](auto& tx) {
            return vouch::inbox::once(tx, {.consumer = consumer, .message = message, .now = t0},
                                      [&] { return "result " + std::to_string(++calls); });
        });
    };
    CHECK(once("billing", id_of(1)) == "result 1");
    CHECK(once("billing", id_of(1)) == "result 1");
    CHECK(once("mail", id_of(1)) == "result 2");
    CHECK(once("billing", id_of(2)) == "result 3");
    CHECK(calls == 3);
    CHECK(store.counts(vouch::inbox::queue_of("billing"))[vouch::state::succeeded] == 2);
    CHECK(kind_of([&] { once("", id_of(1)); }) == error_kind::invalid_argument);
}

TEST_CASE("inbox: a crash in the middle, or work that throws, leaves nothing, and the next call runs it") {
    vouch::memory::store store;
    const auto put_and = [&](auto& tx, bool die) {
        const std::array written{draft_of(5)};
        tx.enqueue(written, t0);
        if (die) {
            throw std::runtime_error("half-way");
        }
    };
    {
        auto tx = store.begin();
        std::ignore =
            vouch::inbox::once(tx, {.consumer = "c", .message = id_of(1), .now = t0}, [&] { put_and(tx, false); });
    } // never committed
    CHECK_THROWS(vouch::transact(store, [&](auto& tx) {
        return vouch::inbox::once(tx, {.consumer = "c", .message = id_of(1), .now = t0}, [&] { put_and(tx, true); });
    }));
    CHECK(!store.find(id_of(5)));
    vouch::transact(store, [&](auto& tx) {
        return vouch::inbox::once(tx, {.consumer = "c", .message = id_of(1), .now = t0}, [&] { put_and(tx, false); });
    });
    CHECK(store.find(id_of(5)));
}

TEST_CASE("inbox: when two transactions race, one commits its work and the other finds the result") {
    commit_fault_store store;
    int calls = 0;
    const auto result = vouch::transact(store, [&](auto& tx) {
        return vouch::inbox::once(tx, {.consumer = "c", .message = id_of(1), .now = t0}, [&] {
            if (++calls == 1) { // the other transaction commits first
                const std::array mark{vouch::draft{
                    .id = derive(id_of(1), "inbox.c"), .queue = "inbox.c", .topic = "processed", .result = "theirs"}};
                tx.enqueue(mark, t0);
            }
            return std::string("ours");
        });
    });
    CHECK(calls == 2);
    CHECK(result == "ours");

    store.plan().faults = {commit_fault::conflict};
    CHECK(vouch::transact(store, [&](auto& tx) {
              return vouch::inbox::once(tx, {.consumer = "c", .message = id_of(2), .now = t0},
                                        [&] { return std::to_string(++calls); });
          }) == "4"); // rolled back and repeated
}

TEST_CASE("inbox: a participant that records through it acts once, although a crash repeats the command") {
    stage on;
    int charged = 0;
    struct participant {
        int& charged;
        std::string work(vouch::delivery& d) const { return to_string(vouch::command_of(d.entry())->key); }
        void record(vouch::memory::transaction& tx, const std::string& key) const {
            std::ignore = vouch::inbox::once(tx, {.consumer = "billing", .message = *vouch::id::parse(key), .now = t0},
                                             [&] { ++charged; });
        }
    };
    on.on("a", "do", participant{charged});
    const auto d = define().command("sa", {.queue = "a", .topic = "do"}).build();
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    on.crash("a");
    on.pass(5min);
    on.run_all();
    CHECK(on.status(id).is_completed());
    CHECK(charged == 1);
}

} // namespace outbox_inbox_test
