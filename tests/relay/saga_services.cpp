// SPDX-License-Identifier: MIT
// Sagas whose participants are in other services, with every part moved by hand: the traces of the order saga, replies
// that are late, lost or copied, and random faults and deaths.
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/relay_saga.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "relay/services.hpp"

namespace saga_services_test {
namespace {

using namespace std::chrono_literals;
using services::behaviour;
using services::world;
using calls = std::vector<std::string>;

/// "completed", "compensated" or "dead", and the reason.
std::string end_of(const world& w, const vouch::id& saga) {
    const auto status = vouch::inspect(w.orders->stored, saga);
    return status ? to_string(*status) : "no saga";
}

/// The forward command that was sent to the queue.
vouch::entry command_of_step(const world& w, const std::string& queue) {
    const auto found = w.orders->stored.list(vouch::query::all(queue));
    REQUIRE(!found.empty());
    return found.front();
}

} // namespace

TEST_CASE("saga across services: all steps succeed, and the saga completes") {
    world w;
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls == calls{"inventory.reserve", "payment.charge", "shipping.ship"});
    CHECK(w.done.effects.size() == 3);
    CHECK(vouch::inspect(w.orders->stored, saga)->reason.empty());
}

TEST_CASE("saga across services: step 2 is rejected, and step 1 is undone") {
    world w({}, {{"payment", behaviour::rejects}});
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls == calls{"inventory.reserve", "payment.charge", "inventory.release"});
    CHECK(w.done.effects.empty());
    CHECK(vouch::inspect(w.orders->stored, saga)->reason == "declined");
}

TEST_CASE("saga across services: step 3 is rejected, and steps 2 and 1 are undone in reverse") {
    world w({}, {{"shipping", behaviour::rejects}});
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls ==
          calls{"inventory.reserve", "payment.charge", "shipping.ship", "payment.refund", "inventory.release"});
    CHECK(w.done.effects.empty());
}

TEST_CASE("saga across services: a participant that gives up may have had an effect, so its step is undone") {
    world w({}, {{"payment", behaviour::fails_after_effect}});
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls ==
          calls{"inventory.reserve", "payment.charge", "payment.charge", "payment.refund", "inventory.release"});
    CHECK(w.done.effects.empty());
    CHECK(vouch::inspect(w.orders->stored, saga)->reason == "unavailable");
}

TEST_CASE("saga across services: a participant that rejects in a later attempt may have had an effect before") {
    world w({}, {{"payment", behaviour::rejects_after_effect}});
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls ==
          calls{"inventory.reserve", "payment.charge", "payment.charge", "payment.refund", "inventory.release"});
    CHECK(w.done.effects.empty());
}

TEST_CASE("saga across services: a participant that never answers is undone after the timeout") {
    world w({}, {{"shipping", behaviour::never_answers}});
    const auto saga = w.start();
    // The forward command keeps its lane in the participant's store for a day; the compensating one cancels it there.
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.effects.empty());
    CHECK(vouch::inspect(w.orders->stored, saga)->reason == "timed_out");
}

TEST_CASE("saga across services: a success that arrives after the timeout is undone") {
    world w;
    const auto saga = w.start();
    w.orders_runner("sagas").run_until_idle();
    w.orders_runner("inventory").run_once();
    auto& inventory = *w.parts.at("inventory").service;
    inventory.take_in();
    w.participant_runner("inventory", "work").run_once();
    REQUIRE(w.done.effects.size() == 1);
    w.clock.pass(2h); // the reply waits in the participant's store
    w.orders_runner("sagas").run_until_idle();
    CHECK(command_of_step(w, "inventory").state == vouch::state::dead);
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.effects.empty());
    CHECK(w.done.calls == calls{"inventory.reserve", "inventory.release"});
}

