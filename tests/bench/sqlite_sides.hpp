// SPDX-License-Identifier: MIT
// The work that the SQLite benchmark measures: by the store, through a whole runner, and by hand. Each call uses its
// own file. A drain fills the file first, which is not measured.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "ratio.hpp"
#include "sqlite_bare.hpp"
#include "sqlite_same_schema.hpp"

namespace sides {

using bench::measure;
using bench::per_second;
using bench::require;
using bench::seconds_of;
using store = vouch::sqlite::store;
using vouch::sqlite::synchronous;

inline constexpr std::size_t batch = 50;
inline constexpr vouch::duration lease = std::chrono::minutes{5};
inline const std::string queue = "mail";
inline const std::string topic = "user.registered";
inline const std::string payload(200, 'x');

[[nodiscard]] inline std::int64_t now_us() { return vouch::system_now().time_since_epoch().count(); }

/// Makes ids like UUIDv7: the high half grows, the low half is random.
[[nodiscard]] inline vouch::id next_id() {
    static std::uint64_t count = 0;
    static std::mt19937_64 random{1};
    return {.high = ++count, .low = random()};
}

[[nodiscard]] inline store open_store(const std::string& path, synchronous how) {
    return store(path, {.synchronous = how});
}

struct amount {
    std::size_t entries = 0; ///< a multiple of `at_once`
    std::size_t at_once = batch;
};

[[nodiscard]] inline measure enqueue(const std::string& path, synchronous how, amount of) {
    auto to = open_store(path, how);
    std::vector<vouch::draft> drafts(of.at_once, {.queue = queue, .topic = topic, .payload = payload});
    const auto seconds = seconds_of([&] {
        for (std::size_t n = 0; n < of.entries; n += of.at_once) {
            for (auto& d : drafts) {
                d.id = next_id();
            }
            const auto receipts = vouch::enqueue(to, drafts, vouch::system_now());
            require(receipts.back().what == vouch::receipt::kind::inserted, "an entry was not inserted");
        }
    });
    return per_second(of.entries, seconds);
}

[[nodiscard]] inline measure enqueue_bare(const std::string& path, synchronous how, amount of) {
    bare::queue to(path, how == synchronous::full);
    bare::job j{.topic = topic, .payload = payload};
    const auto seconds = seconds_of([&] {
        for (std::size_t n = 0; n < of.entries; n += of.at_once) {
            to.begin();
            j.due_at = now_us();
            for (std::size_t i = 0; i < of.at_once; ++i) {
                j.id = next_id().bytes();
                to.enqueue(j);
            }
            to.commit();
        }
    });
    return per_second(of.entries, seconds);
}

/// Drains the queue through a runner. Returns the number of handled entries.
[[nodiscard]] inline std::size_t run_runner(store& from) {
    const vouch::outbox outbox(from);
    std::size_t handled = 0;
    vouch::router routes(outbox);
    routes.on("user.*", [&](vouch::delivery&) { ++handled; });
    vouch::runner runner(outbox, routes, {.queue = queue, .worker = "worker-1", .batch_size = batch, .lease = lease});
    const auto report = runner.run_until_idle();
    require(report.succeeded == handled && report.claimed == handled, "the runner did not settle what it handled");
    return handled;
}

[[nodiscard]] inline measure drain(const std::string& path, synchronous how, std::size_t entries) {
    std::ignore = enqueue(path, synchronous::normal, {entries});
    auto from = open_store(path, how);
    const auto seconds = seconds_of([&] { require(run_runner(from) == entries, "the runner did not drain all"); });
    return per_second(entries, seconds);
}

/// Stores `stored` entries and drains `of.entries` of them, with a transaction for each claim and each batch of
/// settles.
[[nodiscard]] inline measure drain_bare(const std::string& path, synchronous how, amount of, std::size_t stored) {
    std::ignore = enqueue_bare(path, synchronous::normal, {stored});
    bare::queue from(path, how == synchronous::full);
    std::vector<bare::job> claimed;
    std::size_t settled = 0;
    const auto seconds = seconds_of([&] {
        do {
            from.begin();
            from.claim(claimed, of.at_once, now_us(), lease.count());
            from.commit();
            from.begin();
            for (const auto& j : claimed) {
                settled += from.settle(j) ? 1U : 0U;
            }
            from.commit();
        } while (!claimed.empty() && settled < of.entries);
    });
    require(settled == of.entries, "the bare baseline did not drain all");
    return per_second(of.entries, seconds);
}

/// Uses one transaction for each batch of settles together with the next claim.
[[nodiscard]] inline measure drain_same_schema(const std::string& path, synchronous how, std::size_t entries) {
    std::ignore = enqueue(path, synchronous::normal, {entries});
    same_schema::queue from(path, how == synchronous::full);
    std::vector<same_schema::job> claimed;
    std::size_t settled = 0;
    const auto seconds = seconds_of([&] {
        do {
            const auto now = now_us();
            from.begin();
            for (const auto& j : claimed) {
                settled += from.settle(j, now) ? 1U : 0U;
            }
            from.claim(claimed, batch, now, lease.count());
            from.commit();
        } while (!claimed.empty());
    });
    require(settled == entries, "the same-schema baseline did not drain all");
    return per_second(entries, seconds);
}

struct shared_drain {
    measure rate{};
    std::size_t least = 0; ///< entries of the process that handled fewest
    std::size_t most = 0;
};

/// The work of one process. The caller must exit without destructors: folder and pipes belong to the parent.
[[nodiscard]] inline bool run_process(const std::string& path, synchronous how, int ready, int go, int done) {
    try {
        auto from = open_store(path, how);
        char byte = 0;
        const bool started = write(ready, &byte, 1) == 1 && read(go, &byte, 1) == 0;
        const std::size_t handled = run_runner(from);
        return started && write(done, &handled, sizeof handled) == sizeof handled;
    } catch (...) {
        return false;
    }
}

/// Several processes start at the same time and drain one file.
[[nodiscard]] inline shared_drain drain_together(const std::string& path, synchronous how, std::size_t entries,
                                                 std::size_t processes) {
    std::ignore =
        enqueue(path, synchronous::normal, {entries}); // closes the file: no connection may be open across a fork
    std::array<int, 2> ready{};
    std::array<int, 2> go{};
    std::array<int, 2> done{};
    require(pipe(ready.data()) == 0 && pipe(go.data()) == 0 && pipe(done.data()) == 0, "cannot create pipes");
    std::fflush(nullptr);
    for (std::size_t n = 0; n < processes; ++n) {
        if (fork() == 0) {
            close(go[1]);
            std::_Exit(run_process(path, how, ready[1], go[0], done[1]) ? EXIT_SUCCESS : EXIT_FAILURE);
        }
    }
    close(ready[1]);
    for (std::size_t n = 0; n < processes; ++n) {
        char byte = 0;
        require(read(ready[0], &byte, 1) == 1, "a process did not open the file");
    }
    close(done[1]);
    std::vector<std::size_t> handled(processes);
    const auto seconds = seconds_of([&] {
        close(go[1]);
        for (auto& one : handled) {
            require(read(done[0], &one, sizeof one) == sizeof one, "a process did not finish");
        }
    });
    std::size_t total = 0;
    for (const auto one : handled) {
        int status = 0;
        require(wait(&status) > 0 && status == 0, "a process failed");
        total += one;
    }
    for (const int end : {ready[0], go[0], done[0]}) {
        close(end);
    }
    require(total == entries, "the processes did not drain every entry exactly once");
    const auto [least, most] = std::minmax_element(handled.begin(), handled.end());
    return {per_second(entries, seconds), *least, *most};
}

/// A file with many pending or ended entries, to measure claims in.
class filled_file {
  public:
    struct shape {
        std::size_t pending = 0;
        std::size_t ended = 0;
    };

