// SPDX-License-Identifier: MIT
// Decorators over `store_adaptor`: one that counts every operation, one that changes one operation, one that fails.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_store_adaptor_test {

using namespace support;
using vouch::error_kind;
using vouch::store_operation;

namespace {

using call_counts = std::map<store_operation, int>;

struct counting {
    call_counts* counts = nullptr;

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        ++(*counts)[what];
        return call();
    }
};
using counting_store = vouch::store_adaptor<vouch::memory::store, counting>;

/// Doubles every lease.
struct patient_transaction : vouch::transaction_adaptor<vouch::memory::transaction> {
    using transaction_adaptor::transaction_adaptor;
    auto claim(vouch::claim_request request) {
        request.lease *= 2;
        return inner().claim(request);
    }
};
struct patient_store : vouch::store_adaptor<vouch::memory::store> {
    using store_adaptor::store_adaptor;
    using transaction = patient_transaction;
    transaction begin() { return transaction(inner().begin()); }
};

/// Makes one operation fail, before or after its effect.
struct failing {
    store_operation which{};
    vouch::error error;
    bool after = false;

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        if (what == which && !after) {
            throw error;
        }
        auto answer = call();
        if (what == which) {
            throw error;
        }
        return answer;
    }
};
using failing_store = vouch::store_adaptor<vouch::memory::store, failing>;

/// The memory store without wake-ups.
struct quiet_store : vouch::store_adaptor<vouch::memory::store> {
    using store_adaptor::store_adaptor;
    std::uint64_t wakes(std::string_view) = delete;
};

static_assert(vouch::waking_store<vouch::store_adaptor<vouch::memory::store>>);
static_assert(vouch::waking_store<counting_store>);
static_assert(vouch::waking_store<patient_store>);
static_assert(vouch::store<vouch::store_adaptor<counting_store, failing>>);
static_assert(vouch::store<vouch::store_adaptor<quiet_store>>);
static_assert(!vouch::waking_store<vouch::store_adaptor<quiet_store>>);

template <class Transaction>
void use_all(Transaction& tx) {
    const std::array drafts{draft_of(1), draft_of(2)};
    tx.enqueue(drafts, t0);
    const auto claimed = tx.claim(request(t0, {.limit = 1}));
    const std::array tickets{ticket_of(claimed.at(0))};
    CHECK(tx.extend(tickets, t0, 1h).at(0) == vouch::verdict::applied);
    CHECK(settle_in(tx, tickets[0], vouch::succeed{}, t0).verdict == vouch::verdict::applied);
    CHECK(tx.nudge(id_of(2), t0) == vouch::verdict::repeated);
    CHECK(tx.cancel(id_of(2), "no_need", t0) == vouch::verdict::applied);
    CHECK(tx.purge({.queue = "q", .before = t0, .limit = 1}) == 0);
}

template <class Reader>
void look_at_all(const Reader& reader) {
    CHECK(reader.find(id_of(1)));
    CHECK(reader.list(vouch::query::all("q")).size() == 2);
    CHECK(reader.counts("q").total() == 2);
    CHECK(!reader.next_due("q"));
}

} // namespace

TEST_CASE("store_adaptor: every operation passes through the interceptor once") {
    call_counts seen;
    counting_store store(vouch::memory::store{}, {&seen});
    auto tx = store.begin();
    use_all(tx);
    look_at_all(tx);
    tx.commit();
    look_at_all(store);

    using enum store_operation;
    CHECK(seen == call_counts{{find, 2},
                              {list, 2},
                              {counts, 2},
                              {next_due, 2},
                              {begin, 1},
                              {enqueue, 1},
                              {claim, 1},
                              {settle, 1},
                              {extend, 1},
                              {nudge, 1},
                              {cancel, 1},
                              {purge, 1},
                              {commit, 1}});
    CHECK(store.capabilities() == store.inner().capabilities());
    CHECK(store.wakes("q") == store.inner().wakes("q"));
    CHECK(store.wait("q", store.wakes("q") + 1, 1h, {}) == store.wakes("q"));
}