TEST_CASE("saga across services: a cancelled saga undoes what its participants have done") {
    world w;
    const auto saga = w.start();
    while (w.done.effects.size() < 2) {
        w.round();
    }
    const auto asked = w.orders->outbox.cancel(saga);
    REQUIRE((asked == vouch::verdict::applied || asked == vouch::verdict::repeated));
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.effects.empty());
    CHECK(vouch::inspect(w.orders->stored, saga)->reason == "cancelled");
}

TEST_CASE("command relay: a command stays open until its reply arrives, and its reply ends it and wakes the saga") {
    world w;
    const auto saga = w.start();
    w.orders_runner("sagas").run_until_idle();
    w.orders_runner("inventory").run_once();
    const auto sent = command_of_step(w, "inventory");
    CHECK(sent.state == vouch::state::pending);
    CHECK(sent.attempts == 0);
    CHECK(w.broker.size("inventory") == 1);

    w.parts.at("inventory").service->take_in();
    w.participant_runner("inventory", "work").run_once();
    w.participant_runner("inventory", "replies").run_once();
    w.orders->take_in();
    w.orders_runner("replies").run_once();
    const auto ended = command_of_step(w, "inventory");
    CHECK(ended.state == vouch::state::succeeded);
    CHECK(ended.result == "inventory done");
    CHECK(w.orders->stored.find(saga)->due_at <= w.clock());
}

TEST_CASE("command relay: a command without a reply is sent again, and the participant handles it once") {
    world w;
    static_cast<void>(w.start());
    w.orders_runner("sagas").run_until_idle();
    for (int i = 0; i < 4; ++i) {
        w.orders_runner("inventory").run_once();
        w.clock.pass(5min);
    }
    CHECK(w.broker.size("inventory") == 4);
    auto& inventory = *w.parts.at("inventory").service;
    inventory.take_in();
    w.participant_runner("inventory", "work").run_until_idle();
    CHECK(w.done.calls == calls{"inventory.reserve"});
}

TEST_CASE("command relay: a broker that does not answer costs a command no attempt") {
    world w({.lost_message = 1});
    static_cast<void>(w.start());
    w.orders_runner("sagas").run_until_idle();
    for (int i = 0; i < 20; ++i) {
        w.orders_runner("inventory").run_once();
        w.clock.pass(1s);
    }
    const auto command = command_of_step(w, "inventory");
    CHECK(command.state == vouch::state::pending);
    CHECK(command.attempts == 0);
    CHECK(command.epoch == 20);
}

TEST_CASE("command relay: a lost confirmation is no refusal, even if the command has one attempt") {
    world w({.lost_confirmation = 1}, {}, vouch::retry_policy{.attempts_max = 1});
    const auto saga = w.start();
    w.orders_runner("sagas").run_until_idle();
    w.orders_runner("inventory").run_once();
    const auto command = command_of_step(w, "inventory");
    CHECK(command.state == vouch::state::pending);
    CHECK(command.attempts_max == 1);
    REQUIRE(w.settle(saga));
    CAPTURE(end_of(w, saga));
    CHECK(w.done.calls == calls{"inventory.reserve", "payment.charge", "shipping.ship"});
    CHECK(vouch::inspect(w.orders->stored, saga)->reason.empty());
}

TEST_CASE("command relay: a command that the broker refuses after a lost confirmation may have arrived") {
    struct forgetful { // confirms nothing, then refuses
        std::size_t calls = 0;
        std::vector<vouch::confirmation> publish(std::span<const vouch::message> m) {
            using kind = vouch::confirmation::kind;
            return std::vector<vouch::confirmation>(m.size(), {++calls == 1 ? kind::unknown : kind::refused, "why"});
        }
    } to;
    world w;
    static_cast<void>(w.start());
    w.orders_runner("sagas").run_until_idle();
    vouch::router commands(w.orders->outbox);
    commands.on(vouch::command_relay(to));
    const vouch::runner_options of_inventory{.queue = "inventory"};
    services::runner(w.orders->outbox, commands, of_inventory).run_once();
    w.clock.pass(1s);
    services::runner(w.orders->outbox, commands, of_inventory).run_once();
    const auto command = command_of_step(w, "inventory");
    CHECK(command.state == vouch::state::dead);
    CHECK(command.last_error == "why");
    CHECK_FALSE(command.result.has_value());
}

