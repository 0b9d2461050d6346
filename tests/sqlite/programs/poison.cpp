// SPDX-License-Identifier: MIT
// One entry among 40 others has a handler that kills its process. The test runs real processes on one file: first a
// runner, then a worker with eight threads and two queues; each with handlers of one entry and with handlers of batches.
// It restarts the process after each death. In the end every other entry has been handled and has succeeded, and the
// poison entry is dead because its attempts are exhausted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <thread>

#include <signal.h>

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

constexpr std::size_t innocents = 40;
constexpr auto lease = 300ms;

void fill(const std::string& path) {
    in_a_child([&] {
        store s(path);
        const vouch::outbox outbox(s);
        for (std::size_t n = 0; n < innocents; ++n) {
            if (n == 7) {
                outbox.emit({.queue = "q", .topic = "poison"});
            }
            outbox.emit({.queue = n % 4 == 3 ? "r" : "q", .topic = "innocent"});
        }
    });
}

enum class form { single, batch };

void handle(const vouch::delivery& d) {
    std::this_thread::sleep_for(1ms);
    if (d.topic() == "poison") {
        ::kill(::getpid(), SIGKILL);
    }
    std::this_thread::sleep_for(1ms);
}

[[nodiscard]] vouch::router<store> routes(const vouch::outbox<store>& outbox, form of) {
    vouch::router out(outbox);
    if (of == form::single) {
        out.on("#", handle);
    } else {
        // The poison entry is in the middle of a batch.
        out.on_batch("#", [](vouch::delivery_batch& all) { std::for_each(all.begin(), all.end(), handle); },
                     {.size_max = 20, .wait = 5ms});
    }
    return out;
}

[[nodiscard]] bool is_done(const store& s) { return s.counts("q").live() + s.counts("r").live() == 0; }

/// Returns 0 when all work is done.
int run_passes(const std::string& path, form of) {
    store s(path);
    const vouch::outbox outbox(s);
    const auto router = routes(outbox, of);
    vouch::runner first(outbox, router, {.queue = "q", .lease = lease});
    vouch::runner second(outbox, router, {.queue = "r", .lease = lease});
    while (!is_done(s)) {
        first.run_once();
        second.run_once();
        std::this_thread::sleep_for(5ms);
    }
    return 0;
}

int run_worker(const std::string& path, form of) {
    store s(path);
    const vouch::outbox outbox(s);
    const auto router = routes(outbox, of);
    vouch::worker worker(outbox, {.poll_interval = 20ms});
    worker.serve(router, {.queue = "q", .concurrency = 8, .lease = lease});
    worker.serve(router, {.queue = "r", .concurrency = 8, .lease = lease});
    std::stop_source stop;
    const std::jthread watch([&] {
        while (!is_done(s)) {
            std::this_thread::sleep_for(5ms);
        }
        stop.request_stop();
    });
    worker.run(stop.get_token());
    return 0;
}

template <class Process>
void meet(const char* name, const std::string& path, form of, Process&& process) {
    fill(path);
    int kills = 0;
    for (ending how{.signal = SIGKILL}; how.signal == SIGKILL && kills < 30;) {
        child one([&] { return process(path, of); });
        how = one.wait_for(60s).value_or(ending{});
        kills += how.signal == SIGKILL ? 1 : 0;
        expect(how.signal == SIGKILL || how.code == 0, "the poison entry kills the process, or the process finishes");
    }
    in_a_child([&] {
        const store s(path);
        std::size_t calm = 0;
        for (const auto* const queue : {"q", "r"}) {
            for (const auto& e : s.list(vouch::query::all(queue))) {
                if (e.topic == "poison") {
                    expect(e.state == state::dead && e.last_error == "attempts_exhausted", "the poison entry is dead");
                } else {
                    calm += e.state == state::succeeded && e.attempts == 1 ? 1 : 0;
                }
            }
        }
        expect(calm == innocents, "every other entry has succeeded on its first attempt");
    });
    // Once together with others and eight times alone; then its attempts are exhausted.
    expect(kills == 9, "the poison entry killed the process once with others and eight times alone");
    std::printf("%s: killed %d times, %zu other entries succeeded\n", name, kills, innocents);
}

} // namespace

int main() {
    const sqlite_test::folder in;
    meet("runner", in.fresh_path(), form::single, run_passes);
    meet("worker", in.fresh_path(), form::single, run_worker);
    meet("runner with batches", in.fresh_path(), form::batch, run_passes);
    meet("worker with batches", in.fresh_path(), form::batch, run_worker);
    std::printf("%s\n", failures == 0 ? "all checks passed" : "SOME CHECKS FAILED");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
