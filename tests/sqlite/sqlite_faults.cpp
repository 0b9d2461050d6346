// SPDX-License-Identifier: MIT
// What the SQLite store does when files and memory fail: a day's work, with the n-th call failing, alone, with the few
// after it, or with all after it, for every n, or every so many-th where there are thousands. Each step happens whole
// or not at all, says so truly, and what is stored stays sound.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "failing_new.hpp"
#include "sqlite/application.hpp"
#include "sqlite/day_of_work.hpp"
#include "sqlite/failing_memory.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "unit/support.hpp"

bool allocation_fails() noexcept { return sqlite_faults_test::shortage.strikes(); }

namespace sqlite_faults_test {

namespace {

/// The application's transaction: an order, and the entries with it. If the entries cannot be had, it keeps the order.
ending join(const std::string& path, const std::string& vfs, const inputs& in) {
    sqlite3* db = nullptr;
    const auto execute = [&](const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); };
    const int opened = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, vfs.empty() ? nullptr : vfs.c_str());
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closing(db, sqlite3_close_v2);
    if (opened != SQLITE_OK || execute("BEGIN IMMEDIATE") != SQLITE_OK ||
        execute("INSERT INTO orders VALUES (1)") != SQLITE_OK) {
        return ending::undone;
    }
    std::optional<sqlite::joined> outbox;
    const auto enqueued = end_of([&] {
        outbox.emplace(db);
        act(step::join, *outbox, in);
    });
    if (enqueued == ending::other_exception) {
        return enqueued;
    }
    if (sqlite3_get_autocommit(db) != 0 || (execute("COMMIT") != SQLITE_OK && sqlite3_get_autocommit(db) == 0)) {
        return ending::undone; // SQLite has rolled back, or closing will
    }
    if (sqlite3_errcode(db) != SQLITE_OK) {
        return enqueued == ending::done ? ending::in_doubt : ending::undone;
    }
    return enqueued;
}

struct run {
    bool is_over = false; ///< nothing fails any more: the fault lies behind the last call
    int failures = 0;
    int landed = 0; ///< commits that were in doubt and had happened
};

/// Arms the fault, opens the store and takes all steps; then removes the fault, opens again, and compares.
template <class Arm, class Heal>
run work_through(const workshop& at, const std::string& vfs, bool is_lasting, Arm&& arm, Heal&& heal) {
    const auto path = at.copy();
    const auto& in = at.in;
    const sqlite::options how{.busy_limit = 20ms, .vfs = vfs};
    std::vector<std::pair<step, ending>> story;
    story.reserve(steps.size());
    std::optional<sqlite::store> store;
    std::optional<sight> seen;
    run out;
    bool has_fired = false;
    bool foreign = false;
    {
        const auto copied_path = [&] { return path; };
        auto first = std::make_optional(copied_path());
        auto second = std::make_optional(copied_path());
        auto first_how = std::make_optional(how);
        auto second_how = std::make_optional(how);
        arm();
        const auto open = [&](auto& from, auto& with) {
            return end_of([&] { store.emplace(std::move(*from), std::move(*with)); });
        };
        auto opened = open(first, first_how);
        foreign = opened == ending::other_exception;
        out.failures += opened == ending::done ? 0 : 1;
        if (opened != ending::done) {
            opened = open(second, second_how);
            foreign = foreign || opened == ending::other_exception;
        }
        for (const auto one : steps) {
            const auto ended = one == step::join ? join(path, vfs, in)
                               : store ? end_of([&] { vouch::transact(*store, [&](auto& tx) { act(one, tx, in); }); })
                                       : ending::undone;
            story.emplace_back(one, ended);
            out.failures += ended == ending::done ? 0 : 1;
        }
        if (store) {
            const auto looked = end_of([&] {
                seen = look_at(*store, in);
                std::ignore = store->wakes(in.queue);
            });
            foreign = foreign || looked == ending::other_exception || looked == ending::in_doubt;
            out.failures += looked == ending::done ? 0 : 1;
        }
        if (is_lasting) {
            store.reset();
        }
        has_fired = heal();
    }
    out.is_over = !has_fired;
    CHECK(!foreign);

    // Which steps were taken: one in doubt gives two possibilities.
    std::vector<std::vector<step>> possible{{}};
    for (const auto& [what, ended] : story) {
        CHECK(ended != ending::other_exception);
        const auto before = possible;
        for (std::size_t i = 0; ended != ending::undone && i < before.size(); ++i) {
            possible[i].push_back(what);
        }
        if (ended == ending::in_doubt) {
            possible.insert(possible.end(), before.begin(), before.end());
        }
    }
    const auto is_possible = [&](const sight& s) {
        for (const auto& one : possible) {
            if (s == expected(one, in)) {
                return true;
            }
        }
        return false;
    };
    if (seen) {
        CHECK(is_possible(*seen));
    }
    // The store that met the fault works, and so does one that opens the file afresh.
    const auto is_working = [&](sqlite::store& s, std::uint64_t n) {
        return vouch::enqueue(s, std::array{draft_of(n, "r")}, t0).front().what == vouch::receipt::kind::inserted;
    };
    if (store) {
        CHECK(is_working(*store, 90));
    }
    store.reset();
    sqlite::store again(path, {.vfs = vfs});
    const auto found = look_at(again, in);
    CHECK(is_possible(found));
    out.landed = possible.size() > 1 && found == expected(possible.front(), in) ? 1 : 0;
    CHECK(is_working(again, 91));
    const application app(path);
    CHECK(broken_rules(app) == "");
    if (again.find(id_of(30))) {
        CHECK(app.number("SELECT count(*) FROM orders") == 1);
    }
    std::filesystem::remove(path);
    return out;
}

} // namespace

