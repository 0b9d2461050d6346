// SPDX-License-Identifier: MIT
// The three roles on a real server: each can do its work through the store, and is refused everything else with nothing
// written.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_roles_test {

namespace {

using namespace std::chrono_literals;
using support::draft_of;
using support::id_of;
using support::t0;
using vouch::postgres::access;

/// Tables with entries in several states, the three roles, and a login for each.
struct guarded {
    std::string prefix = postgres_test::fresh_prefix();
    postgres_test::application owner{};
    vouch::postgres::store all{postgres_test::conninfo(), {.prefix = prefix}};

    guarded() {
        const vouch::postgres::audit_table audit(all, prefix);
        const vouch::postgres::history_table history(all, {.prefix = prefix});
        owner.execute(vouch::postgres::roles(prefix));
        owner.execute(vouch::postgres::roles(prefix)); // it may be repeated
        for (const auto may : {access::enqueue, access::work, access::look}) {
            owner.execute("CREATE ROLE " + user(may) + " LOGIN; GRANT " + role_name(may, prefix) + " TO " + user(may));
        }
        auto in_lane = draft_of(2);
        in_lane.lane = "l";
        auto in_group = draft_of(3);
        in_group.group = "g";
        auto keyed = draft_of(4);
        keyed.key = "k";
        vouch::enqueue(all, std::array{draft_of(1), in_lane, in_group, keyed, draft_of(5)}, t0);
        bury(5);
    }
    ~guarded() {
        for (const auto may : {access::enqueue, access::work, access::look}) {
            owner.execute("DROP ROLE " + user(may) + "; DROP OWNED BY " + role_name(may, prefix) + "; DROP ROLE " +
                          role_name(may, prefix));
        }
    }
    guarded(const guarded&) = delete;
    guarded& operator=(const guarded&) = delete;

    void bury(std::uint64_t n) {
        const auto claimed = vouch::claim(all, {.queue = "q", .now = t0, .lease = 1min, .only = id_of(n)});
        vouch::transact(all, [&](auto& tx) {
            const std::array settles{vouch::settle{ticket_of(claimed.at(0)), vouch::bury{.error = "bad"}}};
            return tx.settle(settles, t0);
        });
    }
    [[nodiscard]] std::string user(access may) const { return "user_of_" + role_name(may, prefix); }
    [[nodiscard]] std::string conninfo(access may) const { return postgres_test::conninfo() + " user=" + user(may); }
    [[nodiscard]] vouch::postgres::store store(access may) const {
        return vouch::postgres::store(conninfo(may), {.prefix = prefix, .create = false});
    }
    /// All rows of all tables but `server` and `listeners`, which change by themselves.
    [[nodiscard]] std::string contents() const {
        std::string out;
        for (const std::string table : {"entries", "groups", "lanes", "meta", "audit", "history"}) {
            out += owner.text("SELECT coalesce(string_agg(t::text, ',' ORDER BY t::text), '') FROM " + prefix + table +
                              " t");
        }
        return out;
    }
};

/// Runs the operation. Returns whether it was refused for the lack of a permission.
bool is_refused(const std::function<void()>& operation) {
    try {
        operation();
    } catch (const vouch::error& e) {
        UNSCOPED_INFO(e.what());
        return e.kind() == vouch::error_kind::read_only && e.text_code() == "42501" &&
               std::string_view(e.what()).find("the role lacks a permission") != std::string_view::npos;
    }
    return false;
}

/// The operations that only change what is stored, each on an entry that it would change.
std::vector<std::function<void()>> writes(vouch::postgres::store& store) {
    const auto in_transaction = [&store](auto operation) {
        return [&store, operation] { vouch::transact(store, [&](auto& tx) { operation(tx); }); };
    };
    return {
        [&store] { static_cast<void>(vouch::claim(store, {.queue = "q", .now = t0, .lease = 1min})); },
        in_transaction([](auto& tx) {
            const std::array settles{vouch::settle{{.id = id_of(1), .epoch = 1}, vouch::succeed{}}};
            static_cast<void>(tx.settle(settles, t0));
        }),
        in_transaction([](auto& tx) { static_cast<void>(tx.nudge(id_of(1), t0)); }),
        in_transaction([](auto& tx) { static_cast<void>(tx.cancel(id_of(1), "x", t0)); }),
        in_transaction([](auto& tx) { static_cast<void>(tx.purge({.queue = "q", .before = t0 + 1h, .limit = 10})); }),
    };
}

std::vector<std::function<void()>> reads(const vouch::postgres::store& store) {
    return {[&store] { static_cast<void>(store.find(id_of(1))); },
            [&store] { static_cast<void>(store.list(vouch::query::all("q"))); },
            [&store] { static_cast<void>(store.list(vouch::query::dead("q"))); }};
}

} // namespace

