// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proxy.hpp"
#include "server.hpp"

using namespace rabbitmq_test;
namespace rabbitmq = vouch::rabbitmq;

namespace {

[[nodiscard]] rabbitmq::connection_options through(const proxy& network) {
    auto out = here();
    out.port = network.port();
    out.reconnect_wait_min = 1ms;
    out.reconnect_wait_max = 20ms;
    return out;
}

/// Publishes each message until it is confirmed, as a relay does. The number of calls is bounded.
void publish_until_confirmed(rabbitmq::publisher& to, std::vector<vouch::message> left) {
    const auto end = std::chrono::steady_clock::now() + 240s; // a broker on a busy machine restarts slowly
    std::string last;
    while (!left.empty() && std::chrono::steady_clock::now() < end) {
        std::vector<vouch::message> again;
        try {
            const auto answers = to.publish(left);
            for (std::size_t i = 0; i < answers.size(); ++i) {
                if (answers[i].what == vouch::confirmation::kind::unknown) {
                    again.push_back(left[i]);
                } else {
                    REQUIRE(text_of(answers[i]) == "confirmed");
                }
            }
            left = again;
            last = texts_of(answers);
        } catch (const vouch::error& e) {
            REQUIRE(e.is_transient());
            last = e.what();
        }
    }
    CAPTURE(last);
    REQUIRE(left.empty());
}

} // namespace

TEST_CASE("rabbitmq: a connection that is cut after any number of bytes loses no message that was confirmed") {
    const orders o;
    proxy network(number_in("port"));
    constexpr std::size_t count = 40;
    const auto batch = [](const std::string& name) {
        auto out = messages(count, "order.paid", 50);
        for (auto& one : out) {
            one.id = name + one.id;
            one.lane = name;
        }
        return out;
    };
    const auto connect = [&] {
        auto out = std::make_unique<rabbitmq::publisher>(
            rabbitmq::publisher_options{.connection = through(network), .exchange = o.shape.exchange});
        REQUIRE(texts_of(out->publish(std::vector{message("first")})) == "confirmed");
        return out;
    };
    auto to = connect();
    const auto before = network.bytes_from_client();
    REQUIRE(texts_of(to->publish(batch("000"))) == "confirmed");
    const auto whole = network.bytes_from_client() - before;

    std::size_t cuts = 0;
    for (std::size_t n = 1; n < whole + 40; n += 191, ++cuts) {
        CAPTURE(n);
        to.reset();
        to = connect();
        const auto sent = batch(std::to_string(n) + '.');
        network.cut_after(n);
        const auto answers = to->publish(sent);
        network.cut_after(proxy::never);
        const auto texts = texts_of(answers);
        CHECK((texts == "confirmed" || texts == "unknown connection_lost" ||
               texts == "confirmed, unknown connection_lost"));
        CHECK((n >= whole || texts != "confirmed"));
        std::vector<vouch::message> left;
        for (std::size_t i = 0; i < count; ++i) {
            if (text_of(answers[i]) != "confirmed") {
                left.push_back(sent[i]);
            }
        }
        publish_until_confirmed(*to, left);
    }
    CHECK(cuts > 30);

    // Every message is there, and each lane in order if repetitions are left out.
    rabbitmq::consumer from(o.consumer());
    std::map<std::string, std::vector<std::string>> lanes;
    std::set<std::string> seen;
    for (auto some = from.receive(100, 5s, {}); !some.empty(); some = from.receive(100, 500ms, {})) {
        for (const auto& one : some) {
            if (one.message.id != "first" && seen.insert(one.message.id).second) {
                lanes[one.message.lane].push_back(one.message.id);
            }
        }
        from.acknowledge(some);
    }
    CHECK(lanes.size() == cuts + 1);
    for (const auto& [lane, found] : lanes) {
        CAPTURE(lane);
        std::vector<std::string> expected;
        for (const auto& one : batch(lane)) {
            expected.push_back(one.id);
        }
        CHECK(found == expected);
    }
}

