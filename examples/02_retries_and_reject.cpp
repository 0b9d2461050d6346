// SPDX-License-Identifier: MIT
// A failed attempt is tried again by policy, a rejected one never; what is given up stays visible and can be requeued.
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include <vouch/vouch.hpp>

using namespace std::chrono_literals;

int main() {
    // Time is an argument everywhere, so this example takes hours and no time at all.
    const vouch::manual_clock clock;
    const auto start = clock();
    const vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids{}});
    vouch::memory::store store;
    bool provider_is_down = true;

    const auto say = [&](const vouch::delivery& d, const char* what) {
        const auto passed = std::chrono::duration_cast<std::chrono::seconds>(d.now() - start);
        std::printf("%5llds  %s %s, attempt %u: %s\n", static_cast<long long>(passed.count()), d.topic().c_str(),
                    d.payload().c_str(), d.attempt(), what);
    };
    vouch::router router(outbox);
    router.on(
        "sms.send",
        [&](vouch::delivery& d) {
            if (d.payload().empty()) {
                say(d, "no number, rejected");
                throw vouch::reject("no_number");
            }
            if (provider_is_down) {
                say(d, "provider is down");
                throw std::runtime_error("this text is never stored");
            }
            say(d, "sent");
        },
        vouch::retry_policy{.backoff = vouch::schedule{1s, 10s, 60s, 300s}});

    vouch::transact(store, [&](auto& tx) {
        outbox.emit(tx, {.queue = "sms", .topic = "sms.send", .payload = "+49 30 1234"});
        outbox.emit(tx, {.queue = "sms", .topic = "sms.send", .payload = ""});
    });
    vouch::runner runner(outbox, router, {.queue = "sms"});
    runner.run_until_idle(clock);

    std::puts("\ndead letters, oldest first:");
    const auto dead = store.list(vouch::query::dead("sms"));
    for (const auto& e : dead) {
        std::printf("  after %u attempts: %s\n", e.attempts, e.last_error.c_str());
    }

    std::puts("\nthe provider is back; the first one is requeued, twice by mistake:");
    provider_is_down = false;
    for (int i = 0; i < 2; ++i) {
        const auto got = vouch::transact(
            store, [&](auto& tx) { return vouch::requeue(tx, {.dead = dead.front().id, .successor = outbox.fresh_id(), .now = outbox.now()}); });
        std::printf("  %s\n", name_of(got.what).data());
    }
    runner.run_until_idle(clock);
}
