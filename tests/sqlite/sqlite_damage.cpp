// SPDX-License-Identifier: MIT
// A file whose rows are damaged: every column of every table set to what the store never writes there, one damage at a
// time, and then every operation. Each works or says `corrupt`; none crashes, waits for ever or blames another writer.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_damage_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::query;
using vouch::sqlite::joined;
using vouch::sqlite::store;

namespace {

constexpr auto now = t0 + 1h;
const std::string large(5000, 'p');

/// Entries of every state, with lanes, groups, keys, parents, successors, and payloads in the row and apart.
class scene {
  public:
    scene() {
        store s(path_);
        vouch::enqueue(s, drafts(), t0);
        tickets_ = claim_all(s, {3, 4, 5, 6, 7, 9, 12, 13, 15, 16, 18, 19});
        vouch::transact(s, [&](auto& tx) {
            std::ignore = settle_in(tx, tickets_.at(3), vouch::retry{"e", t0 + 2h}, t0);
            std::ignore = settle_in(tx, tickets_.at(6), vouch::succeed{"result"}, t0);
            std::ignore = settle_in(tx, tickets_.at(7), vouch::bury{"e"}, t0);
            std::ignore = settle_in(tx, tickets_.at(16), vouch::bury{.error = "e", .result = "r"}, t0);
            std::ignore = settle_in(tx, tickets_.at(19), vouch::succeed{}, t0);
            auto successor = draft_of(8);
            successor.predecessor = id_of(7);
            std::ignore = tx.enqueue(std::array{successor}, t0);
        });
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const vouch::ticket& ticket(std::uint64_t n) const { return tickets_.at(n); }
    [[nodiscard]] static std::string payload(std::uint64_t n) {
        return n >= 14 && n <= 16 ? large : n == 8 || n > 19 ? "" : "payload " + std::to_string(n);
    }

  private:
    static std::vector<vouch::draft> drafts() {
        std::vector<vouch::draft> out;
        for (std::uint64_t n = 1; n <= 19; ++n) {
            auto d = draft_of(n, n == 17 ? "r" : "q");
            d.payload = payload(n);
            if (n != 8) { // a successor, added later
                out.push_back(d);
            }
        }
        const auto at = [&](std::uint64_t n) -> vouch::draft& { return out.at(n < 8 ? n - 1 : n - 2); };
        at(2).due_at = t0 + 10h;
        at(4).headers = {{"name", "value"}};
        at(4).trail = {id_of(1), id_of(2)};
        at(7).key = "k";
        at(7).group = at(13).group = "g";
        at(9).lane = at(10).lane = "l";
        at(11).due_at = t0 + 10h;
        at(12).parent = id_of(11);
        at(18).progress = "progress";
        at(18).expires_at = t0 + 100h;
        at(18).attempts_max = 3;
        at(19).group = "h";
        return out;
    }
    static std::map<std::uint64_t, vouch::ticket> claim_all(store& s, const std::vector<std::uint64_t>& which) {
        std::map<std::uint64_t, vouch::ticket> out;
        for (const auto n : which) {
            const auto lease = n == 5 ? 1min : 2h; // one lapses before `now`
            out[n] = ticket_of(vouch::claim(s, request(t0, {.lease = lease, .only = id_of(n)})).at(0));
        }
        return out;
    }

    folder in_{};
    std::string path_ = in_.fresh_path();
    std::map<std::uint64_t, vouch::ticket> tickets_{};
};

struct operation {
    std::string name{};
    std::function<void(joined&)> carry_out{};
};

/// What is read is what was stored; `payloads` are not compared if they are what is damaged.
void expect_payload(const vouch::entry& e, bool payloads) {
    if (payloads && e.id.high == 7 && e.payload != scene::payload(e.id.low)) {
        CAPTURE(e.id.low);
        CHECK(e.payload.size() == scene::payload(e.id.low).size());
    }
}

std::vector<operation> operations(const scene& of, bool payloads) {
    std::vector<operation> all;
    const auto add = [&](std::string name, auto f) { all.push_back({std::move(name), std::move(f)}); };
    for (std::uint64_t n = 1; n <= 19; ++n) {
        const auto number = ' ' + std::to_string(n);
        add("find" + number, [=](joined& in) {
            if (const auto found = in.find(id_of(n))) {
                expect_payload(*found, payloads);
            }
        });
        add("nudge" + number, [=](joined& in) { std::ignore = in.nudge(id_of(n), now); });
        add("cancel" + number, [=](joined& in) { std::ignore = in.cancel(id_of(n), "e", now); });
    }
    for (auto q : {query::all("q"), query::live("q"), query::dead("q"), query::keyed("q", "k"), query::members("g"),
                   query::children(id_of(11)), query::all("r")}) {
        for (const std::size_t limit : {2U, 100U}) {
            q.limit = limit;
            q.payloads = limit == 100;
            add("list", [=](joined& in) {
                for (const auto& e : in.list(q)) {
                    expect_payload(e, payloads && q.payloads);
                }
            });
        }
    }
    add("counts", [](joined& in) { std::ignore = in.counts("q"); });
    add("next_due", [](joined& in) { std::ignore = in.next_due("q"); });
    add("claim", [=](joined& in) {
        for (const auto& e : in.claim(request(now))) {
            CHECK(e.state == vouch::state::claimed);
            CHECK(e.epoch > 0);
            CHECK(e.attempts > 0);
            CHECK(e.lease_until == now + 1min);
            expect_payload(e, payloads);
            std::ignore = settle_in(in, ticket_of(e), vouch::release{}, now);
        }
    });
    for (const std::uint64_t n : {1U, 5U, 10U, 14U}) {
        add("claim one", [=](joined& in) { std::ignore = in.claim(request(now, {.only = id_of(n)})); });
    }
    for (const std::uint64_t n : {4U, 5U, 9U, 12U, 13U, 15U, 18U}) {
        const auto ticket = of.ticket(n);
        const auto number = ' ' + std::to_string(n);
        add("extend" + number, [=](joined& in) { std::ignore = in.extend(std::array{ticket}, now, 3h); });
        const std::vector<vouch::outcome> outcomes{vouch::succeed{"r"}, vouch::retry{"e", now}, vouch::bury{"e"},
                                                   vouch::release{}, vouch::advance{"p", now}};
        for (const auto& o : outcomes) {
            add("settle" + number, [=](joined& in) { std::ignore = settle_in(in, ticket, o, now); });
        }
    }
    add("settle many", [four = of.ticket(4), five = of.ticket(5), six = of.ticket(6)](joined& in) {
        const std::array settles{vouch::settle{four, vouch::succeed{}}, vouch::settle{five, vouch::succeed{}},
                                 vouch::settle{six, vouch::succeed{}}};
        std::ignore = in.settle(settles, now);
    });
    add("enqueue many", [](joined& in) {
        std::vector<vouch::draft> drafts;
        for (std::uint64_t n = 30; n < 40; ++n) {
            drafts.push_back(draft_of(n));
        }
        in.enqueue(drafts, now);
        CHECK(in.find(id_of(30)));
    });
    add("enqueue tied", [](joined& in) {
        auto d = draft_of(30);
        d.group = "g";
        d.lane = "l";
        d.parent = id_of(11);
        d.payload = large;
        in.enqueue(std::array{d}, now);
    });
    add("enqueue keyed", [](joined& in) {
        auto d = draft_of(30);
        d.key = "k";
        in.enqueue(std::array{d}, now);
    });
    for (const std::uint64_t n : {7U, 16U}) {
        add("enqueue successor", [=](joined& in) {
            auto d = draft_of(30);
            d.predecessor = id_of(n);
            in.enqueue(std::array{d}, now);
        });
    }
    for (const auto& state : {std::optional<vouch::state>{}, std::optional{vouch::state::dead}}) {
        add("purge", [=](joined& in) { in.purge({.queue = "q", .before = now, .limit = 100, .state = state}); });
    }
    return all;
}

/// SQL expressions of what the store never writes, or never there: in each row alone, and in all rows at once.
const std::vector<std::string> in_each_row{"NULL", "'x'", "-1", "9223372036854775807"};
const std::vector<std::string> in_all_rows{"''",
                                           "x''",
                                           "x'00ff'",
                                           "zeroblob(16)",
                                           "zeroblob(17)",
                                           "CAST(x'ff' AS TEXT)",
                                           "printf('%.*c', 100000, 'y')",
                                           "0",
                                           "1",
                                           "2",
                                           "3",
                                           "4",
                                           "5",
                                           "1.5",
                                           "1e300",
                                           "4294967295",
                                           "4294967296",
                                           "2305843009213693952",
                                           "(-9223372036854775807 - 1)",
                                           "rowid",
                                           "rowid + 1",
                                           "rowid - 1"};

class fuzz {
  public:
    explicit fuzz(const scene& of) : scene_(of), app_(of.path()) {
        // The rules of the tables would refuse some of it. A damaged file has no rules.
        app_.execute("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')"
                     " WHERE type = 'table';"
                     "PRAGMA writable_schema = RESET");
        in_.emplace(app_.connection());
    }

