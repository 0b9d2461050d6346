// SPDX-License-Identifier: MIT
// Successors of dead entries: `requeue` and `resume`.
#include <cstdint>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_requeue_test {

using namespace support;
using kind = vouch::receipt::kind;
using vouch::receipt;
using vouch::state;

namespace {

vouch::draft full_draft(std::uint64_t n) {
    auto d = draft_of(n);
    d.topic = "topic";
    d.payload = "payload";
    d.key = "k";
    d.group = "g";
    d.lane = "lane";
    d.expires_at = t0 + 1h;
    d.attempts_max = 4;
    d.trail = {id_of(20), id_of(21)};
    d.headers = {{"a", "1"}, {"a", "2"}};
    d.progress = "first step";
    return d;
}

/// Stores an entry that is dead after two failures and has advanced beyond the draft's progress.
void bury(vouch::memory::store& store, std::uint64_t n) {
    put(store, full_draft(n));
    settle(store, take_one(store, t0), vouch::retry{"once", t0});
    settle(store, take_one(store, t0), vouch::advance{"second step", t0});
    settle(store, take_one(store, t0), vouch::bury{"twice", "reply"});
}

receipt requeue_in(vouch::memory::store& store, const vouch::id& dead, const vouch::id& fresh,
                   vouch::time_point now = t0 + 1min) {
    return vouch::transact(
        store, [&](auto& tx) { return vouch::requeue(tx, {.dead = dead, .successor = fresh, .now = now}); });
}
receipt resume_in(vouch::memory::store& store, const vouch::id& dead, const vouch::id& fresh,
                  vouch::time_point now = t0 + 1min) {
    return vouch::transact(store,
                           [&](auto& tx) { return vouch::resume(tx, {.dead = dead, .successor = fresh, .now = now}); });
}

} // namespace

TEST_CASE("requeue: the successor copies the dead entry's draft and starts again") {
    vouch::memory::store store;
    bury(store, 1);
    const auto dead = store.find(id_of(1)).value();
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::inserted, id_of(2)});

    auto expected = full_draft(2);
    expected.expires_at.reset();
    expected.progress.clear();
    auto successor = vouch::born(expected, t0 + 1min);
    successor.predecessor = id_of(1);
    successor.generation = 2;
    successor.sequence = dead.sequence + 1;
    CHECK(store.find(id_of(2)) == successor);
    CHECK(store.find(id_of(1)) == dead);
}

TEST_CASE("resume: the successor continues from the last checkpoint") {
    vouch::memory::store store;
    bury(store, 1);
    CHECK(resume_in(store, id_of(1), id_of(2)) == receipt{kind::inserted, id_of(2)});
    const auto successor = store.find(id_of(2)).value();
    CHECK(successor.progress == "second step");
    CHECK(successor.attempts == 0);
    CHECK(successor.failures == 0);
    CHECK(successor.epoch == 0);
    CHECK(!successor.result);
    CHECK(successor.last_error.empty());
}

TEST_CASE("requeue: each successor has the next generation, and a dead entry has at most one") {
    vouch::memory::store store;
    bury(store, 1);
    CHECK(requeue_in(store, id_of(1), id_of(2)).what == kind::inserted);
    CHECK(requeue_in(store, id_of(1), id_of(3)) == receipt{kind::duplicate, id_of(2)});
    CHECK(resume_in(store, id_of(1), id_of(3)) == receipt{kind::duplicate, id_of(2)});
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::duplicate, id_of(2)});

    settle(store, take_one(store, t0 + 1h), vouch::bury{"again", {}}, t0 + 1h);
    CHECK(requeue_in(store, id_of(2), id_of(3)) == receipt{kind::inserted, id_of(3)});
    CHECK(store.find(id_of(3))->generation == 3);
    CHECK(requeue_in(store, id_of(1), id_of(4)) == receipt{kind::duplicate, id_of(2)});
    CHECK(numbers(store.list(vouch::query::keyed("q", "k"))) == list{1, 2, 3});
}

TEST_CASE("requeue: a cancelled entry can be requeued") {
    vouch::memory::store store;
    put(store, draft_of(1));
    cancel(store, id_of(1));
    CHECK(requeue_in(store, id_of(1), id_of(2)).what == kind::inserted);
    CHECK(numbers(take(store, t0 + 1h)) == list{2});
}

TEST_CASE("requeue: an entry that is not dead is refused") {
    vouch::memory::store store;
    put(store, draft_of(1));
    CHECK(requeue_in(store, id_of(9), id_of(2)) == receipt{kind::refused, {}});
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}}); // pending
    const auto ticket = take_one(store, t0);
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}}); // claimed
    settle(store, ticket, vouch::retry{"e", t0});
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}}); // retrying
    settle(store, take_one(store, t0), vouch::succeed{});
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}}); // succeeded
    CHECK(resume_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}});
    CHECK(!store.find(id_of(2)));
}

TEST_CASE("requeue: an entry with a parent is refused") {
    vouch::memory::store store;
    put(store, draft_of(1));
    auto child = draft_of(2);
    child.parent = id_of(1);
    put(store, child);
    cancel(store, id_of(2));
    CHECK(requeue_in(store, id_of(2), id_of(3)) == receipt{kind::refused, {}});
    CHECK(resume_in(store, id_of(2), id_of(3)) == receipt{kind::refused, {}});
    CHECK(!store.find(id_of(3)));
}

TEST_CASE("requeue: a saga is refused, because it would repeat its work; resume continues it") {
    vouch::memory::store store;
    auto saga = draft_of(1);
    saga.progress = std::string(vouch::saga_progress_mark) + "\1 and so on";
    put(store, saga);
    cancel(store, id_of(1));
    const auto before = look(store);
    CHECK(requeue_in(store, id_of(1), id_of(2)) == receipt{kind::refused, {}});
    CHECK(look(store) == before);
    CHECK(resume_in(store, id_of(1), id_of(2)) == receipt{kind::inserted, id_of(2)});
    CHECK(store.find(id_of(2))->progress == saga.progress);
}

TEST_CASE("requeue: an invalid id for the successor is refused and changes nothing") {
    vouch::memory::store store;
    bury(store, 1);
    const auto before = look(store);
    CHECK(kind_of([&] { requeue_in(store, id_of(1), vouch::id{}); }) == vouch::error_kind::invalid_argument);
    CHECK(look(store) == before);
}

TEST_CASE("requeue: an id that is already stored is a duplicate of itself") {
    vouch::memory::store store;
    bury(store, 1);
    put(store, draft_of(5));
    CHECK(requeue_in(store, id_of(1), id_of(5)) == receipt{kind::duplicate, id_of(5)});
    CHECK(requeue_in(store, id_of(1), id_of(1)) == receipt{kind::duplicate, id_of(1)});
    CHECK(requeue_in(store, id_of(1), id_of(2)).what == kind::inserted);
}

} // namespace contract_requeue_test
