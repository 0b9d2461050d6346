// SPDX-License-Identifier: MIT
// The order saga of the sources (payment, inventory, shipping), in this process and with remote participants, on any
// store. Its trace has the form of the sources' traces: the queue, the order, the message.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

namespace saga_orders {

using namespace std::chrono_literals;

struct order {
    std::string number{};
    int amount = 0;
    std::string placed{}; ///< how the trace writes its creation
    std::string charge{}; ///< how the trace writes its charge
    std::string items{};
    std::string address{};
};

} // namespace saga_orders

template <>
struct vouch::codec<saga_orders::order> {
    static std::string encode(const saga_orders::order& o) {
        return o.number + '|' + std::to_string(o.amount) + '|' + o.placed + '|' + o.charge + '|' + o.items + '|' +
               o.address;
    }
    static saga_orders::order decode(std::string_view bytes) {
        std::vector<std::string> parts(1);
        for (const char c : bytes) {
            c == '|' ? parts.emplace_back() : parts.back() += c;
        }
        return {parts.at(0), std::stoi(parts.at(1)), parts.at(2), parts.at(3), parts.at(4), parts.at(5)};
    }
};

namespace saga_orders {

/// Payment, inventory and shipping, with the replies of the sources.
class services {
  public:
    [[nodiscard]] std::string charge(const order& o) {
        say("payment.commands", o, "payment.charge " + o.charge);
        return reply(o, 1, "charge_id", charges.at(o.number));
    }
    void refund(const order& o, std::string_view charge) {
        say("payment.commands", o,
            "payment.refund {charge_id: " + quoted(charge) + ", amount: " + std::to_string(o.amount) + "}");
        say("saga.replies", o, "{step: 1, status: COMPENSATED, refund_id: " + quoted(refunds.at(o.number)) + "}");
    }
    [[nodiscard]] std::string reserve(const order& o) {
        say("inventory.commands", o, "inventory.reserve {items: " + o.items + "}");
        if (!reservations.contains(o.number)) {
            refuse(o, 2, "insufficient_stock");
        }
        return reply(o, 2, "reservation_id", reservations.at(o.number));
    }
    void release(const order& o, std::string_view reservation) {
        say("inventory.commands", o, "inventory.release {reservation_id: " + quoted(reservation) + "}");
        say("saga.replies", o, "{step: 2, status: COMPENSATED}");
    }
    [[nodiscard]] std::string schedule(const order& o) {
        say("shipping.commands", o, "shipping.schedule {address: " + o.address + "}");
        if (!shipments.contains(o.number)) {
            refuse(o, 3, "address_undeliverable");
        }
        return reply(o, 3, "shipment_id", shipments.at(o.number));
    }
    void say(const std::string& topic, const order& o, const std::string& event) {
        trace.push_back(topic + ' ' + o.number + ' ' + event);
    }

    [[nodiscard]] static std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

    std::vector<std::string> trace{};
    std::map<std::string, std::string> charges{{"ord-456", "ch_abc"}, {"ord-789", "ch_def"}, {"ord-321", "ch_xyz"}};
    std::map<std::string, std::string> refunds{{"ord-789", "rf_ghi"}, {"ord-321", "rf_abc"}};
    std::map<std::string, std::string> reservations{{"ord-456", "res-789"}, {"ord-321", "res-456"}};
    std::map<std::string, std::string> shipments{{"ord-456", "ship-012"}};

