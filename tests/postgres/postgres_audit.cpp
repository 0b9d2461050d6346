// SPDX-License-Identifier: MIT
// The audit table of the PostgreSQL store, and the questions of operators.
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_audit_test {

namespace {

using namespace std::chrono_literals;

struct audited {
    std::string prefix = postgres_test::fresh_prefix();
    vouch::postgres::store store{postgres_test::conninfo(), {.prefix = prefix}};
    postgres_test::application app{};
};

} // namespace

TEST_CASE("postgres audit: a line per ended entry and completed group, in the commit of the outcome") {
    audited a;
    const vouch::postgres::audit_table audit(a.store, a.prefix);
    const vouch::postgres::audit_table again(a.store, a.prefix); // it is there already
    const vouch::outbox outbox(a.store);
    vouch::router routes(outbox);
    routes.on("good", [](vouch::delivery&) {});
    routes.on("bad", [](vouch::delivery&) { throw vouch::reject("no_good"); });
    routes.on("later", [](vouch::delivery&) { throw vouch::failure("not_yet"); });
    vouch::runner runner(outbox, routes, {.queue = "q", .worker = "w"});
    runner.audit(audit);
    const auto id = outbox.emit({.queue = "q", .topic = "good", .group = "g"}).front().id;
    outbox.emit({.queue = "q", .topic = "bad"});
    outbox.emit({.queue = "q", .topic = "later"});
    CHECK(runner.run_once().retried == 1);
    CHECK(a.app.lines(R"(SELECT concat_ws(' ', what, queue, topic, "group", worker, error, attempts) FROM )" +
                      a.prefix + "audit ORDER BY number") ==
          "succeeded q good g w  1\ndead q bad  w no_good 1\ngroup_completed q good g w  1\n");
    CHECK(a.app.number("SELECT count(*) FROM " + a.prefix + "audit WHERE at > 0") == 3);
    CHECK(a.app.number("SELECT count(*) FROM " + a.prefix + "audit WHERE id = '" + to_string(id) + "'") == 2);
}

TEST_CASE("postgres audit: while the table cannot be written the outcome is kept, and settled when it can be") {
    audited a;
    const vouch::postgres::audit_table audit(a.store, a.prefix);
    a.app.execute("ALTER TABLE " + a.prefix + "audit RENAME TO gone");
    const vouch::manual_clock clock;
    const vouch::outbox outbox(a.store, {.clock = clock});
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    vouch::runner runner(outbox, routes, {.queue = "q", .lease = 1min});
    runner.audit(audit);
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    CHECK(runner.run_once().held_up == 1);
    CHECK(a.store.find(id)->state == vouch::state::claimed);
    a.app.execute("ALTER TABLE " + a.prefix + "gone RENAME TO audit");
    clock.pass(2min);
    CHECK(runner.run_once().succeeded == 1);
    CHECK(a.app.text("SELECT concat_ws(' ', what, attempts) FROM " + a.prefix + "audit") == "succeeded 1");
    CHECK(a.app.number("SELECT count(*) FROM " + a.prefix + "audit") == 1);
}

TEST_CASE("postgres audit: threads that create the table at the same time do not fail") {
    for (int round = 0; round < 5; ++round) {
        audited a;
        std::vector<std::jthread> threads;
        std::atomic<int> failed = 0;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                try {
                    const vouch::postgres::audit_table audit(a.store, a.prefix);
                } catch (const vouch::error&) {
                    failed += 1;
                }
            });
        }
        threads.clear();
        CHECK(failed == 0);
        CHECK(a.app.number("SELECT count(*) FROM " + a.prefix + "audit") == 0);
    }
}

TEST_CASE("postgres inspect: which schema, queues and lane heads a database has") {
    audited a;
    auto* const db = a.app.connection();
    using vouch::postgres::head_of_lane;
    using vouch::postgres::queue_names;
    using vouch::postgres::stored_schema_version;
    CHECK_FALSE(stored_schema_version(db, "nothing.").has_value());
    CHECK(stored_schema_version(db, a.prefix) == vouch::postgres::schema_version);
    CHECK(queue_names(db, a.prefix).empty());
    CHECK_FALSE(head_of_lane(db, {"q", "l"}, a.prefix).has_value());
    auto first = support::draft_of(2, "q");
    auto second = support::draft_of(1, "q");
    first.lane = second.lane = "l";
    vouch::enqueue(a.store, std::array{first, second, support::draft_of(3, "b"), support::draft_of(4, "a")},
                   support::t0);
    CHECK(queue_names(db, a.prefix) == std::vector<std::string>{"a", "b", "q"});
    CHECK(head_of_lane(db, {"q", "l"}, a.prefix) == first.id);
    CHECK_FALSE(head_of_lane(db, {"b", "l"}, a.prefix).has_value());
    CHECK_THROWS_AS(queue_names(db, "no such"), vouch::error);
}

} // namespace postgres_audit_test