TEST_CASE("command relay: times that would send without an end, and a topic that is none, are refused") {
    vouch::testing::broker broker;
    vouch::testing::broker_publisher to(broker);
    const auto is_refused = [&](vouch::command_relay_options how) {
        try {
            vouch::command_relay(to, std::move(how));
        } catch (const vouch::error& e) {
            return e.kind() == vouch::error_kind::invalid_argument;
        }
        return false;
    };
    CHECK(is_refused({.retry_in = 0us}));
    CHECK(is_refused({.retry_in = -1us}));
    CHECK(is_refused({.resend_after = 0us}));
    CHECK(is_refused({.reply_topic = ""}));
    CHECK(is_refused({.reply_topic = std::string(300, 't')}));
    CHECK_FALSE(is_refused({.retry_in = 1us, .resend_after = vouch::duration::max()}));
}

TEST_CASE("command relay: a command that the broker refuses at once is a known failure, and its step is not undone") {
    vouch::manual_clock clock;
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::testing::broker nobody_listens;
    vouch::testing::broker_publisher to(nobody_listens);
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("charge", {.queue = "payment", .topic = "charge", .undo = "refund"})
                          .build();
    vouch::router sagas(outbox);
    sagas.on(saga);
    vouch::router commands(outbox);
    commands.on(vouch::command_relay(to));
    const auto started = outbox.start(saga, "sagas", std::string("7"));
    for (int i = 0; i < 3; ++i) {
        vouch::runner(outbox, sagas, {.queue = "sagas"}).run_until_idle();
        vouch::runner(outbox, commands, {.queue = "payment"}).run_until_idle();
    }
    const auto status = vouch::inspect(store, started);
    REQUIRE(status);
    CHECK(status->reason == "unroutable");
    CHECK(status->steps.front().state == vouch::step_state::failed);
    CHECK(store.list(vouch::query::all("payment")).size() == 1);
}

TEST_CASE("reply handler: a copy of a reply, and one to a command that has ended, change nothing") {
    world w;
    const auto saga = w.start();
    REQUIRE(w.settle(saga));
    const auto before = w.orders->stored.list(vouch::query::all("inventory"));
    auto again = vouch::emission_of(
        vouch::saga_reply{.command = before.front().id, .what = vouch::saga_reply::status::failed, .error = "late"});
    again.queue = "replies";
    again.topic = "saga.reply";
    w.orders->outbox.emit(again);
    CHECK(w.orders_runner("replies").run_until_idle().succeeded == 1);
    CHECK(w.orders->stored.list(vouch::query::all("inventory")) == before);
}

TEST_CASE("reply handler: while the relay holds the command, the reply waits") {
    world w;
    static_cast<void>(w.start());
    w.orders_runner("sagas").run_until_idle();
    auto relaying = w.orders_runner("inventory");
    auto held = relaying.handle_all(relaying.claim());
    auto& inventory = *w.parts.at("inventory").service;
    inventory.take_in();
    w.participant_runner("inventory", "work").run_once();
    w.participant_runner("inventory", "replies").run_once();
    w.orders->take_in();
    CHECK(w.orders_runner("replies").run_once().retried == 1);
    CHECK(relaying.settle(held).advanced == 1);
    w.clock.pass(1s);
    CHECK(w.orders_runner("replies").run_once().succeeded == 1);
    CHECK(command_of_step(w, "inventory").state == vouch::state::succeeded);
}

