// SPDX-License-Identifier: MIT
// From the shop's store through RabbitMQ into the mailer's store: processes are killed, and each mail is sent once.
//
// `examples/run rabbitmq` starts a broker for it. With a broker of yours: relay_rabbitmq URL. It declares the exchange
// vouch.example and the queue vouch.example.mailer.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/rabbitmq.hpp>
#include <vouch/relay.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace {

using namespace std::chrono_literals;

/// One topic exchange; the mailer listens to orders.
const vouch::rabbitmq::topology topology{.exchange = "vouch.example",
                                         .listeners = {{.queue = "vouch.example.mailer", .patterns = {"order.#"}}}};

void place_orders(const std::string& path) {
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    for (const char* const number : {"1", "2", "3"}) {
        outbox.emit({.queue = "outgoing", .topic = "order.placed", .payload = number});
        std::printf("  order %s: placed\n", number);
    }
}

/// A publisher whose process dies after the broker has confirmed a message, and before the store knows.
class dying_publisher {
  public:
    dying_publisher(vouch::rabbitmq::publisher& to, std::string dies_over)
        : to_(to), dies_over_(std::move(dies_over)) {}

    std::vector<vouch::confirmation> publish(std::span<const vouch::message> messages) {
        auto out = to_.publish(messages);
        for (const auto& m : messages) {
            std::printf("  order %s: published\n", m.payload.c_str());
            if (m.payload == dies_over_) {
                std::printf("  order %s: killed before it was settled\n", m.payload.c_str());
                std::fflush(stdout);
                std::raise(SIGKILL);
            }
        }
        return out;
    }

  private:
    vouch::rabbitmq::publisher& to_;
    std::string dies_over_;
};

void run_relay(const std::string& path, const std::string& url, const std::string& dies_over = "") {
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    vouch::rabbitmq::publisher broker({.connection = {.url = url}, .exchange = topology.exchange});
    dying_publisher publisher(broker, dies_over);
    vouch::router router(outbox);
    router.on(vouch::relay(publisher, {.size_max = 1})); // one at a time, so that the output is always the same
    vouch::runner runner(outbox, router, {.queue = "outgoing", .batch_size = 1, .lease = 1s});
    while (store.counts("outgoing").live() > 0) {
        if (runner.run_until_idle().claimed == 0) {
            usleep(20'000); // the lease of the killed relay is still running
        }
    }
}

/// Stores what has arrived: four messages, because one was published twice.
void run_intake(const std::string& path, const std::string& url) {
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    vouch::rabbitmq::consumer broker({.connection = {.url = url}, .queue = topology.listeners.front().queue});
    vouch::intake intake(broker, outbox, {.source = "shop", .queue = "mail"});
    vouch::intake_report total;
    while (total.received < 4) {
        total += intake.run_once();
    }
    std::printf("  %zu messages received, %zu stored, %zu copies dropped\n", total.received, total.stored,
                total.duplicates);
}

void run_mailer(const std::string& path) {
    vouch::sqlite::store store(path);
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("order.placed", [](vouch::delivery& d) { std::printf("  order %s: mail sent\n", d.payload().c_str()); });
    vouch::runner(outbox, router, {.queue = "mail"}).run_until_idle();
}

/// Runs `work` in a child process.
template <class Work>
void in_a_process(const char* what, Work&& work) {
    std::printf("%s\n", what);
    std::fflush(stdout);
    if (const auto child = fork(); child == 0) {
        work();
        std::fflush(stdout);
        std::_Exit(0);
    } else {
        waitpid(child, nullptr, 0);
    }
}

} // namespace

int main(int argc, char** argv) {
    const char* const broker = argc > 1 ? argv[1] : std::getenv("VOUCH_RABBITMQ");
    if (broker == nullptr) {
        std::fputs("usage: relay_rabbitmq URL; or `examples/run rabbitmq`, which starts a broker\n", stderr);
        return 2;
    }
    const std::string url = broker;
    std::string folder = (std::filesystem::temp_directory_path() / "vouch-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        return 1;
    }
    const auto shop = folder + "/shop.db";
    const auto mailer = folder + "/mailer.db";

    // For development. In production an operator creates these; `verify` checks them.
    vouch::rabbitmq::declare({.url = url}, topology);

    in_a_process("the shop takes orders", [&] { place_orders(shop); });
    in_a_process("the relay is killed at order 2", [&] { run_relay(shop, url, "2"); });
    in_a_process("the relay is started again, and publishes order 2 again under the same id",
                 [&] { run_relay(shop, url); });
    in_a_process("the mailer takes the messages into its own store", [&] { run_intake(mailer, url); });
    in_a_process("the mailer sends mails", [&] { run_mailer(mailer); });
    std::filesystem::remove_all(folder);
}
