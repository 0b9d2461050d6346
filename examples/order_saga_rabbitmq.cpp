// SPDX-License-Identifier: MIT
// An order saga whose participants are another service: two processes, four stores, and RabbitMQ between them.
//
// `examples/run rabbitmq` starts a broker for it. With a broker of yours: order_saga_rabbitmq URL. It declares the exchange
// vouch.example.saga and a queue for each participant and for the replies.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/rabbitmq.hpp>
#include <vouch/relay_saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

namespace {

using namespace std::chrono_literals;
using vouch::sqlite::store;

/// Each step is a command to a participant. If one fails, the steps before it are undone in reverse.
const auto order_saga =
    vouch::define_saga<std::string>("order")
        .command("inventory", {.queue = "inventory", .topic = "inventory.reserve", .undo = "inventory.release"})
        .command("payment", {.queue = "payment", .topic = "payment.charge", .undo = "payment.refund"})
        .command("shipping", {.queue = "shipping", .topic = "shipping.schedule", .undo = "shipping.cancel"})
        .build();

/// One queue for each participant's commands, and one for the replies, as the definition says.
[[nodiscard]] vouch::rabbitmq::topology topology() {
    vouch::rabbitmq::topology out{.exchange = "vouch.example.saga"};
    for (const auto& channel : vouch::channels_of(order_saga)) {
        out.listeners.push_back({.queue = "vouch.example." + channel.name, .patterns = channel.topics});
    }
    return out;
}

/// What a service needs: a store, and a way to and from the broker. `queue` is where messages are stored.
class service {
  public:
    service(const std::string& path, const std::string& url, const std::string& channel, vouch::intake_options taken)
        : stored(path), outbox(stored), publisher({.connection = {.url = url}, .exchange = topology().exchange}),
          consumer_({.connection = {.url = url}, .queue = "vouch.example." + channel}),
          intake_(consumer_, outbox, std::move(taken)) {}

    /// Stores messages until a stop is requested.
    [[nodiscard]] std::jthread take_in() {
        return std::jthread([this](const std::stop_token& stop) { intake_.run(stop); });
    }

    store stored;
    vouch::outbox<store> outbox;
    vouch::rabbitmq::publisher publisher;

  private:
    vouch::rabbitmq::consumer consumer_;
    vouch::intake<vouch::rabbitmq::consumer, store> intake_;
};

/// A participant: does what a command says, or rejects it, and replies.
void run_participant(const std::string& folder, const std::string& url, const std::string& name,
                     const std::string& rejects, const std::stop_token& stop) {
    service self(folder + '/' + name + ".db", url, name,
                 {.source = "orders", .queue = "commands", .wait = 100ms, .map = vouch::command_emission_of});
    vouch::router commands(self.outbox);
    commands.on("#", vouch::participant(self.outbox, [&](vouch::delivery& d) {
                    const bool is_rejected = d.payload() == rejects && !vouch::command_of(d.entry())->is_compensation;
                    std::printf("  %-18s %s\n", d.topic().c_str(), is_rejected ? "rejected" : "done");
                    std::fflush(stdout);
                    if (is_rejected) {
                        throw vouch::reject("declined");
                    }
                    return name + " done";
                }));
    vouch::router replies(self.outbox);
    replies.on(vouch::relay(self.publisher));
    vouch::worker worker(self.outbox);
    worker.serve(commands, {.queue = "commands"});
    worker.serve(replies, {.queue = "replies"});
    const auto intake = self.take_in();
    worker.run(stop);
}

/// Order 2 cannot be paid, order 3 cannot be shipped.
void run_participants(const std::string& folder, const std::string& url) {
    const vouch::stop_signals signals;
    const auto stop = signals.token();
    const std::jthread inventory([&] { run_participant(folder, url, "inventory", "", stop); });
    const std::jthread payment([&] { run_participant(folder, url, "payment", "order 2", stop); });
    run_participant(folder, url, "shipping", "order 3", stop);
}

/// Runs the sagas of three orders, one after the other.
void run_orders(const std::string& folder, const std::string& url) {
    service self(folder + "/orders.db", url, "replies", {.source = "participants", .queue = "replies", .wait = 100ms});
    vouch::router sagas(self.outbox);
    sagas.on(order_saga);
    vouch::router commands(self.outbox);
    commands.on(vouch::command_relay(self.publisher));
    vouch::router replies(self.outbox);
    replies.on(vouch::reply_handler(self.outbox));

    vouch::worker worker(self.outbox);
    worker.serve(sagas, {.queue = "orders"});
    worker.serve(replies, {.queue = "replies"});
    for (const auto* const participant : {"inventory", "payment", "shipping"}) {
        worker.serve(commands, {.queue = participant});
    }
    const auto intake = self.take_in();
    std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });

    for (const auto* const order : {"order 1", "order 2", "order 3"}) {
        std::printf("%s\n", order);
        std::fflush(stdout);
        const auto id = self.outbox.start(order_saga, "orders", std::string(order));
        while (vouch::is_live(self.stored.find(id)->state)) {
            std::this_thread::sleep_for(10ms);
        }
        std::printf("  %s\n", to_string(*vouch::inspect(self.stored, id)).c_str());
    }
}

template <class Work>
[[nodiscard]] pid_t start(Work&& work) {
    std::fflush(stdout);
    const auto child = fork();
    if (child == 0) {
        work();
        std::fflush(stdout);
        std::_Exit(0);
    }
    return child;
}

} // namespace

int main(int argc, char** argv) {
    const char* const broker = argc > 1 ? argv[1] : std::getenv("VOUCH_RABBITMQ");
    if (broker == nullptr) {
        std::fputs("usage: order_saga_rabbitmq URL; or `examples/run rabbitmq`, which starts a broker\n", stderr);
        return 2;
    }
    const std::string url = broker;
    std::string folder = (std::filesystem::temp_directory_path() / "vouch-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        return 1;
    }
    vouch::rabbitmq::declare({.url = url}, topology());

    const auto participants = start([&] { run_participants(folder, url); });
    const auto orders = start([&] { run_orders(folder, url); });
    waitpid(orders, nullptr, 0);
    kill(participants, SIGTERM);
    waitpid(participants, nullptr, 0);
    std::filesystem::remove_all(folder);
}
