// SPDX-License-Identifier: MIT
// Coordinate without an orchestrator: a group that reports its completion, and services that react to events.
#include <cstdio>
#include <string>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

namespace {

/// Fan-out: three systems erase a person's data. When the last one has succeeded, the person gets a mail.
void fan_out() {
    std::printf("fan-out\n");
    vouch::testing::sandbox box;
    box.on("erase", [](vouch::delivery& d) {
        if (d.payload() == "archive" && d.attempt() == 1) {
            throw vouch::failure("tape_is_loading");
        }
        std::printf("  %s: erased, attempt %u\n", d.payload().c_str(), d.attempt());
    });
    box.on("mail.erased",
           [](vouch::delivery& d) { std::printf("  mail: %s, all your data is erased\n", d.payload().c_str()); });
    box.runner().on_group_complete([&](auto& tx, const std::string& group, const vouch::entry&) {
        std::printf("  group %s is complete\n", group.c_str()); // in the transaction that settles the last member
        box.outbox().emit(tx, {.topic = "mail.erased", .payload = group});
    });
    for (const std::string system : {"crm", "archive", "billing"}) {
        box.emit({.topic = "erase", .payload = system, .group = "ada"});
    }
    box.run_until_idle();
}

/// Choreography: no handler knows the whole process. Each one emits the next event, in the transaction that settles it.
void choreography() {
    std::printf("choreography\n");
    vouch::testing::sandbox box({.bindings = vouch::bindings{}.bind("#", "test")});
    const auto heard = [](vouch::delivery& d, const char* did) {
        std::printf("  %-24s %s %s\n", d.topic().c_str(), d.payload().c_str(), did);
    };
    box.on("order.created", [&](vouch::delivery& d) {
        heard(d, "charged");
        d.emit({.topic = "payment.charged", .payload = d.payload()});
    });
    box.on("payment.charged", [&](vouch::delivery& d) {
        if (d.payload() == "100 lamps") {
            heard(d, "not in stock");
            d.emit({.topic = "inventory.reserve.failed", .payload = d.payload()});
            return;
        }
        heard(d, "reserved");
        d.emit({.topic = "inventory.reserved", .payload = d.payload()});
    });
    box.on("inventory.reserved", [&](vouch::delivery& d) {
        heard(d, "shipped");
        d.emit({.topic = "shipping.scheduled", .payload = d.payload()});
    });
    box.on("inventory.reserve.failed", [&](vouch::delivery& d) {
        heard(d, "refunded");
        d.emit({.topic = "payment.refunded", .payload = d.payload()});
    });
    box.on("shipping.scheduled", [&](vouch::delivery& d) { heard(d, "is complete"); });
    box.on("payment.refunded", [&](vouch::delivery& d) { heard(d, "has failed"); });
    box.emit({.topic = "order.created", .payload = "a lamp"});
    box.run_until_idle();
    box.emit({.topic = "order.created", .payload = "100 lamps"});
    box.run_until_idle();
}

} // namespace

int main() {
    fan_out();
    choreography();
}
