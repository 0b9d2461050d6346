// SPDX-License-Identifier: MIT
// The judge of histories, tried on histories written by hand: those that a correct store with row locks may produce, and
// those that only a wrong store can.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/schedule/linearization.hpp>
#include <vouch/conformance/detail/schedule/scripts.hpp>

#include "../catch.hpp"

namespace {

using namespace vouch;
using namespace vouch::conformance::detail;
using namespace vouch::conformance::detail::scripted;
using vouch::conformance::at;
using vouch::conformance::id_of;

/// A history in the order in which things happen. Each function adds an event.
class written_history {
  public:
    explicit written_history(const std::vector<operation>& setup) {
        for (const auto& o : setup) {
            std::ignore = perform(before, o);
        }
        after = before;
        runs.reserve(8); // references stay valid
    }

    transaction_run& begin() {
        auto& run = runs.emplace_back();
        run.begun_at = ++clock_;
        return run;
    }
    void call(transaction_run& in, operation o, answer a) {
        in.operations.push_back(std::move(o));
        in.calls.push_back({.begun_at = clock_});
        in.answers.push_back(std::move(a));
        in.calls.back().ended_at = ++clock_;
    }
    /// The answer of the model in the state that `after` has.
    void call(transaction_run& in, const operation& o) {
        auto model_answer = perform(after, o);
        call(in, o, std::move(model_answer));
    }
    void commit(transaction_run& run) {
        run.commit_begun_at = clock_;
        run.ended = transaction_run::end::committed;
        run.ended_at = ++clock_;
    }
    void roll_back(transaction_run& run) {
        run.ended = transaction_run::end::rolled_back;
        run.ended_at = ++clock_;
    }
    /// A call that waits and ends in a conflict when the transaction is over.
    void begin_call(transaction_run& in, operation o) {
        in.operations.push_back(std::move(o));
        in.calls.push_back({.begun_at = clock_});
    }
    void conflict(transaction_run& run) {
        run.ended = transaction_run::end::conflict;
        run.ended_at = ++clock_;
    }
    void look(operation o, answer a) {
        auto& read = begin();
        read.is_outside = true;
        call(read, std::move(o), std::move(a));
        read.ended = transaction_run::end::committed;
        read.ended_at = clock_;
    }

    [[nodiscard]] bool is_accepted() const {
        std::vector<entry> final;
        for (const auto& r : after.records) {
            final.push_back(r.entry);
        }
        const linearization order(before, runs, final);
        REQUIRE(order.is_decidable());
        return order.exists();
    }

    model before{};
    model after{}; ///< what is stored at the end
    std::vector<transaction_run> runs{};

  private:
    std::uint64_t clock_ = 0;
};

answer said(verdict v) { return {.verdicts = {v}}; }
answer settled(verdict v) { return {.settlements = {{v, false}}}; }
answer receipt_of(receipt::kind what, std::uint64_t n = 0) { return {.receipts = {{what, n == 0 ? id{} : id_of(n)}}}; }
constexpr auto inserted = receipt::kind::inserted;
constexpr auto duplicate = receipt::kind::duplicate;

} // namespace

TEST_CASE("judge: a claim may pass over the parent of an entry that an open transaction has ended") {
    const std::vector<operation> setup{enqueue(draft_of(13), at(0)),
                                       enqueue(draft_of(8, {.parent = id_of(13), .due_at = far_off}), at(0)),
                                       enqueue(draft_of(7, {.parent = id_of(13), .due_at = far_off}), at(0))};
    const auto passes_over = [&](operation other) {
        written_history h(setup);
        auto& a = h.begin();
        h.call(a, other);
        auto& b = h.begin();
        h.call(b, claim(1, 13), {});
        h.commit(b);
        h.commit(a);
        return h.is_accepted();
    };
    CHECK(passes_over(cancel(8)));
    CHECK(passes_over(nudge(13)));
    CHECK_FALSE(passes_over(nudge(8))); // does not reach the parent
}

TEST_CASE("judge: a claim may not pass over what a transaction touched that has ended") {
    written_history h({enqueue(draft_of(13), at(0))});
    auto& a = h.begin();
    auto& b = h.begin();
    h.call(a, nudge(13));
    h.commit(a);
    h.call(b, claim(1, 13), {});
    h.commit(b);
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: a claim that ended in conflict may have touched its whole queue while it was open") {
    for (const bool is_open : {true, false}) {
        written_history h({enqueue(draft_of(1), at(0))});
        auto& a = h.begin();
        h.begin_call(a, claim(3));
        if (!is_open) {
            h.conflict(a);
        }
        auto& b = h.begin();
        h.call(b, claim(1), {});
        h.commit(b);
        if (is_open) {
            h.conflict(a);
        }
        CHECK(h.is_accepted() == is_open);
    }
}

