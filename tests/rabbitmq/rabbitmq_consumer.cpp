// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/vouch.hpp>

#include "proxy.hpp"
#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

/// What a program that does not use vouch publishes.
struct foreign {
    std::string id{};
    std::string topic{"order.foreign"};
    std::string body{"body"};
    std::vector<amqp_table_entry_t> headers{};
    std::uint64_t timestamp = 0;
};

void publish(const std::string& exchange, const foreign& what) {
    namespace detail = rabbitmq::detail;
    detail::connection to{detail::target(here())};
    amqp_confirm_select(to.state(), 1);
    amqp_basic_properties_t properties{};
    auto fields = what.headers;
    if (!what.id.empty()) {
        properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
        properties.message_id = detail::bytes_of(what.id);
    }
    if (!fields.empty()) {
        properties._flags |= AMQP_BASIC_HEADERS_FLAG;
        properties.headers = {static_cast<int>(fields.size()), fields.data()};
    }
    if (what.timestamp != 0) {
        properties._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
        properties.timestamp = what.timestamp;
    }
    REQUIRE(amqp_basic_publish(to.state(), 1, detail::bytes_of(exchange), detail::bytes_of(what.topic), 0, 0,
                               &properties, detail::bytes_of(what.body)) == AMQP_STATUS_OK);
    amqp_frame_t answer{};
    REQUIRE(to.next(answer, detail::steady::now() + 10s) == detail::io::done);
}

void publish(const orders& o, std::size_t count) {
    rabbitmq::publisher to(o.publisher());
    REQUIRE(texts_of(to.publish(messages(count))) == "confirmed");
}

/// Removes a queue, as an operator does.
void remove_queue(const std::string& name) {
    namespace detail = rabbitmq::detail;
    detail::connection to{detail::target(here())};
    amqp_queue_delete(to.state(), 1, detail::bytes_of(name), 0, 0);
    to.expect_reply("delete");
}

} // namespace

TEST_CASE("rabbitmq: receive waits for the first message only, and not longer than it is told") {
    const orders o;
    rabbitmq::consumer from(o.consumer());
    CHECK(from.receive(10, 0us, {}).empty());
    const auto start = std::chrono::steady_clock::now();
    CHECK(from.receive(10, 300ms, {}).empty());
    CHECK(std::chrono::steady_clock::now() - start >= 300ms);
    publish(o, 3);
    CHECK(from.receive(0, 10s, {}).empty());
    CHECK(ids_of(receive(from, 3, true)) == "m0 m1 m2");
}

TEST_CASE("rabbitmq: a request to stop ends the wait") {
    const orders o;
    rabbitmq::consumer from(o.consumer());
    CHECK(from.receive(1, 0us, {}).empty()); // connects
    std::stop_source stop;
    const std::jthread later([&] {
        std::this_thread::sleep_for(100ms);
        stop.request_stop();
    });
    const auto start = std::chrono::steady_clock::now();
    CHECK(from.receive(1, 60s, stop.get_token()).empty());
    CHECK(std::chrono::steady_clock::now() - start < 30s);
}

