// SPDX-License-Identifier: MIT
// How many round trips the usual calls take, and that one that includes the commit keeps what several would promise: the
// same answers, nothing left after an error, and the truth about a commit whose answer was lost.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/libpq_faults.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_round_trips_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::faults;
using postgres_test::fresh_prefix;
using vouch::error_kind;
namespace postgres = vouch::postgres;

static_assert(vouch::committing_transaction<postgres::transaction>);

namespace {

/// The number of round trips of a call.
template <class Call>
int trips(const Call& call) {
    int count = 0;
    faults::all().set_seam([&](std::string_view) { ++count; });
    call();
    faults::all().set_seam({});
    return count;
}

struct opened {
    std::string prefix = fresh_prefix();
    postgres::store store{conninfo(), {.prefix = prefix, .busy_limit = 300ms}};
    application app{};

    [[nodiscard]] std::int64_t count(const std::string& table) const {
        return app.number("SELECT count(*) FROM " + prefix + table);
    }
    vouch::receipt put(const vouch::draft& d) { return vouch::enqueue(store, std::span(&d, 1), t0).front(); }
};

/// Drafts that take different statements.
std::vector<vouch::draft> kinds_of_drafts() {
    std::vector<vouch::draft> all(7, draft_of(1));
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].id = id_of(1 + i);
    }
    all[1].key = "k";
    all[2].lane = "l";
    all[3].group = "g";
    all[4].result = "done";
    all[5].parent = id_of(1);
    all[6] = {.id = id_of(7),
              .queue = "q",
              .topic = "topic",
              .payload = "payload",
              .key = "all",
              .group = "h",
              .lane = "m",
              .due_at = t0 + 1h,
              .expires_at = t0 + 2h,
              .attempts_max = 5,
              .trail = {id_of(8)},
              .headers = {{"name", "value"}},
              .progress = "progress"};
    return all;
}

} // namespace

TEST_CASE("postgres round trips: a single enqueue takes one and stores what an enqueue in a transaction stores") {
    opened s;
    postgres::store plain(conninfo(), {.prefix = fresh_prefix()});
    s.put(draft_of(100)); // prepares nothing that is counted, but makes the connection
    std::ignore = vouch::transact(plain, [&](auto& tx) { return tx.enqueue(std::array{draft_of(100)}, t0); });
    for (const auto& d : kinds_of_drafts()) {
        CAPTURE(d.id);
        vouch::receipt got;
        CHECK(trips([&] { got = s.put(d); }) == 1);
        CHECK(got == vouch::receipt{vouch::receipt::kind::inserted, d.id});
        const auto expected = vouch::transact(plain, [&](auto& tx) { return tx.enqueue(std::span(&d, 1), t0); });
        CHECK(got == expected.front());
    }
    CHECK(look(s.store) == look(plain));
}

TEST_CASE("postgres round trips: several plain drafts take one, and all are stored or none if one is a duplicate") {
    opened s;
    postgres::store plain(conninfo(), {.prefix = fresh_prefix()});
    const auto put_all = [&](const std::vector<vouch::draft>& drafts, int expected) {
        std::vector<vouch::receipt> got;
        CHECK(trips([&] { got = vouch::enqueue(s.store, drafts, t0); }) == expected);
        CHECK(got == vouch::transact(plain, [&](auto& tx) { return tx.enqueue(drafts, t0); }));
        const auto all = [](const postgres::store& in) { return numbers(in.list(vouch::query::all("q"))); };
        CHECK(all(s.store) == all(plain)); // a failed try leaves gaps between sequences
    };
    auto keyed = draft_of(3);
    keyed.key = "k";
    const auto wakes = s.store.wakes("q");
    put_all({draft_of(1), draft_of(2), keyed}, 1);
    CHECK(s.store.wakes("q") != wakes);
    auto same_key = draft_of(5);
    same_key.key = "k";
    put_all({draft_of(4), same_key, draft_of(2)}, 5);    // tries, begins, looks up two, commits
    put_all({draft_of(6), draft_of(7), draft_of(6)}, 4); // repeats an id: two statements, and a look-up
    auto member = draft_of(9);
    member.group = "g";
    put_all({draft_of(8), member}, 2);
}

