// SPDX-License-Identifier: MIT
// The sandbox over a SQLite file: what a handler records in the application's tables can be tested.
#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace sqlite_sandbox_test {

namespace {

/// Counts greetings in the application's table, in the transaction that settles the entry.
struct greeter {
    static std::string work(vouch::delivery& d) {
        d.emit({.queue = "mail", .topic = "mail.welcome"});
        return d.payload();
    }
    static void record(vouch::sqlite::transaction& tx, const std::string& name) {
        const auto sql = "INSERT INTO greeted (name) VALUES ('" + name + "')";
        if (sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
            throw vouch::failure("already_greeted");
        }
    }
};

} // namespace

TEST_CASE("sqlite sandbox: a handler's record is tested against the application's tables") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    vouch::sqlite::store store(path);
    sqlite_test::application app(path);
    app.execute("CREATE TABLE greeted (name TEXT PRIMARY KEY)");

    vouch::testing::basic_sandbox box(store, {.retry = {.backoff = vouch::fixed{}, .attempts_max = 2}});
    box.on("user.created", greeter{});
    box.emit({.topic = "user.created", .payload = "ada"});
    const auto again = box.emit({.topic = "user.created", .payload = "ada"}).id;
    const auto total = box.run_until_idle();

    CHECK(app.number("SELECT count(*) FROM greeted") == 1);
    CHECK(total.succeeded == 1);
    CHECK(box.find(again)->last_error == "already_greeted");
    CHECK(box.emitted("mail.welcome") == 1); // in a queue that the sandbox does not serve
    CHECK(box.emitted("user.created") == 2);
}

} // namespace sqlite_sandbox_test
