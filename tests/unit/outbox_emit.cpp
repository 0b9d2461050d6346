// SPDX-License-Identifier: MIT
// The producer's side: the entry that an emission becomes, its queues, and its trail.
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "support.hpp"

namespace outbox_emit_test {

using namespace support;
using vouch::emission;

namespace {

struct emit_fixture {
    vouch::manual_clock clock{t0};
    vouch::counting_ids ids{};
    vouch::memory::store store{};

    [[nodiscard]] vouch::outbox<vouch::memory::store> outbox(vouch::bindings bindings = {},
                                                             std::optional<vouch::duration> expires = {}) {
        return vouch::outbox<vouch::memory::store>(
            store, {.clock = clock, .ids = ids, .bindings = std::move(bindings), .expires_in = expires});
    }
    vouch::entry emit(const vouch::emitter& from, const emission& e) {
        const auto got = vouch::transact(store, [&](auto& tx) { return from.emit(tx, e); });
        REQUIRE(got.size() == 1);
        return *store.find(got.front().id);
    }
};

} // namespace

TEST_CASE("emit: fills in id, time and trail, and keeps the other fields") {
    emit_fixture f;
    const auto e = f.emit(f.outbox(), {.queue = "mail",
                                       .topic = "user.created",
                                       .payload = std::string("a\0b", 3),
                                       .key = "k",
                                       .group = "g",
                                       .lane = "l",
                                       .parent = id_of(9),
                                       .attempts_max = 3,
                                       .headers = {{"h", "v"}},
                                       .progress = "p"});
    CHECK(e.id == vouch::id{.high = 0, .low = 1});
    CHECK(e.trail == vouch::id_list{e.id});
    CHECK(e.queue == "mail");
    CHECK(e.topic == "user.created");
    CHECK(e.payload == std::string("a\0b", 3));
    CHECK(e.key == "k");
    CHECK(e.group == "g");
    CHECK(e.lane == "l");
    CHECK(e.parent == id_of(9));
    CHECK(e.attempts_max == 3);
    CHECK(e.headers == vouch::header_list{{"h", "v"}});
    CHECK(e.progress == "p");
    CHECK(e.created_at == t0);
    CHECK(e.due_at == t0);
    CHECK_FALSE(e.expires_at);
}

TEST_CASE("emit: the payload of an emission that is given away is not copied") {
    const vouch::emitter from;
    emission e{.queue = "q", .topic = "t", .payload = std::string(1000, 'x')};
    const auto* const bytes = e.payload.data();
    const auto drafts = from.drafts_of(std::move(e), t0);
    REQUIRE(drafts.size() == 1);
    CHECK(drafts.front().payload.data() == bytes);
}

TEST_CASE("emit: due and expiry can be a time or a duration") {
    emit_fixture f;
    const auto plain = f.outbox();
    CHECK(f.emit(plain, {.queue = "q", .topic = "t", .due_at = t0 + 5s}).due_at == t0 + 5s);
    CHECK(f.emit(plain, {.queue = "q", .topic = "t", .due_in = 7s}).due_at == t0 + 7s);
    CHECK(f.emit(plain, {.queue = "q", .topic = "t", .expires_at = t0 + 1h}).expires_at == t0 + 1h);
    CHECK(f.emit(plain, {.queue = "q", .topic = "t", .expires_in = 2h}).expires_at == t0 + 2h);

    const auto expiring = f.outbox({}, 10min);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t"}).expires_at == t0 + 10min);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .expires_in = 2h}).expires_at == t0 + 2h);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .expires_at = t0 + 1s}).expires_at == t0 + 1s);

    vouch::transact(f.store, [&](auto& tx) {
        const emission both{.queue = "q", .topic = "t", .due_at = t0, .due_in = 1s};
        const emission twice{.queue = "q", .topic = "t", .expires_at = t0, .expires_in = 1s};
        CHECK(kind_of([&] { plain.emit(tx, both); }) == vouch::error_kind::invalid_argument);
        CHECK(kind_of([&] { plain.emit(tx, twice); }) == vouch::error_kind::invalid_argument);
    });
}

TEST_CASE("expiry: expires_in counts from the due time, also as the outbox's default") {
    emit_fixture f;
    const auto expiring = f.outbox({}, 60s);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .due_in = 5min}).expires_at == t0 + 6min);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .due_at = t0 + 1h}).expires_at == t0 + 1h + 60s);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .due_in = 5min, .expires_in = 1s}).expires_at ==
          t0 + 5min + 1s);
    CHECK(f.emit(expiring, {.queue = "q", .topic = "t", .due_at = t0 - 1h}).expires_at == t0 + 60s);

    vouch::router routes(expiring);
    int called = 0;
    routes.on("t", [&] { ++called; });
    vouch::runner(expiring, routes, {.queue = "q"}).run_until_idle(f.clock);
    CHECK(called == 4);
}