    filled_file(const std::string& path, shape of) : shape_(of), store_(open_store(path, synchronous::normal)) {
        fill(of.ended, true);
        fill(of.pending, false);
    }

    [[nodiscard]] shape of() const noexcept { return shape_; }

    /// Measures a claim from begin to commit. Then settles the batch and enqueues as many new entries.
    [[nodiscard]] measure claim() {
        std::vector<vouch::settle> settles;
        const auto now = vouch::system_now();
        std::vector<vouch::entry> claimed;
        const auto seconds = seconds_of([&] {
            claimed = vouch::claim(store_,
                                   {.queue = queue, .limit = batch, .now = now, .lease = lease, .worker = "worker-1"});
        });
        require(claimed.size() == batch, "fewer entries were claimed than the limit");
        for (const auto& e : claimed) {
            settles.emplace_back().ticket = vouch::ticket_of(e); // the outcome is `succeed`
        }
        vouch::transact(store_, [&](auto& tx) { std::ignore = tx.settle(settles, now); });
        fill(batch, false);
        return seconds;
    }

  private:
    void fill(std::size_t count, bool is_ended) {
        constexpr std::size_t at_once = 10'000;
        vouch::draft d{.queue = queue, .topic = topic, .payload = payload};
        if (is_ended) {
            d.result = "done";
        }
        for (std::size_t n = 0; n < count; n += at_once) {
            std::vector<vouch::draft> drafts(std::min(at_once, count - n), d);
            for (auto& one : drafts) {
                one.id = next_id();
            }
            std::ignore = vouch::enqueue(store_, drafts, vouch::system_now());
        }
    }

    shape shape_;
    store store_;
};

} // namespace sides
