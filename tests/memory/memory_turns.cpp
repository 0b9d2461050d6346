// SPDX-License-Identifier: MIT
// Whose turn it is to write into the memory store: a moved transaction is no thread's until it is used, and nobody
// waits for ever.
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_turns_test {

using namespace support;
using vouch::error_kind;

namespace {

struct hasty_seam {
    static constexpr std::chrono::milliseconds begin_limit{30};
    void operator()(std::string_view) const noexcept {}
};
using hasty_store = vouch::memory::basic_store<hasty_seam>;

} // namespace

TEST_CASE("turns: a thread that moved its transaction away waits for it like any other") {
    vouch::memory::store store;
    const auto use = [](vouch::memory::transaction tx) {
        std::this_thread::sleep_for(30ms);
        tx.enqueue(std::array{draft_of(1)}, t0);
        tx.commit();
    };
    {
        std::thread other(use, store.begin()); // the thread has not used it yet
        put(store, draft_of(2));
        other.join();
    }
    CHECK(store.find(id_of(1))->sequence < store.find(id_of(2))->sequence);
    {
        auto tx = store.begin();
        tx.enqueue(std::array{draft_of(3)}, t0); // used here, and moved then
        std::thread other([mine = std::move(tx)]() mutable {
            std::this_thread::sleep_for(30ms);
            mine.commit();
        });
        put(store, draft_of(4));
        other.join();
    }
    CHECK(store.find(id_of(3))->sequence < store.find(id_of(4))->sequence);
}

TEST_CASE("turns: a thread that would wait for its own moved transaction is busy when the time is over") {
    hasty_store store;
    auto first = store.begin();
    auto tx = std::move(first);
    const auto refused = error_of([&] { std::ignore = store.begin(); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::busy);
    CHECK(std::string(refused->what()).find("belongs to this thread") != std::string::npos);
    CHECK_FALSE(tx.find(id_of(1)));
    CHECK(kind_of([&] { std::ignore = store.begin(); }) == error_kind::misuse); // used here since
    first = std::move(tx);
    CHECK(kind_of([&] { std::ignore = store.begin(); }) == error_kind::busy);
    first.commit();
    CHECK_FALSE(store.begin().find(id_of(1)));
}

TEST_CASE("turns: two stores begun in opposite order on two threads do not wait for each other for ever") {
    hasty_store left;
    hasty_store right;
    auto mine = left.begin();
    std::thread([&] {
        auto theirs = right.begin();
        CHECK(kind_of([&] { std::ignore = left.begin(); }) == error_kind::busy);
    }).join();
    CHECK_FALSE(right.begin().find(id_of(1)));
}

TEST_CASE("turns: a wait for new work may be of any length") {
    using std::chrono::nanoseconds;
    vouch::memory::store store;
    const auto seen = store.wakes("q");
    for (const auto none : {nanoseconds::zero(), nanoseconds{-1}, nanoseconds::min()}) {
        CHECK(store.wait("q", seen, none, {}) == seen);
    }
    std::thread other([store]() mutable {
        std::this_thread::sleep_for(20ms);
        put(store, draft_of(1));
    });
    CHECK(store.wait("q", seen, nanoseconds::max(), {}) != seen);
    other.join();
}

} // namespace memory_turns_test