TEST_CASE("rabbitmq: what a dead consumer did not acknowledge is delivered again, in order") {
    const orders o;
    publish(o, 5);
    {
        rabbitmq::consumer from(o.consumer());
        const auto got = receive(from, 5);
        REQUIRE(ids_of(got) == "m0 m1 m2 m3 m4");
        from.acknowledge(std::vector{got[0], got[2]});
    }
    rabbitmq::consumer next(o.consumer());
    const auto again = receive(next, 3);
    CHECK(ids_of(again) == "m1 m3 m4");
    for (const auto& one : again) {
        CHECK(one.is_redelivered);
    }
    next.acknowledge(again);
    next.acknowledge(again); // twice is no error
    CHECK(next.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: no more than prefetch messages arrive without being acknowledged") {
    const orders o;
    publish(o, 20);
    auto how = o.consumer();
    how.prefetch = 4;
    rabbitmq::consumer from(how);
    rabbitmq::consumer other(o.consumer());
    const auto held = receive(from, 4);
    REQUIRE(ids_of(held) == "m0 m1 m2 m3");
    CHECK(from.receive(10, 200ms, {}).empty());
    CHECK(receive(other, 16, true).size() == 16);
    publish(o, 2);
    CHECK(ids_of(receive(other, 2, true)) == "m0 m1");
    from.acknowledge(held);
    publish(o, 8);
    CHECK(receive(from, 1).size() == 1);
}

TEST_CASE("rabbitmq: what is given back comes again before what has not been delivered, in order") {
    const orders o;
    publish(o, 30);
    auto how = o.consumer();
    how.prefetch = 10;
    rabbitmq::consumer from(how);
    auto got = receive(from, 5);
    REQUIRE(ids_of(got) == "m0 m1 m2 m3 m4");
    from.acknowledge(std::vector{got[1]});
    from.give_back(std::vector{got[3], got[0], got[2], got[4]});
    from.give_back(got); // once is enough
    got = receive(from, 29, true);
    CHECK(ids_of(got) ==
          "m0 m2 m3 m4 m5 m6 m7 m8 m9 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 m21 m22 m23 m24 m25 m26 "
          "m27 m28 m29");
    CHECK(got[0].is_redelivered);
    CHECK_FALSE(got.back().is_redelivered);
    CHECK(from.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: cancel gives back what was not received; what was can still be acknowledged") {
    const orders o;
    publish(o, 10);
    rabbitmq::consumer from(o.consumer());
    auto got = receive(from, 2);
    REQUIRE(ids_of(got) == "m0 m1");
    from.cancel();
    CHECK(from.receive(10, 10s, {}).empty());
    rabbitmq::consumer other(o.consumer());
    CHECK(ids_of(receive(other, 8, true)) == "m2 m3 m4 m5 m6 m7 m8 m9");
    from.acknowledge(std::vector{got[0]});
    from.give_back(std::vector{got[1]});
    CHECK(ids_of(receive(other, 1, true)) == "m1");
    from.cancel(); // twice is no error
    CHECK(from.receive(10, 10s, {}).empty());
    CHECK(other.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: a consumer that is cancelled before it has connected receives nothing") {
    const orders o;
    publish(o, 1);
    rabbitmq::consumer from(o.consumer());
    from.cancel();
    CHECK(from.receive(10, 10s, {}).empty());
}

TEST_CASE("rabbitmq: what is set aside is in the dead-letter queue, with its topic") {
    const orders o;
    publish(o, 3);
    rabbitmq::consumer from(o.consumer());
    const auto got = receive(from, 3);
    from.set_aside(std::vector{got[1]});
    from.acknowledge(std::vector{got[0], got[2]});
    rabbitmq::consumer dead({.connection = here(), .queue = rabbitmq::dead_letter_queue(o.queue())});
    const auto aside = receive(dead, 1, true);
    REQUIRE(ids_of(aside) == "m1");
    const bool is_same = aside[0].message == got[1].message;
    CHECK(is_same);
}

TEST_CASE("rabbitmq: a message that is delivered too often is in the dead-letter queue") {
    const orders o(0, 3);
    publish(o, 1);
    rabbitmq::consumer from(o.consumer());
    for (int i = 0; i < 4; ++i) {
        const auto got = receive(from, 1);
        REQUIRE(ids_of(got) == "m0");
        from.give_back(got);
    }
    rabbitmq::consumer dead({.connection = here(), .queue = rabbitmq::dead_letter_queue(o.queue())});
    CHECK(ids_of(receive(dead, 1, true)) == "m0");
}

TEST_CASE("rabbitmq: one active consumer has the queue, and another takes over") {
    const rabbitmq::topology shape{
        .exchange = fresh("lanes"),
        .listeners = {{.queue = fresh("sac"), .patterns = {"#"}, .single_active_consumer = true}}};
    rabbitmq::declare(here(), shape);
    rabbitmq::publisher to({.connection = here(), .exchange = shape.exchange});
    auto first = std::make_unique<rabbitmq::consumer>(
        rabbitmq::consumer_options{.connection = here(), .queue = shape.listeners[0].queue, .prefetch = 1});
    rabbitmq::consumer second({.connection = here(), .queue = shape.listeners[0].queue});
    CHECK(first->receive(1, 0us, {}).empty());
    CHECK(second.receive(1, 0us, {}).empty());
    REQUIRE(texts_of(to.publish(messages(3))) == "confirmed");
    CHECK(ids_of(receive(*first, 1, true)) == "m0");
    CHECK(second.receive(1, 200ms, {}).empty());
    first.reset();
    CHECK(ids_of(receive(second, 2, true)) == "m1 m2");
}

TEST_CASE("rabbitmq: messages of other programs have an id, a topic, a payload, and headers as text") {
    const orders o;
    namespace detail = rabbitmq::detail;
    amqp_table_entry_t number = detail::text_field("number", "");
    number.value.kind = AMQP_FIELD_KIND_I32;
    number.value.value.i32 = -7;
    amqp_table_entry_t table = detail::text_field("table", "");
    table.value.kind = AMQP_FIELD_KIND_TABLE;
    table.value.value.table = {0, nullptr};
    publish(o.shape.exchange,
            {.id = "f1",
             .headers = {detail::text_field("x-request", "r"), number, table, detail::bool_field("flag", true)},
             .timestamp = 1'700'000'000});
    publish(o.shape.exchange, {.body = ""});
    publish(o.shape.exchange, {.id = "f3", .headers = {detail::text_field("vouch-created-at", "yesterday")}});
    publish(o.shape.exchange, {.id = "f4", .headers = {detail::text_field("vouch-order", "no list")}});
    publish(o.shape.exchange, {.id = "f5", .headers = {detail::text_field("vouch-spilled", "99999")}});
    rabbitmq::consumer from(o.consumer());
    const auto got = receive(from, 5, true);
    REQUIRE(got.size() == 5);
    vouch::message expected = message("f1", "order.foreign", "body");
    expected.headers = {{"flag", "true"}, {"number", "-7"}, {"x-request", "r"}};
    expected.created_at = vouch::time_point(std::chrono::seconds(1'700'000'000));
    const bool is_same = got[0].message == expected;
    CHECK(is_same);
    CHECK(got[0].malformed == "");
    CHECK(got[1].malformed == "no_message_id");
    for (std::size_t i = 2; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].malformed == "unreadable_headers");
        CHECK(got[i].message.payload == "body");
        CHECK(got[i].message.topic == "order.foreign");
    }
}

TEST_CASE("rabbitmq: a message that is too large for the consumer is malformed and blocks nothing") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    auto sent = messages(3);
    sent[1].payload = std::string(300'000, 'x');
    REQUIRE(texts_of(to.publish(sent)) == "confirmed");
    auto how = o.consumer();
    how.message_size_max = 1000;
    rabbitmq::consumer from(how);
    const auto got = receive(from, 3, true);
    REQUIRE(ids_of(got) == "m0 m1 m2");
    CHECK(got[1].malformed == "message_too_large");
    CHECK(got[1].message.payload == "");
    CHECK(got[2].malformed == "");
}

TEST_CASE("rabbitmq: a deleted queue is an error that a new queue ends") {
    const orders o;
    rabbitmq::consumer from(o.consumer());
    CHECK(from.receive(1, 0us, {}).empty());
    remove_queue(o.queue());
    expect_sentence(error_of([&] { static_cast<void>(receive(from, 1)); }), vouch::error_kind::io, "was deleted");
    const auto missing = error_of([&] { static_cast<void>(from.receive(1, 10s, {})); });
    expect_sentence(missing, vouch::error_kind::io, "consume from queue " + o.queue() + ": it does not exist");
    CHECK(missing->is_transient());
    rabbitmq::declare(here(), o.shape);
    publish(o, 1);
    CHECK(ids_of(receive(from, 1, true)) == "m0");
}

TEST_CASE("rabbitmq: an intake sets aside what is too large for its consumer, and the broker keeps it") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    auto sent = messages(2);
    sent[0].payload = std::string(5000, 'x');
    sent[0].headers = {{"trace", "t"}};
    REQUIRE(texts_of(to.publish(sent)) == "confirmed");
    vouch::memory::store store;
    const vouch::outbox box(store);
    auto how = o.consumer();
    how.message_size_max = 1000;
    rabbitmq::consumer from(how);
    vouch::intake intake(from, box, {.source = "shop", .queue = "mail"});
    std::size_t received = 0;
    for (int i = 0; i < 10 && received < 2; ++i) {
        received += intake.run_once().received;
    }
    const auto dead = store.list(vouch::query::dead("mail"));
    REQUIRE(dead.size() == 1);
    CHECK(dead[0].last_error == "message_too_large");
    CHECK(dead[0].headers == sent[0].headers);
    rabbitmq::consumer letters({.connection = here(), .queue = rabbitmq::dead_letter_queue(o.queue())});
    const auto kept = receive(letters, 1, true);
    REQUIRE(ids_of(kept) == "m0");
    CHECK(kept[0].message.payload == sent[0].payload);
}

TEST_CASE("rabbitmq: a broker that ends a channel because nothing was acknowledged in time is connected to again") {
    const orders o;
    publish(o, 1);
    const auto limits = [](const std::string& timeout, const std::string& tick) {
        broker("ctl", "eval 'application:set_env(rabbit, consumer_timeout, " + timeout +
                          "), application:set_env(rabbit, channel_tick_interval, " + tick + ").'");
    };
    limits("1000", "500");
    rabbitmq::consumer from(o.consumer());
    CHECK(ids_of(receive(from, 1)) == "m0");
    const auto ended = error_of([&] { static_cast<void>(from.receive(1, 30s, {})); });
    limits("1800000", "60000");
    expect_sentence(ended, vouch::error_kind::io, "consumer_timeout");
    CHECK(ended->is_transient());
    CHECK(ids_of(receive(from, 1, true)) == "m0");
}

TEST_CASE("rabbitmq: a broker that has as many connections as it allows is busy") {
    const orders o;
    broker("ctl", "set_vhost_limits -p / '{\"max-connections\": 0}'");
    rabbitmq::consumer from(o.consumer());
    const auto refused = error_of([&] { static_cast<void>(from.receive(1, 5s, {})); });
    broker("ctl", "clear_vhost_limits -p /");
    expect_sentence(refused, vouch::error_kind::busy, "limit");
    CHECK(refused->is_transient());
    CHECK(from.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: a fault that ended a connection is not taken for the fault of the next one") {
    const orders o;
    publish(o, 2);
    proxy network(number_in("port"));
    auto to = here();
    to.port = network.port();
    rabbitmq::consumer from({.connection = to, .queue = o.queue()});
    const auto got = receive(from, 2);
    REQUIRE(got.size() == 2);
    remove_queue(o.queue());
    std::this_thread::sleep_for(200ms);
    from.give_back({got.data(), 1}); // learns that the queue is gone
    rabbitmq::declare(here(), o.shape);
    CHECK(from.receive(1, 100ms, {}).empty());
    network.cut();
    expect_sentence(error_of([&] { static_cast<void>(from.receive(1, 10s, {})); }), vouch::error_kind::io, "was lost");
}

TEST_CASE("rabbitmq: a message whose headers outgrow a frame when it comes again does not block the queue") {
    const orders o;
    const std::string value(131'015, 'h'); // with the broker's x-delivery-count more than the usual 131,072 bytes
    publish(o.shape.exchange, {.id = "large", .headers = {rabbitmq::detail::text_field("large", value)}});
    publish(o.shape.exchange, {.id = "innocent"});
    rabbitmq::consumer from(o.consumer());
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        const auto got = receive(from, 2);
        REQUIRE(ids_of(got) == "large innocent");
        CHECK(got[0].message.headers == vouch::header_list{{"large", value}});
        from.give_back(got);
    }
    CHECK(receive(from, 2, true).size() == 2);
}
