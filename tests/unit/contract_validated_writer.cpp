// SPDX-License-Identifier: MIT
// The base classes that stores share: which calls reach the store, and what closes a transaction.
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_validated_writer_test {

using namespace support;
using vouch::error_kind;

namespace {

/// Counts the calls that reach it; each may be made to fail.
struct recorder {
    int calls = 0;
    std::function<void()> fail = [] {};

    void called() {
        ++calls;
        fail();
    }
    std::optional<vouch::entry> find(const vouch::id& wanted) { return called(), entry_of(wanted); }
    std::vector<vouch::entry> list(const vouch::query&) { return called(), std::vector{entry_of(id_of(1))}; }
    vouch::state_counts counts(std::string_view) { return called(), vouch::state_counts{}; }
    std::optional<vouch::time_point> next_due(std::string_view) { return called(), t0; }
    std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> drafts, vouch::time_point) {
        called();
        return {drafts.size(), {vouch::receipt::kind::inserted, drafts.front().id}};
    }
    std::vector<vouch::entry> claim(const vouch::claim_request&) { return called(), std::vector{entry_of(id_of(2))}; }
    std::vector<vouch::settlement> settle(std::span<const vouch::settle> settles, vouch::time_point) {
        called();
        return {settles.size(), {vouch::verdict::applied, true}};
    }
    std::vector<vouch::verdict> extend(std::span<const vouch::ticket> tickets, vouch::time_point, vouch::duration) {
        return called(), std::vector(tickets.size(), vouch::verdict::stale);
    }
    vouch::verdict nudge(const vouch::id&, vouch::time_point) { return called(), vouch::verdict::repeated; }
    vouch::verdict cancel(const vouch::id&, std::string_view, vouch::time_point) {
        return called(), vouch::verdict::applied;
    }
    std::size_t purge(const vouch::purge_request&) { return called(), 7; }

    static vouch::entry entry_of(const vouch::id& which) {
        vouch::entry e;
        e.id = which;
        return e;
    }
};

constexpr vouch::capabilities no_lanes{.groups = true};

class fake_transaction : public vouch::validated_writer<fake_transaction> {
  public:
    explicit fake_transaction(recorder& to) : to_(&to) {}
    fake_transaction(fake_transaction&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
    fake_transaction& operator=(fake_transaction&& other) noexcept {
        to_ = std::exchange(other.to_, nullptr);
        return *this;
    }
    void commit() {
        static_cast<void>(expect_open());
        close();
    }
    [[nodiscard]] bool is_open() const { return to_ != nullptr; }

  private:
    friend class vouch::validated_reader<fake_transaction>;
    friend class vouch::validated_writer<fake_transaction>;

    [[nodiscard]] const vouch::capabilities& expect_open() const {
        if (to_ == nullptr) {
            throw vouch::error(error_kind::misuse, "closed");
        }
        return no_lanes;
    }
    void close() const noexcept { to_ = nullptr; }
    template <class Operation>
    auto read(const Operation& operation) const {
        return operation(*to_);
    }
    template <class Operation>
    auto write(const Operation& operation) {
        return operation(*to_);
    }

    mutable recorder* to_;
};

class fake_reader : public vouch::validated_reader<fake_reader> {
  public:
    explicit fake_reader(recorder& to) : to_(&to) {}

  private:
    friend class vouch::validated_reader<fake_reader>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return no_lanes; }
    template <class Operation>
    auto read(const Operation& operation) const {
        return operation(*to_);
    }

    recorder* to_;
};

static_assert(vouch::transaction<fake_transaction>);
static_assert(vouch::reader<fake_reader>);
static_assert(std::is_empty_v<vouch::validated_writer<fake_transaction>>);

using call = std::function<void(fake_transaction&)>;

/// Every operation, with valid arguments.
std::vector<call> valid_calls() {
    return {[](auto& tx) { std::ignore = tx.find(id_of(1)); },
            [](auto& tx) { std::ignore = tx.list(vouch::query::all("q")); },
            [](auto& tx) { std::ignore = tx.counts("q"); },
            [](auto& tx) { std::ignore = tx.next_due("q"); },
            [](auto& tx) { std::ignore = tx.enqueue(std::array{draft_of(1)}, t0); },
            [](auto& tx) { std::ignore = tx.claim(request(t0)); },
            [](auto& tx) { std::ignore = tx.settle(std::array{vouch::settle{}}, t0); },
            [](auto& tx) { std::ignore = tx.extend(std::array{vouch::ticket{}}, t0, 1s); },
            [](auto& tx) { std::ignore = tx.nudge(id_of(1), t0); },
            [](auto& tx) { std::ignore = tx.cancel(id_of(1), "e", t0); },
            [](auto& tx) { std::ignore = tx.purge({.queue = "q", .before = t0}); }};
}

/// Every operation that has arguments to validate, with invalid ones.
std::vector<call> invalid_calls() {
    return {[](auto& tx) { std::ignore = tx.list({}); },
            [](auto& tx) { std::ignore = tx.counts(""); },
            [](auto& tx) { std::ignore = tx.next_due(""); },
            [](auto& tx) {
                std::ignore = tx.enqueue(std::array{draft_of(1), vouch::draft{}}, t0);
            },
            [](auto& tx) { std::ignore = tx.claim({}); },
            [](auto& tx) {
                std::ignore = tx.settle(std::array{vouch::settle{{}, vouch::retry{std::string(101, 'e'), t0}}}, t0);
            },
            [](auto& tx) { std::ignore = tx.extend(std::array{vouch::ticket{}}, t0, 0s); },
            [](auto& tx) { std::ignore = tx.cancel(id_of(1), std::string(101, 'e'), t0); },
            [](auto& tx) { std::ignore = tx.purge({}); }};
}

} // namespace