TEST_CASE("expiry: an emission that expires before it is due is refused, and nothing is written") {
    emit_fixture f;
    const auto plain = f.outbox();
    const auto expiring = f.outbox({}, 0s);
    const auto is_refused = [](const auto& by, const emission& e) {
        return kind_of([&] { by.emit(e); }) == vouch::error_kind::invalid_argument;
    };
    CHECK(is_refused(plain, {.queue = "q", .topic = "t", .due_in = 5min, .expires_at = t0 + 60s}));
    CHECK(is_refused(plain, {.queue = "q", .topic = "t", .due_in = 5min, .expires_at = t0 + 5min}));
    CHECK(is_refused(plain, {.queue = "q", .topic = "t", .expires_at = t0}));
    CHECK(is_refused(plain, {.queue = "q", .topic = "t", .expires_in = 0s}));
    CHECK(is_refused(plain, {.queue = "q", .topic = "t", .expires_in = -1s}));
    CHECK(is_refused(expiring, {.queue = "q", .topic = "t"}));
    CHECK(f.store.counts("q").total() == 0);
    CHECK_FALSE(is_refused(plain, {.queue = "q", .topic = "t", .due_in = 5min, .expires_at = t0 + 5min + 1us}));
}

TEST_CASE("expiry: for a handler's emission it counts from the emission, not from the start of the handler") {
    emit_fixture f;
    const auto expiring = f.outbox({}, 60s);
    vouch::router routes(expiring);
    int followed = 0;
    routes.on("slow", [&](vouch::delivery& d) {
        f.clock.pass(5min);
        d.emit({.queue = "q", .topic = "follow"});
    });
    routes.on("follow", [&] { ++followed; });
    expiring.emit({.queue = "q", .topic = "slow"});
    vouch::runner(expiring, routes, {.queue = "q"}).run_until_idle(f.clock);
    CHECK(followed == 1);
}

TEST_CASE("emit: a batch of emissions is stored completely or not at all") {
    emit_fixture f;
    const auto from = f.outbox();
    std::vector<emission> many(3, {.queue = "q", .topic = "t"});
    const auto got = vouch::transact(f.store, [&](auto& tx) { return from.emit(tx, std::span<const emission>(many)); });
    CHECK(got.size() == 3);
    CHECK(f.store.counts("q")[vouch::state::pending] == 3);

    many[1].topic.clear();
    vouch::transact(f.store, [&](auto& tx) {
        CHECK(kind_of([&] { from.emit(tx, std::span<const emission>(many)); }) == vouch::error_kind::invalid_argument);
    });
    CHECK(f.store.counts("q").total() == 3);
}

TEST_CASE("emit: an emission is rolled back with the caller's transaction") {
    emit_fixture f;
    {
        auto tx = f.store.begin();
        f.outbox().emit(tx, {.queue = "q", .topic = "t", .key = "once"});
    }
    CHECK(f.store.counts("q").total() == 0);
    CHECK(f.emit(f.outbox(), {.queue = "q", .topic = "t", .key = "once"}).key == "once");
}

