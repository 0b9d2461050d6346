// SPDX-License-Identifier: MIT
// Many threads on one memory store. No thread waits for a time to pass: they meet at a latch and run into each other.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_threads_test {

using namespace support;
using vouch::state;
using vouch::verdict;

namespace {

/// Runs `work(n)` on so many threads at once. Catch2's assertions are not for threads: `work` returns its complaints.
template <class Work>
void race(std::size_t threads, Work work) {
    std::latch start(static_cast<std::ptrdiff_t>(threads));
    std::mutex mutex;
    std::vector<std::string> complaints;
    {
        std::vector<std::jthread> running;
        for (std::size_t n = 0; n < threads; ++n) {
            running.emplace_back([&, n] {
                std::string complaint;
                start.arrive_and_wait();
                try {
                    complaint = work(n);
                } catch (const std::exception& e) {
                    complaint = e.what();
                }
                if (!complaint.empty()) {
                    const std::lock_guard lock(mutex);
                    complaints.push_back(complaint);
                }
            });
        }
    }
    CHECK(complaints == std::vector<std::string>{});
}

} // namespace

TEST_CASE("threads: no ticket is handed out twice and no entry is lost") {
    constexpr std::uint64_t entries = 900;
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= entries; ++n) {
        put(store, draft_of(n));
    }
    std::mutex mutex;
    std::set<vouch::ticket> tickets;
    race(4, [&, store](std::size_t thread) mutable -> std::string {
        std::vector<vouch::settle> settles;
        for (std::size_t round = 0;; ++round) {
            // Settles and the next claim in one commit, as a runner does.
            const auto claimed = vouch::transact(store, [&](auto& tx) {
                for (const auto& s : tx.settle(settles, t0)) {
                    if (s.verdict != verdict::applied) {
                        throw std::runtime_error("a settle was not applied");
                    }
                }
                return tx.claim(request(t0, {.limit = 1 + (thread + round) % 5}));
            });
            std::this_thread::yield(); // where another thread fits in
            settles.clear();
            if (claimed.empty()) {
                return "";
            }
            for (const auto& e : claimed) {
                const std::lock_guard lock(mutex);
                if (!tickets.insert(ticket_of(e)).second) {
                    return "a ticket was handed out twice";
                }
                // Some are handed back twice before they are done.
                const bool done = e.epoch == 3 || e.id.low % 3 != 0;
                settles.push_back(
                    {ticket_of(e), done ? vouch::outcome{vouch::succeed{}} : vouch::outcome{vouch::release{}}});
            }
        }
    });
    CHECK(store.counts("q")[state::succeeded] == entries);
    CHECK(tickets.size() == entries + 2 * (entries / 3));
}

TEST_CASE("threads: an expired claim is taken over by one, and the others' tickets are worth nothing") {
    vouch::memory::store store;
    const vouch::manual_clock clock(t0);
    for (std::uint64_t n = 1; n <= 40; ++n) {
        put(store, draft_of(n));
    }
    std::atomic<std::size_t> applied = 0;
    race(4, [&, store](std::size_t) mutable -> std::string {
        for (int round = 0; round < 100; ++round) {
            clock.pass(1us); // a lease of two ticks is over as soon as the others have moved, so everybody is late
            const auto claimed = take(store, clock(), {.limit = 3, .lease = 2us});
            std::this_thread::yield();
            for (const auto& e : claimed) {
                const auto got = settle(store, ticket_of(e), vouch::succeed{}, clock()).verdict;
                applied += got == verdict::applied ? 1U : 0U;
                if (got != verdict::applied && got != verdict::stale) {
                    return "neither applied nor stale";
                }
            }
        }
        return "";
    });
    for (const auto& e : take(store, clock() + 1s)) {
        applied += settle(store, ticket_of(e), vouch::succeed{}, clock()).verdict == verdict::applied ? 1U : 0U;
    }
    CHECK(applied == 40);
    CHECK(store.counts("q")[state::succeeded] == 40);
}

