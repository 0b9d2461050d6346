// SPDX-License-Identifier: MIT
// From one SQLite store through Kafka into another, while the relay or the intake is killed, or the brokers go down and
// up. Each time every message must be in the other store exactly once, and the messages of each lane in order. The
// brokers are librdkafka's mock cluster, in a process of its own: it speaks the protocol over sockets, and loses all if
// it is killed, so it is not.
//
//   relay_kafka_kills [MESSAGES [relay|intake|brokers]]
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <vouch/kafka.hpp>

#include "kafka/cluster.hpp"
#include "relay/programs/roles.hpp"
#include "relay/programs/trial.hpp"

namespace {

using namespace std::chrono_literals;
using namespace relay_program;
using worker_program::child;
using worker_program::shared_object;

constexpr std::array<const char*, 3> names{"relay", "intake", "brokers"};

/// The mock cluster, as other processes see it.
struct brokers {
    std::array<char, 256> servers{};
    std::atomic<bool> is_ready = false;
    std::atomic<bool> must_be_down = false;
    std::atomic<bool> is_down = false;
};

/// Runs the mock cluster until the process is killed.
[[noreturn]] int serve(brokers& shared) {
    const kafka_test::cluster cluster;
    for (const auto* const topic : names) {
        cluster.create(topic, 4);
    }
    const auto servers = cluster.servers();
    std::copy_n(servers.begin(), std::min(servers.size(), shared.servers.size() - 1), shared.servers.begin());
    shared.is_ready = true;
    for (;;) {
        if (const bool is_wanted = shared.must_be_down; is_wanted != shared.is_down) {
            is_wanted ? cluster.down() : cluster.up();
            shared.is_down = is_wanted;
        }
        std::this_thread::sleep_for(2ms);
    }
}

void set_down(brokers& all, bool is_down) {
    all.must_be_down = is_down;
    while (all.is_down != is_down) {
        std::this_thread::sleep_for(1ms);
    }
}

/// Stops the brokers for a moment each time up to `part` more messages are sent.
class stopper {
  public:
    stopper(brokers& of, const std::atomic<std::size_t>& sent, std::size_t part)
        : of_(of), sent_(sent), part_(std::max<std::size_t>(part, 1)) {}
    std::size_t operator()(role&, role&) {
        if (sent_ < next_) {
            return 0;
        }
        set_down(of_, true);
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + random_() % 500));
        set_down(of_, false);
        next_ = sent_ + 1 + random_() % part_;
        return 1;
    }

  private:
    brokers& of_;
    const std::atomic<std::size_t>& sent_;
    std::size_t part_;
    std::mt19937 random_{3};
    std::size_t next_ = 1;
};

void run(trial& t, const std::string& servers, const harm& inflict) {
    auto receiving = kafka_test::receiving(servers);
    receiving.group = "mailer." + t.name();
    receiving.topics = {t.name()};
    t.run(
        [&] {
            vouch::kafka::publisher to({.bootstrap_servers = servers, .default_topic = t.name(), .publish_limit = 5s});
            return t.relay_to(to);
        },
        [&] {
            vouch::kafka::consumer from(receiving);
            return t.take_from(from);
        },
        inflict);
}

} // namespace

int main(int argc, char** argv) {
    const auto count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000UL;
    const std::string only = argc > 2 ? argv[2] : "";
    auto& cluster = shared_object<brokers>();
    const child serving([&] { return serve(cluster); }); // first: this process has no threads and no client
    while (!cluster.is_ready) {
        std::this_thread::sleep_for(5ms);
    }
    const std::string servers(cluster.servers.data());
    const auto wants = [&](std::string_view name) { return only.empty() || only == name; };
    if (wants("relay")) {
        trial t("relay", count);
        run(t, servers, killer(killer::victim::relay, t.all().sent, 3 + count / 1000));
    }
    if (wants("intake")) {
        trial t("intake", count);
        run(t, servers, killer(killer::victim::intake, t.all().received, 2 + count / 2000));
    }
    if (wants("brokers")) {
        trial t("brokers", count);
        run(t, servers, stopper(cluster, t.all().sent, count / 6));
    }
    std::printf("%s\n", worker_program::failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return worker_program::failures == 0 ? 0 : 1;
}
