// SPDX-License-Identifier: MIT
// What follows from how rows are laid out: several in one statement and still a verdict each, pages that are found
// wherever their entries lie, payloads that lie apart, numbers of queues. The memory store says what is right.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_layout_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::query;
using vouch::verdict;
namespace sqlite = vouch::sqlite;

namespace {

std::vector<vouch::draft> drafts(std::uint64_t first, std::uint64_t last, const std::string& queue = "q") {
    std::vector<vouch::draft> out;
    for (auto n = first; n <= last; ++n) {
        out.push_back(draft_of(n));
        out.back().queue = queue;
    }
    return out;
}

/// The same calls on both stores.
struct pair {
    folder files{};
    vouch::memory::store memory{};
    sqlite::store disk{files.fresh_path()};

    /// What `f` answers for the memory store, having compared it with what it answers for the other.
    template <class F>
    auto both(F&& f) {
        auto expected = vouch::transact(memory, f);
        CHECK(vouch::transact(disk, f) == expected);
        return expected;
    }
};

/// Every page from the first to the last.
template <class Store>
std::vector<list> pages(const Store& store, query q) {
    std::vector<list> out;
    for (;;) {
        const auto page = store.list(q);
        if (page.empty()) {
            return out;
        }
        out.push_back(numbers(page));
        q.after = page.back().sequence;
    }
}

} // namespace

TEST_CASE("layout: of drafts that are inserted together each has its own receipt") {
    pair stores;
    stores.both([](auto& tx) { return tx.enqueue(drafts(3, 4), t0); });
    auto mixed = drafts(1, 20);
    mixed[6] = mixed[5];              // the same once more
    mixed[11].payload = "not stored"; // as the one before it
    mixed[11].id = mixed[10].id;
    const auto receipts = stores.both([&](auto& tx) { return tx.enqueue(mixed, t0); });
    CHECK(receipts[2].what == vouch::receipt::kind::duplicate);
    CHECK(receipts[6].what == vouch::receipt::kind::duplicate);
    CHECK(receipts[7].what == vouch::receipt::kind::inserted);
    CHECK(look(stores.disk).found.size() == 18);
    const auto seen = stores.disk.list(query::all("q"));
    for (std::size_t i = 1; i < seen.size(); ++i) {
        CHECK(seen[i].sequence > seen[i - 1].sequence);
    }
}

TEST_CASE("layout: of settles that are written together each has its own verdict") {
    pair stores;
    stores.both([](auto& tx) { return tx.enqueue(drafts(1, 30), t0); });
    stores.both([](auto& tx) { return tx.claim(request(t0)).size(); });
    std::ignore = stores.both([](auto& tx) { return tx.claim(request(t0 + 1h, {.only = id_of(5)})).size(); });
    std::vector<vouch::settle> settles;
    for (std::uint64_t n = 1; n <= 30; ++n) {
        settles.push_back({{id_of(n), 1}, vouch::succeed{}}); // the fifth has been taken over
    }
    settles[9].ticket.id = id_of(1);                // a second time
    settles[14].ticket.id = id_of(99);              // of no entry
    settles[19].outcome = vouch::succeed{"result"}; // another result, so another statement
    settles[24].outcome = vouch::retry{"e", t0 + 1h};
    const auto answers = stores.both([&](auto& tx) { return tx.settle(settles, t0 + 2h); });
    CHECK(answers[0].verdict == verdict::applied);
    CHECK(answers[4].verdict == verdict::stale);
    CHECK(answers[9].verdict == verdict::repeated);
    CHECK(answers[14].verdict == verdict::unknown);
    CHECK(answers[29].verdict == verdict::applied);
    for (std::uint64_t n = 1; n <= 30; ++n) {
        CAPTURE(n);
        auto expected = stores.memory.find(id_of(n));
        expected->sequence = stores.disk.find(id_of(n))->sequence;
        CHECK(stores.disk.find(id_of(n)) == expected);
    }
}

TEST_CASE("layout: neighbours some of which are tied to others are settled like the others") {
    pair stores;
    auto some = drafts(1, 12);
    some[3].group = "g";
    some[4].lane = "l";
    some[7].parent = id_of(1);
    stores.both([&](auto& tx) { return tx.enqueue(some, t0); });
    stores.both([](auto& tx) { return tx.claim(request(t0)).size(); });
    std::vector<vouch::settle> settles;
    for (std::uint64_t n = 2; n <= 12; ++n) {
        settles.push_back({{id_of(n), 1}, vouch::succeed{}});
    }
    const auto answers = stores.both([&](auto& tx) { return tx.settle(settles, t0 + 1s); });
    CHECK(answers[2].group_completed);
    CHECK(stores.disk.find(id_of(1))->woken); // nudged by its child's end
}

