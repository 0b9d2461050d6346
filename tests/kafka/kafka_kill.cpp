// SPDX-License-Identifier: MIT
// A consumer whose process is killed. The process is forked before the cluster is made, while there is one thread.
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/kafka.hpp>

#include "catch.hpp"
#include "kafka/cluster.hpp"

namespace kafka_kill_test {

using namespace std::chrono_literals;

struct channel {
    channel() { REQUIRE(::pipe(ends.data()) == 0); }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() {
        close(0);
        close(1);
    }
    /// 0 is the end to read from, 1 the one to write to.
    void close(std::size_t end) {
        if (ends.at(end) >= 0) {
            ::close(std::exchange(ends.at(end), -1));
        }
    }
    void write(const std::string& line) const {
        const auto text = line + "\n";
        REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    /// Up to the next line end.
    [[nodiscard]] std::string read() const {
        std::string out;
        for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) {
            out += c;
        }
        return out;
    }
    std::array<int, 2> ends{};
};

/// Receives five messages, acknowledges three, and waits for its end.
[[noreturn]] void consume(const channel& servers, const channel& answers) {
    vouch::kafka::consumer consumer(kafka_test::receiving(servers.read()));
    const auto some = kafka_test::receive(consumer, 5);
    consumer.acknowledge(std::span(some).first(3));
    answers.write(std::to_string(some.size()));
    while (true) {
        (void)consumer.receive(1, 1h, {}); // more messages arrive and are not acknowledged
    }
}

TEST_CASE("kafka kill: what a killed consumer has not acknowledged is delivered again") {
    channel servers;
    channel answers;
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        answers.close(0);
        try {
            consume(servers, answers);
        } catch (...) {
            ::_exit(1); // the parent misses the answer
        }
    }
    answers.close(1); // if the child ends, so does `read`
    const kafka_test::cluster at;
    at.create("orders", 1);
    {
        vouch::kafka::publisher publisher(kafka_test::sending(at));
        std::vector<vouch::message> all;
        for (int i = 1; i <= 10; ++i) {
            all.push_back(kafka_test::message_of(i, "lane"));
        }
        (void)publisher.publish(all);
    }
    servers.write(at.servers());
    CHECK(answers.read() == "5");
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));

    vouch::kafka::consumer next(kafka_test::receiving(at.servers()));
    const auto again = kafka_test::receive(next, 7);
    CHECK(kafka_test::ids_of(again) == std::vector<std::string>{"m4", "m5", "m6", "m7", "m8", "m9", "m10"});
}

} // namespace kafka_kill_test
