// SPDX-License-Identifier: MIT
#include <string>

#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

[[nodiscard]] std::string parts_of(const rabbitmq::connection_options& given) {
    const rabbitmq::detail::target t(given);
    return t.host + ' ' + std::to_string(t.port) + ' ' + t.vhost + ' ' + t.user + ' ' + t.password +
           (t.tls.enabled ? " tls" : "");
}

} // namespace

TEST_CASE("rabbitmq: an address is a URL, its parts, or a URL of which parts are replaced") {
    CHECK(parts_of({}) == "localhost 5672 / guest guest");
    CHECK(parts_of({.url = "amqp://ada:p%40ss@mq.example:5999/orders"}) == "mq.example 5999 orders ada p@ss");
    CHECK(parts_of({.url = "amqp://mq.example/"}) == "mq.example 5672 / guest guest");
    CHECK(parts_of({.url = "amqp://ada:@mq.example/"}) == "mq.example 5672 / ada guest");
    CHECK(parts_of({.url = "amqp://ada@mq.example", .password = "p\xc3\xa9"}) == "mq.example 5672 / ada p\xc3\xa9");
    CHECK(parts_of({.url = "amqp://mq.example/%2f"}) == "mq.example 5672 / guest guest");
    CHECK(parts_of({.url = "amqps://mq.example", .tls = {.ca_file = "ca.pem"}}) == "mq.example 5671 / guest guest tls");
    CHECK(parts_of({.tls = {.enabled = true, .ca_file = "ca.pem"}}) == "localhost 5671 / guest guest tls");
    CHECK(parts_of({.url = "amqp://mq.example:7", .tls = {.enabled = true, .ca_file = "ca.pem"}}) ==
          "mq.example 7 / guest guest tls");
    // A port that is given is used, also if it is the usual one without TLS.
    CHECK(parts_of({.url = "amqps://ada:x@mq.example:5672/", .tls = {.ca_file = "ca.pem"}}) ==
          "mq.example 5672 / ada x tls");
    CHECK(parts_of({.url = "amqp://mq.example:5672", .tls = {.enabled = true, .ca_file = "ca.pem"}}) ==
          "mq.example 5672 / guest guest tls");
    CHECK(parts_of({.url = "amqps://ada:x@[::1]/v", .tls = {.ca_file = "ca.pem"}}) == "::1 5671 v ada x tls");
    CHECK(parts_of({.url = "amqp://ada:x@mq.example", .port = 9, .user = "bob", .password = "y"}) ==
          "mq.example 9 / bob y");
}

TEST_CASE("rabbitmq: an option that is not allowed is named, and the password is not") {
    using vouch::error_kind;
    const auto publisher = [](const rabbitmq::publisher_options& o) {
        return error_of([&] { rabbitmq::publisher p(o); });
    };
    const auto consumer = [](const rabbitmq::consumer_options& o) {
        return error_of([&] { rabbitmq::consumer c(o); });
    };
    const auto at = [&](const rabbitmq::connection_options& o) {
        return publisher({.connection = o, .exchange = "e"});
    };
    const auto expect = [](const auto& e, const char* part) { expect_sentence(e, error_kind::invalid_argument, part); };
    expect(publisher({}), "exchange is empty");
    expect(publisher({.exchange = std::string(256, 'e')}), "exchange has 256 bytes, and 255 are allowed");
    expect(publisher({.exchange = "e", .confirm_limit = 0ms}), "confirm_limit is 0 ms");
    expect(publisher({.exchange = "e", .message_size_max = 0}), "message_size_max is 0");
    expect(publisher({.exchange = "e", .clock = {}}), "clock is empty");
    expect(consumer({}), "queue is empty");
    expect(consumer({.queue = "q", .prefetch = 0}), "prefetch is 0");
    expect(consumer({.queue = "q", .tag = std::string(250, 't')}), "tag has 261 bytes");
    for (const auto* url :
         {"http://a:hunter2@b", "amqp://a:hunter2@b:port", "amqp://a:hunter2@b/v?heartbeat=1", "a:hunter2@b",
          "amqp://a:hunter2%00tail@b", "amqp://a:hunter2@b/v%00x", "amqp://a:hunter2%C3%A9@b"}) {
        expect(at({.url = url}), "connection.url is not valid");
    }
    expect(at({.port = 65536}), "connection.port is 65536");
    expect(at({.password = std::string("hunter2\0", 8)}), "connection.password has a zero byte");
    expect(at({.heartbeat = -1s}), "connection.heartbeat is -1 s");
    expect(at({.connect_limit = 0ms}), "connection.connect_limit is 0 ms");
    expect(at({.reconnect_wait_max = 25h}), "connection.reconnect_wait_max is 90000000 ms");
    expect(at({.url = "amqp://a:hunter2@b", .tls = {.ca_file = "c"}}), "connection.tls names files, and TLS is off");
    expect(at({.tls = {.certificate_file = "c", .key_file = "k"}}), "connection.tls names files, and TLS is off");
    expect(at({.tls = {.enabled = true}}), "connection.tls.ca_file is empty");
    expect(at({.tls = {.enabled = true, .ca_file = "c", .key_file = "k"}}), "certificate_file and key_file");
}
