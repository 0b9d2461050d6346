// SPDX-License-Identifier: MIT
// Threads on one file, through copies of a handle and through stores opened apart, which is all that other processes
// are to SQLite.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_threads_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using kind = vouch::receipt::kind;
using store_type = vouch::sqlite::store;
using vouch::state;

namespace {

const vouch::sqlite::options quick{.synchronous = vouch::sqlite::synchronous::normal};

/// Half of the threads share a handle, the others open the file themselves.
template <class Work>
void on_threads(const std::string& path, std::size_t count, Work&& work) {
    store_type shared(path, quick);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            if (i % 2 == 0) {
                auto mine = shared;
                work(mine, i);
            } else {
                store_type mine(path, quick);
                work(mine, i);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

} // namespace

TEST_CASE("sqlite threads: no ticket is handed out twice, and every entry is done once") {
    const folder folder;
    const auto path = folder.fresh_path();
    constexpr std::uint64_t entries = 600;
    {
        store_type store(path, quick);
        std::vector<vouch::draft> drafts;
        for (std::uint64_t n = 1; n <= entries; ++n) {
            drafts.push_back(draft_of(n));
        }
        vouch::enqueue(store, drafts, t0);
    }
    std::mutex mutex;
    std::map<vouch::ticket, int> handed_out;
    std::atomic<std::uint64_t> done = 0;
    on_threads(path, 4, [&](store_type& store, std::size_t) {
        while (done < entries) {
            const auto claimed = vouch::claim(store, request(t0, {.limit = 7}));
            std::vector<vouch::settle> settles;
            for (const auto& e : claimed) {
                const std::lock_guard lock(mutex);
                handed_out[ticket_of(e)] += 1;
                settles.push_back({ticket_of(e), vouch::succeed{}});
            }
            for (const auto& s : vouch::transact(store, [&](auto& tx) { return tx.settle(settles, t0); })) {
                done += s.verdict == vouch::verdict::applied ? 1U : 0U;
            }
            if (claimed.empty()) {
                break;
            }
        }
    });
    CHECK(done == entries);
    CHECK(handed_out.size() == entries);
    for (const auto& [ticket, times] : handed_out) {
        REQUIRE(times == 1);
    }
    CHECK(store_type(path).counts("q")[state::succeeded] == entries);
    CHECK(application(path).text("PRAGMA integrity_check") == "ok");
}

TEST_CASE("sqlite threads: of many that enqueue one key, one inserts and all others hear of its entry") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::ignore = store_type(path);
    constexpr std::uint64_t keys = 40;
    std::mutex mutex;
    std::map<std::string, std::vector<vouch::receipt>> receipts;
    on_threads(path, 4, [&](store_type& store, std::size_t thread) {
        for (std::uint64_t n = 0; n < keys; ++n) {
            auto d = draft_of(1 + thread * keys + n);
            d.key = "k" + std::to_string(n);
            const auto answer = vouch::enqueue(store, std::span(&d, 1), t0).front();
            const std::lock_guard lock(mutex);
            receipts[d.key].push_back(answer);
        }
    });
    for (const auto& [key, answers] : receipts) {
        CAPTURE(key);
        std::set<vouch::id> ids;
        int inserted = 0;
        for (const auto& answer : answers) {
            ids.insert(answer.id);
            inserted += answer.what == kind::inserted ? 1 : 0;
        }
        CHECK(inserted == 1);
        CHECK(ids.size() == 1);
    }
    CHECK(store_type(path).counts("q").total() == keys);
}

TEST_CASE("sqlite threads: of many that requeue one dead entry, one succeeds and all others hear of its successor") {
    const folder folder;
    const auto path = folder.fresh_path();
    constexpr std::uint64_t dead = 30;
    {
        store_type store(path, quick);
        std::vector<vouch::draft> drafts;
        for (std::uint64_t n = 1; n <= dead; ++n) {
            drafts.push_back(draft_of(n));
        }
        vouch::enqueue(store, drafts, t0);
        vouch::transact(store, [&](auto& tx) {
            for (const auto& d : drafts) {
                std::ignore = tx.cancel(d.id, "no", t0);
            }
        });
    }
    std::atomic<std::uint64_t> inserted = 0;
    std::atomic<std::uint64_t> refused = 0;
    on_threads(path, 4, [&](store_type& store, std::size_t thread) {
        for (std::uint64_t n = 1; n <= dead; ++n) {
            const auto fresh = id_of(1000 + thread * dead + n);
            const auto answer = vouch::transact(
                store, [&](auto& tx) { return vouch::requeue(tx, {.dead = id_of(n), .successor = fresh, .now = t0}); });
            inserted += answer.what == kind::inserted ? 1U : 0U;
            refused += answer.what == kind::refused ? 1U : 0U;
        }
    });
    CHECK(inserted == dead);
    CHECK(refused == 0);
    CHECK(store_type(path).counts("q")[state::pending] == dead);
}

TEST_CASE("sqlite threads: of two last settles of a group exactly one reports that it is complete") {
    const folder folder;
    const auto path = folder.fresh_path();
    constexpr std::uint64_t groups = 40;
    std::vector<vouch::ticket> tickets;
    {
        store_type store(path, quick);
        std::vector<vouch::draft> drafts;
        for (std::uint64_t n = 0; n < 2 * groups; ++n) {
            drafts.push_back(draft_of(n + 1));
            drafts.back().group = "g" + std::to_string(n / 2);
        }
        vouch::enqueue(store, drafts, t0);
        for (const auto& e : vouch::claim(store, request(t0))) {
            tickets.push_back(ticket_of(e));
        }
    }
    REQUIRE(tickets.size() == 2 * groups);
    std::atomic<std::uint64_t> completed = 0;
    on_threads(path, 2, [&](store_type& store, std::size_t thread) {
        for (std::uint64_t g = 0; g < groups; ++g) {
            const auto answer = vouch::transact(
                store, [&](auto& tx) { return settle_in(tx, tickets[2 * g + thread], vouch::succeed{}, t0); });
            completed += answer.group_completed ? 1U : 0U;
        }
    });
    CHECK(completed == groups);
}

TEST_CASE("sqlite threads: readers see whole transactions while others write") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::ignore = store_type(path);
    std::atomic<bool> writing = true;
    std::atomic<int> halves = 0;
    std::atomic<int> looks = 0;
    on_threads(path, 4, [&](store_type& store, std::size_t thread) {
        if (thread < 2) {
            while (writing) {
                halves += store.counts("q").total() % 3 == 0 ? 0 : 1;
                looks += 1;
            }
            return;
        }
        for (std::uint64_t n = 0; n < 60; ++n) {
            const auto first = 1 + (thread * 1000) + 3 * n;
            vouch::enqueue(store, std::array{draft_of(first), draft_of(first + 1), draft_of(first + 2)}, t0);
        }
        writing = false;
    });
    CHECK(halves == 0);
    CHECK(looks > 0);
}

} // namespace sqlite_threads_test
