// SPDX-License-Identifier: MIT
// The fragments of include/vouch/saga/README.md.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace saga_readme_test {

using namespace std::chrono_literals;

namespace {

std::vector<std::string> log;

std::string charge(const std::string& order) {
    log.push_back("charge " + order);
    return "charge for " + order;
}
void refund(const std::string& what) { log.push_back("refund " + what); }
void reserve(const std::string& order) { log.push_back("reserve " + order); }
void release() { log.push_back("release"); }
void wrap() { log.push_back("wrap"); }
void pack() { log.push_back("pack"); }
bool is_gift(const std::string& order) { return order == "a ring"; }

vouch::saga_definition order_saga() {
    return vouch::define_saga<std::string>("order")
        .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund", .timeout = 30s})
        .step("stock", reserve, release)
        .step("shipping",
              [](const std::string& order) {
                  if (order == "a piano") {
                      throw vouch::reject("address_undeliverable");
                  }
              })
        .build();
}

} // namespace

TEST_CASE("readme: a saga's participant acts once on each command") {
    log.clear();
    vouch::memory::store store;
    const vouch::manual_clock clock;
    vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids()});
    vouch::router orders(outbox);
    orders.on(order_saga());
    vouch::router router(outbox);
    // clang-format off
    router.on("charge", [&](vouch::delivery& d) {
        const auto key = vouch::command_of(d.entry())->key;
        return vouch::transact(store, [&](auto& tx) {
            return vouch::inbox::once(tx, {.consumer = "payment", .message = key, .now = d.now()},
                                      [&] { return charge(d.payload()); }); // its writes go through `tx`
        });
    });
    router.on<vouch::compensation>("refund", [](const vouch::compensation& c) {
        refund(c.reply.value_or("charge of " + c.context + ", if there is one"));
    });
    // clang-format on
    const auto id = outbox.start(order_saga(), "orders", std::string("a piano"));
    vouch::runner run_orders(outbox, orders, {.queue = "orders"});
    vouch::runner run_payment(outbox, router, {.queue = "payment"});
    for (int i = 0; i < 3; ++i) {
        run_orders.run_until_idle();
        run_payment.run_until_idle();
    }
    CHECK(log == std::vector<std::string>{"charge a piano", "reserve a piano", "release", "refund charge for a piano"});
    CHECK(vouch::inspect(store, id)->is_compensated());
}

TEST_CASE("readme: one of two steps runs") {
    const bool is_wrapped = GENERATE(false, true);
    log.clear();
    // clang-format off
    const auto saga = vouch::define_saga<std::string>("order")
        .step("wrap", wrap).when([](const std::string& order) { return is_gift(order); })
        .step("pack", pack).otherwise()
        .step("label", [](vouch::step_call& call) { return call.results().is_skipped("wrap") ? "plain" : "gift"; })
        .build();
    // clang-format on
    vouch::testing::sandbox box;
    box.on(saga);
    box.start(saga, std::string(is_wrapped ? "a ring" : "a lamp"));
    box.run_until_idle();
    CHECK(log == std::vector<std::string>{is_wrapped ? "wrap" : "pack"});
}

TEST_CASE("readme: a saga is cancelled, and a dead one resumed") {
    log.clear();
    vouch::testing::sandbox box;
    bool is_broken = true;
    const auto saga = vouch::define_saga<std::string>("order", {.retry = {.attempts_max = 1}})
                          .step("payment", charge,
                                [&](vouch::step_call& call) {
                                    if (is_broken) {
                                        throw vouch::failure("bank_timeout");
                                    }
                                    refund(std::string(call.result()));
                                })
                          .step("shipping", [] {})
                          .build();
    box.on(saga);
    auto id = box.start(saga, std::string("a lamp"));
    auto& outbox = box.outbox();
    auto& store = box.store();
    box.runner().run_only(id);
    // clang-format off
    outbox.cancel(id);                                     // asks the saga to undo what it has done
    box.run_until_idle();
    const auto status = vouch::inspect(store, id);
    if (status->is_stuck()) {                              // a compensation has failed for good
        is_broken = false;                                 // remove the cause first
        id = outbox.resume(id).id;                         // continues under a new entry, with the same keys
    }
    // clang-format on
    CHECK(to_string(*status) == "order v1 dead, back at payment because cancelled [payment done, shipping failed], "
                                "stuck with bank_timeout");
    box.run_until_idle();
    CHECK(vouch::inspect(store, id)->is_compensated());
    CHECK(log == std::vector<std::string>{"charge a lamp", "refund charge for a lamp"});
}

TEST_CASE("readme: verify and the sandbox") {
    log.clear();
    CHECK(vouch::testing::verify(order_saga(), {.faults_max = 1}).is_sound());
    CHECK(log.empty());
    // clang-format off
    vouch::testing::sandbox box;
    box.on(order_saga());
    box.router("payment").on("charge", [](vouch::delivery& d) { return charge(d.payload()); });
    const auto id = box.start(order_saga(), std::string("a lamp"));
    box.run_until_idle();
    CHECK(vouch::inspect(box.store(), id)->is_completed());
    // clang-format on
    CHECK(log == std::vector<std::string>{"charge a lamp", "reserve a lamp"});
}

} // namespace saga_readme_test