TEST_CASE("judge: unknown is true at the moment of the call") {
    written_history h({});
    auto& a = h.begin();
    h.call(a, {.what = operation::kind::extend, .now = now, .tickets = {{id_of(7), 5}}, .lease = duration{1}},
           said(verdict::unknown));
    auto& b = h.begin();
    h.call(b, enqueue(draft_of(7)));
    h.commit(b);
    h.call(a, scripted::settle(7, succeed{}), settled(verdict::stale));
    h.commit(a);
    CHECK(h.is_accepted());
}

TEST_CASE("judge: unknown of an entry that was stored before the call is wrong") {
    written_history h({});
    auto& a = h.begin();
    h.call(a, nudge(9), said(verdict::unknown));
    auto& b = h.begin();
    h.call(b, enqueue(draft_of(7)));
    h.commit(b);
    h.call(a, scripted::settle(7, succeed{}), settled(verdict::stale)); // so it comes after b
    h.call(a, cancel(7), said(verdict::unknown));
    h.commit(a);
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: what a purge leaves is true at the moment of the call") {
    written_history h({enqueue(draft_of(1), at(0))});
    auto& a = h.begin();
    h.call(a, purge());
    auto& b = h.begin();
    h.call(b, cancel(1, at(2)));
    h.commit(b);
    h.call(a, cancel(1));
    REQUIRE(a.answers.back().verdicts.front() == verdict::repeated);
    h.commit(a);
    CHECK(h.is_accepted());
}

TEST_CASE("judge: a duplicate by key does not promise that the draft's id stays free") {
    const std::vector<operation> setup{enqueue(draft_of(5, {.key = "k"}), at(0))};
    for (const std::uint64_t owner : {std::uint64_t{5}, std::uint64_t{6}}) {
        written_history h(setup);
        auto& a = h.begin();
        h.call(a, enqueue(draft_of(9, {.key = "k"})), receipt_of(duplicate, owner));
        auto& b = h.begin();
        h.call(b, enqueue(draft_of(9, {.due_at = far_off})));
        h.commit(b);
        h.call(a, nudge(9));
        h.commit(a);
        CHECK(h.is_accepted() == (owner == 5));
    }
}

TEST_CASE("judge: a refusal does not promise that the draft's id stays free") {
    written_history h({});
    auto& a = h.begin();
    h.call(a, enqueue(draft_of(9, {.predecessor = id_of(6)})), receipt_of(receipt::kind::refused));
    auto& b = h.begin();
    h.call(b, enqueue(draft_of(9, {.due_at = far_off})));
    h.commit(b);
    h.call(a, nudge(9));
    h.commit(a);
    CHECK(h.is_accepted());
}

TEST_CASE("judge: a purge may take a parent for which another transaction then stores a child") {
    for (const bool was_there_before : {false, true}) {
        written_history h({enqueue(draft_of(1), at(0)), cancel(1, at(2))});
        auto& a = h.begin();
        auto& b = h.begin();
        const auto store_child = [&] {
            h.call(b, enqueue(draft_of(10, {.key = "k", .parent = id_of(1)})));
            h.commit(b);
        };
        if (was_there_before) {
            store_child();
        }
        h.call(a, purge(), {.purged = 1});
        if (!was_there_before) {
            store_child();
        }
        h.call(a, enqueue(draft_of(11, {.key = "k"})), receipt_of(duplicate, 10));
        h.commit(a);
        std::erase_if(h.after.records, [](const auto& r) { return r.entry.id == id_of(1); });
        CHECK(h.is_accepted() == !was_there_before);
    }
}

TEST_CASE("judge: a purge may leave what an open transaction has touched") {
    for (const bool is_touched : {true, false}) {
        written_history h(
            {enqueue(draft_of(1), at(0)), cancel(1, at(2)), enqueue(draft_of(2), at(0)), cancel(2, at(2))});
        auto& a = h.begin();
        h.call(a, cancel(is_touched ? 1U : 3U));
        auto& b = h.begin();
        h.call(b, purge(), {.purged = 1});
        h.commit(b);
        h.commit(a);
        std::erase_if(h.after.records, [](const auto& r) { return r.entry.id == id_of(2); });
        CHECK(h.is_accepted() == is_touched);
    }
}

