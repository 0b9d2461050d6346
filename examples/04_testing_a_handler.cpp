// SPDX-License-Identifier: MIT
// Unit-test a handler: the sandbox combines store, clock, ids, outbox and runner, and its clock can be moved.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

using namespace std::chrono_literals;

// A type of the application, and how to encode and decode it.
struct order {
    std::string number;
    int cents = 0;
};

template <>
struct vouch::codec<order> {
    static std::string encode(const order& o) { return o.number + ' ' + std::to_string(o.cents); }
    static order decode(std::string_view bytes) {
        const auto space = bytes.find(' ');
        return {std::string(bytes.substr(0, space)), std::stoi(std::string(bytes.substr(space + 1)))};
    }
};

// The handler under test.
void charge(const order& o, vouch::delivery& d) {
    if (o.cents <= 0) {
        throw vouch::reject("nothing_to_charge");
    }
    if (d.attempt() == 1) {
        throw vouch::failure("bank_timeout");
    }
    d.emit({.queue = "shipping", .topic = "order.charged", .payload = o.number});
}

namespace {

void check(const char* what, bool holds) { std::printf("%-4s %s\n", holds ? "ok" : "FAIL", what); }

} // namespace

int main() {
    vouch::testing::sandbox box;
    box.on<order>("order.placed", charge);
    box.emit({.topic = "order.placed", .payload = vouch::encode(order{"A-1", 4200})});
    box.emit({.topic = "order.placed", .payload = vouch::encode(order{"A-2", 0})});

    const auto first = box.run_once();
    check("the first attempt is retried", first.retried == 1);
    check("an order of 0 cents is rejected", first.dead == 1);
    check("a failed attempt emits nothing", box.emitted("order.charged") == 0);
    check("the next attempt comes 30 s later", box.next()->at == box.start() + 30s);

    box.pass(30s);
    check("the second attempt succeeds", box.run_once().succeeded == 1);
    check("the second attempt emits an event", box.emitted("order.charged") == 1);
    check("a payload that cannot be decoded is dead at once", [&] {
        const auto got = box.emit({.topic = "order.placed", .payload = "A-3 lots"});
        box.run_once();
        return box.find(got.id)->last_error == "undecodable";
    }());

    std::printf("\n%s", box.table().c_str());
}
