// SPDX-License-Identifier: MIT
// The loop that repeats a transaction on `conflict`, over a store whose faults are scripted.
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_transact_test {

using namespace support;
using vouch::error;
using vouch::error_kind;

namespace {

/// What goes wrong in the n-th begin, operation and commit; nothing once the script has run out.
struct script {
    using faults = std::deque<std::optional<error>>;
    faults begins{};
    faults operations{};
    faults commits{};
    bool landing = false; // a commit that fails has happened all the same
    int begun = 0;

    static void play(faults& from) {
        if (from.empty()) {
            return;
        }
        const auto next = from.front();
        from.pop_front();
        if (next) {
            throw *next;
        }
    }
};

/// The memory store with a script. A failed operation or commit closes the transaction, as the contract says.
class shaky_transaction {
    vouch::memory::transaction inner_;
    std::shared_ptr<script> script_;

    vouch::memory::transaction& use() {
        script::play(script_->operations);
        return inner_;
    }

  public:
    shaky_transaction(vouch::memory::transaction inner, std::shared_ptr<script> s)
        : inner_(std::move(inner)), script_(std::move(s)) {}

    [[nodiscard]] auto find(const vouch::id& id) const { return inner_.find(id); }
    [[nodiscard]] auto list(const vouch::query& q) const { return inner_.list(q); }
    [[nodiscard]] auto counts(std::string_view queue) const { return inner_.counts(queue); }
    [[nodiscard]] auto next_due(std::string_view queue) const { return inner_.next_due(queue); }
    auto enqueue(std::span<const vouch::draft> d, vouch::time_point now) { return use().enqueue(d, now); }
    auto claim(const vouch::claim_request& r) { return use().claim(r); }
    auto settle(std::span<const vouch::settle> s, vouch::time_point now) { return use().settle(s, now); }
    auto extend(std::span<const vouch::ticket> t, vouch::time_point now, vouch::duration lease) {
        return use().extend(t, now, lease);
    }
    auto nudge(const vouch::id& id, vouch::time_point now) { return use().nudge(id, now); }
    auto cancel(const vouch::id& id, std::string_view e, vouch::time_point now) { return use().cancel(id, e, now); }
    auto purge(const vouch::purge_request& r) { return use().purge(r); }
    void commit() {
        if (script_->landing) {
            inner_.commit();
            script::play(script_->commits);
        } else {
            script::play(script_->commits);
            inner_.commit();
        }
    }
};

struct shaky_store {
    using transaction = shaky_transaction;
    static constexpr int contract_level = vouch::contract_level;

    vouch::memory::store inner{};
    std::shared_ptr<script> plan = std::make_shared<script>();

    [[nodiscard]] auto find(const vouch::id& id) const { return inner.find(id); }
    [[nodiscard]] auto list(const vouch::query& q) const { return inner.list(q); }
    [[nodiscard]] auto counts(std::string_view queue) const { return inner.counts(queue); }
    [[nodiscard]] auto next_due(std::string_view queue) const { return inner.next_due(queue); }
    [[nodiscard]] auto capabilities() const { return inner.capabilities(); }
    transaction begin() {
        ++plan->begun;
        script::play(plan->begins);
        return {inner.begin(), plan};
    }
};
static_assert(vouch::store<shaky_store>);

const error conflict(error_kind::conflict, "lost");
const error conflict_in_doubt(error_kind::conflict, "lost, or not", error::details{.in_doubt = true});

const error lost_touch(error_kind::io, "cut off", error::details{.in_doubt = true});

script::faults conflicts(int count) { return script::faults(static_cast<std::size_t>(count), conflict); }

std::vector<vouch::receipt> enqueue_one(shaky_store& store) {
    const auto d = draft_of(1);
    return vouch::enqueue(store, std::span(&d, 1), t0);
}

} // namespace

TEST_CASE("transact: commits, and returns what the work returned") {
    vouch::memory::store store;
    const auto answer = vouch::transact(store, [](auto& tx) {
        const auto d = draft_of(1);
        tx.enqueue(std::span(&d, 1), t0);
        return 42;
    });
    CHECK(answer == 42);
    CHECK(store.find(id_of(1)));

    vouch::transact(store, [](auto& tx) { std::ignore = tx.cancel(id_of(1), "void work is work too", t0); });
    CHECK(store.find(id_of(1))->state == vouch::state::dead);
}

TEST_CASE("transact: a result that can only be moved is returned") {
    vouch::memory::store store;
    const auto answer = vouch::transact(store, [](auto&) { return std::make_unique<int>(7); });
    CHECK(*answer == 7);
}

TEST_CASE("transact: a conflict anywhere is repeated from begin, and lands once") {
    for (const auto place : {&script::begins, &script::operations, &script::commits}) {
        shaky_store store;
        (*store.plan).*place = conflicts(3);
        const auto receipts = enqueue_one(store);
        CHECK(receipts.front().what == vouch::receipt::kind::inserted);
        CHECK(store.plan->begun == 4);
        CHECK(numbers(store.list(vouch::query::all("q"))) == list{1});
    }
}

TEST_CASE("transact: the work is repeated whole, and what a lost try did is gone") {
    shaky_store store;
    store.plan->commits = conflicts(2);
    int runs = 0;
    vouch::transact(store, [&](auto& tx) {
        ++runs;
        CHECK(!tx.find(id_of(1)));
        const auto d = draft_of(1);
        tx.enqueue(std::span(&d, 1), t0);
    });
    CHECK(runs == 3);
}

TEST_CASE("transact: it gives up after its bound, with the last conflict") {
    shaky_store just_enough;
    just_enough.plan->commits = conflicts(vouch::transact_tries - 1);
    CHECK(enqueue_one(just_enough).size() == 1);
    CHECK(just_enough.plan->begun == vouch::transact_tries);

    shaky_store too_many;
    too_many.plan->commits = conflicts(1000);
    CHECK(kind_of([&] { enqueue_one(too_many); }) == error_kind::conflict);
    CHECK(too_many.plan->begun == vouch::transact_tries);
    CHECK(too_many.list(vouch::query::all("q")).empty());
}

TEST_CASE("transact: every other error goes through at once") {
    for (const auto kind :
         {error_kind::invalid_argument, error_kind::unsupported, error_kind::unrouted, error_kind::busy,
          error_kind::full, error_kind::read_only, error_kind::corrupt, error_kind::io, error_kind::misuse}) {
        for (const auto place : {&script::begins, &script::operations, &script::commits}) {
            shaky_store store;
            (*store.plan).*place = {error(kind, "a fault", {.code = 17})};
            const auto e = error_of([&] { enqueue_one(store); });
            REQUIRE(e);
            CHECK(e->kind() == kind);
            CHECK(e->code() == 17);
            CHECK(store.plan->begun == 1);
            CHECK(store.list(vouch::query::all("q")).empty());
        }
    }
}

TEST_CASE("transact: what is in doubt is never repeated, a conflict neither") {
    for (const auto& fault : {conflict_in_doubt, lost_touch}) {
        shaky_store store;
        store.plan->commits = {fault};
        const auto e = error_of([&] { vouch::transact(store, [](auto& tx) { return tx.claim(request(t0)); }); });
        REQUIRE(e);
        CHECK(e->is_in_doubt());
        CHECK(store.plan->begun == 1);
    }
}

TEST_CASE("claim: one whose commit is in doubt is not repeated; the lease heals it") {
    shaky_store store;
    enqueue_one(store);
    store.plan->landing = true;
    store.plan->commits = {lost_touch};
    CHECK(error_of([&] { return vouch::claim(store, request(t0)); })->is_in_doubt());
    CHECK(store.find(id_of(1))->epoch == 1);
    CHECK(vouch::claim(store, request(t0 + 1min)).front().epoch == 2);
}

TEST_CASE("enqueue: a commit in doubt is repeated with the same ids, and the draft is stored once") {
    for (const bool landing : {false, true}) {
        shaky_store store;
        store.plan->landing = landing;
        store.plan->commits = {lost_touch, conflict_in_doubt};
        CHECK(enqueue_one(store).front() == vouch::receipt{vouch::receipt::kind::inserted, id_of(1)});
        CHECK(store.plan->begun == 3);
        CHECK(numbers(store.list(vouch::query::all("q"))) == list{1});
    }
}

TEST_CASE("enqueue: what another entry's key has taken meanwhile is still a duplicate of that one") {
    shaky_store store;
    auto first = draft_of(1);
    first.key = "k";
    auto second = draft_of(2);
    second.key = "k";
    vouch::enqueue(store, std::span(&first, 1), t0);
    store.plan->commits = {lost_touch};
    CHECK(vouch::enqueue(store, std::span(&second, 1), t0).front() ==
          vouch::receipt{vouch::receipt::kind::duplicate, id_of(1)});
}

TEST_CASE("enqueue: if the repeat of a commit in doubt fails otherwise, the doubt is not forgotten") {
    shaky_store store;
    store.plan->landing = true;
    store.plan->commits = {lost_touch, vouch::error(vouch::error_kind::io, "gone", {.code = 7})};
    const auto e = error_of([&] { enqueue_one(store); });
    REQUIRE(e);
    CHECK(e->is_in_doubt());
    CHECK(e->kind() == vouch::error_kind::io);
    CHECK(e->code() == 7);
}

TEST_CASE("enqueue: doubts without end are given up after the bound") {
    shaky_store store;
    store.plan->commits = script::faults(1000, lost_touch);
    CHECK(error_of([&] { enqueue_one(store); })->is_in_doubt());
    CHECK(store.plan->begun == vouch::transact_tries);
}

TEST_CASE("transact: an exception of the work leaves nothing behind") {
    vouch::memory::store store;
    const auto throwing = [](auto& tx) {
        const auto d = draft_of(1);
        tx.enqueue(std::span(&d, 1), t0);
        throw std::logic_error("changed my mind");
    };
    REQUIRE_THROWS_AS(vouch::transact(store, throwing), std::logic_error);
    CHECK(!store.find(id_of(1)));
    CHECK(store.counts("q").total() == 0);
    CHECK(put(store, draft_of(1)).what == vouch::receipt::kind::inserted);
}

TEST_CASE("transact: a conflict the work itself finds is repeated too") {
    vouch::memory::store store;
    int runs = 0;
    vouch::transact(store, [&](auto&) {
        if (++runs < 3) {
            throw conflict;
        }
    });
    CHECK(runs == 3);
}

TEST_CASE("claim, enqueue: the one-liners commit") {
    shaky_store store;
    store.plan->commits = conflicts(1);
    enqueue_one(store);
    store.plan->operations = conflicts(2);
    const auto claimed = vouch::claim(store, request(t0));
    CHECK(numbers(claimed) == list{1});
    CHECK(claimed.front().attempts == 1);
    CHECK(store.find(id_of(1))->state == vouch::state::claimed);
}

} // namespace contract_transact_test