    /// Says how many rows were changed, and tries everything if any was.
    std::size_t damage(const std::string& table, const std::string& column, const std::string& change) {
        CAPTURE(table, column, change);
        app_.execute("BEGIN IMMEDIATE");
        const auto before = sqlite3_total_changes(app_.connection());
        std::ignore = app_.try_execute("UPDATE OR IGNORE " + table + " SET \"" + column + "\" = " + change);
        const auto changed = static_cast<std::size_t>(sqlite3_total_changes(app_.connection()) - before);
        if (changed > 0) {
            for (const auto& one : column == "payload" || column == "sequence" ? without_payloads_ : with_payloads_) {
                try_out(one);
            }
        }
        app_.execute("ROLLBACK");
        return changed;
    }

    /// Name and columns of every table, and whether it has row numbers.
    template <class Use>
    void for_each_column(Use&& use) {
        for (const std::string table : {"entries", "queues", "dead", "payloads", "relations", "groups", "meta"}) {
            const auto columns = app_.number("SELECT count(*) FROM pragma_table_info('vouch_" + table + "')");
            REQUIRE(columns > 1);
            for (int i = 0; i < columns; ++i) {
                use("vouch_" + table, app_.text("SELECT name FROM pragma_table_info('vouch_" + table +
                                                "') WHERE cid = " + std::to_string(i)));
            }
        }
    }
    [[nodiscard]] std::vector<std::string> rows(const std::string& table) {
        std::vector<std::string> out;
        for (int i = 0; table == "vouch_entries" || table == "vouch_relations"; ++i) {
            out.push_back(
                app_.text("SELECT rowid FROM " + table + " ORDER BY rowid LIMIT 1 OFFSET " + std::to_string(i)));
            if (out.back().empty()) {
                out.pop_back();
                break;
            }
        }
        return out;
    }