TEST_CASE("reply handler: a reply waits until the relay, which has died before it could, marks the command as sent") {
    world w({}, {{"inventory", behaviour::rejects}});
    const auto saga = w.start();
    w.orders_runner("sagas").run_until_idle();
    auto relaying = w.orders_runner("inventory");
    static_cast<void>(relaying.handle_all(relaying.claim())); // sent, and not settled
    w.parts.at("inventory").service->take_in();
    w.participant_runner("inventory", "work").run_once();
    w.participant_runner("inventory", "replies").run_once();
    w.orders->take_in();
    w.clock.pass(world::lease);
    CHECK(w.orders_runner("replies").run_once().retried == 1);
    CHECK(w.orders_runner("inventory").run_once().advanced == 1); // sent again; the participant's intake drops it
    w.clock.pass(1s);
    CHECK(w.orders_runner("replies").run_once().succeeded == 1);
    REQUIRE(w.settle(saga));
    CHECK(w.done.calls == calls{"inventory.reserve"});
}

namespace {

/// Stores a reply in the service that runs the saga, and handles it.
vouch::entry take_reply(world& w, const vouch::saga_reply& reply) {
    auto e = vouch::emission_of(reply);
    e.queue = "replies";
    e.topic = "saga.reply";
    const auto id = w.orders->outbox.emit(e).front().id;
    w.orders_runner("replies").run_once();
    return w.orders->stored.find(id).value();
}

} // namespace

TEST_CASE("reply handler: a reply ends nothing but a command that was sent") {
    world w;
    const auto saga = w.start();
    const auto mail = w.orders->outbox.emit({.queue = "mail", .topic = "mail.send"}).front().id;
    w.orders_runner("sagas").run_until_idle();
    const auto command = command_of_step(w, "inventory").id;
    for (const auto& named : {saga, mail, command}) { // the command was never claimed
        for (const auto what : {vouch::saga_reply::status::succeeded, vouch::saga_reply::status::rejected}) {
            const auto before = w.orders->stored.find(named);
            const auto reply = take_reply(w, {.command = named, .what = what});
            CHECK(reply.state == vouch::state::dead);
            CHECK(reply.last_error == "no_command");
            CHECK(w.orders->stored.find(named) == before);
        }
    }
}

TEST_CASE("reply handler: a reply does not end the command of a participant in the saga's own store") {
    world w;
    static_cast<void>(w.start());
    w.orders_runner("sagas").run_until_idle();
    const auto command = command_of_step(w, "inventory").id;
    const auto now = w.clock();
    const auto held = vouch::claim(w.orders->stored, {.queue = "inventory", .now = now, .worker = "local"});
    REQUIRE(held.size() == 1);
    const vouch::settle again{vouch::ticket_of(held.front()), vouch::retry{.error = "down", .at = now + 1h}};
    REQUIRE(vouch::transact(w.orders->stored, [&](auto& tx) { return tx.settle(std::span(&again, 1), now); }).size() ==
            1);
    const auto before = w.orders->stored.find(command);
    const auto reply = take_reply(w, {.command = command, .what = vouch::saga_reply::status::succeeded});
    CHECK(reply.state == vouch::state::retrying);
    CHECK(reply.last_error == "command_not_sent");
    CHECK(w.orders->stored.find(command) == before);
}

TEST_CASE("reply handler: a command received from another service is not one that was sent") {
    world w;
    const vouch::id foreign{7, 7};
    const auto id = w.orders->outbox
                        .emit({.queue = "work",
                               .topic = "t",
                               .parent = foreign,
                               .headers = {{"saga", to_string(foreign)},
                                           {"saga-step", "s"},
                                           {"saga-step-number", "1"},
                                           {"saga-compensation", "false"},
                                           {"saga-command", to_string(vouch::id{8, 8})}}})
                        .front()
                        .id;
    const auto reply = take_reply(w, {.command = id, .what = vouch::saga_reply::status::succeeded});
    CHECK(reply.last_error == "no_command");
    CHECK(w.orders->stored.find(id)->state == vouch::state::pending);
}

