// SPDX-License-Identifier: MIT
// Stops worker processes with real signals:
// 1. SIGTERM or SIGINT stops a worker in the middle of its work, many times, with leases of an hour. In the end every
//    entry has succeeded, no entry has used more than one attempt, and no entry waits for a lease to expire.
// 2. A second signal ends the process at once, even while a handler runs. The lease expires and another worker claims
//    the entry.
// 3. A stop with a time limit keeps it, even while a handler runs.
#include <atomic>
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
        const vouch::outbox outbox(s);
        outbox.emit(std::vector<vouch::emission>(entries, {.queue = queue, .topic = "t"}));
    });
}

/// True once a handler runs in the worker process. A claimed entry is no sign of that: a stop releases an entry whose
/// handler has not started. Shared by the processes.
class handler_started {
  public:
    void set() const { value_ = true; }
    void wait() const {
        for (int i = 0; i < 20'000 && !value_; ++i) {
            std::this_thread::sleep_for(1ms);
        }
        expect(value_, "a handler starts");
    }

  private:
    std::atomic<bool>& value_ = shared_object<std::atomic<bool>>();
};

struct service {
    std::chrono::microseconds handler{};
    vouch::worker_options options{};
    vouch::duration lease = 1h;
};

/// The main function of a worker process.
int serve(const std::string& path, const service& how, const handler_started& started) {
    const vouch::stop_signals signals;
    store s(path);
    const vouch::outbox outbox(s);
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) {
        started.set();
        std::this_thread::sleep_for(how.handler);
    });
    vouch::worker worker(outbox, how.options);
    worker.serve(routes, {.queue = queue, .concurrency = 3, .lease = how.lease});
    const auto done = worker.run(signals.token());
    std::fflush(nullptr);
    std::_Exit(done.unsettled == 0 && done.store_errors == 0 ? 0 : 1); // does not wait for running handlers
}

void stop_again_and_again(const std::string& path) {
    constexpr std::size_t entries = 10'000;
    constexpr int stops = 30;
    fill(path, entries);
    std::chrono::steady_clock::duration longest{};
    for (int i = 0; i < stops; ++i) {
        const handler_started started;
        child worker([&] { return serve(path, {.handler = 1ms}, started); });
        started.wait();
        std::this_thread::sleep_for(std::chrono::milliseconds{7 * (i % 10)});
        const auto asked = std::chrono::steady_clock::now();
        worker.signal(i % 2 == 0 ? SIGTERM : SIGINT);
        const auto ended = worker.wait_for(20s);
        expect(ended && ended->code == 0, "a worker that is asked to stop exits with 0");
        longest = std::max(longest, std::chrono::steady_clock::now() - asked);
        in_a_child([&] {
            const auto counts = store(path).counts(queue);
            expect(counts[state::claimed] == 0, "a stop leaves no claim behind");
            expect(counts[state::pending] > 0, "work was left when the worker stopped; if not, nothing was tested");
        });
    }
    child last([&] { return serve(path, {}, {}); });
    in_a_child([&] {
        const store s(path);
        for (int i = 0; i < 2000 && s.counts(queue).live() > 0; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        expect(s.counts(queue)[state::succeeded] == entries,
               "every entry succeeds, and none waits for a lease to expire");
    });
    last.signal(SIGTERM);
    expect(last.wait().code == 0, "the last worker exits with 0");
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
        expect(more_than_once == 0, "a stop uses no attempt");
        expect(handed_back > 0, "some entries are released by a stop; if none is, nothing was tested");
        std::printf("%zu entries, %d stops during work: %zu entries were released, none used an attempt\n", entries,
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
    const handler_started started;
    child worker([&] { return serve(path, {.handler = 60s, .lease = 500ms}, started); });
    started.wait();
    worker.signal(SIGTERM);
    expect(!worker.wait_for(500ms), "the first signal waits for the handler");
    worker.signal(SIGTERM);
    const auto ended = worker.wait_for(2s);
    expect(ended && ended->signal == SIGTERM, "the second signal ends the process at once");
    expect(claimed_in(path) == 1, "the entry of its handler is still claimed");
    child next([&] { return serve(path, {}, {}); });
    in_a_child([&] {
        const store s(path);
        for (int i = 0; i < 1000 && s.counts(queue).live() > 0; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        expect(s.counts(queue)[state::succeeded] == 1, "another worker claims the entry when its lease expires");
    });
    next.signal(SIGINT);
    expect(next.wait().code == 0, "SIGINT stops a worker as SIGTERM does");
    std::printf("a second signal ended a worker at once; another worker handled its entry when the lease expired\n");
}

void stop_in_time(const std::string& path) {
    fill(path, 1);
    const handler_started started;
    child worker([&] { return serve(path, {.handler = 60s, .options = {.stop_within = 300ms}}, started); });
    started.wait();
    worker.signal(SIGTERM);
    const auto ended = worker.wait_for(5s);
    expect(ended && ended->code == 0, "a worker with a stop limit exits in time");
    expect(claimed_in(path) == 1, "the handler's entry is left to its lease");
    std::printf("a stop with a limit of 300 ms did not wait for a handler that takes a minute\n");
}

} // namespace

int main() {
    const sqlite_test::folder in;
    stop_again_and_again(in.fresh_path());
    stop_at_once(in.fresh_path());
    stop_in_time(in.fresh_path());
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
