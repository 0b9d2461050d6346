// SPDX-License-Identifier: MIT
// Real processes, real signals:
// 1. a worker that is stopped by SIGTERM or SIGINT in the middle of its work, again and again, with leases of an hour:
//    every entry is done in the end, none has spent more than one attempt, none waits for a lease;
// 2. a second signal ends the process at once, though a handler is in its way; the lease heals that entry;
// 3. a stop with a time limit keeps it, though a handler does not.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "sqlite/folder.hpp"
#include "sqlite/programs/child.hpp"

using namespace std::chrono_literals;
using namespace worker_program;
using vouch::state;
using vouch::sqlite::store;

namespace {

const std::string queue = "q";

void fill(const std::string& path, std::size_t entries) {
    in_a_child([&] {
        store s(path);
        const vouch::outbox outbox(store);
        outbox.emit(std::vector<vouch::emission>(entries, {.queue = queue, .topic = "t"}));
    });
}

struct service {
    std::chrono::microseconds handler{};
    vouch::worker_options options{};
    vouch::duration lease = 1h;
};

/// The main function of a worker process.
int serve(const std::string& path, const service& how) {
    const vouch::stop_signals signals;
    store s(path);
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) { std::this_thread::sleep_for(how.handler); });
    vouch::worker worker(outbox, how.options);
    worker.serve(routes, {.queue = queue, .concurrency = 3, .lease = how.lease});
    const auto done = worker.run(signals.token());
    std::fflush(nullptr);
    std::_Exit(done.unsettled == 0 && done.store_errors == 0 ? 0 : 1); // waits for no handler left behind
}

void stop_again_and_again(const std::string& path) {
    constexpr std::size_t entries = 6'000;
    constexpr int stops = 30;
    fill(path, entries);
    std::chrono::steady_clock::duration longest{};
    for (int i = 0; i < stops; ++i) {
        child worker([&] { return serve(path, {.handler = 1ms}); });
        std::this_thread::sleep_for(std::chrono::milliseconds{30 + 7 * (i % 10)});
        const auto asked = std::chrono::steady_clock::now();
        worker.signal(i % 2 == 0 ? SIGTERM : SIGINT);
        const auto ended = worker.wait_for(20s);
        expect(ended && ended->code == 0, "a worker asked to stop exits with 0");
        longest = std::max(longest, std::chrono::steady_clock::now() - asked);
        in_a_child([&] {
            const auto counts = store(path).counts(queue);
            expect(counts[state::claimed] == 0, "a stop leaves no claim behind");
            expect(counts[state::pending] > 0, "there was more to do, or this shows nothing");
        });
    }
    child last([&] { return serve(path, {}); });
    in_a_child([&] {
        const store s(path);
        for (int i = 0; i < 2000 && s.counts(queue).live() > 0; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        expect(s.counts(queue)[state::succeeded] == entries, "every entry is done, and none waits for a lease");
    });
    last.signal(SIGTERM);
    expect(last.wait().code == 0, "the last worker stops as well");
    in_a_child([&] {
        const store s(path);
        std::size_t more_than_once = 0;
        std::size_t handed_back = 0;
        auto page = vouch::query::all(queue);
        page.limit = 1000;
        for (auto found = s.list(page); !found.empty(); page.after = found.back().sequence, found = s.list(page)) {
            for (const auto& e : found) {
                more_than_once += e.attempts == 1 && e.failures == 0 ? 0 : 1;
                handed_back += e.epoch > 1 ? 1 : 0;
            }
        }
        expect(more_than_once == 0, "a stop spends no attempt");
        expect(handed_back > 0, "some entries were handed back, or this shows nothing");
        std::printf("%zu entries, %d stops in mid-work: %zu entries were handed back, none spent an attempt\n", entries,
                    stops, handed_back);
    });
    std::printf("the longest stop took %.0f ms\n", std::chrono::duration<double, std::milli>(longest).count());
}

[[nodiscard]] std::size_t claimed_in(const std::string& path) {
    child look([&] { return static_cast<int>(store(path).counts(queue)[state::claimed]); });
    return static_cast<std::size_t>(look.wait().code);
}

void stop_at_once(const std::string& path) {
    fill(path, 1);
    child worker([&] { return serve(path, {.handler = 60s, .lease = 500ms}); });
    while (claimed_in(path) == 0) {
    }
    std::this_thread::sleep_for(100ms);
    worker.signal(SIGTERM);
    expect(!worker.wait_for(500ms), "the first signal waits for the handler");
    worker.signal(SIGTERM);
    const auto ended = worker.wait_for(2s);
    expect(ended && ended->signal == SIGTERM, "the second signal ends the process at once");
    expect(claimed_in(path) == 1, "what it had in hand is still claimed");
    child next([&] { return serve(path, {}); });
    in_a_child([&] {
        const store s(path);
        for (int i = 0; i < 1000 && s.counts(queue).live() > 0; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        expect(s.counts(queue)[state::succeeded] == 1, "and its lease heals it");
    });
    next.signal(SIGINT);
    expect(next.wait().code == 0, "SIGINT stops as SIGTERM does");
    std::printf("a second signal ended a worker at once; the lease healed its entry\n");
}

void stop_in_time(const std::string& path) {
    fill(path, 1);
    child worker([&] { return serve(path, {.handler = 60s, .options = {.stop_within = 300ms}}); });
    while (claimed_in(path) == 0) {
    }
    worker.signal(SIGTERM);
    const auto ended = worker.wait_for(5s);
    expect(ended && ended->code == 0, "a stop with a time limit keeps it");
    expect(claimed_in(path) == 1, "the handler's entry is left to its lease");
    std::printf("a stop within 300 ms did not wait for a handler of a minute\n");
}

} // namespace

int main() {
    const sqlite_test::folder in;
    stop_again_and_again(in.fresh_path());
    stop_at_once(in.fresh_path());
    stop_in_time(in.fresh_path());
    std::printf("%s\n", failures == 0 ? "all holds" : "NOT all holds");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