namespace {

/// A store that holds smaller results than payloads.
struct narrow_store : vouch::memory::store {
    [[nodiscard]] vouch::capabilities capabilities() const {
        auto out = vouch::memory::store::capabilities();
        out.limits.result_max = 10;
        return out;
    }
};

} // namespace

TEST_CASE("reply handler: a result that the saga's store cannot hold ends the command, and its step is undone") {
    vouch::manual_clock clock;
    narrow_store store;
    const vouch::outbox outbox(store, {.clock = clock});
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("charge", {.queue = "payment", .topic = "charge", .undo = "refund"})
                          .build();
    vouch::testing::broker broker;
    broker.bind("#", "payment");
    vouch::testing::broker_publisher to(broker);
    vouch::router router(outbox);
    router.on(saga).on(vouch::reply_handler(outbox));
    vouch::router commands(outbox);
    commands.on(vouch::command_relay(to));
    static_cast<void>(outbox.start(saga, "sagas", std::string("7")));
    vouch::runner(outbox, router, {.queue = "sagas"}).run_until_idle();
    vouch::runner(outbox, commands, {.queue = "payment"}).run_once();
    const auto command = store.list(vouch::query::all("payment")).front().id;
    auto reply = vouch::emission_of(vouch::saga_reply{
        .command = command, .what = vouch::saga_reply::status::succeeded, .result = std::string(11, 'x')});
    reply.queue = "replies";
    reply.topic = "saga.reply";
    outbox.emit(reply);
    CHECK(vouch::runner(outbox, router, {.queue = "replies"}).run_once().succeeded == 1);
    CHECK(store.find(command)->state == vouch::state::dead);
    CHECK(store.find(command)->last_error == "result_too_large");
    CHECK_FALSE(store.find(command)->result.has_value());
}

TEST_CASE("reply handler: an entry that is no reply is dead") {
    world w;
    w.orders->outbox.emit({.queue = "replies", .topic = "saga.reply", .payload = "hello"});
    CHECK(w.orders_runner("replies").run_until_idle().dead == 1);
}

TEST_CASE("participant: a forward command that comes after its compensation is rejected without a call") {
    world w;
    auto& payment = *w.parts.at("payment").service;
    const auto saga = vouch::id{7, 7};
    const auto emit = [&](const char* topic, bool is_compensation, vouch::id command) {
        payment.outbox.emit({.queue = "work",
                             .topic = topic,
                             .parent = saga,
                             .headers = {{"saga", to_string(saga)},
                                         {"saga-step", "charge"},
                                         {"saga-step-number", "2"},
                                         {"saga-compensation", is_compensation ? "true" : "false"},
                                         {"saga-command", to_string(command)}}});
    };
    emit("payment.refund", true, {1, 1});
    emit("payment.charge", false, {2, 2});
    // Both are claimed together, so the compensation waits until the forward command has ended.
    CHECK(w.participant_runner("payment", "work").run_until_idle().succeeded == 1);
    CHECK(w.done.calls.empty());
    w.clock.pass(1s);
    CHECK(w.participant_runner("payment", "work").run_until_idle().succeeded == 1);
    CHECK(w.done.calls == calls{"payment.refund"});
    CHECK(w.done.effects.empty());
    const auto replies = payment.stored.list(vouch::query::all("replies"));
    REQUIRE(replies.size() == 2);
    CHECK(vouch::reply_of(replies[0])->what == vouch::saga_reply::status::rejected);
    CHECK(vouch::reply_of(replies[0])->error == "undone_before");
    CHECK(vouch::reply_of(replies[1])->what == vouch::saga_reply::status::succeeded);
}

TEST_CASE("participant: an entry that is no command is dead") {
    world w;
    auto& payment = *w.parts.at("payment").service;
    payment.outbox.emit({.queue = "work", .topic = "payment.charge"});
    CHECK(w.participant_runner("payment", "work").run_until_idle().dead == 1);
}

