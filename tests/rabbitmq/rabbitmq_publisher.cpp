// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

TEST_CASE("rabbitmq: a batch is confirmed and arrives in order, every part of it") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    rabbitmq::consumer from(o.consumer());
    auto sent = messages(200);
    sent[0].headers = {{"b", "1"},
                       {"a", "2"},
                       {"b", "3"},
                       {"CC", "4"},
                       {"", "5"},
                       {"x-death", "6"},
                       {"vouch-order", "7"},
                       {std::string(255, 'n'), "8"},
                       {"vouch-" + std::string(249, 'n'), "9"},
                       {"binary", std::string("\0\xff", 2)}};
    sent[0].key = "k";
    sent[0].lane = "l";
    sent[0].group = "g";
    sent[0].created_at = vouch::time_point(vouch::duration(1'700'000'000'123'456));
    sent[0].payload = std::string("\0\xff", 2);
    sent[1].headers = {{"a", "1"}, {"b", ""}};
    sent[2].payload.clear();
    sent[3].payload = std::string(1'000'000, 'p');
    sent[4].headers.assign(64, {"big", std::string(4096, 'h')});
    sent[5].expires_at = vouch::system_now() + std::chrono::hours(24 * 60);
    for (const auto& c : to.publish(sent)) {
        CHECK(text_of(c) == "confirmed");
    }
    const auto got = receive(from, sent.size(), true);
    REQUIRE(got.size() == sent.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(got[i].malformed == "");
        CHECK(got[i].source == o.queue());
        CHECK_FALSE(got[i].is_redelivered);
        const bool is_same = got[i].message == sent[i];
        CHECK(is_same);
    }
    CHECK(from.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: what no queue takes is refused, and the other messages are confirmed") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    auto sent = messages(6);
    sent[1].topic = "unknown";
    sent[4].topic = "unknown";
    sent[4].id = sent[1].id;
    const auto answers = to.publish(sent);
    std::string all;
    for (const auto& one : answers) {
        all += text_of(one) + '\n';
    }
    CHECK(all == "confirmed\nrefused unroutable\nconfirmed\nconfirmed\nrefused unroutable\nconfirmed\n");
    rabbitmq::consumer from(o.consumer());
    CHECK(ids_of(receive(from, 4, true)) == "m0 m2 m3 m5");
}

TEST_CASE("rabbitmq: a publisher refuses what can never be sent, before it connects") {
    const auto now = vouch::time_point(vouch::duration(1'000'000));
    rabbitmq::publisher to(
        {.connection = {.host = "127.0.0.1", .port = 1}, .exchange = "none", .message_size_max = 100, .clock = [&] {
             return now;
         }});
    std::vector<vouch::message> sent{message("a", "t", std::string(101, 'x')),
                                     message("b"),
                                     message(""),
                                     message(std::string(256, 'i')),
                                     message("c", std::string(256, 't')),
                                     message("d", "t", std::string(90, 'x'))};
    sent[1].expires_at = now;
    sent[5].headers = {{"name", "value678"}};
    std::string all;
    for (const auto& one : to.publish(sent)) {
        all += text_of(one) + '\n';
    }
    CHECK(all == "refused message_too_large\nrefused expired\nrefused invalid_message\nrefused invalid_message\n"
                 "refused invalid_message\nrefused message_too_large\n");
    CHECK(to.publish({}).empty());
}

TEST_CASE("rabbitmq: a message expires in its queue") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    std::vector<vouch::message> sent{message("short"), message("long")};
    sent[0].expires_at = vouch::system_now() + 50ms;
    sent[1].expires_at = vouch::system_now() + 1h;
    CHECK(texts_of(to.publish(sent)) == "confirmed");
    std::this_thread::sleep_for(200ms);
    rabbitmq::consumer from(o.consumer());
    CHECK(ids_of(receive(from, 1, true)) == "long");
}

TEST_CASE("rabbitmq: the time that is left is at least a millisecond, and left out if RabbitMQ would refuse it") {
    const auto at = [](std::int64_t us) { return vouch::time_point(vouch::duration(us)); };
    auto m = message("m");
    CHECK_FALSE(rabbitmq::detail::expiration_of(m, at(0)));
    m.expires_at = at(1'000'001);
    CHECK(rabbitmq::detail::expiration_of(m, at(1'000'000)) == "1");
    CHECK(rabbitmq::detail::expiration_of(m, at(0)) == "1000");
    m.expires_at = at(4'294'967'295'000);
    CHECK(rabbitmq::detail::expiration_of(m, at(0)) == "4294967295");
    CHECK_FALSE(rabbitmq::detail::expiration_of(m, at(-1000)));
    m.expires_at = vouch::time_point::max();
    CHECK_FALSE(rabbitmq::detail::expiration_of(m, vouch::time_point::min()));
}

TEST_CASE("rabbitmq: a full queue rejects messages, which are unknown") {
    const orders o(3);
    rabbitmq::publisher to(o.publisher());
    // The broker notices that the queue is full a little later.
    std::string seen;
    for (int i = 0; i < 50 && seen != "unknown nacked"; ++i) {
        seen = texts_of(to.publish(messages(5)));
        CAPTURE(seen);
        CHECK((seen == "confirmed" || seen == "unknown nacked" || seen == "confirmed, unknown nacked"));
    }
    CHECK(seen == "unknown nacked");
    rabbitmq::consumer from(o.consumer());
    while (!receive(from, 1, true).empty() && seen != "confirmed") {
        seen = texts_of(to.publish(messages(1)));
    }
    CHECK(seen == "confirmed");
}

TEST_CASE("rabbitmq: without its exchange every message is unknown, and is confirmed once it exists") {
    rabbitmq::topology shape{.exchange = fresh("late"), .listeners = {{.queue = fresh("q"), .patterns = {"#"}}}};
    rabbitmq::publisher to({.connection = here(), .exchange = shape.exchange});
    CHECK(texts_of(to.publish(messages(3))) == "unknown no_exchange");
    CHECK(texts_of(to.publish(messages(300))) == "unknown no_exchange");
    rabbitmq::declare(here(), shape);
    CHECK(texts_of(to.publish(messages(3))) == "confirmed");
}

TEST_CASE("rabbitmq: a message larger than the broker allows is refused and stops no other") {
    const orders o;
    auto how = o.publisher();
    how.message_size_max = 64U * 1024U * 1024U;
    rabbitmq::publisher to(how);
    auto sent = messages(20);
    sent[7].payload = std::string(5'000'000, 'x'); // `broker run` allows 4000000
    const auto answers = to.publish(sent);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        CAPTURE(i);
        CHECK(text_of(answers[i]) == (i == 7 ? "refused message_too_large" : "confirmed"));
    }
    CHECK(texts_of(to.publish(messages(2))) == "confirmed");
}

TEST_CASE("rabbitmq: threads share a publisher") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    constexpr std::size_t each = 200;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&to] {
                for (std::size_t i = 0; i < each / 10; ++i) {
                    if (texts_of(to.publish(messages(10))) != "confirmed") {
                        std::abort();
                    }
                }
            });
        }
    }
    rabbitmq::consumer from(o.consumer());
    CHECK(receive(from, 4 * each, true).size() == 4 * each);
}

TEST_CASE("rabbitmq: a message that comes back is one that was sent, or the connection is of no use") {
    const auto sent = messages(2);
    std::vector<vouch::confirmation> answers(2);
    rabbitmq::detail::flight f(1, sent, answers, 2);
    f.sent(0);
    f.sent(1);
    CHECK_FALSE(f.returned("other", "order.paid"));
    CHECK_FALSE(f.returned("m1", "order.other"));
    CHECK(f.returned("m1", "order.paid"));
    CHECK_FALSE(f.returned("m1", "order.paid"));
    CHECK(f.returned("m0", "order.paid"));
    f.acknowledged(2, true);
    CHECK(texts_of(answers) == "refused unroutable");
}