TEST_CASE("validated writer: valid arguments reach the store, and its answers come back") {
    recorder store;
    fake_transaction tx(store);
    CHECK(tx.find(id_of(3))->id == id_of(3));
    CHECK(numbers(tx.list(vouch::query::all("q"))) == list{1});
    CHECK(tx.counts("q") == vouch::state_counts{});
    CHECK(tx.next_due("q") == t0);
    CHECK(tx.enqueue(std::array{draft_of(4)}, t0).front().id == id_of(4));
    CHECK(numbers(tx.claim(request(t0))) == list{2});
    CHECK(tx.settle(std::array{vouch::settle{}}, t0).front().group_completed);
    CHECK(tx.extend(std::array{vouch::ticket{}}, t0, 1s).front() == vouch::verdict::stale);
    CHECK(tx.nudge(id_of(1), t0) == vouch::verdict::repeated);
    CHECK(tx.cancel(id_of(1), "e", t0) == vouch::verdict::applied);
    CHECK(tx.purge({.queue = "q", .before = t0}) == 7);
    CHECK(store.calls == 11);
    CHECK(tx.is_open());
}

TEST_CASE("validated writer: invalid arguments do not reach the store and leave the transaction open") {
    for (const auto& invalid : invalid_calls()) {
        recorder store;
        fake_transaction tx(store);
        CHECK(kind_of([&] { invalid(tx); }) == error_kind::invalid_argument);
        CHECK(store.calls == 0);
        CHECK(tx.is_open());
    }
}

TEST_CASE("validated writer: a capability that the store lacks is unsupported, and closes the transaction") {
    recorder store;
    fake_transaction tx(store);
    auto in_lane = draft_of(1);
    in_lane.lane = "lane";
    CHECK(kind_of([&] { return tx.enqueue(std::array{in_lane}, t0); }) == error_kind::unsupported);
    CHECK(store.calls == 0);
    CHECK_FALSE(tx.is_open());
}

TEST_CASE("validated writer: a transaction that is closed or moved from throws misuse for any arguments") {
    recorder store;
    fake_transaction committed(store);
    committed.commit();
    fake_transaction moved(store);
    const auto other = std::move(moved);
    for (auto* const tx : {&committed, &moved}) {
        for (const auto& calls : {valid_calls(), invalid_calls()}) {
            for (const auto& one : calls) {
                CHECK(kind_of([&] { one(*tx); }) == error_kind::misuse);
            }
        }
        CHECK(kind_of([&] { tx->commit(); }) == error_kind::misuse);
    }
    CHECK(store.calls == 0);
    CHECK(other.is_open());
}

TEST_CASE("validated writer: any error of an operation closes the transaction, but invalid_argument does not") {
    for (const auto kind : {error_kind::invalid_argument, error_kind::conflict, error_kind::busy, error_kind::full,
                            error_kind::read_only, error_kind::corrupt, error_kind::io, error_kind::misuse}) {
        for (const auto& one : valid_calls()) {
            recorder store;
            store.fail = [&] { throw vouch::error(kind, "made up"); };
            fake_transaction tx(store);
            CHECK(kind_of([&] { one(tx); }) == kind);
            CHECK(store.calls == 1);
            CHECK(tx.is_open() == (kind == error_kind::invalid_argument));
        }
    }
}

TEST_CASE("validated writer: an exception that is no vouch::error passes through and closes the transaction") {
    for (const auto& one : valid_calls()) {
        recorder store;
        store.fail = [] { throw std::runtime_error("made up"); };
        fake_transaction tx(store);
        CHECK_THROWS_AS(one(tx), std::runtime_error);
        CHECK_FALSE(tx.is_open());
    }
}

TEST_CASE("validated reader: invalid arguments do not reach the store, and errors change nothing") {
    recorder store;
    const fake_reader reader(store);
    CHECK(kind_of([&] { return reader.list({}); }) == error_kind::invalid_argument);
    CHECK(kind_of([&] { return reader.counts(""); }) == error_kind::invalid_argument);
    CHECK(kind_of([&] { return reader.next_due(""); }) == error_kind::invalid_argument);
    CHECK(store.calls == 0);
    CHECK(reader.find(id_of(3))->id == id_of(3));
    store.fail = [] { throw vouch::error(error_kind::io, "made up"); };
    CHECK(kind_of([&] { return reader.find(id_of(3)); }) == error_kind::io);
    store.fail = [] {};
    CHECK(reader.next_due("q") == t0);
    CHECK(numbers(reader.list(vouch::query::all("q"))) == list{1});
    CHECK(reader.counts("q") == vouch::state_counts{});
}

} // namespace contract_validated_writer_test