TEST_CASE("bindings: an emission without a queue reaches every bound queue once, under one emission id") {
    emit_fixture f;
    const auto from = f.outbox(
        vouch::bindings{}.bind("user.*", "mail").bind("user.#", "audit").bind("#", "mail").bind("order.*", "billing"));
    const auto got = vouch::transact(f.store, [&](auto& tx) { return from.emit(tx, {.topic = "user.created"}); });
    REQUIRE(got.size() == 2);
    const auto mail = f.store.find(got[0].id);
    const auto audit = f.store.find(got[1].id);
    REQUIRE(mail);
    REQUIRE(audit);
    CHECK(mail->queue == "mail");
    CHECK(audit->queue == "audit");
    CHECK(mail->id != audit->id);
    CHECK(mail->trail == vouch::id_list{{.high = 0, .low = 1}});
    CHECK(audit->trail == mail->trail);
    CHECK(f.store.counts("billing").total() == 0);
}

TEST_CASE("bindings: an emission without a bound queue is unrouted and writes nothing") {
    emit_fixture f;
    const auto from = f.outbox(vouch::bindings{}.bind("order.*", "billing"));
    const std::vector<emission> mixed{{.topic = "order.placed"}, {.topic = "user.created"}};
    vouch::transact(f.store, [&](auto& tx) {
        CHECK(kind_of([&] { from.emit(tx, std::span<const emission>(mixed)); }) == vouch::error_kind::unrouted);
    });
    CHECK(f.store.counts("billing").total() == 0);
}

TEST_CASE("bindings: a listener that fails does not make the other listeners run again") {
    emit_fixture f;
    const auto from = f.outbox(vouch::bindings{}.bind("#", "one").bind("#", "two").bind("#", "three"));
    std::array<int, 3> called{};
    std::array routers{vouch::router(from), vouch::router(from), vouch::router(from)};
    routers[0].on("#", [&] { ++called[0]; });
    routers[1].on(
        "#", [&] { ++called[1], throw vouch::failure("away"); }, vouch::retry_policy{.attempts_max = 4});
    routers[2].on("#", [&] { ++called[2]; });
    vouch::transact(f.store, [&](auto& tx) { from.emit(tx, {.topic = "user.created"}); });
    const std::array names{"one", "two", "three"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        vouch::runner(from, routers[i], {.queue = names[i]}).run_until_idle(f.clock);
    }
    CHECK(called == std::array{1, 4, 1});
    CHECK(f.store.counts("one")[vouch::state::succeeded] == 1);
    CHECK(f.store.counts("two")[vouch::state::dead] == 1);
    CHECK(f.store.counts("three")[vouch::state::succeeded] == 1);
}

namespace {

/// How the trail tests emit "user.created", whose handler emits two follow-ups.
enum class entry_point { none, opens_trail, is_tracked };

std::vector<std::string> user_created(entry_point how) {
    std::vector<std::string> lines;
    const auto say = [&](const std::string& what, const vouch::delivery& d) {
        auto line = what + d.payload() + ", tracking IDs: [";
        for (const auto& i : d.trail()) {
            line += (i == d.trail().front() ? "'uuid" : ", 'uuid") + std::to_string(i.low) + '\'';
        }
        lines.push_back(line + ']');
    };
    vouch::testing::sandbox box;
    box.on("user.created", [&](vouch::delivery& d) {
        say("User created ", d);
        d.emit({.queue = "test", .topic = "user.welcome_email", .payload = d.payload()});
        d.emit({.queue = "test", .topic = "user.created_notification", .payload = d.payload()});
    });
    box.on("user.welcome_email", [&](vouch::delivery& d) { say("Welcome email sent for user ", d); });
    box.on("user.created_notification", [&](vouch::delivery& d) { say("Notification created for user ", d); });
    const auto emit = [&](const vouch::id_list& above) {
        vouch::transact(box.store(), [&](auto& tx) {
            box.outbox().emit(tx, {.queue = "test", .topic = "user.created", .payload = "123", .trail = above});
        });
    };
    if (how == entry_point::is_tracked) {
        const vouch::tracking scope(box.outbox());
        emit({});
        box.run_until_idle(); // inside the scope, which the handlers must not see
    } else {
        emit(how == entry_point::opens_trail ? box.outbox().open_trail() : vouch::id_list{});
        box.run_until_idle();
    }
    return lines;
}

} // namespace