TEST_CASE("postgres round trips: a duplicate gets the receipt of the stored entry, and leaves nothing behind") {
    opened s;
    for (const auto& d : kinds_of_drafts()) {
        s.put(d);
    }
    const auto before = look(s.store);
    const auto wakes = s.store.wakes("q");
    CHECK(s.put(draft_of(1)).what == vouch::receipt::kind::duplicate);
    CHECK(s.store.wakes("q") == wakes);
    for (auto d : kinds_of_drafts()) {
        CAPTURE(d.id);
        CHECK(s.put(d) == vouch::receipt{vouch::receipt::kind::duplicate, d.id});
        if (!d.key.empty()) {
            const auto owner = std::exchange(d.id, id_of(40));
            CHECK(s.put(d) == vouch::receipt{vouch::receipt::kind::duplicate, owner});
        }
    }
    CHECK(look(s.store) == before);
    // Into a lane that has no row: its only entry has ended.
    auto ended = draft_of(20);
    ended.lane = "other";
    s.put(ended);
    vouch::transact(s.store, [](auto& tx) { std::ignore = tx.cancel(id_of(20), "over", t0); });
    const auto lanes = s.count("lanes");
    CHECK(s.put(ended).what == vouch::receipt::kind::duplicate);
    CHECK(s.count("lanes") == lanes);
}

TEST_CASE(
    "postgres round trips: a claim takes one, with and without work, and returns what a claim in a transaction does") {
    opened s;
    postgres::store plain(conninfo(), {.prefix = fresh_prefix()});
    for (const auto& d : kinds_of_drafts()) {
        s.put(d);
        std::ignore = vouch::enqueue(plain, std::span(&d, 1), t0);
    }
    for (const auto limit : {std::size_t{2}, std::size_t{10}, std::size_t{10}}) {
        std::vector<vouch::entry> got;
        CHECK(trips([&] { got = vouch::claim(s.store, request(t0, {.limit = limit})); }) == 1);
        CHECK(got == vouch::transact(plain, [&](auto& tx) { return tx.claim(request(t0, {.limit = limit})); }));
    }
    CHECK(look(s.store) == look(plain));
}

TEST_CASE("postgres round trips: a runner's claim takes one, and so does its settle with the next claim") {
    opened s;
    vouch::manual_clock clock(t0);
    vouch::outbox outbox(s.store, {.clock = clock});
    vouch::router router(outbox);
    router.on("t", [] {});
    vouch::runner runner(outbox, router, {.queue = "q", .batch_size = 3});
    for (std::uint64_t n = 1; n <= 5; ++n) {
        s.put(draft_of(n));
    }
    std::vector<vouch::entry> claimed;
    CHECK(trips([&] { claimed = runner.claim(); }) == 1);
    REQUIRE(claimed.size() == 3);
    auto done = runner.handle_all(std::move(claimed));
    CHECK(trips([&] { claimed = runner.settle_and_claim(done).second; }) == 1);
    CHECK(claimed.size() == 2);
    done = runner.handle_all(std::move(claimed));
    CHECK(trips([&] { claimed = runner.settle_and_claim(done).second; }) == 1);
    CHECK(claimed.empty());
    CHECK(s.store.counts("q")[vouch::state::succeeded] == 5);
    // After a full batch a claim does not ask whether anything is due. If nothing is, it takes another one.
    for (std::uint64_t n = 6; n <= 8; ++n) {
        s.put(draft_of(n));
    }
    claimed = runner.claim();
    REQUIRE(claimed.size() == 3);
    done = runner.handle_all(std::move(claimed));
    CHECK(trips([&] { claimed = runner.settle_and_claim(done).second; }) > 1);
    CHECK(claimed.empty());
    CHECK(trips([&] { claimed = runner.claim(); }) == 1);
    CHECK(s.store.counts("q")[vouch::state::succeeded] == 8);
}

