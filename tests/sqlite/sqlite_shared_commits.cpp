// SPDX-License-Identifier: MIT
// Threads that enqueue at the same time through `store::enqueue`, and so share a transaction.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_shared_commits_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using kind = vouch::receipt::kind;
using vouch::error_kind;
using vouch::sqlite::store;

static_assert(vouch::enqueuing_store<store>);

namespace {

/// What a call of `enqueue` returned or threw.
struct answer {
    std::vector<vouch::receipt> receipts{};
    std::optional<vouch::error> failure{};
};

[[nodiscard]] answer ask(store& to, const std::vector<vouch::draft>& drafts) {
    answer out;
    try {
        out.receipts = to.enqueue(drafts, t0);
    } catch (const vouch::error& e) {
        out.failure = e;
    }
    return out;
}

/// Enqueues each batch on a thread of its own while the turn to write is taken, so that they share the next one.
[[nodiscard]] std::vector<answer> share(store& to, const std::vector<std::vector<vouch::draft>>& batches) {
    std::vector<answer> out(batches.size());
    std::vector<std::thread> threads;
    {
        auto turn = to.begin();
        for (std::size_t i = 0; i < batches.size(); ++i) {
            threads.emplace_back([&, i] { out[i] = ask(to, batches[i]); });
        }
        std::this_thread::sleep_for(50ms); // most of them wait by now
    }
    for (auto& one : threads) {
        one.join();
    }
    return out;
}

} // namespace

TEST_CASE("sqlite shared commits: threads that wait together are stored by one commit, each with its own receipts") {
    const folder in;
    store s(in.fresh_path());
    int shared = 0;
    for (std::uint64_t round = 0; round < 10; ++round) {
        std::vector<std::vector<vouch::draft>> batches;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const auto first = round * 100 + i * 10;
            batches.push_back({draft_of(first), draft_of(first + 1)});
        }
        const auto before = s.wakes("q"); // grows by one with each commit
        const auto answers = share(s, batches);
        const auto commits = s.wakes("q") - before;
        CHECK(commits >= 1);
        CHECK(commits <= 8);
        shared += commits < 8 ? 1 : 0;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            REQUIRE(answers[i].receipts.size() == 2);
            CHECK(answers[i].receipts[0] == vouch::receipt{kind::inserted, batches[i][0].id});
            CHECK(answers[i].receipts[1] == vouch::receipt{kind::inserted, batches[i][1].id});
        }
    }
    CHECK(shared > 0);
    CHECK(s.counts("q").total() == 160);
}

TEST_CASE("sqlite shared commits: threads that enqueue without a pause lose nothing") {
    const folder in;
    store s(in.fresh_path(), {.synchronous = vouch::sqlite::synchronous::normal});
    std::vector<std::thread> threads;
    std::atomic<int> inserted = 0;
    for (std::uint64_t t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
            auto mine = s;
            for (std::uint64_t i = 0; i < 200; ++i) {
                const auto receipts = vouch::enqueue(mine, std::array{draft_of(t * 1000 + i)}, t0);
                inserted += receipts == std::vector{vouch::receipt{kind::inserted, id_of(t * 1000 + i)}} ? 1 : 0;
            }
        });
    }
    for (auto& one : threads) {
        one.join();
    }
    CHECK(inserted == 1200);
    CHECK(s.counts("q").total() == 1200);
}

TEST_CASE("sqlite shared commits: one key of several threads is stored once, and the others are told of it") {
    const folder in;
    store s(in.fresh_path());
    std::vector<std::vector<vouch::draft>> batches;
    for (std::uint64_t i = 1; i <= 6; ++i) {
        batches.push_back({draft_of(i)});
        batches.back().front().key = "k";
    }
    int inserted = 0;
    const auto stored = [&] { return s.list(vouch::query::keyed("q", "k")).front().id; };
    for (const auto& a : share(s, batches)) {
        REQUIRE(a.receipts.size() == 1);
        inserted += a.receipts.front().what == kind::inserted ? 1 : 0;
        CHECK(a.receipts.front().id == stored());
    }
    CHECK(inserted == 1);
    CHECK(s.counts("q").total() == 1);
}