TEST_CASE("faults: without any, the day's work goes as it does in memory") {
    const workshop at;
    const auto got = work_through(
        at, "", false, [] {}, [] { return false; });
    CHECK(got.failures == 0);
    const auto all = std::vector<step>(steps.begin(), steps.end());
    CHECK(expected(all, at.in).entries.size() > 10);
    for (const auto one : steps) { // every step leaves something to see
        CHECK(expected({one}, at.in) != expected({}, at.in));
    }
}

TEST_CASE("faults: whichever call to the file system fails, every step is whole or absent") {
    const workshop at;
    faulty_vfs vfs("faulty");
    const auto fail_each = [&](long length, long every) {
        run all;
        for (long nth = 1;; nth += every) {
            CAPTURE(length, nth);
            const auto got = work_through(
                at, vfs.name(), length == fault::for_ever, [&] { vfs.next = {.nth = nth, .length = length}; },
                [&] { return std::exchange(vfs.next, {}).has_fired; });
            all.failures += got.failures;
            all.landed += got.landed;
            if (got.is_over) {
                return all;
            }
        }
    };
    SECTION("with the error of the call") {
        CHECK(fail_each(1, stride(1)).failures > 10);
        CHECK(fail_each(fault::for_ever, stride(4)).failures > 10);
    }
    SECTION("writes, because the disk is full") {
        vfs.matters = [](faulty_vfs::call which, std::string_view) { return which == faulty_vfs::call::write; };
        vfs.code = [](faulty_vfs::call) { return SQLITE_FULL; };
        CHECK(fail_each(1, stride(1)).failures > 10);
        CHECK(fail_each(fault::for_ever, stride(4)).failures > 10);
    }
    SECTION("syncs, after which a commit is in doubt") {
        vfs.matters = [&](faulty_vfs::call which, std::string_view) {
            return which == faulty_vfs::call::sync || vfs.next.has_fired;
        };
        CHECK(fail_each(1, 1).failures > 3);
        CHECK(fail_each(fault::for_ever, 1).landed > 3); // nothing could be written over them
    }
}

