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
#include <map>
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
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_faults_test {

/// Counts the allocations of this thread, those of C++ and, where `own_memory` lives, those of SQLite.
inline thread_local sqlite_test::fault shortage;

} // namespace sqlite_faults_test

// These replace the global ones of the whole program, which is why they do nothing special until told. Inlined, GCC 12
// would see through one half of a pair and warn that the halves do not match.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return sqlite_faults_test::shortage.strikes() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (void* const p = operator new(size, std::nothrow)) {
        return p;
    }
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return operator new(size, std::nothrow);
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace sqlite_faults_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::fault;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::query;
namespace sqlite = vouch::sqlite;

namespace {

/// From one call to fail to the next. Every one is tried where that takes no longer than people wait.
constexpr long stride(long quick) {
#ifdef __OPTIMIZE__
    return quick;
#else
    return 3 * quick;
#endif
}

/// SQLite's memory, from the same counter as C++'s.
class own_memory {
  public:
    own_memory() {
        sqlite3_shutdown(); // nothing is open between two tests
        sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual());
        auto methods = usual();
        methods.xMalloc = [](int size) { return shortage.strikes() ? nullptr : usual().xMalloc(size); };
        methods.xRealloc = [](void* p, int size) { return shortage.strikes() ? nullptr : usual().xRealloc(p, size); };
        sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
        sqlite3_initialize();
    }
    own_memory(const own_memory&) = delete;
    own_memory& operator=(const own_memory&) = delete;
    ~own_memory() {
        sqlite3_shutdown();
        sqlite3_config(SQLITE_CONFIG_MALLOC, &usual());
        sqlite3_initialize();
    }

  private:
    static sqlite3_mem_methods& usual() {
        static sqlite3_mem_methods kept{};
        return kept;
    }
};

// The work. All that it is given is made beforehand, so that every allocation that fails is the store's.

/// Long enough for every copy to allocate.
const std::string text(60, 'x');

vouch::draft draft_with(std::uint64_t n, std::string lane, std::string group) {
    auto d = draft_of(n);
    d.payload = d.progress = text;
    d.key = text + std::to_string(n);
    d.lane = std::move(lane);
    d.group = std::move(group);
    d.parent = n > 1 ? id_of(1) : vouch::id{};
    d.trail = {id_of(1), id_of(2)};
    d.headers = {{text, text}};
    return d;
}

vouch::draft successor_of(std::uint64_t dead, std::uint64_t n) {
    auto d = draft_of(n);
    d.predecessor = id_of(dead);
    return d;
}

/// Entries 1 to 12: 1 to 6 claimed, 11 dead, 12 succeeded, 5 to 7 in one lane, most of them in groups.
template <class Store>
void furnish(Store& store) {
    vouch::transact(store, [](auto& tx) {
        for (std::uint64_t n = 1; n <= 12; ++n) {
            auto d = draft_with(n, n >= 5 && n <= 7 ? "lane" : "", n % 2 == 0 ? "g" : "");
            tx.enqueue(std::array{d}, t0);
        }
        for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U, 12U}) {
            std::ignore = tx.claim(request(t0, {.only = id_of(n)}));
        }
        std::ignore = tx.cancel(id_of(11), "e", t0);
        settle_in(tx, {id_of(12), 1}, vouch::succeed{text}, t0);
    });
}

