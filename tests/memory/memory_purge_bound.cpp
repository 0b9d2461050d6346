// SPDX-License-Identifier: MIT
// What a purge of the memory store costs: entries that are still needed are looked at a bounded number at a time, and
// hide nothing for good.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_purge_bound_test {

using namespace support;
using vouch::state;

namespace {

/// Counts the rows purges look at.
struct counting_seam {
    std::shared_ptr<std::size_t> looks = std::make_shared<std::size_t>(0);
    void operator()(std::string_view) const noexcept {}
    void looked() const noexcept { *looks += 1; }
};

using counted_store = vouch::memory::basic_store<counting_seam>;

constexpr std::size_t purge_size = 100;
constexpr std::size_t looks_max = 3 * vouch::detail::purge_looks(purge_size);

struct archive {
    counting_seam seam{};
    counted_store store{seam};

    /// Entries of a group that end one after the other, from `first` on.
    void end_members(std::uint64_t first, std::uint64_t count, const std::string& group) {
        std::vector<vouch::draft> drafts;
        for (std::uint64_t n = first; n < first + count; ++n) {
            drafts.push_back(draft_of(n));
            drafts.back().group = group;
        }
        vouch::transact(store, [&](auto& tx) {
            for (const auto& d : drafts) {
                tx.enqueue(std::array{d}, t0);
                std::ignore = tx.cancel(d.id, "e", t0 + vouch::duration{static_cast<std::int64_t>(d.id.low)});
            }
        });
    }
    void put_member(std::uint64_t n, const std::string& group) {
        auto d = draft_of(n, "elsewhere");
        d.group = group;
        vouch::enqueue(store, std::array{d}, t0);
    }
    std::size_t purge(bool commits = true) {
        *seam.looks = 0;
        auto tx = store.begin();
        const auto gone = tx.purge({.queue = "q", .before = t0 + 1h, .limit = purge_size});
        if (commits) {
            tx.commit();
        }
        CHECK(*seam.looks <= looks_max);
        return gone;
    }
    /// How many purges it takes until one removes something; 0: it takes too many.
    std::size_t purges_until_some_are_gone(std::size_t calls_max) {
        for (std::size_t calls = 1; calls <= calls_max; ++calls) {
            if (purge() > 0) {
                return calls;
            }
        }
        return 0;
    }
    [[nodiscard]] std::size_t ended() const { return store.counts("q").total(); }
};

} // namespace

TEST_CASE("purge bound: with any number of needed entries in front, a purge looks at no more than its limit allows") {
    archive in;
    constexpr std::uint64_t many = 50'000;
    in.end_members(1, many, "g");
    in.put_member(1'000'000, "g"); // and needs them all
    in.end_members(many + 1, 10, "");
    const auto calls = in.purges_until_some_are_gone(many / vouch::detail::purge_looks(purge_size) + 2);
    CHECK(calls > 2);
    CHECK(in.ended() == many);
}

TEST_CASE("purge bound: entries that are needed no longer go, wherever the purges have come to") {
    archive in;
    constexpr std::uint64_t many = 10'000;
    in.end_members(1, many, "g");
    in.put_member(1'000'000, "g");
    for (int i = 0; i < 5; ++i) {
        CHECK(in.purge() == 0);
    }
    vouch::transact(in.store, [](auto& tx) { return tx.cancel(id_of(1'000'000), "e", t0); });
    CHECK(in.purge(false) == purge_size); // and rolled back
    CHECK(in.ended() == many);
    std::size_t gone = 0;
    for (std::size_t calls = 0; calls < many / purge_size; ++calls) {
        gone += in.purge();
        CHECK(numbers(in.store.list({.by = vouch::query::path::all, .queue = "q", .limit = 1})) ==
              (gone < many ? list{gone + 1} : list{})); // the oldest go first
    }
    CHECK(gone == many);
}

TEST_CASE("purge bound: the middle of the needed entries is looked at again, too, and a rollback loses nothing") {
    archive in;
    constexpr std::uint64_t many = 12'000;
    in.end_members(1, many / 2, "g");
    in.end_members(many / 2 + 1, 10, "h");
    in.end_members(many / 2 + 11, many / 2, "g");
    in.put_member(1'000'000, "g");
    in.put_member(1'000'001, "h");
    for (int i = 0; i < 7; ++i) {
        CHECK(in.purge(i % 2 == 0) == 0); // every other one is rolled back
    }
    vouch::transact(in.store, [](auto& tx) { return tx.cancel(id_of(1'000'001), "e", t0); });
    CHECK(in.purges_until_some_are_gone(2 * many / vouch::detail::purge_looks(purge_size) + 4) > 0);
    CHECK(in.ended() == many);
}

TEST_CASE("purge bound: the dead that are kept cost a purge of the succeeded nothing") {
    archive in;
    in.end_members(1, 20'000, "");
    auto d = draft_of(30'000);
    d.result = "r"; // born succeeded
    vouch::enqueue(in.store, std::array{d}, t0 + 1min);
    *in.seam.looks = 0;
    CHECK(vouch::transact(in.store, [](auto& tx) {
              return tx.purge({.queue = "q", .before = t0 + 1h, .limit = purge_size, .state = state::succeeded});
          }) == 1);
    CHECK(*in.seam.looks == 1);
}

} // namespace memory_purge_bound_test