  private:
    [[nodiscard]] std::string reply(const order& o, int step, const std::string& name, const std::string& value) {
        say("saga.replies", o,
            "{step: " + std::to_string(step) + ", status: SUCCEEDED, " + name + ": " + quoted(value) + "}");
        return value;
    }
    void refuse(const order& o, int step, const std::string& reason) {
        say("saga.replies", o, "{step: " + std::to_string(step) + ", status: FAILED, reason: " + quoted(reason) + "}");
        throw vouch::reject(reason);
    }
};

/// The topics that the saga emits at its end, in the queue of the order service.
[[nodiscard]] inline vouch::saga_options ends_in_orders() {
    return {.completed = "order.confirmed", .compensated = "order.failed", .queue = "order.commands"};
}

[[nodiscard]] inline vouch::saga_definition in_process(services& w) {
    return vouch::define_saga<order>("order.create", ends_in_orders())
        .step(
            "payment", [&w](const order& o) { return w.charge(o); },
            [&w](const order& o, vouch::step_call& call) { w.refund(o, call.result()); })
        .step(
            "inventory", [&w](const order& o) { return w.reserve(o); },
            [&w](const order& o, vouch::step_call& call) { w.release(o, call.result()); })
        .step("shipping", [&w](const order& o) { return w.schedule(o); })
        .build();
}

/// The compensating commands carry the order and the result of what they undo.
[[nodiscard]] inline vouch::saga_definition with_participants() {
    const auto with_result = [](const order& o, vouch::step_call& call) {
        auto out = o;
        out.items = call.result();
        return out;
    };
    const auto forward = [](const order& o) { return o; };
    return vouch::define_saga<order>("order.create", ends_in_orders())
        .command("payment", {.queue = "payment", .topic = "payment.charge", .undo = "payment.refund", .timeout = 30s},
                 forward, with_result)
        .command("inventory",
                 {.queue = "inventory", .topic = "inventory.reserve", .undo = "inventory.release", .timeout = 30s},
                 forward, with_result)
        .command("shipping", {.queue = "shipping", .topic = "shipping.schedule", .timeout = 30s})
        .build();
}

/// All services on one store. Every queue has a runner; a pass serves them all.
template <class Store>
class shop {
  public:
    shop(Store& store, bool remote)
        : outbox(store, {.clock = clock, .ids = vouch::counting_ids(1)}),
          definition_(remote ? with_participants() : in_process(services_)) {
        router("orders").on(definition_);
        router("payment").template on<order>("payment.charge", [this](const order& o) { return services_.charge(o); });
        router("payment").template on<order>("payment.refund",
                                             [this](const order& o) { services_.refund(o, o.items); });
        router("inventory").template on<order>("inventory.reserve", [this](const order& o) {
            return services_.reserve(o);
        });
        router("inventory").template on<order>("inventory.release", [this](const order& o) {
            services_.release(o, o.items);
        });
        router("shipping").template on<order>("shipping.schedule", [this](const order& o) {
            return services_.schedule(o);
        });
        router("order.commands").template on<order>("order.confirmed", [this](const order& o) {
            services_.say("order.commands", o, "order.confirmed");
        });
        router("order.commands").template on<order>("order.failed", [this](const order& o, vouch::delivery& d) {
            services_.say("order.commands", o,
                          "order.failed {reason: " + services::quoted(d.header("saga-reason").value_or("")) + "}");
        });
    }

    /// The trace of one order, from its creation to its end.
    [[nodiscard]] std::vector<std::string> trace_of(const order& o) {
        services_.trace.clear();
        services_.say("order.commands", o, "order.create " + o.placed);
        saga = outbox.start(definition_, "orders", o);
        for (bool busy = true; busy;) {
            busy = false;
            for (const auto& [queue, routes] : routers_) {
                vouch::runner<Store> runner(outbox, *routes, {.queue = queue});
                busy = runner.run_until_idle().claimed > 0 || busy;
            }
        }
        return services_.trace;
    }

    vouch::manual_clock clock{};
    vouch::outbox<Store> outbox;
    vouch::id saga{}; ///< of the last order

  private:
    [[nodiscard]] vouch::router<Store>& router(const std::string& queue) {
        auto& at = routers_[queue];
        if (!at) {
            at = std::make_unique<vouch::router<Store>>(outbox);
        }
        return *at;
    }