TEST_CASE("trail: every emission has an id of its own and carries the ids of its ancestors") {
    CHECK(user_created(entry_point::none) ==
          std::vector<std::string>{"User created 123, tracking IDs: ['uuid1']",
                                   "Welcome email sent for user 123, tracking IDs: ['uuid1', 'uuid2']",
                                   "Notification created for user 123, tracking IDs: ['uuid1', 'uuid3']"});
}

TEST_CASE("trail: an entry point can open a trail") {
    const std::vector<std::string> expected{
        "User created 123, tracking IDs: ['uuid1', 'uuid2']",
        "Welcome email sent for user 123, tracking IDs: ['uuid1', 'uuid2', 'uuid3']",
        "Notification created for user 123, tracking IDs: ['uuid1', 'uuid2', 'uuid4']"};
    CHECK(user_created(entry_point::opens_trail) == expected);
    CHECK(user_created(entry_point::is_tracked) == expected);
}

TEST_CASE("tracking: emissions inside a scope continue its trail, and scopes can be nested") {
    emit_fixture f;
    const auto from = f.outbox();
    const auto trail_of = [&] { return f.emit(from, {.queue = "q", .topic = "t"}).trail; };
    const auto ids = [](std::initializer_list<std::uint64_t> numbers) {
        vouch::id_list out;
        for (const auto n : numbers) {
            out.push_back({.high = 0, .low = n});
        }
        return out;
    };
    CHECK(vouch::tracking::current().empty());
    {
        const vouch::tracking outer(from); // 1
        CHECK(outer.trail() == ids({1}));
        CHECK(trail_of() == ids({1, 2}));
        {
            const vouch::tracking inner(from); // 3
            CHECK(trail_of() == ids({1, 3, 4}));
            const vouch::tracking elsewhere(ids({77}));
            CHECK(trail_of() == ids({77, 5}));
        }
        CHECK(trail_of() == ids({1, 6}));
        const auto given = ids({88});
        const auto got = from.emit({.queue = "q", .topic = "t", .trail = given});
        CHECK(f.store.find(got.front().id)->trail == ids({88, 7})); // a trail in the emission takes precedence
        const auto many = from.emit({{.queue = "q", .topic = "t"}, {.queue = "q", .topic = "t"}});
        CHECK(f.store.find(many.back().id)->trail == ids({1, 9}));
    }
    CHECK(trail_of() == ids({10}));
}

TEST_CASE("tracking: a scope applies to its thread; another thread can continue its trail explicitly") {
    emit_fixture f;
    const auto from = f.outbox();
    const vouch::tracking scope(from);
    vouch::id_list alone;
    vouch::id_list continued;
    std::thread([&] {
        alone = vouch::tracking::current();
        const vouch::tracking again(scope.trail());
        continued = vouch::tracking::current();
    }).join();
    CHECK(alone.empty());
    CHECK(continued == scope.trail());
    CHECK(vouch::tracking::current() == scope.trail());
}

TEST_CASE("tracking: a handler's direct emissions continue the delivery's trail, also in `record`") {
    emit_fixture f;
    const auto from = f.outbox();
    vouch::router routes(from);
    struct two_parts {
        const vouch::outbox<vouch::memory::store>* from;
        std::string work(vouch::delivery&) const {
            from->emit({.queue = "effects", .topic = "worked"});
            return "done";
        }
        void record(vouch::memory::transaction& tx) const { from->emit(tx, {.queue = "effects", .topic = "recorded"}); }
    };
    routes.on("t", two_parts{&from});
    const auto entry = f.emit(from, {.queue = "q", .topic = "t"});
    const vouch::tracking scope(from); // on the thread that runs the pass
    REQUIRE(vouch::runner(from, routes, {.queue = "q"}).run_once().succeeded == 1);
    const auto effects = f.store.list(vouch::query::live("effects"));
    REQUIRE(effects.size() == 2);
    for (const auto& e : effects) {
        CHECK(e.trail == vouch::id_list{entry.id, e.id});
    }
    CHECK(vouch::tracking::current() == scope.trail());
}

