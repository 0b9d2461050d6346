// SPDX-License-Identifier: MIT
// The SQLite store as a thing with a file: what it keeps, whom it waits for, what it leaves alone.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_store_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::state;
using store_type = vouch::sqlite::store;

namespace {

vouch::receipt put_one(store_type& store, const vouch::draft& d) {
    return vouch::enqueue(store, std::span(&d, 1), t0).front();
}

vouch::draft full_draft(std::uint64_t n) {
    auto d = draft_of(n);
    d.topic = "order.created";
    d.payload = std::string("a\0b\xff\xfe", 5);
    d.key = "k\xc3\xa4";
    d.group = "g";
    d.lane = "lane \xf0\x9f\x93\xa6";
    d.parent = id_of(77);
    d.due_at = t0 - 5s;
    d.expires_at = t0 + 5h;
    d.attempts_max = 7;
    d.trail = {id_of(5), id_of(6)};
    d.headers = {{"name", std::string("v\0w", 3)}, {"name", ""}, {"other", "x"}};
    d.progress = std::string("\0\1", 2);
    return d;
}

/// The names of the fields in which two entries differ.
std::vector<std::string> differences(const vouch::entry& a, const vouch::entry& b) {
    std::vector<std::string> names;
    vouch::for_each_field(
        [&](std::string_view name, const auto& x, const auto& y) {
            if (!(x == y)) {
                names.emplace_back(name);
            }
        },
        a, b);
    return names;
}

} // namespace

TEST_CASE("sqlite store: every field of an entry survives closing the file, byte for byte") {
    const folder folder;
    const auto path = folder.fresh_path();
    vouch::memory::store memory;
    const auto drafts = std::array{full_draft(1), draft_of(2), [] {
                                       auto d = draft_of(3);
                                       d.payload = std::string(1024 * 1024, '\x80');
                                       d.result = std::string("\0", 1);
                                       return d;
                                   }()};
    std::vector<vouch::ticket> tickets;
    {
        store_type store(path);
        REQUIRE(vouch::enqueue(store, drafts, t0) == vouch::enqueue(memory, drafts, t0));
        const auto claimed = vouch::claim(store, request(t0));
        REQUIRE(vouch::claim(memory, request(t0)).size() == claimed.size());
        REQUIRE(claimed.size() == 2);
        tickets.push_back(ticket_of(claimed.front()));
    }
    const store_type again(path);
    for (std::uint64_t n = 1; n <= 3; ++n) {
        const auto found = again.find(id_of(n));
        REQUIRE(found);
        CHECK(differences(*found, *memory.find(id_of(n))) == std::vector<std::string>{});
    }
    auto store = again;
    const std::array settles{vouch::settle{tickets.front(), vouch::bury{"broken", std::string("r\0", 2)}}};
    const auto bury = [&](auto& tx) { return tx.settle(settles, t0 + 1s); };
    CHECK(vouch::transact(store, bury) == vouch::transact(memory, bury));
    CHECK(differences(*again.find(tickets.front().id), *memory.find(tickets.front().id)) == std::vector<std::string>{});
}

TEST_CASE("sqlite store: an entry with lapses is found, listed and claimed with them, whatever verb comes next") {
    const auto now = t0 + 3min;
    const auto let_lapse = [&](auto& store) {
        const std::array drafts{full_draft(1), draft_of(2), draft_of(3)}; // with relations, and without
        vouch::enqueue(store, drafts, t0);
        std::vector<vouch::entry> claimed;
        for (auto at = t0; at <= now; at += 1min) {
            claimed = vouch::claim(store, request(at));
        }
        return claimed;
    };
    /// Nothing stands for a cancel, after a nudge and an extend.
    const auto end_claims = [&](auto& store, const std::optional<vouch::outcome>& how) {
        vouch::transact(store, [&](auto& tx) {
            std::vector<vouch::settle> settles;
            for (const std::uint64_t n : {1U, 2U, 3U}) {
                const vouch::ticket ticket{id_of(n), 4};
                if (how) {
                    settles.push_back({ticket, *how});
                } else {
                    std::ignore = tx.nudge(ticket.id, now);
                    std::ignore = tx.extend(std::span(&ticket, 1), now + 1s, 1min);
                    std::ignore = tx.cancel(ticket.id, "why", now + 2min);
                }
            }
            std::ignore = tx.settle(settles, now);
        });
    };
    const folder folder;
    for (const auto& [how, lapses] :
         std::vector<std::pair<std::optional<vouch::outcome>, std::uint32_t>>{{vouch::succeed{"r"}, 0},
                                                                              {vouch::retry{"e", now}, 0},
                                                                              {vouch::bury{"e", {}}, 0},
                                                                              {vouch::advance{"p", now}, 0},
                                                                              {vouch::release{}, 3},
                                                                              {std::nullopt, 3}}) {
        store_type store(folder.fresh_path());
        vouch::memory::store memory;
        const auto claimed = let_lapse(store);
        REQUIRE(claimed.size() == 3);
        CHECK(claimed.front().lapses == 3);
        CHECK(claimed == let_lapse(memory));
        CHECK(look(store) == look(memory));
        end_claims(store, how);
        end_claims(memory, how);
        for (const auto& e : look(store).found) {
            CHECK(e.lapses == lapses);
        }
        CHECK(look(store) == look(memory));
        CHECK(vouch::claim(store, request(now)) == vouch::claim(memory, request(now)));
    }
}

