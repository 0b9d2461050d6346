// SPDX-License-Identifier: MIT
// The code in the comments of the relay's public headers and in its README, compiled and run. `checks/comment_code.py` and
// `checks/readme_code.py` find it here: change both.
#include <chrono>
#include <string>
#include <thread>

#include <vouch/rabbitmq.hpp>
#include <vouch/relay_saga.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "rabbitmq/server.hpp"

namespace rabbitmq_relay_code_test {

using namespace std::chrono_literals;

/// Ends a worker or an intake of an example when `is_done` says so.
struct signals_until {
    template <class Done>
    explicit signals_until(Done is_done)
        : watch_([this, is_done = std::move(is_done)](const std::stop_token& end) {
              while (!end.stop_requested() && !is_done()) {
                  std::this_thread::sleep_for(5ms);
              }
              stop_.request_stop();
          }) {}
    [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }

  private:
    std::stop_source stop_{};
    std::jthread watch_;
};

TEST_CASE("relay comments: an entry is relayed through RabbitMQ into another store") {
    const auto name = rabbitmq_test::fresh("comments");
    const vouch::rabbitmq::topology topology{.exchange = name, .listeners = {{.queue = name, .patterns = {"order.#"}}}};
    vouch::rabbitmq::declare(rabbitmq_test::here(), topology);
    vouch::memory::store shop_store;
    vouch::memory::store mail_store;
    {
        vouch::memory::store& store = shop_store;
        const vouch::outbox outbox(store);
        outbox.emit({.queue = "outgoing", .topic = "order.placed", .payload = "7"});
        vouch::router router(outbox);
        vouch::worker worker(outbox);
        const signals_until signals([&] { return store.counts("outgoing").live() == 0; });
        const auto url = rabbitmq_test::url();
        const auto exchange = name;

        vouch::rabbitmq::publisher broker({.connection = {.url = url}, .exchange = exchange});
        router.on(vouch::relay(broker));
        worker.serve(router, {.queue = "outgoing"});

        worker.run(signals.token());
        CHECK(store.counts("outgoing")[vouch::state::succeeded] == 1);
    }
    {
        vouch::memory::store& store = mail_store;
        const vouch::outbox outbox(store);
        const signals_until signals([&] { return store.counts("mail").total() == 1; });
        const auto url = rabbitmq_test::url();
        const auto queue = name;

        vouch::rabbitmq::consumer broker({.connection = {.url = url}, .queue = queue});
        vouch::intake intake(broker, outbox, {.source = "shop", .queue = "mail"});
        intake.run(signals.token());

        const auto stored = store.list(vouch::query::all("mail"));
        REQUIRE(stored.size() == 1);
        CHECK(stored.front().key.rfind("shop/", 0) == 0);
    }
}

TEST_CASE("relay comments: a command goes to a participant in another service, and its reply comes back") {
    const auto name = rabbitmq_test::fresh("saga");
    const vouch::rabbitmq::topology topology{.exchange = name,
                                             .listeners = {{.queue = name + ".payment", .patterns = {"payment.#"}},
                                                           {.queue = name + ".replies", .patterns = {"orders.reply"}}}};
    vouch::rabbitmq::declare(rabbitmq_test::here(), topology);
    const vouch::rabbitmq::connection_options here = rabbitmq_test::here();
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("payment", {.queue = "payment", .topic = "payment.charge", .undo = "payment.refund"})
                          .build();
    vouch::memory::store payment_store;
    vouch::memory::store order_store;
    const vouch::outbox orders(order_store);
    const auto order = orders.start(saga, "orders", std::string("7"));
    const auto is_over = [&] { return vouch::is_terminal(order_store.find(order)->state); };

    const std::jthread participant([&] {
        const vouch::outbox outbox(payment_store);
        vouch::rabbitmq::consumer consumer({.connection = here, .queue = name + ".payment"});
        vouch::rabbitmq::publisher publisher({.connection = here, .exchange = name});
        vouch::router router(outbox);
        vouch::router replies(outbox);
        const auto charge_or_refund = [](vouch::delivery&) { return std::string("paid"); };

        vouch::intake intake(consumer, outbox,
                             {.source = "orders", .queue = "payment", .map = vouch::command_emission_of});
        router.on("payment.#", vouch::participant(outbox, charge_or_refund)); // a router for the queue `payment`
        replies.on(vouch::relay(publisher));                                  // a router for the queue `replies`

        vouch::worker worker(outbox);
        worker.serve(router, {.queue = "payment"});
        worker.serve(replies, {.queue = "replies"});
        const signals_until signals(is_over);
        const std::jthread taking([&] { intake.run(signals.token()); });
        worker.run(signals.token());
    });

    vouch::rabbitmq::publisher broker({.connection = here, .exchange = name});
    vouch::rabbitmq::consumer consumer({.connection = here, .queue = name + ".replies"});
    vouch::intake intake(consumer, orders, {.source = "participants", .queue = "replies"});
    vouch::worker worker(orders);
    vouch::router sagas(orders);
    sagas.on(saga);
    worker.serve(sagas, {.queue = "orders"});
    vouch::router commands(orders);
    {
        auto& router = commands;
        router.on(vouch::command_relay(broker, {.reply_topic = "orders.reply"}));
        worker.serve(router, {.queue = "payment"}); // the queue that the saga's step names
    }
    vouch::router answers(orders);
    {
        auto& router = answers;
        const auto& outbox = orders;
        router.on(vouch::reply_handler(outbox, "orders.reply"));
        worker.serve(router, {.queue = "replies"}); // the queue into which the intake stores replies
    }
    const signals_until signals(is_over);
    const std::jthread taking([&] { intake.run(signals.token()); });
    worker.run(signals.token());
    CHECK(vouch::inspect(order_store, order)->is_completed());
}

} // namespace rabbitmq_relay_code_test
