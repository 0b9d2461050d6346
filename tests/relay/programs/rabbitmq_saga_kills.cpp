// SPDX-License-Identifier: MIT
// Sagas of one process with participants in another, through a real RabbitMQ broker, while first the one and then the other
// is killed again and again. Every saga must end: completed with all its effects, or compensated with none.
//
//   tests/rabbitmq/broker run relay_rabbitmq_saga_kills [SAGAS]
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/rabbitmq.hpp>
#include <vouch/relay_saga.hpp>

#include "relay/programs/roles.hpp"
#include "sqlite/folder.hpp"

namespace {

using namespace std::chrono_literals;
using namespace relay_program;
using worker_program::child;
using worker_program::in_a_child;
using worker_program::shared_object;

constexpr std::size_t sagas_most = 1000;
const std::array<std::string, 3> participants{"inventory", "payment", "shipping"};

/// What the participants have done, in memory that outlives them.
struct effects {
    std::array<std::array<std::atomic<int>, 3>, sagas_most> of{}; ///< by saga and step: 1 if it is done and not undone
    std::atomic<std::size_t> calls = 0;
};

const auto order_saga =
    vouch::define_saga<std::string>("order")
        .command("inventory", {.queue = "inventory", .topic = "inventory.reserve", .undo = "inventory.release"})
        .command("payment", {.queue = "payment", .topic = "payment.charge", .undo = "payment.refund"})
        .command("shipping", {.queue = "shipping", .topic = "shipping.schedule", .undo = "shipping.cancel"})
        .build();

[[nodiscard]] vouch::rabbitmq::topology topology() {
    vouch::rabbitmq::topology out{.exchange = "sagas"};
    for (const auto& channel : vouch::channels_of(order_saga)) {
        out.listeners.push_back({.queue = "sagas." + channel.name, .patterns = channel.topics});
    }
    return out;
}

/// One service: a store, a way out and a way in.
struct service {
    service(const std::string& path, const std::string& url, const std::string& channel, vouch::intake_options how)
        : stored(path), outbox(stored), publisher({.connection = {.url = url}, .exchange = "sagas"}),
          consumer({.connection = {.url = url}, .queue = "sagas." + channel}),
          intake(consumer, outbox, std::move(how)) {}

