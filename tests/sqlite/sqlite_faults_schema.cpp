// SPDX-License-Identifier: MIT
// Faults while tables are created or migrated: they are there whole or not at all.
#include <array>
#include <string>
#include <utility>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/failing_memory.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_faults_test {

namespace {

constexpr int all_there_is = 15; // tables and indexes

/// Creates a store where there is nothing, which fails; then looks whether nothing or everything is there.
template <class Arm, class Heal>
bool is_created_whole(const std::string& path, const std::string& vfs, Arm&& arm, Heal&& heal) {
    auto given = path;
    sqlite::options how{.busy_limit = 20ms, .vfs = vfs};
    arm();
    const auto ended = end_of([&] { const sqlite::store store(std::move(given), std::move(how)); });
    const bool has_fired = heal();
    CHECK(ended != ending::other_exception);
    {
        application app(path);
        app.execute("PRAGMA synchronous = OFF"); // the check is not about the disk
        const auto made = app.number("SELECT count(*) FROM sqlite_master WHERE name LIKE 'vouch%'");
        CHECK((made == 0 || made == all_there_is));
        CHECK((made == all_there_is || ended != ending::done));
        CHECK(app.text("PRAGMA integrity_check") == "ok");
    }
    sqlite::store store(path, {.vfs = vfs});
    CHECK(vouch::enqueue(store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
    return has_fired;
}

} // namespace

TEST_CASE("faults: whichever call fails, the tables are created whole or not at all") {
    const own_memory memory;
    const folder files;
    faulty_vfs vfs("faulty");
    for (const long length : {1L, fault::for_ever}) {
        for (long nth = 1;; nth += stride(length == 1 ? 1 : 4)) {
            CAPTURE(length, nth);
            if (!is_created_whole(
                    files.fresh_path(), vfs.name(), [&] { vfs.next = {.nth = nth, .length = length}; },
                    [&] { return std::exchange(vfs.next, {}).has_fired; })) {
                break;
            }
        }
        for (long nth = 1;; nth += stride(61)) {
            CAPTURE(length, nth);
            if (!is_created_whole(
                    files.fresh_path(), vfs.name(), [&] { shortage = {.nth = nth, .length = length}; },
                    [&] { return std::exchange(shortage, {}).has_fired; })) {
                break;
            }
        }
    }
}

TEST_CASE("faults: whichever allocation of a migration fails, the application's connection is as it was") {
    const own_memory memory;
    const folder files;
    for (const bool is_inside : {false, true}) {
        for (long nth = 1;; nth += stride(37)) {
            CAPTURE(is_inside, nth);
            application app(files.fresh_path());
            app.execute("PRAGMA synchronous = OFF; CREATE TABLE orders (number INTEGER PRIMARY KEY)");
            if (is_inside) {
                app.execute("BEGIN; INSERT INTO orders VALUES (1)");
            }
            shortage = {.nth = nth};
            const auto ended = end_of([&] { sqlite::migrate(app.connection()); });
            const bool has_fired = std::exchange(shortage, {}).has_fired;
            REQUIRE((ended == ending::undone || ended == ending::done));
            const bool is_open = sqlite3_get_autocommit(app.connection()) == 0;
            REQUIRE((is_inside || !is_open));
            if (is_open) {
                app.execute("COMMIT");
                REQUIRE(app.number("SELECT count(*) FROM orders") == 1);
            }
            const auto made = app.number("SELECT count(*) FROM sqlite_master WHERE name LIKE 'vouch%'");
            REQUIRE(made == (ended == ending::done ? all_there_is : 0));
            if (!has_fired) {
                break;
            }
        }
    }
}

} // namespace sqlite_faults_test
