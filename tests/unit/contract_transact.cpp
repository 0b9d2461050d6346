// SPDX-License-Identifier: MIT
// The loop that repeats a transaction on `conflict`, over a store whose faults are planned.
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

/// The errors of the next calls of begin, of an operation and of commit. Later calls succeed.
struct fault_plan {
    using faults = std::deque<std::optional<error>>;
    faults begins{};
    faults operations{};
    faults commits{};
    bool commit_takes_effect = false; // a commit that throws has been made
    int begun = 0;

    static void throw_next(faults& from) {
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

/// The memory store with planned faults. A failed operation or commit closes the transaction, as the contract requires.
class faulty_transaction {
    vouch::memory::transaction inner_;
    std::shared_ptr<fault_plan> plan_;

    vouch::memory::transaction& use() {
        fault_plan::throw_next(plan_->operations);
        return inner_;
    }

  public:
    faulty_transaction(vouch::memory::transaction inner, std::shared_ptr<fault_plan> plan)
        : inner_(std::move(inner)), plan_(std::move(plan)) {}

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
        if (plan_->commit_takes_effect) {
            inner_.commit();
            fault_plan::throw_next(plan_->commits);
        } else {
            fault_plan::throw_next(plan_->commits);
            inner_.commit();
        }
    }
};

struct faulty_store {
    using transaction = faulty_transaction;
    static constexpr int contract_level = vouch::contract_level;

    vouch::memory::store inner{};
    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();

    [[nodiscard]] auto find(const vouch::id& id) const { return inner.find(id); }
    [[nodiscard]] auto list(const vouch::query& q) const { return inner.list(q); }
    [[nodiscard]] auto counts(std::string_view queue) const { return inner.counts(queue); }
    [[nodiscard]] auto next_due(std::string_view queue) const { return inner.next_due(queue); }
    [[nodiscard]] auto capabilities() const { return inner.capabilities(); }
    transaction begin() {
        ++plan->begun;
        fault_plan::throw_next(plan->begins);
        return {inner.begin(), plan};
    }
};
static_assert(vouch::store<faulty_store>);

const error conflict(error_kind::conflict, "lost");
const error conflict_in_doubt(error_kind::conflict, "lost, or not", error::details{.in_doubt = true});

const error connection_lost(error_kind::io, "cut off", error::details{.in_doubt = true});

fault_plan::faults conflicts(int count) { return fault_plan::faults(static_cast<std::size_t>(count), conflict); }

std::vector<vouch::receipt> enqueue_one(faulty_store& store) {
    const auto d = draft_of(1);
    return vouch::enqueue(store, std::span(&d, 1), t0);
}

} // namespace

TEST_CASE("transact: commits and returns the result of the work") {
    vouch::memory::store store;
    const auto answer = vouch::transact(store, [](auto& tx) {
        const auto d = draft_of(1);
        tx.enqueue(std::span(&d, 1), t0);
        return 42;
    });
    CHECK(answer == 42);
    CHECK(store.find(id_of(1)));

    vouch::transact(store, [](auto& tx) { std::ignore = tx.cancel(id_of(1), "cancelled", t0); });
    CHECK(store.find(id_of(1))->state == vouch::state::dead);
}

TEST_CASE("transact: a move-only result is returned") {
    vouch::memory::store store;
    const auto answer = vouch::transact(store, [](auto&) { return std::make_unique<int>(7); });
    CHECK(*answer == 7);
}

TEST_CASE("transact: after a conflict in any call the transaction is repeated from begin and committed once") {
    for (const auto call : {&fault_plan::begins, &fault_plan::operations, &fault_plan::commits}) {
        faulty_store store;
        (*store.plan).*call = conflicts(3);
        const auto receipts = enqueue_one(store);
        CHECK(receipts.front().what == vouch::receipt::kind::inserted);
        CHECK(store.plan->begun == 4);
        CHECK(numbers(store.list(vouch::query::all("q"))) == list{1});
    }
}

