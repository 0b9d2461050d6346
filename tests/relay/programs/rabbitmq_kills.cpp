// SPDX-License-Identifier: MIT
// From one SQLite store through a real RabbitMQ broker into another, while processes are killed and connections are cut:
// the relay, the intake, the broker, every connection in the middle of what it sends. Each time every message must be in
// the other store exactly once, and the messages of each lane in order.
//
//   tests/rabbitmq/broker run rabbitmq_kills [MESSAGES [relay|intake|broker|cut]]
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <vouch/rabbitmq.hpp>

#include "relay/programs/cutting_port.hpp"
#include "relay/programs/roles.hpp"
#include "relay/programs/trial.hpp"

namespace {

using namespace std::chrono_literals;
using namespace relay_program;
using worker_program::child;
using worker_program::in_a_child;
using worker_program::shared_object;

const std::string url = std::getenv("VOUCH_RABBITMQ") == nullptr ? "" : std::getenv("VOUCH_RABBITMQ");
const std::string folder = url.empty() ? "" : std::getenv("VOUCH_RABBITMQ_FOLDER");

struct proxy {
    std::atomic<std::size_t> cuts = 0;
    std::atomic<std::size_t> bytes_most = 0;
    std::atomic<int> port = 0;
};

void broker(const std::string& what) {
    expect(std::system((std::string(VOUCH_BROKER) + ' ' + what + ' ' + folder + " >/dev/null").c_str()) == 0,
           "the broker obeys");
}

/// A trial with an exchange and a queue of its own. Clients connect to `port`; 0: to the broker.
void run(trial& t, int port, const harm& inflict) {
    vouch::rabbitmq::topology shape{.exchange = "shop." + t.name(),
                                    .listeners = {{.queue = "mailer." + t.name(), .patterns = {"order.#"}}}};
    shape.listeners.front().single_active_consumer = true;
    in_a_child([&] { vouch::rabbitmq::declare({.url = url}, shape); });
    const vouch::rabbitmq::connection_options connection{
        .url = url, .port = port, .connect_limit = 20s, .reconnect_wait_max = 200ms};
    t.run(
        [&] {
            vouch::rabbitmq::publisher to({.connection = connection, .exchange = shape.exchange, .confirm_limit = 5s});
            return t.relay_to(to);
        },
        [&] {
            vouch::rabbitmq::consumer from({.connection = connection, .queue = shape.listeners.front().queue});
            return t.take_from(from);
        },
        inflict);
}

/// Kills and restarts the broker a few times.
std::size_t crash_broker(std::size_t& left, bool is_new) {
    if (left == 0) {
        return 0;
    }
    left -= 1;
    // RabbitMQ 3.10 writes the name of a new quorum queue to the disk a moment after it has said that the queue exists. A
    // broker that dies before that begins the queue anew, and can neither fill nor empty it.
    std::this_thread::sleep_for(is_new ? 3s : 300ms);
    broker("kill");
    broker("start");
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    if (url.empty()) {
        std::fputs("usage: tests/rabbitmq/broker run rabbitmq_kills [MESSAGES [relay|intake|broker|cut]]\n", stderr);
        return 2;
    }
    const auto count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000UL;
    const std::string only = argc > 2 ? argv[2] : "";
    const auto wants = [&](std::string_view name) { return only.empty() || only == name; };
    if (wants("relay")) {
        trial t("relay", count);
        run(t, 0, killer(killer::victim::relay, t.all().sent, 5 + count / 30));
    }
    if (wants("intake")) {
        trial t("intake", count);
        run(t, 0, killer(killer::victim::intake, t.all().received, 5 + count / 30));
    }
    if (wants("cut")) {
        auto& p = shared_object<proxy>();
        const auto server = static_cast<int>(std::strtol(url.c_str() + url.rfind(':') + 1, nullptr, 10));
        const child between([&]() -> int {
            cutting_port port(server, p.cuts, p.bytes_most);
            p.port = port.port();
            port.run();
        });
        while (p.port == 0) {
            std::this_thread::sleep_for(5ms);
        }
        p.bytes_most = 60'000;
        std::size_t seen = 0;
        trial t("cut", count);
        run(t, p.port, [&](role&, role&) {
            const auto before = std::exchange(seen, p.cuts.load());
            return seen - before;
        });
    }
    if (wants("broker")) {
        const std::size_t crashes = count >= 10'000 ? 5 : 1;
        auto left = crashes;
        trial t("broker", count);
        run(t, 0, [&](role&, role&) { return crash_broker(left, left == crashes); });
    }
    std::printf("%s\n", worker_program::failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return worker_program::failures == 0 ? 0 : 1;
}