TEST_CASE("postgres roles: one that may only enqueue stores every kind of draft, also in a transaction of its own") {
    const guarded g;
    auto store = g.store(access::enqueue);
    auto in_lane = draft_of(12);
    in_lane.lane = "l";
    auto in_new_lane = draft_of(13);
    in_new_lane.lane = "m";
    auto in_group = draft_of(14);
    in_group.group = "g";
    auto duplicate = draft_of(15);
    duplicate.key = "k";
    duplicate.lane = "n"; // nothing is stored in it
    auto successor = draft_of(16);
    successor.predecessor = id_of(5);
    auto finished = draft_of(17);
    finished.result = "done";
    const auto receipts = vouch::enqueue(
        store, std::array{draft_of(11), in_lane, in_new_lane, in_group, duplicate, successor, finished}, t0);
    using kind = vouch::receipt::kind;
    for (const auto& r : receipts) {
        CHECK(r.what == (&r == &receipts[4] ? kind::duplicate : kind::inserted));
    }
    CHECK(store.next_due("q") == t0);
    CHECK(store.counts("q").total() == 11);

    const postgres_test::application web(g.conninfo(access::enqueue));
    vouch::postgres::joined writer(web.connection(), g.prefix);
    web.execute("BEGIN");
    CHECK(writer.enqueue(std::array{draft_of(18)}, t0).front().what == kind::inserted);
    web.execute("COMMIT");
    CHECK(g.all.find(id_of(18)).has_value());
}

TEST_CASE("postgres roles: one that may only enqueue is refused everything else, and nothing is written") {
    const guarded g;
    auto store = g.store(access::enqueue);
    const auto before = g.contents();
    for (const auto& operation : writes(store)) {
        CHECK(is_refused(operation));
    }
    for (const auto& operation : reads(store)) {
        CHECK(is_refused(operation));
    }
    const auto sql = [&](const std::string& text) {
        const postgres_test::application web(g.conninfo(access::enqueue));
        return std::string(PQresultErrorField(
            std::unique_ptr<PGresult, void (*)(PGresult*)>(PQexec(web.connection(), text.c_str()), &PQclear).get(),
            PG_DIAG_SQLSTATE));
    };
    CHECK(sql("SELECT payload FROM " + g.prefix + "entries") == "42501");
    CHECK(sql("DELETE FROM " + g.prefix + "entries") == "42501");
    CHECK(sql("UPDATE " + g.prefix + "entries SET state = 3") == "42501");
    CHECK(g.contents() == before);
}

