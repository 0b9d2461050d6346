// SPDX-License-Identifier: MIT
// Measures how soon a worker on a SQLite file (synchronous FULL) starts a handler after an emit has begun, its commit
// included: in the same process and in another one; while producers emit at 10, 50 and 90 % of the highest rate; and how
// much of a core a worker with a hundred idle queues uses. Times depend on the machine and are only printed. Exits with 1
// if the idle worker uses more than its limit.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "../sqlite/folder.hpp"
#include "ratio.hpp"

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using vouch::sqlite::store;

/// The time of the emit travels in the payload. Processes of one machine share the clock.
[[nodiscard]] std::string stamp() {
    const auto now = steady::now().time_since_epoch().count();
    std::string out(200, 'x');
    std::memcpy(out.data(), &now, sizeof(now));
    return out;
}
[[nodiscard]] double milliseconds_since(const std::string& stamped) {
    steady::rep then = 0;
    std::memcpy(&then, stamped.data(), sizeof(then));
    return std::chrono::duration<double, std::milli>(steady::now() - steady::time_point(steady::duration(then)))
        .count();
}

/// A worker that notes how long after its emit each entry starts.
class observed_worker {
  public:
    observed_worker(const std::string& path, std::size_t queues) : work_(path) {
        routes_.on("t", [this](vouch::delivery& d) {
            const auto late = milliseconds_since(d.payload());
            const std::lock_guard lock(mutex_);
            delays_.push_back(late);
        });
        for (std::size_t i = 0; i < queues; ++i) {
            worker_.serve(routes_, {.queue = "q" + std::to_string(i)});
        }
        running_ = std::jthread([this](const std::stop_token& stop) { worker_.run(stop); });
    }

    [[nodiscard]] const vouch::outbox<store>& outbox() const noexcept { return outbox_; }
    /// The sorted delays of so many entries.
    [[nodiscard]] std::vector<double> wait_for(std::size_t entries) {
        for (;;) {
            {
                const std::lock_guard lock(mutex_);
                if (delays_.size() >= entries) {
                    auto out = std::exchange(delays_, {});
                    std::sort(out.begin(), out.end());
                    return out;
                }
            }
            std::this_thread::sleep_for(1ms);
        }
    }

  private:
    store work_;
    vouch::outbox<store> outbox_{work_};
    vouch::router<store> routes_{outbox_};
    vouch::worker<store> worker_{outbox_};
    std::mutex mutex_{};
    std::vector<double> delays_{};
    std::jthread running_{};
};

void print(const std::string& name, const std::vector<double>& delays) {
    std::printf("%-46s %8.2f %8.2f %8.2f\n", name.c_str(), delays[delays.size() / 2], delays[delays.size() * 99 / 100],
                delays.back());
    std::fflush(stdout);
}

void emit(const vouch::outbox<store>& to, std::size_t count, std::chrono::microseconds every) {
    auto next = steady::now();
    for (std::size_t i = 0; i < count; ++i) {
        to.emit({.queue = "q0", .topic = "t", .payload = stamp()});
        next += every;
        std::this_thread::sleep_until(next);
    }
}

void measure_across_processes(const sqlite_test::folder& in) {
    constexpr std::size_t entries = 300;
    const auto path = in.fresh_path();
    { const store created(path); }
    const auto producer = fork(); // before this process has opened anything
    if (producer == 0) {
        std::this_thread::sleep_for(300ms);
        store work(path);
        emit(vouch::outbox(work), entries, 5ms);
        _exit(0);
    }
    observed_worker worker(path, 1);
    print("another process, 200 a second", worker.wait_for(entries));
    waitpid(producer, nullptr, 0);
}

void measure_under_load(const sqlite_test::folder& in) {
    observed_worker worker(in.fresh_path(), 1);
    emit(worker.outbox(), 300, 5ms);
    print("this process, 200 a second", worker.wait_for(300));
    constexpr std::size_t most = 3'000;
    const auto fastest = bench::seconds_of([&] { emit(worker.outbox(), most, 0us); }).clock / most;
    (void)worker.wait_for(most);
    for (const int percent : {10, 50, 90}) {
        const auto every = std::chrono::microseconds(static_cast<long>(1e6 * fastest * 100 / percent));
        const auto entries = static_cast<std::size_t>(1'000'000 / every.count());
        emit(worker.outbox(), entries, every);
        print("this process, " + std::to_string(percent) + " % of " + std::to_string(static_cast<long>(1 / fastest)) +
                  " a second",
              worker.wait_for(entries));
    }
}

[[nodiscard]] double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

[[nodiscard]] bool measure_idle(const sqlite_test::folder& in) {
    constexpr double limit = 1.0;
    const observed_worker worker(in.fresh_path(), 100);
    std::this_thread::sleep_for(500ms);
    const auto before = cpu_seconds();
    std::this_thread::sleep_for(4s);
    const auto share = 100 * (cpu_seconds() - before) / 4;
    std::printf("\n100 idle queues: %.2f %% of a core, limit %.0f %%  %s\n", share, limit,
                share <= limit ? "ok" : "MISSED");
    return share <= limit;
}

} // namespace

int main() {
    try {
        const sqlite_test::folder in;
        std::printf("%-46s %8s %8s %8s\n", "milliseconds from emit to handler, full", "p50", "p99", "most");
        measure_across_processes(in);
        measure_under_load(in);
        return measure_idle(in) ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "the benchmark is not valid: %s\n", e.what());
        return 2;
    }
}