TEST_CASE("sqlite shared commits: an invalid draft is an error of its own thread only") {
    const folder in;
    store s(in.fresh_path());
    auto wrong = draft_of(2);
    wrong.topic = "";
    const auto answers = share(s, {{draft_of(1)}, {draft_of(9), wrong}, {draft_of(3)}});
    CHECK_FALSE(answers[0].failure);
    REQUIRE(answers[1].failure);
    CHECK(answers[1].failure->kind() == error_kind::invalid_argument);
    CHECK_FALSE(answers[2].failure);
    CHECK(s.counts("q").total() == 2);
    CHECK_FALSE(s.find(id_of(9)));
}

TEST_CASE("sqlite shared commits: a thread with an open transaction is refused, because it would wait for itself") {
    const folder in;
    store s(in.fresh_path());
    auto tx = s.begin();
    const auto refused = ask(s, {draft_of(1)});
    REQUIRE(refused.failure);
    CHECK(refused.failure->kind() == error_kind::misuse);
    tx.enqueue(std::array{draft_of(2)}, t0);
    tx.commit();
    CHECK(s.counts("q").total() == 1);
}

TEST_CASE("sqlite shared commits: while another process writes, every thread gets busy after busy_limit, not later") {
    const folder in;
    const auto path = in.fresh_path();
    store s(path, {.busy_limit = 300ms});
    application other(path);
    other.execute("BEGIN IMMEDIATE");
    std::vector<std::thread> threads;
    std::array<answer, 5> answers;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        threads.emplace_back([&, i] { answers.at(i) = ask(s, {draft_of(i)}); });
    }
    for (auto& one : threads) {
        one.join();
    }
    CHECK(std::chrono::steady_clock::now() - start < 1200ms); // one after another would take 1.5 s
    for (const auto& a : answers) {
        REQUIRE(a.failure);
        CHECK(a.failure->kind() == error_kind::busy);
        CHECK_FALSE(a.failure->is_in_doubt());
    }
    other.execute("ROLLBACK");
    CHECK(s.counts("q").total() == 0);
    CHECK_FALSE(ask(s, {draft_of(1)}).failure);
}

TEST_CASE("sqlite shared commits: when a step fails, each thread is told truly whether its drafts are stored") {
    const folder in;
    faulty_vfs disk("shared_commits");
    // After FULL nothing is stored; after other errors of a commit it is in doubt.
    const int code = GENERATE(SQLITE_FULL, SQLITE_IOERR_WRITE);
    CAPTURE(code);
    disk.code = [code](faulty_vfs::call) { return code; };
    disk.matters = [](faulty_vfs::call what, std::string_view) {
        return what == faulty_vfs::call::write || what == faulty_vfs::call::sync;
    };
    int failures = 0;
    int successes = 0;
    for (long n = 1; n <= 40; ++n) {
        const auto path = in.fresh_path();
        store s(path, {.vfs = "shared_commits"});
        disk.next = {.nth = n};
        const auto answers = share(s, {{draft_of(1)}, {draft_of(2)}, {draft_of(3)}});
        disk.next = {};
        const store seen(path);
        for (std::uint64_t i = 0; i < answers.size(); ++i) {
            const auto& a = answers[i];
            const bool is_stored = seen.find(id_of(i + 1)).has_value();
            if (!a.failure) {
                CHECK(is_stored);
                successes += 1;
            } else {
                CHECK((!is_stored || a.failure->is_in_doubt()));
                failures += 1;
            }
        }
    }
    CHECK((failures > 0) == (code != SQLITE_FULL)); // stored again alone, each succeeds
    CHECK(successes > 0);
}

} // namespace sqlite_shared_commits_test