    std::map<std::string, std::size_t> said{}; ///< how often which operation said `corrupt`

  private:
    void try_out(const operation& what) {
        app_.execute("SAVEPOINT fuzz");
        const auto e = error_of([&] { what.carry_out(*in_); });
        if (e) {
            CAPTURE(what.name, std::string(e->what()));
            CHECK(e->kind() == error_kind::corrupt);
            said[what.name.substr(0, what.name.find(' '))] += 1;
        }
        app_.execute("ROLLBACK TO fuzz; RELEASE fuzz");
    }

    const scene& scene_;
    application app_;
    std::optional<joined> in_{};
    std::vector<operation> with_payloads_ = operations(scene_, true);
    std::vector<operation> without_payloads_ = operations(scene_, false);
};

} // namespace

TEST_CASE("damage: whatever a column holds, every operation works or says corrupt") {
    const scene of;
    fuzz f(of);
    std::size_t damages = 0;
    std::size_t columns = 0;
    f.for_each_column([&](const std::string& table, const std::string& column) {
        columns += 1;
        for (const auto& value : in_each_row) {
            damages += f.damage(table, column, value) > 0 ? 1U : 0U;
            for (const auto& row : f.rows(table)) {
                damages += f.damage(table, column, value + " WHERE rowid = " + row) > 0 ? 1U : 0U;
            }
        }
        for (const auto& value : in_all_rows) {
            damages += f.damage(table, column, value) > 0 ? 1U : 0U;
        }
    });
    CHECK(columns >= 45);
    CHECK(damages > 2000);
    for (const std::string name :
         {"find", "nudge", "cancel", "list", "counts", "next_due", "claim", "extend", "settle", "enqueue", "purge"}) {
        CAPTURE(name);
        CHECK(f.said[name] > 0);
    }
}

namespace {

/// A store on the scene, and a vandal beside it.
struct damaged {
    scene of{};
    store s{of.path()};
    explicit damaged(const std::string& change) { application(of.path()).execute(change); }