    services services_{};
    vouch::saga_definition definition_;
    std::map<std::string, std::unique_ptr<vouch::router<Store>>> routers_{};
};

inline const order happy{"ord-456",
                         9999,
                         "{items: [...], amount: 9999}",
                         "{amount: 9999, idempotency_key: \"ord-456-pay\"}",
                         "[{sku: \"W1\", qty: 2}]",
                         "{...}"};
inline const order no_stock{
    "ord-789", 4999, "{items: [{sku: \"W2\", qty: 100}], amount: 4999}", "{amount: 4999}", "[{sku: \"W2\", qty: 100}]",
    "{...}"};
inline const order nowhere{"ord-321",        2999,    "{items: [...], amount: 2999, address: {...}}",
                           "{amount: 2999}", "[...]", "{...}"};

/// Checks the three traces, line by line, without the sources' headings.
template <class Store, class Check>
void check_traces(Store& store, bool remote, Check&& check) {
    using lines = std::vector<std::string>;
    shop<Store> shop(store, remote);
    check(shop.trace_of(happy),
          lines{
              R"(order.commands ord-456 order.create {items: [...], amount: 9999})",
              R"(payment.commands ord-456 payment.charge {amount: 9999, idempotency_key: "ord-456-pay"})",
              R"(saga.replies ord-456 {step: 1, status: SUCCEEDED, charge_id: "ch_abc"})",
              R"(inventory.commands ord-456 inventory.reserve {items: [{sku: "W1", qty: 2}]})",
              R"(saga.replies ord-456 {step: 2, status: SUCCEEDED, reservation_id: "res-789"})",
              R"(shipping.commands ord-456 shipping.schedule {address: {...}})",
              R"(saga.replies ord-456 {step: 3, status: SUCCEEDED, shipment_id: "ship-012"})",
              R"(order.commands ord-456 order.confirmed)",
          });
    check(shop.trace_of(no_stock),
          lines{
              R"(order.commands ord-789 order.create {items: [{sku: "W2", qty: 100}], amount: 4999})",
              R"(payment.commands ord-789 payment.charge {amount: 4999})",
              R"(saga.replies ord-789 {step: 1, status: SUCCEEDED, charge_id: "ch_def"})",
              R"(inventory.commands ord-789 inventory.reserve {items: [{sku: "W2", qty: 100}]})",
              R"(saga.replies ord-789 {step: 2, status: FAILED, reason: "insufficient_stock"})",
              R"(payment.commands ord-789 payment.refund {charge_id: "ch_def", amount: 4999})",
              R"(saga.replies ord-789 {step: 1, status: COMPENSATED, refund_id: "rf_ghi"})",
              R"(order.commands ord-789 order.failed {reason: "insufficient_stock"})",
          });
    check(shop.trace_of(nowhere),
          lines{
              R"(order.commands ord-321 order.create {items: [...], amount: 2999, address: {...}})",
              R"(payment.commands ord-321 payment.charge {amount: 2999})",
              R"(saga.replies ord-321 {step: 1, status: SUCCEEDED, charge_id: "ch_xyz"})",
              R"(inventory.commands ord-321 inventory.reserve {items: [...]})",
              R"(saga.replies ord-321 {step: 2, status: SUCCEEDED, reservation_id: "res-456"})",
              R"(shipping.commands ord-321 shipping.schedule {address: {...}})",
              R"(saga.replies ord-321 {step: 3, status: FAILED, reason: "address_undeliverable"})",
              R"(inventory.commands ord-321 inventory.release {reservation_id: "res-456"})",
              R"(saga.replies ord-321 {step: 2, status: COMPENSATED})",
              R"(payment.commands ord-321 payment.refund {charge_id: "ch_xyz", amount: 2999})",
              R"(saga.replies ord-321 {step: 1, status: COMPENSATED, refund_id: "rf_abc"})",
              R"(order.commands ord-321 order.failed {reason: "address_undeliverable"})",
          });
    const auto last = vouch::inspect(store, shop.saga);
    check(last ? to_string(*last) : std::string("nothing"),
          std::string("order.create v1 compensated because address_undeliverable "
                      "[payment undone, inventory undone, shipping failed]"));
}

} // namespace saga_orders