TEST_CASE("transact: the whole work is repeated, and the failed try leaves nothing behind") {
    faulty_store store;
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

TEST_CASE("transact: after the maximum number of tries the last conflict is thrown") {
    faulty_store just_enough;
    just_enough.plan->commits = conflicts(vouch::transact_tries - 1);
    CHECK(enqueue_one(just_enough).size() == 1);
    CHECK(just_enough.plan->begun == vouch::transact_tries);

    faulty_store too_many;
    too_many.plan->commits = conflicts(1000);
    CHECK(kind_of([&] { enqueue_one(too_many); }) == error_kind::conflict);
    CHECK(too_many.plan->begun == vouch::transact_tries);
    CHECK(too_many.list(vouch::query::all("q")).empty());
}

TEST_CASE("transact: every other error is thrown at once") {
    for (const auto kind :
         {error_kind::invalid_argument, error_kind::unsupported, error_kind::unrouted, error_kind::busy,
          error_kind::full, error_kind::read_only, error_kind::corrupt, error_kind::io, error_kind::misuse}) {
        for (const auto call : {&fault_plan::begins, &fault_plan::operations, &fault_plan::commits}) {
            faulty_store store;
            (*store.plan).*call = {error(kind, "a fault", {.code = 17})};
            const auto e = error_of([&] { enqueue_one(store); });
            REQUIRE(e);
            CHECK(e->kind() == kind);
            CHECK(e->code() == 17);
            CHECK(store.plan->begun == 1);
            CHECK(store.list(vouch::query::all("q")).empty());
        }
    }
}

TEST_CASE("transact: an error in doubt is never repeated, not even a conflict") {
    for (const auto& fault : {conflict_in_doubt, connection_lost}) {
        faulty_store store;
        store.plan->commits = {fault};
        const auto e = error_of([&] { vouch::transact(store, [](auto& tx) { return tx.claim(request(t0)); }); });
        REQUIRE(e);
        CHECK(e->is_in_doubt());
        CHECK(store.plan->begun == 1);
    }
}

TEST_CASE("claim: after a commit in doubt the claim is not repeated, and the entry is claimed again after its lease") {
    faulty_store store;
    enqueue_one(store);
    store.plan->commit_takes_effect = true;
    store.plan->commits = {connection_lost};
    CHECK(error_of([&] { return vouch::claim(store, request(t0)); })->is_in_doubt());
    CHECK(store.find(id_of(1))->epoch == 1);
    CHECK(vouch::claim(store, request(t0 + 1min)).front().epoch == 2);
}

TEST_CASE("enqueue: a commit in doubt is repeated with the same ids, and the draft is stored once") {
    for (const bool commit_takes_effect : {false, true}) {
        faulty_store store;
        store.plan->commit_takes_effect = commit_takes_effect;
        store.plan->commits = {connection_lost, conflict_in_doubt};
        CHECK(enqueue_one(store).front() == vouch::receipt{vouch::receipt::kind::inserted, id_of(1)});
        CHECK(store.plan->begun == 3);
        CHECK(numbers(store.list(vouch::query::all("q"))) == list{1});
    }
}

TEST_CASE("enqueue: after a commit in doubt a duplicate by key is still a duplicate of the other entry") {
    faulty_store store;
    auto first = draft_of(1);
    first.key = "k";
    auto second = draft_of(2);
    second.key = "k";
    vouch::enqueue(store, std::span(&first, 1), t0);
    store.plan->commits = {connection_lost};
    CHECK(vouch::enqueue(store, std::span(&second, 1), t0).front() ==
          vouch::receipt{vouch::receipt::kind::duplicate, id_of(1)});
}

TEST_CASE("enqueue: if the repeat after a commit in doubt fails, the error is in doubt") {
    faulty_store store;
    store.plan->commit_takes_effect = true;
    store.plan->commits = {connection_lost, vouch::error(vouch::error_kind::io, "gone", {.code = 7})};
    const auto e = error_of([&] { enqueue_one(store); });
    REQUIRE(e);
    CHECK(e->is_in_doubt());
    CHECK(e->kind() == vouch::error_kind::io);
    CHECK(e->code() == 7);
}

TEST_CASE("enqueue: after the maximum number of tries the error in doubt is thrown") {
    faulty_store store;
    store.plan->commits = fault_plan::faults(1000, connection_lost);
    CHECK(error_of([&] { enqueue_one(store); })->is_in_doubt());
    CHECK(store.plan->begun == vouch::transact_tries);
}

TEST_CASE("transact: if the work throws, nothing is stored") {
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

TEST_CASE("transact: a conflict thrown by the work is repeated") {
    vouch::memory::store store;
    int runs = 0;
    vouch::transact(store, [&](auto&) {
        if (++runs < 3) {
            throw conflict;
        }
    });
    CHECK(runs == 3);
}

TEST_CASE("claim, enqueue: the free functions commit") {
    faulty_store store;
    store.plan->commits = conflicts(1);
    enqueue_one(store);
    store.plan->operations = conflicts(2);
    const auto claimed = vouch::claim(store, request(t0));
    CHECK(numbers(claimed) == list{1});
    CHECK(claimed.front().attempts == 1);
    CHECK(store.find(id_of(1))->state == vouch::state::claimed);
}

} // namespace contract_transact_test