namespace {

/// Stores drafts 1 to 3, the last of which is claimed by nobody, and claims the others. `change` changes the second one.
struct settled : opened {
    std::vector<vouch::settle> settles{};

    template <class Change>
    explicit settled(const Change& change) {
        auto second = draft_of(2);
        change(second);
        put(draft_of(1));
        put(second);
        put_third();
        for (const auto& e : vouch::claim(store, request(t0, {.limit = 2}))) {
            settles.push_back({ticket_of(e), vouch::succeed{"result " + std::to_string(e.id.low)}});
        }
    }
    settled() : settled([](vouch::draft&) {}) {}

    void put_third() { put(draft_of(3)); }

    [[nodiscard]] vouch::settled_and_claimed end() {
        return store.begin().settle_claim_and_commit(settles, t0, request(t0, {.limit = 1}));
    }
};

} // namespace

TEST_CASE("postgres round trips: settles of plain successes, the next claim and the commit take one") {
    settled s;
    vouch::settled_and_claimed done;
    CHECK(trips([&] { done = s.end(); }) == 1);
    CHECK(done.settlements == std::vector<vouch::settlement>(2, {.verdict = vouch::verdict::applied}));
    REQUIRE(done.claimed);
    CHECK(numbers(*done.claimed) == list{3});
    CHECK(s.store.find(id_of(2))->result == "result 2");
    CHECK(s.store.find(id_of(3))->state == vouch::state::claimed);
}

TEST_CASE("postgres round trips: a settle that is not a plain success takes more, and does the same") {
    const std::vector<std::pair<const char*, std::function<void(vouch::draft&)>>> others{
        {"a group", [](vouch::draft& d) { d.group = "g"; }},
        {"a lane", [](vouch::draft& d) { d.lane = "l"; }},
        {"a parent", [](vouch::draft& d) { d.parent = id_of(3); }},
    };
    for (const auto& [what, change] : others) {
        CAPTURE(what);
        settled s(change);
        vouch::settled_and_claimed done;
        CHECK(trips([&] { done = s.end(); }) > 1);
        CHECK(all_applied(done.settlements));
        CHECK(done.settlements[1].group_completed == (std::string(what) == "a group"));
        CHECK(numbers(*done.claimed) == list{3});
        CHECK(s.store.find(id_of(1))->state == vouch::state::succeeded);
        CHECK(s.store.find(id_of(2))->result == "result 2");
    }
    settled retried;
    retried.settles[1].outcome = vouch::retry{"failed", t0};
    const auto done = retried.end();
    CHECK(all_applied(done.settlements));
    CHECK(numbers(*done.claimed) == list{2}); // before 3, by its sequence
}

TEST_CASE("postgres round trips: a queue whose settles are not plain is settled apart, until they are again") {
    settled s;
    const auto settle_next = [&](const vouch::draft& d, const vouch::outcome& how = vouch::succeed{}) {
        s.put(d);
        s.settles = {{ticket_of(vouch::claim(s.store, request(t0, {.only = d.id})).front()), how}};
        return trips([&] {
            const auto done = s.store.begin().settle_claim_and_commit(s.settles, t0, request(t0 - 1h));
            CHECK(all_applied(done.settlements));
        });
    };
    auto in_lane = draft_of(10);
    in_lane.lane = "l";
    CHECK(settle_next(draft_of(8)) == 1);
    CHECK(settle_next(draft_of(7), vouch::retry{"failed", t0 + 1h}) > 1);
    CHECK(settle_next(draft_of(9)) == 1); // a retry says nothing about the entries of the queue
    const auto failed_guess = settle_next(in_lane);
    in_lane.id = id_of(11);
    CHECK(settle_next(in_lane) == failed_guess - 1);
    std::uint64_t n = 20;
    for (int i = 0; i < postgres::detail::plain_queues::plain_min; ++i) {
        CHECK(settle_next(draft_of(n++)) == 2);
    }
    CHECK(settle_next(draft_of(n)) == 1);
}