TEST_CASE("layout: a page is found wherever its entries lie") {
    pair stores;
    // One entry in thirty is in the smaller queue; most of the first ones have ended.
    constexpr std::uint64_t all = 6'000;
    for (std::uint64_t first = 1; first <= all; first += 30) {
        stores.both([&](auto& tx) { return tx.enqueue(drafts(first, first + 28), t0); });
        stores.both([&](auto& tx) { return tx.enqueue(drafts(first + 29, first + 29, "small"), t0); });
    }
    const auto settle_some = [&](std::size_t count, const std::string& queue, std::uint64_t every) {
        stores.both([&](auto& tx) {
            std::vector<vouch::settle> settles;
            for (const auto& e : tx.claim(request(t0, {.limit = count, .queue = queue}))) {
                if (e.id.low % every == 0) {
                    settles.push_back({vouch::ticket_of(e), vouch::bury{"e"}});
                } else if (e.id.low % 7 != 0) {
                    settles.push_back({vouch::ticket_of(e), vouch::succeed{}});
                }
            }
            return tx.settle(settles, t0);
        });
    };
    settle_some(4'000, "q", 1'111);
    settle_some(100, "small", 450);
    std::size_t seen = 0;
    for (const std::string queue : {"q", "small", "none"}) {
        for (auto q : {query::all(queue), query::live(queue), query::dead(queue)}) {
            for (const std::size_t limit : {3U, 100U, 1'000U}) {
                q.limit = limit;
                CAPTURE(queue, static_cast<int>(q.by), limit);
                const auto found = pages(stores.disk, q);
                CHECK(found == pages(stores.memory, q));
                CHECK(found == pages(stores.disk.begin(), q));
                seen += found.size();
            }
            q.state = vouch::state::claimed;
            CHECK(pages(stores.disk, q) == pages(stores.memory, q));
        }
    }
    CHECK(seen > 2'000);
}

TEST_CASE("layout: lists see nothing uncommitted but their own transaction's, and wait for no writer") {
    const folder files;
    sqlite::store store(files.fresh_path());
    std::ignore = vouch::enqueue(store, drafts(1, 50), t0);
    std::ignore = vouch::claim(store, request(t0, {.limit = 40}));
    CHECK(store.list(query::live("q")).size() == 50);
    auto tx = store.begin(); // is not in the way of readers, nor they in its
    CHECK(tx.cancel(id_of(45), "e", t0) == verdict::applied);
    CHECK(tx.list(query::live("q")).size() == 49);
    CHECK(store.list(query::live("q")).size() == 50);
    tx.commit();
    CHECK(store.list(query::live("q")).size() == 49);
}

TEST_CASE("layout: a large payload is not written again by a claim or a settle") {
    const folder files;
    const auto path = files.fresh_path();
    sqlite::store store(path);
    auto d = draft_of(1);
    d.payload.assign(1'000'000, 'x');
    std::ignore = vouch::enqueue(store, std::array{d}, t0);
    CHECK(std::filesystem::file_size(path + "-wal") > d.payload.size());
    application app(path);
    app.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    const auto claimed = vouch::claim(store, request(t0));
    REQUIRE(claimed.size() == 1);
    CHECK(claimed.front().payload == d.payload);
    vouch::transact(store, [&](auto& tx) { settle_in(tx, {id_of(1), 1}, vouch::succeed{}, t0); });
    CHECK(std::filesystem::file_size(path + "-wal") < 100'000);
    CHECK(store.find(id_of(1))->payload == d.payload);
    vouch::transact(store, [](auto& tx) { tx.purge({.queue = "q", .before = t0 + 1h}); });
    CHECK(app.number("SELECT count(*) FROM vouch_payloads") == 0);
}

TEST_CASE("layout: payloads on both sides of the border come back whole") {
    const folder files;
    sqlite::store store(files.fresh_path());
    for (const std::size_t size : {0U, 1U, 1'023U, 1'024U, 1'025U, 70'000U}) {
        CAPTURE(size);
        auto d = draft_of(size + 1);
        d.payload.assign(size, '\0');
        std::ignore = vouch::enqueue(store, std::array{d}, t0);
        CHECK(store.find(d.id)->payload == d.payload);
        auto q = query::all("q");
        CHECK(store.list(q).back().payload.empty());
        q.payloads = true;
        CHECK(store.list(q).back().payload == d.payload);
    }
}

TEST_CASE("layout: a queue whose first entry was rolled back to a savepoint gets its number again") {
    const folder files;
    const auto path = files.fresh_path();
    application app(path);
    app.execute("PRAGMA journal_mode = WAL");
    int number = 0;
    for (auto store : {sqlite::store(app.connection()), sqlite::store(path)}) {
        const auto queue = "new " + std::to_string(++number);
        const auto first = static_cast<std::uint64_t>(2 * number);
        {
            auto tx = store.begin();
            sqlite3_exec(tx.connection(), "SAVEPOINT mine", nullptr, nullptr, nullptr);
            tx.enqueue(drafts(first, first, queue), t0);
            sqlite3_exec(tx.connection(), "ROLLBACK TO mine", nullptr, nullptr, nullptr);
            tx.enqueue(drafts(first + 1, first + 1, queue), t0);
            tx.commit();
        }
        CHECK(numbers(store.list(query::all(queue))) == list{first + 1});
        CHECK(store.find(id_of(first + 1))->queue == queue);
        CHECK(app.number("SELECT count(*) FROM vouch_queues") == number);
    }
}

TEST_CASE("layout: what is refused or only asked about gives no queue a number") {
    const folder files;
    const auto path = files.fresh_path();
    sqlite::store store(path);
    auto successor = draft_of(1);
    successor.predecessor = id_of(9);
    CHECK(vouch::enqueue(store, std::array{successor}, t0).front().what == vouch::receipt::kind::refused);
    CHECK(vouch::claim(store, request(t0)).empty());
    CHECK(store.counts("q") == vouch::state_counts{});
    CHECK(store.next_due("q") == std::nullopt);
    vouch::transact(store, [](auto& tx) { tx.purge({.queue = "q", .before = t0}); });
    CHECK(application(path).number("SELECT count(*) FROM vouch_queues") == 0);
}

} // namespace sqlite_layout_test