TEST_CASE("postgres roles: one that may only work claims, settles, emits, audits, waits and purges") {
    guarded g;
    auto store = g.store(access::work);
    const vouch::manual_clock clock(t0);
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::router router(outbox);
    router.on("t", [](vouch::delivery& d) {
        if (d.id() == id_of(1)) {
            d.emit({.queue = "r", .topic = "next"});
        }
    });
    const vouch::postgres::audit_table audit(store, g.prefix); // it exists, so no right to create it is needed
    vouch::runner runner(outbox, router, {.queue = "q"});
    runner.audit(audit);
    runner.history(vouch::postgres::history_table(store, {.prefix = g.prefix}));
    CHECK(runner.run_until_idle().succeeded == 4);
    CHECK(store.counts("r").total() == 1);
    CHECK(g.owner.number("SELECT count(*) FROM " + g.prefix + "audit") == 5);
    CHECK(g.owner.number("SELECT count(*) FROM " + g.prefix + "history") == 4);
    CHECK(outbox.requeue(id_of(5)).what == vouch::receipt::kind::inserted);
    const auto seen = store.wakes("r");
    vouch::enqueue(g.all, std::array{draft_of(21, "r")}, t0);
    CHECK(store.wait("r", seen, 10s, {}) != seen);
    vouch::transact(store, [&](auto& tx) { CHECK(tx.purge({.queue = "q", .before = t0 + 1h, .limit = 10}) == 4); });
}

TEST_CASE("postgres roles: one that may only work creates and migrates nothing") {
    const guarded g;
    const auto before = g.contents();
    const postgres_test::application app(g.conninfo(access::work));
    CHECK(is_refused([&] { vouch::postgres::migrate(app.connection(), g.prefix + "more_"); }));
    CHECK(is_refused([&] { vouch::postgres::store(g.conninfo(access::work), {.prefix = "elsewhere."}); }));
    CHECK(is_refused([&] {
        auto store = g.store(access::work);
        const vouch::postgres::audit_table other(store, g.prefix + "other_");
    }));
    vouch::postgres::migrate(app.connection(), g.prefix); // there is nothing to migrate
    CHECK(g.contents() == before);
    CHECK(g.owner.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'more_%' OR relname LIKE 'other_%'") == 0);
}

TEST_CASE("postgres roles: one that may only look reads everything and is refused every write") {
    guarded g;
    auto store = g.store(access::look);
    CHECK(store.find(id_of(1))->topic == "t");
    CHECK(store.list(vouch::query::all("q")).size() == 5);
    CHECK(store.list(vouch::query::dead("q")).size() == 1);
    CHECK(store.counts("q").total() == 5);
    CHECK(store.next_due("q") == t0);
    const postgres_test::application app(g.conninfo(access::look));
    CHECK(vouch::postgres::queue_names(app.connection(), g.prefix) == std::vector<std::string>{"q"});
    const auto before = g.contents();
    for (const auto& operation : writes(store)) {
        CHECK(is_refused(operation));
    }
    CHECK(is_refused([&] { vouch::enqueue(store, std::array{draft_of(11)}, t0); }));
    CHECK(g.contents() == before);
}

TEST_CASE("postgres roles: one that may only look opens a store after the mark of the server's life is gone") {
    guarded g;
    g.owner.execute("DELETE FROM " + g.prefix + "server"); // as after a crash
    CHECK(g.store(access::look).counts("q").total() == 5);
    CHECK(g.owner.number("SELECT count(*) FROM " + g.prefix + "server") == 0);
    vouch::enqueue(g.all, std::array{draft_of(11)}, t0);
    CHECK(g.store(access::enqueue).counts("q").total() == 6);
    CHECK(g.owner.number("SELECT count(*) FROM " + g.prefix + "server") == 1);
}

TEST_CASE("postgres roles: names follow the prefix, and one that is too long is refused") {
    CHECK(role_name(access::enqueue) == "vouch_enqueue");
    CHECK(role_name(access::work, "billing.jobs_") == "billing_jobs_work");
    CHECK(role_name(access::look, "billing.") == "billing_look");
    const auto longest = std::string(40, 's') + '.' + std::string(40, 't');
    CHECK_THROWS_AS(role_name(access::look, longest), vouch::error);
    CHECK_THROWS_AS(vouch::postgres::roles(longest), vouch::error);
    CHECK_THROWS_AS(vouch::postgres::roles("a\"b"), vouch::error);
}

} // namespace postgres_roles_test