TEST_CASE("postgres round trips: if a settle is refused, nothing is stored or claimed, whatever was done before") {
    using vouch::verdict;
    const auto refused = [](settled& s, const std::vector<verdict>& expected, const auto& before) {
        const auto seen = look(s.store);
        auto tx = s.store.begin();
        before(tx);
        const auto done = tx.settle_claim_and_commit(s.settles, t0, request(t0));
        std::vector<verdict> verdicts;
        for (const auto& one : done.settlements) {
            verdicts.push_back(one.verdict);
        }
        CHECK(verdicts == expected);
        CHECK_FALSE(done.claimed);
        CHECK(look(s.store) == seen);
        CHECK(error_of([&] { tx.commit(); })->kind() == error_kind::misuse);
    };
    const auto nothing = [](postgres::transaction&) {};
    settled stale;
    stale.settles[1].ticket.epoch = 7;
    refused(stale, {verdict::applied, verdict::stale}, nothing);
    settled unknown;
    unknown.settles[0].ticket.id = id_of(99);
    refused(unknown, {verdict::unknown, verdict::applied}, nothing);
    settled twice;
    twice.settles[1] = twice.settles[0];
    refused(twice, {verdict::applied, verdict::repeated}, nothing);
    settled before;
    refused(before, {verdict::repeated, verdict::applied}, [&](postgres::transaction& tx) {
        std::ignore = tx.settle(std::span(before.settles).first(1), t0);
        std::ignore = tx.enqueue(std::array{draft_of(50)}, t0);
    });
    CHECK(all_applied(before.end().settlements));
}

TEST_CASE("postgres round trips: entries with an expired lease are not claimed by the call that commits") {
    opened s;
    s.put(draft_of(1));
    REQUIRE(vouch::claim(s.store, request(t0)).size() == 1);
    s.put(draft_of(2));
    const auto before = look(s.store);
    auto tx = s.store.begin();
    CHECK_FALSE(tx.claim_and_commit(request(t0 + 2min)));
    CHECK(look(s.store) == before);
    CHECK(error_of([&] { tx.commit(); })->kind() == error_kind::misuse);
    const auto taken = vouch::claim(s.store, request(t0 + 2min)); // in another transaction
    CHECK(numbers(taken) == list{1, 2});
}

