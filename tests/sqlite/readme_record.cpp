// SPDX-License-Identifier: MIT
// The handler with two parts and the inbox that include/vouch/run/README.md shows, compiled and run.
#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace readme_record_test {

namespace {

std::string charge(const std::string& order, const vouch::id&) { return "receipt of order " + order; }

void insert_receipt(sqlite3* db, const std::string& receipt) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(db, "INSERT INTO receipts VALUES (?)", -1, &statement, nullptr);
    sqlite3_bind_text(statement, 1, receipt.data(), static_cast<int>(receipt.size()), SQLITE_STATIC);
    CHECK(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_finalize(statement);
}

std::string record_charge(sqlite3* db) {
    insert_receipt(db, "receipt of a message");
    return "receipt of a message";
}

// clang-format off
struct charge_order {
    std::string work(vouch::delivery& d) { return charge(d.payload(), d.id()); }   // outside any transaction; may be slow
    void record(vouch::sqlite::transaction& tx, const std::string& receipt) {      // in the settling transaction; short
        insert_receipt(tx.connection(), receipt);
    }
};
// clang-format on

} // namespace

TEST_CASE("readme: a handler's record is in the transaction of its outcome") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    sqlite_test::application app(path);
    app.execute("CREATE TABLE receipts (receipt TEXT)");
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("order.placed", charge_order{});
    outbox.emit({.queue = "bank", .topic = "order.placed", .payload = "7"});
    CHECK(vouch::runner(outbox, router, {.queue = "bank"}).run_until_idle().succeeded == 1);
    CHECK(app.text("SELECT receipt FROM receipts") == "receipt of order 7");
}

TEST_CASE("readme: the inbox runs the work of a message once") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    sqlite_test::application app(path);
    app.execute("CREATE TABLE receipts (receipt TEXT)");
    vouch::sqlite::store store(path);
    const vouch::id message{.high = 1, .low = 7};
    for (int times = 0; times < 2; ++times) {
        // clang-format off
        const auto receipt = vouch::transact(store, [&](auto& tx) {
            return vouch::inbox::once(tx, {.consumer = "billing", .message = message, .now = vouch::system_now()},
                                      [&] { return record_charge(tx.connection()); });
        });
        // clang-format on
        CHECK(receipt == "receipt of a message");
    }
    CHECK(app.number("SELECT count(*) FROM receipts") == 1);
    CHECK(store.counts("inbox.billing").total() == 1);
}

} // namespace readme_record_test