TEST_CASE("threads: a lane is worked off in sequence") {
    vouch::memory::store store;
    for (std::uint64_t n = 1; n <= 120; ++n) {
        auto d = draft_of(n);
        d.lane = "lane " + std::to_string(n % 3);
        put(store, d);
    }
    std::mutex mutex;
    std::map<std::string, std::vector<std::uint64_t>> done;
    race(4, [&, store](std::size_t) mutable -> std::string {
        while (store.counts("q").live() > 0) {
            const auto claimed = take(store, t0, {.limit = 2});
            for (const auto& e : claimed) {
                const std::lock_guard lock(mutex);
                done[e.lane].push_back(e.sequence);
            }
            for (const auto& e : claimed) {
                if (settle(store, ticket_of(e), vouch::succeed{}).verdict != verdict::applied) {
                    return "a settle was not applied";
                }
            }
        }
        return "";
    });
    CHECK(done.size() == 3);
    for (const auto& [lane, sequences] : done) {
        CHECK(sequences.size() == 40);
        CHECK(std::is_sorted(sequences.begin(), sequences.end()));
    }
}

TEST_CASE("threads: of two racing last settles exactly one completes the group") {
    constexpr std::uint64_t groups = 100;
    vouch::memory::store store;
    for (std::uint64_t n = 0; n < 2 * groups; ++n) {
        auto d = draft_of(n + 1);
        d.group = std::to_string(n / 2);
        put(store, d);
    }
    const auto claimed = take(store, t0, {.limit = 2 * groups});
    std::atomic<std::uint64_t> completed = 0;
    race(2, [&, store](std::size_t thread) mutable -> std::string {
        for (std::size_t i = thread; i < claimed.size(); i += 2) {
            completed += settle(store, ticket_of(claimed[i]), vouch::succeed{}).group_completed ? 1U : 0U;
        }
        return "";
    });
    CHECK(completed == groups);
}

TEST_CASE("threads: of racing producers with one key exactly one gets in") {
    vouch::memory::store store;
    std::array<std::vector<vouch::receipt>, 4> receipts;
    race(4, [&, store](std::size_t thread) mutable -> std::string {
        for (std::uint64_t n = 0; n < 100; ++n) {
            auto d = draft_of(1000 * (thread + 1) + n);
            d.key = std::to_string(n);
            receipts[thread].push_back(put(store, d));
        }
        return "";
    });
    for (std::size_t n = 0; n < 100; ++n) {
        std::size_t inserted = 0;
        std::set<vouch::id> ids;
        for (const auto& of_thread : receipts) {
            inserted += of_thread[n].what == vouch::receipt::kind::inserted ? 1U : 0U;
            ids.insert(of_thread[n].id);
        }
        CHECK(inserted == 1);
        CHECK(ids.size() == 1); // the duplicates say whose
    }
    CHECK(store.counts("q").total() == 100);
}

TEST_CASE("threads: readers see whole transactions or nothing of them") {
    vouch::memory::store store;
    std::atomic<bool> done = false;
    race(4, [&, store](std::size_t thread) mutable -> std::string {
        if (thread < 2) {
            for (std::uint64_t n = 0; n < 200; ++n) {
                const auto first = 10'000 * (thread + 1) + 2 * n;
                auto tx = store.begin();
                for (const auto id : {first, first + 1}) {
                    auto d = draft_of(id);
                    d.group = "g";
                    tx.enqueue(std::span(&d, 1), t0);
                }
                if (n % 3 != 0) {
                    tx.commit();
                }
            }
            done = true;
            return "";
        }
        while (!done) {
            const auto total = store.counts("q").total();
            const auto members = store.list({.by = vouch::query::path::group, .group = "g", .limit = 10'000}).size();
            if (total % 2 != 0 || members % 2 != 0) {
                return "half a transaction was seen";
            }
        }
        return "";
    });
    CHECK(store.counts("q").total() == 2 * 2 * 133);
}

TEST_CASE("threads: a transaction handed from thread to thread keeps its work") {
    vouch::memory::store store;
    auto tx = store.begin();
    for (std::uint64_t n = 1; n <= 20; ++n) {
        std::jthread([&tx, n] {
            const auto d = draft_of(n);
            tx.enqueue(std::span(&d, 1), t0);
        });
    }
    tx.commit();
    CHECK(store.counts("q").total() == 20);
}

} // namespace memory_threads_test