TEST_CASE("postgres round trips: what the transaction did before is committed with the last call") {
    opened s;
    s.put(draft_of(1));
    auto one = s.store.begin();
    std::ignore = one.cancel(id_of(1), "over", t0);
    CHECK(one.enqueue_and_commit(std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::duplicate);
    CHECK(s.store.find(id_of(1))->state == vouch::state::dead);
    s.put(draft_of(2));
    auto two = s.store.begin();
    std::ignore = two.enqueue(std::array{draft_of(3)}, t0);
    CHECK(two.claim_and_commit(request(t0))->size() == 2);
    CHECK(s.store.find(id_of(3))->state == vouch::state::claimed);
}

TEST_CASE("postgres round trips: invalid arguments leave the transaction open, and nothing is sent") {
    opened s;
    auto tx = s.store.begin();
    CHECK(trips([&] {
              CHECK(error_of([&] { tx.enqueue_and_commit(std::array{draft_of(1, "")}, t0); })->kind() ==
                    error_kind::invalid_argument);
              CHECK(error_of([&] { std::ignore = tx.claim_and_commit(request(t0, {.queue = ""})); })->kind() ==
                    error_kind::invalid_argument);
          }) == 0);
    CHECK(tx.enqueue_and_commit(std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
    CHECK(error_of([&] { tx.enqueue_and_commit(std::array{draft_of(2)}, t0); })->kind() == error_kind::misuse);
}

TEST_CASE("postgres round trips: an error inside has the kind that it has in a transaction, and leaves nothing") {
    opened s;
    const auto kinds = [&](const char* what, error_kind expected, const vouch::draft& d) {
        CAPTURE(what);
        const auto at_once = error_of([&] { s.put(d); });
        const auto apart = error_of([&] {
            auto tx = s.store.begin();
            std::ignore = tx.enqueue(std::span(&d, 1), t0);
            tx.commit();
        });
        REQUIRE(at_once);
        REQUIRE(apart);
        CHECK(at_once->kind() == expected);
        CHECK(apart->kind() == expected);
        CHECK(at_once->text_code() == apart->text_code());
        CHECK_FALSE(at_once->is_in_doubt());
    };
    s.put(draft_of(100));
    s.app.execute("BEGIN");
    {
        postgres::joined writer(s.app.connection(), s.prefix);
        std::ignore = writer.enqueue(std::array{draft_of(1)}, t0);
        kinds("a lock that is not granted", error_kind::busy, draft_of(1));
    }
    s.app.execute("ROLLBACK; CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'disk_full'; END $$");
    const auto trigger = "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON " + s.prefix +
                         "entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse()";
    s.app.execute(trigger); // fails at COMMIT
    kinds("a COMMIT that fails", error_kind::full, draft_of(2));
    s.app.execute("DROP TRIGGER refuse ON " + s.prefix + "entries");
    CHECK(s.count("entries") == 1);
    s.app.execute("ALTER TABLE " + s.prefix + "entries RENAME TO hidden");
    kinds("a table that is missing", error_kind::corrupt, draft_of(3));
    s.app.execute("ALTER TABLE " + s.prefix + "hidden RENAME TO entries");
    CHECK(s.put(draft_of(4)).what == vouch::receipt::kind::inserted);
    CHECK(s.count("entries") == 2);
}

TEST_CASE("postgres round trips: whichever step of a claim fails, what is said of it is true") {
    for (std::size_t n = 1;; ++n) {
        CAPTURE(n);
        opened s;
        s.put(draft_of(1));
        faults::all().fail_at(n);
        const auto e = error_of([&] { std::ignore = vouch::claim(s.store, request(t0)); });
        const bool has_failed = faults::all().fail_at(0);
        const bool is_claimed = s.store.find(id_of(1))->state == vouch::state::claimed;
        CHECK((e && e->is_in_doubt()) == has_failed);
        CHECK(is_claimed == (n >= 2));
        if (!has_failed) {
            CHECK(n == 3);
            break;
        }
    }
}

TEST_CASE("postgres round trips: whichever step of a settle with the next claim fails, what is said of it is true") {
    for (std::size_t n = 1;; ++n) {
        CAPTURE(n);
        opened s;
        s.put(draft_of(1));
        s.put(draft_of(2));
        const auto first = vouch::claim(s.store, request(t0, {.limit = 1}));
        auto tx = s.store.begin();
        faults::all().fail_at(n);
        std::optional<std::vector<vouch::entry>> claimed;
        const auto e = error_of([&] {
            std::ignore = settle_in(tx, ticket_of(first.front()), vouch::succeed{}, t0);
            claimed = tx.claim_and_commit(request(t0));
        });
        const bool has_failed = faults::all().fail_at(0);
        const bool is_settled = s.store.find(id_of(1))->state == vouch::state::succeeded;
        CHECK(is_settled == (s.store.find(id_of(2))->state == vouch::state::claimed));
        CHECK(is_settled == (n >= 4));              // the answer to the commit was lost, or nothing was
        CHECK((e && e->is_in_doubt()) == (n == 4)); // the claimed entries are not known
        CHECK(e.has_value() == has_failed);
        if (!has_failed) {
            CHECK(n == 5);
            CHECK(numbers(*claimed) == list{2});
            break;
        }
    }
}

TEST_CASE(
    "postgres round trips: whichever step of the call that settles, claims and commits fails, what is said of it is "
    "true") {
    for (std::size_t n = 1;; ++n) {
        CAPTURE(n);
        settled s;
        auto tx = s.store.begin();
        faults::all().fail_at(n);
        vouch::settled_and_claimed done;
        const auto e = error_of([&] { done = tx.settle_claim_and_commit(s.settles, t0, request(t0)); });
        const bool has_failed = faults::all().fail_at(0);
        const bool is_settled = s.store.find(id_of(1))->state == vouch::state::succeeded;
        CHECK(is_settled == (s.store.find(id_of(3))->state == vouch::state::claimed));
        CHECK(is_settled == (n >= 2));                // the answer was lost, or nothing was
        CHECK((e && e->is_in_doubt()) == has_failed); // neither the claims nor the transaction's number are known
        if (!has_failed) {
            CHECK(n == 3);
            CHECK(numbers(*done.claimed) == list{3});
            break;
        }
    }
}

TEST_CASE("postgres round trips: an error that ends the connection does not say that nothing was stored") {
    opened s;
    const auto name = "ended_" + s.prefix.substr(0, s.prefix.size() - 1);
    postgres::store store(conninfo() + " application_name=" + name, {.prefix = s.prefix});
    s.app.execute("BEGIN");
    postgres::joined writer(s.app.connection(), s.prefix);
    std::ignore = writer.enqueue(std::array{draft_of(1)}, t0);
    const application other;
    std::jthread ends([&] {
        const auto waits = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '" +
                           name + "' AND wait_event_type = 'Lock'";
        while (other.number(waits) == 0) {
            std::this_thread::sleep_for(1ms);
        }
    });
    auto tx = store.begin();
    const auto e = error_of([&] { tx.enqueue_and_commit(std::array{draft_of(1)}, t0); });
    ends.join();
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK(e->is_in_doubt()); // it could be a pooler's
    s.app.execute("ROLLBACK");
    CHECK(s.count("entries") == 0);
}

TEST_CASE("postgres round trips: a pooler that has lost the server after the commit leaves it in doubt, or resolved") {
    struct last_words {
        last_words() { faults::all().leave_last_words(true); }
        ~last_words() { faults::all().leave_last_words(false); }
    } const words;
    for (const bool prepare : {true, false}) {
        CAPTURE(prepare);
        const auto prefix = fresh_prefix();
        postgres::store store(conninfo(), {.prefix = prefix, .prepare = prepare});
        const auto lose_answer = [&](const auto& call) {
            faults::all().fail_at(2);
            auto e = error_of(call);
            CHECK(faults::all().fail_at(0));
            return e;
        };
        auto tx = store.begin();
        CHECK(lose_answer([&] { tx.enqueue_and_commit(std::array{draft_of(1)}, t0); })->is_in_doubt());
        CHECK(store.find(id_of(1)));
        tx = store.begin();
        CHECK(lose_answer([&] { std::ignore = tx.claim_and_commit(request(t0)); })->is_in_doubt());
        CHECK(store.find(id_of(1))->state == vouch::state::claimed);
        tx = store.begin();
        tx.enqueue(std::array{draft_of(2)}, t0);
        CHECK_FALSE(lose_answer([&] { tx.commit(); })); // its number is known, so the store asks
        CHECK(store.find(id_of(2)));
        const auto d = draft_of(3);
        CHECK_FALSE(lose_answer([&] { vouch::enqueue(store, std::span(&d, 1), t0); })); // repeats it
        CHECK(store.list(vouch::query::all("q")).size() == 3);
    }
}

TEST_CASE("postgres round trips: an answer that cannot be read after the commit is in doubt") {
    opened s;
    s.put(draft_of(1));
    s.app.execute("UPDATE " + s.prefix + "entries SET attempts = 4294967295");
    const auto e = error_of([&] { std::ignore = vouch::claim(s.store, request(t0)); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::corrupt);
    CHECK(e->is_in_doubt());
}

} // namespace postgres_round_trips_test