TEST_CASE("judge: a lost wake is found") {
    for (const bool is_woken : {true, false}) {
        written_history h(
            {enqueue(draft_of(1), at(0)), enqueue(draft_of(2, {.parent = id_of(1), .due_at = far_off}), at(0))});
        auto& a = h.begin();
        h.call(a, cancel(2), said(verdict::applied)); // 1 is due already: there is nothing to write
        auto& b = h.begin();
        h.call(b, claim(1, 1));
        h.commit(b);
        h.look(find(2), {.found = {*h.before.find(id_of(2))}});
        h.commit(a);
        std::ignore = h.after.cancel(id_of(2), "c", now);
        REQUIRE(h.after.records.front().entry.woken);
        h.after.records.front().entry.woken = is_woken;
        CHECK(h.is_accepted() == is_woken);
    }
}

TEST_CASE("judge: a double claim is found") {
    written_history h({enqueue(draft_of(1), at(0))});
    auto& a = h.begin();
    auto& b = h.begin();
    h.call(a, claim(1));
    h.call(b, claim(1), a.answers.front());
    h.commit(a);
    h.commit(b);
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: an id that is stored twice is found") {
    written_history h({});
    auto& a = h.begin();
    auto& b = h.begin();
    h.call(a, enqueue(draft_of(1)));
    h.call(b, enqueue(draft_of(1)), receipt_of(inserted, 1));
    h.commit(a);
    h.commit(b);
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: a claim that passes the head of a lane is found") {
    written_history h({enqueue(draft_of(2, {.lane = "x"}), at(0)), enqueue(draft_of(3, {.lane = "x"}), at(0))});
    auto& a = h.begin();
    h.call(a, cancel(2), said(verdict::applied));
    auto& b = h.begin();
    auto without_head = h.after;
    std::ignore = without_head.cancel(id_of(2), "c", now);
    const auto taken = without_head.claim(claim(1, 3).claim);
    REQUIRE(taken.size() == 1);
    h.call(b, claim(1, 3), {.claimed = taken});
    h.commit(b);
    h.roll_back(a);
    h.after.records[1].entry = taken.front();
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: repeated must hold until the commit") {
    written_history h({enqueue(draft_of(1), at(0))});
    auto& a = h.begin();
    h.call(a, nudge(1));
    REQUIRE(a.answers.back().verdicts.front() == verdict::repeated);
    auto& b = h.begin();
    h.call(b, claim(1, 1));
    h.commit(b);
    h.call(a, nudge(1));
    REQUIRE(a.answers.back().verdicts.front() == verdict::applied);
    h.commit(a);
    CHECK_FALSE(h.is_accepted());
}

TEST_CASE("judge: reads inside see own writes and some state since the begin") {
    written_history h({enqueue(draft_of(1), at(0))});
    const auto old = *h.before.find(id_of(1));
    auto& a = h.begin();
    h.call(a, enqueue(draft_of(9)));
    auto& b = h.begin();
    h.call(b, cancel(1));
    h.commit(b);
    const auto is_accepted_with = [&](operation o, answer read) {
        auto other = h;
        auto& reader = other.runs.front();
        other.call(reader, std::move(o), std::move(read));
        other.call(reader, cancel(1), said(verdict::repeated)); // so it comes after b
        other.commit(reader);
        return other.is_accepted();
    };
    CHECK(is_accepted_with(find(1), {.found = {old}}));
    CHECK(is_accepted_with(find(1), {.found = {*h.after.find(id_of(1))}}));
    CHECK(is_accepted_with(find(9), {.found = {*h.after.find(id_of(9))}}));
    CHECK_FALSE(is_accepted_with(find(9), {}));
    CHECK_FALSE(is_accepted_with(find(1), {}));
}

TEST_CASE("judge: a read outside sees all commits before it and none after it") {
    for (const bool is_committed : {true, false}) {
        for (const bool is_seen : {true, false}) {
            written_history h({enqueue(draft_of(1), at(0))});
            auto& a = h.begin();
            h.call(a, cancel(1));
            if (is_committed) {
                h.commit(a);
            }
            h.look(find(1), {.found = {*(is_seen ? h.after : h.before).find(id_of(1))}});
            if (!is_committed) {
                h.commit(a);
            }
            CHECK(h.is_accepted() == (is_seen == is_committed));
        }
    }
}
