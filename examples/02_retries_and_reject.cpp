// SPDX-License-Identifier: MIT
// Failed attempts are retried by policy, rejected ones never. Dead entries stay visible and can be requeued.
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include <vouch/vouch.hpp>

using namespace std::chrono_literals;

int main() {
    // The time is always an argument, so this example simulates minutes and finishes at once.
    const vouch::manual_clock clock;
    const auto start = clock();
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids{}});
    bool provider_is_down = true;

    const auto say = [&](const vouch::delivery& d, const char* what) {
        const auto passed = std::chrono::duration_cast<std::chrono::seconds>(d.now() - start);
        std::printf("%5llds  %s %s, attempt %u: %s\n", static_cast<long long>(passed.count()), d.topic().c_str(),
                    d.payload().c_str(), d.attempt(), what);
    };
    vouch::router router(outbox);
    router.on("sms.send",
              [&](vouch::delivery& d) {
                  if (d.payload().empty()) {
                      say(d, "there is no number, rejected");
                      throw vouch::reject("no_number");
                  }
                  if (provider_is_down) {
                      say(d, "the provider is down");
                      throw std::runtime_error("this text is never stored");
                  }
                  say(d, "sent");
              },
              {.backoff = vouch::schedule{1s, 10s, 60s, 300s}});

    outbox.emit({{.queue = "sms", .topic = "sms.send", .payload = "+49 30 1234"},
                 {.queue = "sms", .topic = "sms.send", .payload = ""}});
    vouch::runner runner(outbox, router, {.queue = "sms"});
    runner.run_until_idle(clock);

    std::puts("\ndead letters, oldest first:");
    const auto dead = store.list(vouch::query::dead("sms"));
    for (const auto& e : dead) {
        std::printf("  after %u attempts: %s\n", e.attempts, e.last_error.c_str());
    }

    std::puts("\nthe provider is up again; the first entry is requeued, twice by mistake:");
    provider_is_down = false;
    for (int i = 0; i < 2; ++i) {
        const auto got = outbox.requeue(dead.front().id);
        std::printf("  %s\n", name_of(got.what).data());
    }
    runner.run_until_idle(clock);
}