TEST_CASE("store_adaptor: an interceptor can be a capturing lambda") {
    std::string log;
    vouch::store_adaptor store(vouch::memory::store{}, [&](store_operation what, const auto& call) {
        log += std::string(name_of(what)) + ' ';
        return call();
    });
    static_assert(vouch::store<decltype(store)>);
    auto first = store.begin();
    auto tx = std::move(first);
    tx.commit();
    CHECK(!store.find(id_of(1)));
    CHECK(log == "begin commit find ");
}

TEST_CASE("store_adaptor: a derived transaction changes one operation and forwards the others") {
    patient_store store;
    vouch::transact(store, [](auto& tx) { use_all(tx); });
    look_at_all(store);

    const std::array drafts{draft_of(3)};
    vouch::enqueue(store, drafts, t0);
    CHECK(vouch::claim(store, request(t0, {.lease = 1min})).at(0).lease_until == t0 + 2min);
}

TEST_CASE("store_adaptor: adaptors can be nested") {
    call_counts seen;
    vouch::store_adaptor store(counting_store(vouch::memory::store{}, {&seen}),
                               failing{.which = store_operation::purge, .error = {error_kind::io, "no"}});
    auto tx = store.begin();
    CHECK(kind_of([&] { tx.purge({.queue = "q", .before = t0, .limit = 1}); }) == error_kind::io);
    CHECK(seen == call_counts{{store_operation::begin, 1}});
}

TEST_CASE("store_adaptor: an interceptor's error closes the transaction and rolls it back") {
    const bool after = GENERATE(false, true);
    const auto fails = GENERATE(store_operation::find, store_operation::enqueue);
    failing_store store(vouch::memory::store{}, {.which = fails, .error = {error_kind::busy, "no"}, .after = after});
    auto tx = store.begin();
    const std::array drafts{draft_of(1)};
    const auto call = [&] {
        if (fails == store_operation::find) {
            std::ignore = tx.find(id_of(1));
        } else {
            tx.enqueue(drafts, t0);
        }
    };
    CHECK(kind_of(call) == error_kind::busy);
    CHECK(kind_of(call) == error_kind::misuse);
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
    CHECK(!store.inner().find(id_of(1)));
    auto another = store.inner().begin(); // does not wait for the failed transaction
    another.commit();
}

TEST_CASE("store_adaptor: an error thrown after a commit does not undo it") {
    failing_store store(
        vouch::memory::store{},
        {.which = store_operation::commit, .error = {error_kind::io, "no", {.in_doubt = true}}, .after = true});
    auto tx = store.begin();
    const std::array drafts{draft_of(1)};
    tx.enqueue(drafts, t0);
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::io);
    CHECK(store.find(id_of(1)));
}

TEST_CASE("store_adaptor: an invalid argument leaves the transaction open") {
    call_counts seen;
    counting_store store(vouch::memory::store{}, {&seen});
    auto tx = store.begin();
    const std::array invalid{draft_of(1, "")};
    const std::array valid{draft_of(1)};
    CHECK(kind_of([&] { tx.enqueue(invalid, t0); }) == error_kind::invalid_argument);
    tx.enqueue(valid, t0);
    tx.commit();
    CHECK(store.find(id_of(1)));
}

TEST_CASE("store_adaptor: a moved-from transaction is closed, with an interceptor and without") {
    const auto is_misuse = [](auto& store) {
        auto tx = store.begin();
        const auto moved = std::move(tx);
        return kind_of([&] { std::ignore = tx.find(id_of(1)); }) == vouch::error_kind::misuse; // NOLINT
    };
    vouch::store_adaptor plain(vouch::memory::store{});
    CHECK(is_misuse(plain));
    vouch::store_adaptor counted(vouch::memory::store{},
                                 [](vouch::store_operation, const auto& call) { return call(); });
    CHECK(is_misuse(counted));
}

} // namespace contract_store_adaptor_test