    template <class Work>
    [[nodiscard]] std::optional<error_kind> kind_in_transaction(const Work& work) {
        auto tx = s.begin();
        return kind_of([&] { work(tx); });
    }
};

} // namespace

TEST_CASE("damage: a claimed entry without a gate is corrupt to extend, settle and read") {
    damaged d("UPDATE vouch_entries SET gate = NULL WHERE state = 2");
    const auto ticket = d.of.ticket(9); // in a lane, so that its life is read
    CHECK(d.kind_in_transaction([&](auto& tx) { std::ignore = tx.extend(std::array{ticket}, now, 1h); }) ==
          error_kind::corrupt);
    CHECK(d.kind_in_transaction([&](auto& tx) { std::ignore = settle_in(tx, ticket, vouch::release{}, now); }) ==
          error_kind::corrupt);
    CHECK(d.kind_in_transaction([&](auto& tx) { std::ignore = tx.cancel(ticket.id, "e", now); }) ==
          error_kind::corrupt);
    CHECK(kind_of([&] { std::ignore = d.s.find(ticket.id); }) == error_kind::corrupt);
}

TEST_CASE("damage: a state that is none is corrupt to claims and counts, and no conflict") {
    damaged d("UPDATE vouch_entries SET state = 'x' WHERE sequence = 1");
    CHECK(d.kind_in_transaction([&](auto& tx) { std::ignore = tx.claim(request(now)); }) == error_kind::corrupt);
    CHECK(kind_of([&] { std::ignore = d.s.counts("q"); }) == error_kind::corrupt);
    CHECK(kind_of([&] { std::ignore = d.s.list(query::live("q")); }) == error_kind::corrupt);
    CHECK(d.s.counts("r").total() == 1);
}

TEST_CASE("damage: a payload that lies apart and is not there is corrupt, unless it is not asked for") {
    damaged d("DELETE FROM vouch_payloads");
    auto q = query::live("q");
    CHECK(d.s.list(q).size() > 1);
    q.payloads = true;
    CHECK(kind_of([&] { std::ignore = d.s.list(q); }) == error_kind::corrupt);
    CHECK(kind_of([&] { std::ignore = d.s.find(id_of(14)); }) == error_kind::corrupt);
    CHECK(d.kind_in_transaction([&](auto& tx) { std::ignore = tx.claim(request(now)); }) == error_kind::corrupt);
    CHECK(d.s.find(id_of(1))->payload == scene::payload(1));
}

TEST_CASE("damage: a generation that replaces a later one is corrupt to a purge") {
    damaged d("UPDATE vouch_relations SET replaces = 900 WHERE replaces IS NOT NULL;"
              "UPDATE vouch_relations SET sequence = 900 WHERE \"group\" = 'h';"
              "UPDATE vouch_entries SET sequence = 900 WHERE result = x'' AND state = 3");
    CHECK(d.kind_in_transaction([&](auto& tx) {
        std::ignore = tx.cancel(id_of(8), "e", t0);
        tx.purge({.queue = "q", .before = now, .limit = 100});
    }) == error_kind::corrupt);
}

TEST_CASE("damage: a version that is none is corrupt, and the tables stay as they are") {
    const scene of;
    for (const std::string value : {"'x'", "-1", "1.5", "x'01'", "NULL"}) {
        CAPTURE(value);
        application app(of.path());
        app.execute("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')"
                    " WHERE name = 'vouch_meta'; PRAGMA writable_schema = RESET");
        app.execute("UPDATE vouch_meta SET value = " + value + " WHERE name = 'schema_version'");
        for (const bool create : {true, false}) {
            CHECK(kind_of([&] { store s(of.path(), {.create = create}); }) == error_kind::corrupt);
        }
        CHECK(kind_of([&] { joined in(app.connection()); }) == error_kind::corrupt);
        CHECK(app.number("SELECT count(*) FROM vouch_entries") == 19);
    }
}

} // namespace sqlite_damage_test