TEST_CASE("sqlite store: an unfinished transaction leaves nothing, and readers see nothing of it before its commit") {
    const folder folder;
    store_type store(folder.fresh_path());
    const auto d = draft_of(1);
    {
        auto tx = store.begin();
        CHECK(tx.enqueue(std::span(&d, 1), t0).front().what == vouch::receipt::kind::inserted);
        CHECK(tx.find(d.id));
        CHECK_FALSE(store.find(d.id)); // at once: readers wait for no writer
        CHECK(store.counts("q").total() == 0);
    }
    CHECK_FALSE(store.find(d.id));
    auto tx = store.begin();
    CHECK(tx.enqueue(std::span(&d, 1), t0).front().what == vouch::receipt::kind::inserted);
    tx.commit();
    CHECK(store.find(d.id));
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
}

TEST_CASE("sqlite store: in whatever order handles, transactions and stores go, nothing is lost") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::optional<store_type::transaction> tx;
    {
        std::optional<store_type> first(path);
        std::optional<store_type> copy(*first);
        tx.emplace(first->begin());
        first.reset();
        const auto d = draft_of(1);
        CHECK(tx->enqueue(std::span(&d, 1), t0).size() == 1);
    }
    tx->commit();
    tx.reset();
    CHECK(store_type(path).find(id_of(1)));
    CHECK_FALSE(std::filesystem::exists(path + "-wal")); // the last one to go tidies up
}

TEST_CASE("sqlite store: begin on a thread that has a transaction open is misuse, also through another store") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type store(path);
    store_type other(path, {.prefix = "other_"});
    {
        auto tx = store.begin();
        CHECK(kind_of([&] { std::ignore = store.begin(); }) == error_kind::misuse);
        CHECK(kind_of([&] { std::ignore = other.begin(); }) == error_kind::misuse);
        CHECK_FALSE(tx.find(id_of(1))); // and it does no harm
    }
    CHECK(put_one(other, draft_of(1)).what == vouch::receipt::kind::inserted);
}

TEST_CASE("sqlite store: begin on another thread waits for its turn") {
    const folder folder;
    store_type store(folder.fresh_path());
    auto tx = std::make_unique<store_type::transaction>(store.begin());
    std::thread other([store]() mutable { put_one(store, draft_of(2)); });
    const auto d = draft_of(1);
    tx->enqueue(std::span(&d, 1), t0);
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(store.find(id_of(2)));
    tx->commit();
    other.join();
    CHECK(store.find(id_of(1))->sequence < store.find(id_of(2))->sequence);
}

TEST_CASE("sqlite store: a transaction may be used and ended by another thread than began it") {
    const folder folder;
    store_type store(folder.fresh_path());
    auto tx = store.begin();
    std::thread([&tx] {
        const auto d = draft_of(1);
        tx.enqueue(std::span(&d, 1), t0);
        auto mine = std::move(tx);
        mine.commit();
    }).join();
    CHECK(store.find(id_of(1)));
    CHECK(kind_of([&] { std::ignore = tx.find(id_of(1)); }) == error_kind::misuse);
    CHECK(put_one(store, draft_of(2)).what == vouch::receipt::kind::inserted);
}

TEST_CASE("sqlite store: sequences are not used again when the newest entries are purged") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::uint64_t last = 0;
    for (std::uint64_t n = 1; n <= 4; ++n) {
        store_type store(path); // anew, so that nothing is remembered but in the file
        auto d = draft_of(n);
        d.result = "done";
        put_one(store, d);
        const auto sequence = store.find(d.id)->sequence;
        CHECK(sequence > last);
        last = sequence;
        CHECK(vouch::transact(store, [](auto& tx) { return tx.purge({.queue = "q", .before = t0 + 1s}); }) == 1);
    }
}

TEST_CASE("sqlite store: a foreign lock is waited for, and for no longer than the limit") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type patient(path);
    store_type hasty(path, {.busy_limit = 30ms});
    application app(path);
    app.execute("BEGIN IMMEDIATE");
    CHECK(kind_of([&] { std::ignore = hasty.begin(); }) == error_kind::busy);
    std::thread later([&] {
        std::this_thread::sleep_for(60ms);
        app.execute("COMMIT");
    });
    CHECK(put_one(patient, draft_of(1)).what == vouch::receipt::kind::inserted);
    later.join();
}

} // namespace sqlite_store_test