TEST_CASE("channels: one for each participant and one for the replies come out of the definition") {
    world w;
    CHECK(vouch::channels_of(w.saga) ==
          std::vector<vouch::saga_channel>{{"inventory", {"inventory.reserve", "inventory.release"}},
                                           {"payment", {"payment.charge", "payment.refund"}},
                                           {"shipping", {"shipping.ship", "shipping.cancel"}},
                                           {"replies", {"saga.reply"}}});
    const auto local = vouch::define_saga<std::string>("local").step("only", [] {}).build();
    CHECK(vouch::channels_of(local).empty());
}

namespace {

/// One move of a random part: it runs, dies while it holds claims or messages, or time passes.
void move(world& w, int which, int how) {
    const auto& name = services::participants[static_cast<std::size_t>(which) % services::participants.size()];
    auto& service = *w.parts.at(name).service;
    const auto pass = [&](auto runner) {
        const auto claimed = runner.claim();
        auto handled = how % 3 == 0 ? typename services::runner::batch{} : runner.handle_all(claimed);
        if (how % 3 == 2) {
            runner.settle(handled);
        } // otherwise it dies before or after the handlers
    };
    switch (which % 9) {
    case 0: pass(w.orders_runner("sagas")); break;
    case 1: pass(w.orders_runner(name)); break;
    case 2: pass(w.orders_runner("replies")); break;
    case 3: pass(w.participant_runner(name, "work")); break;
    case 4: pass(w.participant_runner(name, "replies")); break;
    case 5: how % 3 == 0 ? service.die_receiving() : service.take_in(); break;
    case 6: how % 3 == 0 ? w.orders->die_receiving() : w.orders->take_in(); break;
    case 7: w.broker.disconnect_all(); break;
    default: w.clock.pass(how % 3 == 0 ? vouch::duration(31s) : vouch::duration(1s)); break;
    }
}

} // namespace

TEST_CASE(
    "saga across services: whatever fails or dies, a saga ends completed with all effects or compensated with none") {
    check_property("all or nothing", [] {
        const auto rate = [] { return *rc::gen::element<std::size_t>(0, 2, 3, 7); };
        std::map<std::string, behaviour> behaviours;
        for (const auto& name : services::participants) {
            behaviours[name] = *rc::gen::weightedElement<behaviour>({{6, behaviour::succeeds},
                                                                     {1, behaviour::rejects},
                                                                     {1, behaviour::fails},
                                                                     {1, behaviour::fails_after_effect},
                                                                     {1, behaviour::rejects_after_effect},
                                                                     {1, behaviour::never_answers}});
        }
        world w({.lost_confirmation = rate(),
                 .lost_message = rate(),
                 .duplicate = rate(),
                 .reorder = rate(),
                 .disconnect = rate(),
                 .seed = *rc::gen::inRange<std::uint64_t>(1, 1000)},
                behaviours);
        const auto saga = w.start();
        const auto moves = *rc::gen::container<std::vector<std::pair<int, int>>>(
            rc::gen::pair(rc::gen::inRange(0, 9 * 3), rc::gen::inRange(0, 3)));
        for (const auto& [which, how] : moves) {
            move(w, which, how);
        }
        RC_ASSERT(w.settle(saga));
        const auto status = vouch::inspect(w.orders->stored, saga);
        RC_ASSERT(status.has_value());
        RC_LOG() << end_of(w, saga);
        RC_ASSERT(w.orders->stored.find(saga)->state == vouch::state::succeeded);
        RC_ASSERT(w.done.effects.size() == (status->reason.empty() ? 3U : 0U));
        // What still waits in a store or in the broker must not change that.
        for (int i = 0; i < 60; ++i) {
            w.round();
            w.clock.pass(1h);
        }
        RC_ASSERT(w.done.effects.size() == (status->reason.empty() ? 3U : 0U));
    });
}

} // namespace saga_services_test