/// Drafts without relations; one with a payload that lies apart.
std::vector<vouch::draft> plain_drafts() {
    std::vector<vouch::draft> out;
    for (std::uint64_t n = 40; n < 50; ++n) {
        out.push_back(draft_of(n));
        out.back().queue = "plain";
    }
    out.back().payload.assign(3'000, 'x');
    return out;
}

struct inputs {
    std::vector<vouch::draft> fresh{draft_with(20, "lane", "g"), draft_with(21, "", "h"), draft_with(20, "", ""),
                                    draft_with(22, "other", "h")};
    std::vector<vouch::settle> settles{{{id_of(2), 1}, vouch::succeed{text}},
                                       {{id_of(3), 1}, vouch::retry{text, t0 + 1h}},
                                       {{id_of(4), 1}, vouch::bury{text, text}},
                                       {{id_of(5), 1}, vouch::bury{text}},
                                       {{id_of(1), 1}, vouch::advance{text, t0}}};
    std::vector<vouch::ticket> tickets{{id_of(1), 1}, {id_of(2), 1}};
    vouch::claim_request any = request(t0 + 1s, {.limit = 2});
    vouch::claim_request just_one = request(t0 + 1s, {.only = id_of(10)});
    std::vector<vouch::settle> handing_back{{{id_of(10), 1}, vouch::release{t0 + 1h}}};
    std::vector<vouch::draft> successors{successor_of(11, 23), successor_of(4, 24)};
    std::vector<vouch::draft> plain = plain_drafts();
    vouch::claim_request neighbours = request(t0, {.queue = "plain"});
    std::vector<vouch::settle> successes{
        {{id_of(40), 1}, vouch::succeed{}}, {{id_of(41), 1}, vouch::succeed{}}, {{id_of(42), 1}, vouch::succeed{}}};
    std::vector<vouch::draft> joining{draft_with(30, "lane", "h"), draft_with(31, "", "h")};
    vouch::purge_request ended{.queue = "q", .before = t0 + 1h};
    query everything{.by = query::path::all, .queue = "q", .limit = 1000, .payloads = true};
    query everything_plain{.by = query::path::all, .queue = "plain", .limit = 1000, .payloads = true};
    query members{.by = query::path::group, .group = "g"};
    std::string queue = "q";
};

enum class step : std::uint8_t { produce, hold, work, bulk, clean, join };
constexpr std::array steps{step::produce, step::hold, step::work, step::bulk, step::clean, step::join};

template <class Writer>
void act(step what, Writer& tx, const inputs& in) {
    switch (what) {
    case step::produce: tx.enqueue(in.fresh, t0); break;
    case step::hold:
        std::ignore = tx.extend(in.tickets, t0 + 1s, 1h);
        std::ignore = tx.nudge(id_of(1), t0 + 1s);
        std::ignore = tx.nudge(id_of(8), t0 - 1s);
        break;
    case step::work:
        std::ignore = tx.settle(in.settles, t0 + 1s);
        std::ignore = tx.claim(in.just_one);
        std::ignore = tx.settle(in.handing_back, t0 + 1s);
        std::ignore = tx.claim(in.any);
        break;
    case step::bulk: // neighbours, several in one statement
        tx.enqueue(in.plain, t0);
        std::ignore = tx.claim(in.neighbours);
        std::ignore = tx.settle(in.successes, t0 + 1s);
        break;
    case step::clean:
        std::ignore = tx.cancel(id_of(9), in.queue, t0 + 2s);
        tx.enqueue(in.successors, t0 + 2s);
        std::ignore = tx.cancel(id_of(23), in.queue, t0 + 2s);
        std::ignore = tx.purge(in.ended);
        std::ignore = tx.list(in.members);
        break;
    case step::join: tx.enqueue(in.joining, t0); break;
    }
}

// What is seen.

struct sight {
    std::vector<vouch::entry> entries{};
    std::vector<vouch::entry> plain{};
    vouch::state_counts counts{};
    std::optional<vouch::time_point> due{};

    [[nodiscard]] friend bool operator==(const sight&, const sight&) = default;
};

template <class Reader>
sight look_at(const Reader& reader, const inputs& in) {
    return {reader.list(in.everything), reader.list(in.everything_plain), reader.counts(in.queue),
            reader.next_due(in.queue)};
}

/// What the memory store shows after the same steps.
const sight& expected(const std::vector<step>& taken, const inputs& in) {
    static std::map<std::vector<step>, sight> known;
    auto& answer = known[taken];
    if (answer.entries.empty()) {
        vouch::memory::store store;
        furnish(store);
        for (const auto one : taken) {
            vouch::transact(store, [&](auto& tx) { act(one, tx, in); });
        }
        answer = look_at(store, in);
    }
    return answer;
}

/// Rows that break a rule of the tables: SQLite's own, where an entry stands, what a gate is, what lies apart, and what
/// a group counts.
std::string broken_rules(const application& app) {
    const std::string ahead = R"(EXISTS (SELECT 1 FROM vouch_relations me CROSS JOIN vouch_relations h
 WHERE me.sequence = e.sequence AND h.queue = me.queue AND h.lane = me.lane AND h.is_live AND h.sequence < e.sequence))";
    const std::string gate = "CASE WHEN state >= 3 THEN updated_at WHEN state = 2 THEN ifnull(gate, 'none') WHEN " +
                             ahead + " THEN NULL ELSE due_at END"; // claimed: the lease's end, whatever it is
    const std::string none_after = "NOT EXISTS (SELECT 1 FROM vouch_relations s WHERE s.replaces = e.sequence)";
    auto integrity = app.text("PRAGMA integrity_check");
    return (integrity == "ok" ? "" : integrity) +
           app.text("SELECT 'gate of ' || sequence FROM vouch_entries e WHERE gate IS NOT " + gate) +
           app.text("SELECT 'partition of ' || sequence FROM vouch_entries WHERE partition & 3 <> max(state - 2, 0)") +
           app.text("SELECT 'queue of ' || sequence FROM vouch_entries WHERE partition >> 2 NOT IN"
                    " (SELECT number FROM vouch_queues)") +
           app.text("SELECT 'death of ' || sequence FROM vouch_entries e WHERE (state = 4) <> EXISTS"
                    " (SELECT 1 FROM vouch_dead d WHERE d.queue = e.partition >> 2 AND d.sequence = e.sequence)") +
           app.text("SELECT 'payload of ' || sequence FROM vouch_entries e WHERE (payload IS NULL) <> EXISTS"
                    " (SELECT 1 FROM vouch_payloads p WHERE p.sequence = e.sequence)") +
           app.text("SELECT 'relations of ' || r.sequence FROM vouch_relations r LEFT JOIN vouch_entries e"
                    " USING (sequence) WHERE e.sequence IS NULL OR r.queue <> e.partition >> 2"
                    " OR e.tied <> (r.\"group\" IS NOT NULL OR r.lane IS NOT NULL OR r.parent IS NOT NULL)"
                    " OR (r.lane IS NOT NULL OR r.parent IS NOT NULL) AND r.is_live <> (e.state < 3)") +
           app.text(
               "SELECT 'rest of ' || sequence FROM (SELECT sequence FROM vouch_dead UNION ALL"
               " SELECT sequence FROM vouch_payloads) WHERE sequence NOT IN (SELECT sequence FROM vouch_entries)") +
           app.text(R"(SELECT 'group ' || name FROM (SELECT r."group" AS name, count(*) AS members,
 sum(state < 3) AS live, sum(state <> 3 AND )" +
                    none_after + R"() AS unfinished FROM vouch_entries e JOIN vouch_relations r USING (sequence)
 WHERE r."group" IS NOT NULL GROUP BY r."group")
 counted WHERE NOT EXISTS (SELECT 1 FROM vouch_groups g WHERE g.name = counted.name
 AND g.members = counted.members AND g.live = counted.live AND g.unfinished = counted.unfinished))") +
           app.text(R"(SELECT 'no member of ' || name FROM vouch_groups g
 WHERE NOT EXISTS (SELECT 1 FROM vouch_relations r WHERE r."group" = g.name))");
}

// One run.

/// A file of the state all runs begin with; orders are the application's.
struct workshop {
    folder files{};
    std::string model = files.file("model.db");
    inputs in{};

    workshop() {
        sqlite::store store(model);
        furnish(store);
        application app(model);
        app.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)");
    }

    [[nodiscard]] std::string copy() const {
        auto path = files.fresh_path();
        std::filesystem::copy_file(model, path);
        return path;
    }
};

/// A step and what became of it.
enum class ending : std::uint8_t { done, undone, in_doubt, other_exception };

template <class F>
ending end_of(F&& f) {
    try {
        f();
        return ending::done;
    } catch (const vouch::error& e) {
        return e.is_in_doubt() ? ending::in_doubt : ending::undone;
    } catch (...) {
        return ending::other_exception;
    }
}

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

/// Arms the fault, opens the store and takes all steps; then heals, opens again, and compares.
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