TEST_CASE("rabbitmq: a connection that is cut while it is made is made again") {
    const orders o;
    proxy network(number_in("port"));
    for (std::size_t n = 1; n < 600; n += 61) {
        CAPTURE(n);
        network.cut_after(n);
        rabbitmq::publisher to({.connection = through(network), .exchange = o.shape.exchange});
        const auto e = error_of([&] {
            if (text_of(to.publish(messages(1))[0]) == "unknown connection_lost") {
                throw vouch::error(vouch::error_kind::io, "rabbitmq: connect: lost after it was made");
            }
        });
        expect_sentence(e, vouch::error_kind::io, "");
        network.cut_after(proxy::never);
        CHECK(texts_of(to.publish(messages(1))) == "confirmed");
    }
}

TEST_CASE("rabbitmq: a publisher whose idle connection has died connects again and sends") {
    const orders o;
    proxy network(number_in("port"));
    rabbitmq::publisher to({.connection = through(network), .exchange = o.shape.exchange});
    for (int i = 0; i < 5; ++i) {
        REQUIRE(texts_of(to.publish(messages(1))) == "confirmed");
        network.cut();
        std::this_thread::sleep_for(50ms);
    }
    CHECK(network.connections() == 5);
}

TEST_CASE("rabbitmq: a network that swallows everything ends in a time-out, and the next call connects again") {
    const orders o;
    proxy network(number_in("port"));
    rabbitmq::publisher to({.connection = through(network), .exchange = o.shape.exchange, .confirm_limit = 300ms});
    REQUIRE(texts_of(to.publish(messages(1))) == "confirmed");
    network.be_silent(true);
    const auto start = std::chrono::steady_clock::now();
    CHECK(texts_of(to.publish(messages(3))) == "unknown confirm_timeout");
    network.be_silent(false);
    network.cut();
    REQUIRE(texts_of(to.publish(messages(1))) == "confirmed");
    network.be_silent(true);
    // More than the buffers of the sockets hold: the time-out also ends a call that waits for room.
    CHECK(texts_of(to.publish(messages(40, "order.paid", 1'000'000))) == "unknown confirm_timeout");
    CHECK(std::chrono::steady_clock::now() - start < 60s);
    network.be_silent(false);
    network.cut();
    CHECK(texts_of(to.publish(messages(1))) == "confirmed");
}

TEST_CASE("rabbitmq: a broker that is silent for two heartbeats is lost to its consumer") {
    const orders o;
    proxy network(number_in("port"));
    auto options = through(network);
    options.heartbeat = 1s;
    rabbitmq::consumer from({.connection = options, .queue = o.queue()});
    CHECK(from.receive(1, 2500ms, {}).empty()); // heartbeats keep it alive
    CHECK(network.connections() == 1);
    network.be_silent(true);
    expect_sentence(error_of([&] { static_cast<void>(from.receive(1, 60s, {})); }), vouch::error_kind::io, "was lost");
    network.be_silent(false);
    network.cut();
    CHECK(from.receive(1, 100ms, {}).empty());
}