TEST_CASE("faults: whichever allocation of a store at work fails, the step has not happened") {
    const own_memory memory;
    const workshop at;
    const faulty_vfs files("faulty"); // because it does not sync
    sqlite::store store(at.copy(), {.vfs = files.name()});
    std::vector<step> taken;
    for (const auto one : steps) {
        const auto& before = expected(taken, at.in);
        for (const long length : {1L, 4L, fault::for_ever}) {
            for (long nth = 1;; nth += stride(1)) {
                CAPTURE(static_cast<int>(one), length, nth);
                auto tx = store.begin();
                shortage = {.nth = nth, .length = length};
                const auto ended = end_of([&] { act(one, tx, at.in); });
                const bool has_fired = std::exchange(shortage, {}).has_fired;
                if (!has_fired) {
                    REQUIRE(ended == ending::done);
                    break; // and rolled back
                }
                if (ended == ending::done) {
                    continue; // SQLite could do without
                }
                REQUIRE(ended == ending::undone);
                REQUIRE(kind_of([&] { tx.commit(); }) == vouch::error_kind::misuse);
                REQUIRE(look_at(store, at.in) == before);
            }
        }
        for (long nth = 1;; ++nth) { // the commit
            CAPTURE(static_cast<int>(one), nth);
            auto tx = store.begin();
            act(one, tx, at.in);
            shortage = {.nth = nth};
            const auto ended = end_of([&] { tx.commit(); });
            const bool has_fired = std::exchange(shortage, {}).has_fired;
            if (ended == ending::done) {
                taken.push_back(one);
                REQUIRE(look_at(store, at.in) == expected(taken, at.in));
                if (!has_fired) {
                    break;
                }
                continue;
            }
            REQUIRE(ended != ending::other_exception);
            REQUIRE(look_at(store, at.in) == before);
        }
    }
}

TEST_CASE("faults: whichever allocation of a joined call fails, the application can keep its own work alone") {
    const own_memory memory;
    const workshop at;
    const auto path = at.copy();
    const sqlite::store store(path);
    application app(path);
    app.execute("PRAGMA synchronous = OFF");
    sqlite::joined outbox(app.connection());
    const auto before = expected({}, at.in);
    const std::array<std::function<void()>, 4> calls{
        [&] { outbox.enqueue(at.in.fresh, t0); }, [&] { std::ignore = outbox.settle(at.in.settles, t0 + 1s); },
        [&] { std::ignore = outbox.claim(at.in.any); }, [&] { std::ignore = outbox.purge(at.in.ended); }};
    std::int64_t orders = 0;
    for (const auto& call : calls) {
        for (const long length : {1L, 2L, 4L, 8L, fault::for_ever}) {
            for (long nth = 1;; nth += stride(1)) {
                CAPTURE(&call - calls.data(), length, nth);
                app.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (NULL)");
                shortage = {.nth = nth, .length = length};
                const auto ended = end_of(call);
                const bool has_fired = std::exchange(shortage, {}).has_fired;
                const bool is_open = sqlite3_get_autocommit(app.connection()) == 0;
                REQUIRE((ended == ending::undone || (ended == ending::done && is_open)));
                if (is_open) {
                    app.execute(ended == ending::done ? "ROLLBACK" : "COMMIT");
                    orders += ended == ending::done ? 0 : 1;
                }
                REQUIRE(look_at(store, at.in) == before);
                REQUIRE(app.number("SELECT count(*) FROM orders") == orders);
                if (!has_fired) {
                    break;
                }
            }
        }
    }
    CHECK(orders > 10);
    CHECK(broken_rules(app) == "");
}

TEST_CASE("faults: whichever allocation fails, every step is whole or absent") {
    const own_memory memory;
    const workshop at;
    const faulty_vfs files("faulty");
    for (const long length : {1L, 8L, fault::for_ever}) {
        long failed = 0;
        for (long nth = length == 1 ? 1 : 20;; nth += stride(97)) {
            CAPTURE(length, nth);
            const auto got = work_through(
                at, files.name(), length == fault::for_ever, [&] { shortage = {.nth = nth, .length = length}; },
                [&] { return std::exchange(shortage, {}).has_fired; });
            failed += got.failures;
            if (got.is_over) {
                break;
            }
        }
        CHECK(failed > 10);
    }
}

} // namespace sqlite_faults_test
