// SPDX-License-Identifier: MIT
// An order as a saga with a remote participant, local steps, a conditional step, and compensation in reverse order.
#include <chrono>
#include <cstdio>
#include <string>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

using namespace std::chrono_literals;

namespace {

void say(const std::string& line) { std::printf("  %s\n", line.c_str()); }

vouch::saga_definition order_saga() {
    return vouch::define_saga<std::string>("order", {.completed = "order.confirmed",
                                                     .compensated = "order.failed",
                                                     .queue = "mail",
                                                     .retry = {.backoff = vouch::fixed{}, .attempts_max = 3}})
        .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund", .timeout = 30s})
        .step(
            "stock",
            [](const std::string& order) {
                if (order == "100 lamps") {
                    throw vouch::reject("insufficient_stock"); // certain to have done nothing, so it is not undone
                }
                say("stock: reserved " + order);
                return "reservation of " + order;
            },
            [](vouch::step_call& call) { say("stock: released the " + std::string(call.result())); })
        .step(
            "insurance", [] { say("insurance: bought"); }, [] { say("insurance: returned"); })
        .when([](const std::string& order) { return order == "a piano"; }) // evaluated once and stored
        .step(
            "shipping",
            [](const std::string& order, vouch::step_call& call) {
                if (order == "a piano") { // after three attempts the effect is unknown, so it is undone
                    throw vouch::failure("carrier_timeout");
                }
                say("shipping: scheduled, with key " + to_string(call.key()).substr(24));
            },
            [](vouch::step_call&) { say("shipping: cancelled, if it was scheduled"); })
        .build();
}

} // namespace

int main() {
    const auto saga = order_saga();
    vouch::memory::store store;
    const vouch::manual_clock clock;
    const vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids()});

    vouch::router orders(outbox);
    orders.on(saga);
    vouch::router payment(outbox);
    // A participant deduplicates by the command's key, which is the same for every delivery of a command.
    const auto once = [&](const vouch::delivery& d, const auto& work) {
        const auto key = vouch::command_of(d.entry())->key;
        return vouch::transact(store, [&](auto& tx) {
            return vouch::inbox::once(tx, {.consumer = "payment", .message = key, .now = d.now()}, work);
        });
    };
    payment.on("charge", [&](vouch::delivery& d) {
        return once(d, [&] {
            say("payment: charged for " + d.payload());
            return "charge for " + d.payload();
        });
    });
    payment.on<vouch::compensation>("refund", [&](const vouch::compensation& c, vouch::delivery& d) {
        once(d, [&] { say("payment: refunded the " + c.reply.value_or("charge, if any, for " + c.context)); });
    });
    vouch::router mail(outbox);
    mail.on("order.*", [](vouch::delivery& d) {
        say("mail: " + d.topic() + ", " + std::string(d.header("saga-reason").value_or("as ordered")));
    });

    const auto place = [&](const std::string& order, bool is_cancelled = false) {
        std::printf("%s\n", order.c_str());
        // In a lane the commands of one order run in sequence.
        const auto id = outbox.start(saga, {.queue = "orders", .lane = order}, order);
        vouch::testing::recorder recorder;
        vouch::runner run_orders(outbox, orders, {.queue = "orders"});
        vouch::runner run_payment(outbox, payment, {.queue = "payment"});
        vouch::runner run_mail(outbox, mail, {.queue = "mail"});
        run_orders.observe(recorder);
        run_payment.observe(recorder);
        run_orders.run_until_idle();
        say(to_string(*vouch::inspect(store, id), clock()));
        run_payment.run_until_idle();
        if (is_cancelled) {
            outbox.cancel(id);
        }
        run_orders.run_until_idle();
        run_payment.run_until_idle();
        run_orders.run_until_idle();
        run_mail.run_until_idle();
        say(to_string(*vouch::inspect(store, id)));
        return vouch::testing::sequence_diagram(recorder.events());
    };
    place("a lamp");
    place("100 lamps");
    place("a chair", true);
    const auto diagram = place("a piano");

    std::printf("\n%s", diagram.c_str());
    std::printf("\n%s\n", to_string(vouch::testing::verify(saga)).c_str());
}