TEST_CASE("trail: a long trail keeps its first id and its last 31") {
    check_property("trail_below is as long as the limit allows, and keeps both ends", [](std::uint16_t raw) {
        const std::size_t length = raw % 200U + 1U;
        vouch::id_list trail;
        for (std::uint64_t n = 1; n <= length; ++n) {
            trail = vouch::trail_below(trail, id_of(n));
        }
        RC_ASSERT(trail.size() == std::min<std::size_t>(length, 32));
        RC_ASSERT(trail.front() == id_of(1));
        for (std::size_t back = 0; back + 1 < trail.size(); ++back) {
            RC_ASSERT(trail[trail.size() - 1 - back] == id_of(length - back));
        }
    });
}

TEST_CASE("codec: strings and bytes are decoded unchanged") {
    const std::string text("a\0\xff", 3);
    CHECK(vouch::codec<std::string>::decode(vouch::encode(text)) == text);
    const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}};
    CHECK(vouch::codec<std::vector<std::byte>>::decode(vouch::encode(bytes)) == bytes);
    CHECK(vouch::codec<std::vector<std::byte>>::decode(vouch::encode(std::vector<std::byte>{})).empty());
}

TEST_CASE("emit: observers see inserted entries after the commit") {
    emit_fixture f;
    struct listener {
        const vouch::memory::store& store;
        std::string log{};
        void on(const vouch::event& e) noexcept {
            log += std::string(name_of(e.what)) + ' ' + std::string(e.queue) + ' ' + std::string(e.topic) + ' ' +
                   std::string(e.group) + (store.find(e.id) ? " stored" : " NOT stored") +
                   (e.at == t0 && e.worker.empty() ? "" : " AT ANOTHER TIME") + '\n';
        }
    } seen{f.store};
    vouch::outbox outbox(f.store, {.clock = f.clock, .ids = f.ids});
    outbox.observe(seen);

    outbox.emit({{.queue = "mail", .topic = "a", .key = "k", .group = "g"},
                 {.queue = "mail", .topic = "b", .key = "k"}, // a duplicate
                 {.queue = "sms", .topic = "c"}});
    CHECK(seen.log == "enqueued mail a g stored\nenqueued sms c  stored\n");

    SECTION("emissions in the caller's transaction are seen when the caller reports the commit") {
        seen.log.clear();
        const auto emit = [&](auto& tx) {
            return outbox.emit(tx, {{.queue = "mail", .topic = "d"}, {.queue = "mail", .topic = "e", .key = "k"}});
        };
        const auto receipts = vouch::transact(f.store, emit);
        const auto rolled_back = [&] {
            auto tx = f.store.begin();
            return emit(tx);
        }();
        CHECK(seen.log.empty());
        outbox.report_committed(rolled_back);
        CHECK(seen.log.empty());
        outbox.report_committed(receipts);
        CHECK(seen.log == "enqueued mail d  stored\n");
    }
    SECTION("a refused batch is not seen") {
        seen.log.clear();
        CHECK_THROWS_AS(outbox.emit({{.queue = "mail", .topic = "d"}, {.queue = "", .topic = "nowhere"}}),
                        vouch::error);
        CHECK_THROWS_AS(outbox.emit({{.queue = "mail", .topic = "d"}, {.queue = "mail", .topic = ""}}), vouch::error);
        CHECK(seen.log.empty());
    }
}

} // namespace outbox_emit_test