    store stored;
    vouch::outbox<store> outbox;
    vouch::rabbitmq::publisher publisher;
    vouch::rabbitmq::consumer consumer;
    vouch::intake<vouch::rabbitmq::consumer, store> intake;
    std::jthread taking{};
    void take_in() {
        taking = std::jthread([this](const std::stop_token& stop) { intake.run(stop); });
    }
};

/// Of four sagas two complete; one is rejected at its second step; one fails at its third step after an effect.
std::string act(const vouch::delivery& d, std::size_t step, effects& done) {
    done.calls += 1;
    const auto command = *vouch::command_of(d.entry());
    const auto text =
        command.is_compensation ? vouch::codec<vouch::compensation>::decode(d.payload()).context : d.payload();
    const auto saga = static_cast<std::size_t>(std::stoul(text));
    if (command.is_compensation) {
        done.of.at(saga).at(step) = 0;
        return "undone";
    }
    if (saga % 4 == 1 && step == 1) {
        throw vouch::reject("declined");
    }
    done.of.at(saga).at(step) = 1;
    if (saga % 4 == 3 && step == 2) {
        throw vouch::failure("unavailable");
    }
    return "done";
}

int run_participants(const sqlite_test::folder& files, const std::string& url, effects& done) {
    std::vector<std::jthread> running;
    for (std::size_t step = 0; step < participants.size(); ++step) {
        running.emplace_back([&, step](const std::stop_token& stop) {
            const auto& name = participants.at(step);
            service self(files.file(name + ".db"), url, name,
                         {.source = "orders", .queue = "commands", .wait = 100ms, .map = vouch::command_emission_of});
            vouch::router commands(self.outbox);
            commands.on("#", vouch::participant(self.outbox, [&](vouch::delivery& d) { return act(d, step, done); }),
                        {.backoff = vouch::fixed{50ms}, .attempts_max = 2});
            vouch::router replies(self.outbox);
            replies.on(vouch::relay(self.publisher));
            vouch::worker worker(self.outbox, {.log = vouch::log_level::off});
            worker.serve(commands, {.queue = "commands", .lease = 1s});
            worker.serve(replies, {.queue = "replies", .lease = 1s});
            self.take_in();
            worker.run(stop);
        });
    }
    for (;;) {
        std::this_thread::sleep_for(1h);
    }
}

/// Returns 0 when every saga has ended.
int run_orders(const sqlite_test::folder& files, const std::string& url) {
    service self(files.file("orders.db"), url, "replies",
                 {.source = "participants", .queue = "replies", .wait = 100ms});
    vouch::router sagas(self.outbox);
    sagas.on(order_saga);
    vouch::router commands(self.outbox);
    commands.on(vouch::command_relay(self.publisher));
    vouch::router replies(self.outbox);
    replies.on(vouch::reply_handler(self.outbox));
    vouch::worker worker(self.outbox, {.log = vouch::log_level::off});
    worker.serve(sagas, {.queue = "orders", .lease = 1s});
    worker.serve(replies, {.queue = "replies", .lease = 1s});
    for (const auto& participant : participants) {
        worker.serve(commands, {.queue = participant, .lease = 1s});
    }
    self.take_in();
    std::stop_source stop;
    const std::jthread watch([&] {
        while (self.stored.counts("orders").live() > 0) {
            std::this_thread::sleep_for(20ms);
        }
        stop.request_stop();
    });
    worker.run(stop.get_token());
    return 0;
}

void start_sagas(const sqlite_test::folder& files, std::size_t count) {
    store s(files.file("orders.db"));
    const vouch::outbox outbox(s);
    for (std::size_t n = 0; n < count; ++n) {
        outbox.start(order_saga, "orders", std::to_string(n));
    }
}

void compare(const sqlite_test::folder& files, std::size_t count, const effects& done) {
    const store s(files.file("orders.db"));
    auto page = vouch::query::all("orders");
    page.limit = sagas_most;
    page.payloads = true;
    std::size_t completed = 0;
    std::size_t compensated = 0;
    for (const auto& e : s.list(page)) {
        const auto status = vouch::inspect(e);
        const auto& of = done.of.at(static_cast<std::size_t>(std::stoul(e.payload)));
        const auto effects = of[0] + of[1] + of[2];
        if (status && status->is_completed()) {
            completed += 1;
            expect(effects == 3, "a completed saga has all its effects");
        } else {
            compensated += 1;
            expect(status && status->is_compensated(), "a saga ends completed or compensated");
            expect(effects == 0, "a compensated saga has no effect left");
        }
    }
    expect(completed == count / 2 && compensated == count / 2, "half of the sagas complete");
    std::printf("  %zu completed, %zu compensated, %zu calls of participants\n", completed, compensated,
                done.calls.load());
}

void run(const char* name, const std::string& url, std::size_t count, bool kills_orders) {
    const sqlite_test::folder files;
    auto& done = shared_object<effects>();
    in_a_child([&] { start_sagas(files, count); });
    role orders([&] { return child([&] { return run_orders(files, url); }); });
    role others([&] { return child([&] { return run_participants(files, url, done); }); });
    std::mt19937 random{5};
    std::size_t kills = 0;
    const auto begin = std::chrono::steady_clock::now();
    auto next = begin + 100ms;
    while (!orders.is_done()) {
        orders.tend(5ms);
        others.tend(1ms);
        const auto now = std::chrono::steady_clock::now();
        if (now >= next) {
            next = now + std::chrono::milliseconds(80 + random() % 400);
            (kills_orders ? orders : others).kill();
            kills += 1;
        }
        if (now > begin + 200s) {
            expect(false, "every saga ends within the time");
            break;
        }
    }
    std::printf("%s: %zu sagas, %zu kills, %.1f s\n", name, count, kills,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    in_a_child([&] { compare(files, count, done); });
    expect(kills > 0, "something was killed");
}

} // namespace

int main(int argc, char** argv) {
    const char* const url = std::getenv("VOUCH_RABBITMQ");
    if (url == nullptr) {
        std::fputs("usage: tests/rabbitmq/broker run relay_rabbitmq_saga_kills [SAGAS]\n", stderr);
        return 2;
    }
    const auto count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 400UL;
    in_a_child([&] { vouch::rabbitmq::declare({.url = url}, topology()); });
    run("the process of the sagas is killed", url, count, true);
    run("the process of the participants is killed", url, count, false);
    std::printf("%s\n", worker_program::failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return worker_program::failures == 0 ? 0 : 1;
}