TEST_CASE("rabbitmq: what a consumer acknowledges after its connection was lost has no effect") {
    const orders o;
    {
        rabbitmq::publisher to(o.publisher());
        REQUIRE(texts_of(to.publish(messages(3))) == "confirmed");
    }
    proxy network(number_in("port"));
    rabbitmq::consumer from({.connection = through(network), .queue = o.queue()});
    const auto old = receive(from, 2);
    REQUIRE(ids_of(old) == "m0 m1");
    network.cut();
    expect_sentence(error_of([&] { static_cast<void>(receive(from, 5)); }), vouch::error_kind::io, "was lost");
    const auto again = receive(from, 3);
    CHECK(ids_of(again) == "m0 m1 m2");
    CHECK(again[0].is_redelivered);
    from.acknowledge(old);
    from.give_back(old);
    from.set_aside(old);
    const auto before = network.bytes_from_client();
    from.acknowledge(std::vector{again[0], again[2]});
    // An acknowledgement is not answered; one that is lost on the way has no effect either.
    constexpr std::size_t two_acknowledgements = 42;
    for (int i = 0; i < 1000 && network.bytes_from_client() < before + two_acknowledgements; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    network.cut();
    CHECK(error_of([&] { static_cast<void>(receive(from, 5)); }));
    const auto last = receive(from, 1);
    CHECK(ids_of(last) == "m1");
    network.cut();
    std::this_thread::sleep_for(50ms);
    from.acknowledge(last); // no error
    from.give_back(last);
    from.cancel();
}

TEST_CASE("rabbitmq: a broker that is killed while it works keeps what it confirmed, and clients connect again") {
    const orders o;
    rabbitmq::publisher to(o.publisher());
    rabbitmq::consumer from(o.consumer());
    REQUIRE(texts_of(to.publish(messages(5))) == "confirmed");
    REQUIRE(receive(from, 1).size() == 1);
    std::size_t sent = 5;
    std::atomic<int> problems = 0; // checks are for one thread
    std::atomic<bool> is_back = false;
    {
        const std::jthread operations([&] {
            // A quorum queue of RabbitMQ 3.10 whose broker is killed half a second after its creation does not recover.
            std::this_thread::sleep_for(5s);
            problems += run_broker("kill");
            problems += run_broker("start");
            is_back = true;
        });
        bool is_last = false;
        while (!is_last) {
            is_last = is_back;
            auto some = messages(100);
            for (auto& one : some) {
                one.id = 'b' + std::to_string(sent) + one.id;
            }
            publish_until_confirmed(to, some);
            sent += some.size();
            std::this_thread::sleep_for(10ms);
        }
    }
    CHECK(problems == 0);
    expect_sentence(error_of([&] { static_cast<void>(receive(from, sent)); }), vouch::error_kind::io, "lost");
    std::set<std::string> seen;
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (seen.size() < sent && std::chrono::steady_clock::now() < end) {
        const auto some = from.receive(100, 1s, {});
        for (const auto& one : some) {
            seen.insert(one.message.id);
        }
        from.acknowledge(some);
    }
    CHECK(seen.size() == sent);
}

TEST_CASE("rabbitmq: a broker without memory blocks publishers, which time out") {
    const orders o;
    auto how = o.publisher();
    how.confirm_limit = 500ms;
    rabbitmq::publisher to(how);
    REQUIRE(texts_of(to.publish(messages(1))) == "confirmed");
    broker("ctl", "set_vm_memory_high_watermark absolute 1MB");
    // The broker says so to those who publish.
    std::string seen = texts_of(to.publish(messages(1)));
    for (int i = 0; i < 20 && seen == "confirmed"; ++i) {
        std::this_thread::sleep_for(100ms);
        seen = texts_of(to.publish(messages(1)));
    }
    CHECK(seen == "unknown broker_blocked");
    CHECK(texts_of(to.publish(messages(40, "order.paid", 1'000'000))) == "unknown broker_blocked");
    broker("ctl", "set_vm_memory_high_watermark absolute 1GB");
    for (int i = 0; i < 20 && seen != "confirmed"; ++i) {
        seen = texts_of(to.publish(messages(1)));
    }
    CHECK(seen == "confirmed");
}

TEST_CASE("rabbitmq: connecting fails with one clear sentence") {
    const auto publish = [](const rabbitmq::connection_options& to) {
        return error_of([&] {
            rabbitmq::publisher p({.connection = to, .exchange = "none"});
            static_cast<void>(p.publish(messages(1)));
        });
    };
    auto wrong = here();
    wrong.password = "hunter2";
    expect_sentence(publish(wrong), vouch::error_kind::invalid_argument,
                    "the broker does not accept user guest with this password");
    wrong = here();
    wrong.vhost = "nowhere";
    expect_sentence(publish(wrong), vouch::error_kind::invalid_argument,
                    "vhost nowhere: the virtual host does not exist");
    wrong = here();
    wrong.port = 1;
    expect_sentence(publish(wrong), vouch::error_kind::io, "port 1: no broker answers there");
    wrong.host = "no-such-host.invalid";
    expect_sentence(publish(wrong), vouch::error_kind::io, "the host name has no address");
    wrong = here();
    wrong.port = number_in("tls_port");
    expect_sentence(publish(wrong), vouch::error_kind::io, "amqps://");
    proxy network(number_in("port"));
    network.be_silent(true);
    wrong = through(network);
    wrong.connect_limit = 200ms;
    expect_sentence(publish(wrong), vouch::error_kind::io, "did not answer within connect_limit");
    rabbitmq::consumer from({.connection = wrong, .queue = "none"});
    expect_sentence(error_of([&] { static_cast<void>(from.receive(1, 1s, {})); }), vouch::error_kind::io,
                    "connect_limit");
}

TEST_CASE("rabbitmq: the waits between attempts to connect double up to their limit") {
    rabbitmq::detail::back_off waits{
        rabbitmq::detail::target({.reconnect_wait_min = 10ms, .reconnect_wait_max = 35ms})};
    const auto wait = [&] {
        const auto now = std::chrono::steady_clock::now();
        waits.failed();
        return waits.not_before() - now;
    };
    CHECK(waits.not_before() < std::chrono::steady_clock::now());
    for (const auto least : {10ms, 20ms, 35ms, 35ms}) {
        const auto is = wait();
        CHECK(is >= least);
        CHECK(is < least + 10s);
    }
    waits.worked();
    CHECK(waits.not_before() < std::chrono::steady_clock::now());
}

TEST_CASE("rabbitmq: TLS checks who the broker is") {
    const orders o;
    const auto tls = folder() + "/tls/";
    rabbitmq::connection_options secure{.url = "amqps://guest:guest@localhost:" + std::to_string(number_in("tls_port")),
                                        .tls = {.ca_file = tls + "ca.pem"},
                                        .connect_limit = 20s};
    const auto publish = [&](const rabbitmq::connection_options& to) {
        rabbitmq::publisher p({.connection = to, .exchange = o.shape.exchange});
        auto sent = messages(20);
        sent[1].payload = std::string(500'000, 'x');
        return texts_of(p.publish(sent));
    };
    CHECK(publish(secure) == "confirmed");
    secure.tls.certificate_file = tls + "client.pem";
    secure.tls.key_file = tls + "client.key";
    CHECK(publish(secure) == "confirmed");
    {
        rabbitmq::consumer from({.connection = secure, .queue = o.queue()});
        CHECK(receive(from, 40, true).size() == 40);
    }
    auto other = secure;
    other.tls.ca_file = tls + "client.pem";
    const auto e = error_of([&] { static_cast<void>(publish(other)); });
    REQUIRE(e);
    CAPTURE(std::string(e->what()));
    CHECK(std::string(e->what()).find("tls.ca_file") != std::string::npos);
    other = secure;
    other.host = "127.0.0.1"; // the certificate is for localhost
    expect_sentence(error_of([&] { static_cast<void>(publish(other)); }), vouch::error_kind::invalid_argument,
                    "the broker's certificate is for another host");
    other.tls.verify_host = false;
    CHECK(publish(other) == "confirmed");
    other = secure;
    other.tls.ca_file = tls + "nothing.pem";
    expect_sentence(error_of([&] { static_cast<void>(publish(other)); }), vouch::error_kind::invalid_argument,
                    "cannot be read");
    other = secure;
    other.tls.key_file = tls + "localhost.key";
    expect_sentence(error_of([&] { static_cast<void>(publish(other)); }), vouch::error_kind::invalid_argument,
                    "do not belong together");
}
