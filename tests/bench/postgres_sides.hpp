// SPDX-License-Identifier: MIT
// The work that the PostgreSQL benchmark measures: by the store, through whole runners, and by hand. Each call empties its
// table first; a drain fills it, which is not measured.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "postgres_by_hand.hpp"
#include "postgres_server.hpp"
#include "ratio.hpp"

namespace sides {

using bench::measure;
using bench::per_second;
using bench::require;
using bench::seconds_of;
using store = vouch::postgres::store;

inline constexpr vouch::duration lease = std::chrono::minutes{5};
inline const std::string queue = "mail";
inline const std::string topic = "user.registered";
inline const std::string payload(200, 'x');

[[nodiscard]] inline std::int64_t now_us() { return vouch::system_now().time_since_epoch().count(); }

/// Makes ids like UUIDv7: the high half grows, the low half is random.
[[nodiscard]] inline vouch::id next_id() {
    static std::atomic<std::uint64_t> count = 0;
    thread_local std::mt19937_64 random{++count};
    return {.high = ++count, .low = random()};
}
[[nodiscard]] inline std::string bytes_of(const vouch::id& id) {
    const auto raw = id.bytes();
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

/// How much work, and how it is divided.
struct amount {
    std::size_t entries = 0; ///< a multiple of `at_once` times `connections`
    std::size_t at_once = 1;
    std::size_t connections = 1;
};

/// Runs `work(ready)` on as many threads as there are connections, and returns the entries per second, and per second of
/// CPU time of this process and the server. Each thread calls `ready` when it is connected; the time begins when all have.
template <class Work>
[[nodiscard]] measure on_connections(const bench::postgres_server& server, const amount& of, const Work& work) {
    std::latch connected(static_cast<std::ptrdiff_t>(of.connections) + 1);
    std::atomic<bool> has_failed = false;
    std::vector<std::jthread> threads;
    for (std::size_t n = 0; n < of.connections; ++n) {
        threads.emplace_back([&] {
            try {
                work([&] { connected.arrive_and_wait(); });
            } catch (...) {
                has_failed = true;
            }
        });
    }
    connected.arrive_and_wait();
    const auto before = server.cpu();
    auto seconds = seconds_of([&] { threads.clear(); });
    seconds.cpu += server.cpu() - before;
    require(!has_failed, "a thread of the benchmark failed");
    return per_second(of.entries, seconds);
}

class side {
  public:
    explicit side(const bench::postgres_server& on) : server_(on), conninfo_(on.conninfo()), store_(conninfo_) {
        for (const auto& one : {bare_, same_}) {
            const by_hand::queue created(conninfo_, one);
        }
    }

    [[nodiscard]] measure enqueue(const amount& of) {
        empty(same_);
        return on_connections(server_, of, [&](const auto& ready) {
            std::vector<vouch::draft> drafts(of.at_once, {.queue = queue, .topic = topic, .payload = payload});
            std::ignore = store_.begin().find(next_id()); // connects
            ready();
            for (std::size_t n = 0; n < of.entries / of.connections; n += of.at_once) {
                for (auto& d : drafts) {
                    d.id = next_id();
                }
                const auto receipts = vouch::enqueue(store_, drafts, vouch::system_now());
                require(receipts.back().what == vouch::receipt::kind::inserted, "an entry was not inserted");
            }
        });
    }

    [[nodiscard]] measure enqueue_by_hand(const by_hand::dialect& on, const amount& of) {
        empty(on);
        return on_connections(server_, of, [&](const auto& ready) {
            by_hand::queue to(conninfo_, on);
            std::vector<std::string> ids(of.at_once);
            ready();
            for (std::size_t n = 0; n < of.entries / of.connections; n += of.at_once) {
                for (auto& id : ids) {
                    id = bytes_of(next_id());
                }
                of.at_once == 1 ? to.enqueue(ids.front(), now_us(), payload) : to.enqueue(ids, now_us(), payload);
            }
        });
    }

    /// Through runners.
    [[nodiscard]] measure drain(const amount& of) {
        fill(same_, of.entries);
        return drain_filled(of);
    }

    /// The same while a transaction of another connection holds a snapshot that was taken before.
    [[nodiscard]] measure drain_beside_snapshot(const amount& of) {
        fill(same_, of.entries);
        wire::connection reader(conninfo_);
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM " + same_.table);
        return drain_filled(of);
    }

    [[nodiscard]] measure drain_by_hand(const by_hand::dialect& on, const amount& of) {
        fill(on, of.entries);
        std::atomic<std::size_t> settled = 0;
        const auto rate = on_connections(server_, of, [&](const auto& ready) {
            by_hand::queue from(conninfo_, on);
            std::vector<by_hand::job> jobs;
            ready();
            do {
                settled += from.settle_and_claim(jobs, of.at_once, now_us(), lease.count());
            } while (!jobs.empty());
        });
        require(settled == of.entries, "the hand-written queue did not drain all");
        return rate;
    }

    [[nodiscard]] const by_hand::dialect& bare() const noexcept { return bare_; }
    [[nodiscard]] const by_hand::dialect& same() const noexcept { return same_; }

  private:
    [[nodiscard]] measure drain_filled(const amount& of) {
        std::atomic<std::size_t> handled = 0;
        const auto rate = on_connections(server_, of, [&](const auto& ready) {
            const vouch::outbox outbox(store_);
            vouch::router routes(outbox);
            std::size_t mine = 0;
            routes.on("user.*", [&](vouch::delivery&) { ++mine; });
            vouch::runner runner(outbox, routes,
                                 {.queue = queue, .worker = "worker-1", .batch_size = of.at_once, .lease = lease});
            std::ignore = store_.begin().find(next_id()); // connects
            ready();
            const auto report = runner.run_until_idle();
            require(report.succeeded == mine, "the runner did not settle what it handled");
            handled += mine;
        });
        require(handled == of.entries, "the runners did not drain all");
        return rate;
    }

    void empty(const by_hand::dialect& on) { wire::connection(conninfo_).execute("TRUNCATE " + on.table); }

    void fill(const by_hand::dialect& on, std::size_t entries) {
        empty(on);
        by_hand::queue to(conninfo_, on);
        std::vector<std::string> ids(std::min<std::size_t>(entries, 1000));
        for (std::size_t n = 0; n < entries; n += ids.size()) {
            for (auto& id : ids) {
                id = bytes_of(next_id());
            }
            to.enqueue(ids, now_us(), payload);
        }
        wire::connection(conninfo_).execute("ANALYZE " + on.table);
    }

    const bench::postgres_server& server_;
    std::string conninfo_;
    store store_;
    by_hand::dialect bare_ = by_hand::bare_table();
    by_hand::dialect same_ = by_hand::same_schema();
};

/// A table with many entries that cannot be claimed, to measure claims beside them.
class crowded_table {
  public:
    enum class crowd : std::uint8_t { future, blocked, claimed, ended };

    /// Commits do not wait for the disk: its time would hide that of the claims.
    crowded_table(const std::string& conninfo, crowd of, std::size_t count)
        : conninfo_(conninfo + " options=-csynchronous_commit=off"),
          prefix_("crowd" + std::to_string(static_cast<int>(of)) + '_' + std::to_string(count) + '.'),
          store_(conninfo_, {.prefix = prefix_}) {
        const std::string gate = of == crowd::future    ? "4000000000000000"
                                 : of == crowd::claimed ? "3900000000000000"
                                                        : "NULL";
        const std::string state = of == crowd::claimed ? "2" : of == crowd::ended ? "3" : "0";
        wire::connection db(conninfo_);
        db.execute(
            "INSERT INTO " + prefix_ + "entries SELECT nextval('" + prefix_ +
            "sequence'), ('00000000-0000-0000-0001-' || lpad(to_hex(n), 12, '0'))::uuid, " + gate +
            ", 4000000000000000, 1, 0, 0, 1, n, NULL, n, NULL, 0, 1, NULL, " + state +
            ", false, true, NULL, NULL, 'mail', 't', NULL, NULL, " + (of == crowd::blocked ? "'lane' || n" : "NULL") +
            ", '', '', NULL, NULL, NULL, NULL, 'payload' FROM generate_series(1, " + std::to_string(count) + ") AS n");
        db.execute("VACUUM ANALYZE " + prefix_ + "entries");
        put(10 * batch);
    }
    crowded_table(const crowded_table&) = delete;
    crowded_table& operator=(const crowded_table&) = delete;
    ~crowded_table() {
        try {
            wire::connection(conninfo_).execute("DROP SCHEMA " + prefix_.substr(0, prefix_.size() - 1) + " CASCADE");
        } catch (...) { // NOLINT(bugprone-empty-catch): the server is removed as a whole
        }
    }

    /// Measures a claim from begin to commit. Then settles the batch and enqueues as many new entries.
    [[nodiscard]] measure claim() {
        std::vector<vouch::entry> claimed;
        const auto now = vouch::system_now();
        const auto seconds = seconds_of([&] {
            claimed = vouch::claim(store_,
                                   {.queue = queue, .limit = batch, .now = now, .lease = lease, .worker = "worker-1"});
        });
        require(claimed.size() == batch, "fewer entries were claimed than the limit");
        std::vector<vouch::settle> settles;
        for (const auto& e : claimed) {
            settles.emplace_back().ticket = vouch::ticket_of(e); // the outcome is `succeed`
        }
        vouch::transact(store_, [&](auto& tx) { std::ignore = tx.settle(settles, now); });
        put(batch);
        return seconds;
    }

  private:
    static constexpr std::size_t batch = 50;

    void put(std::size_t count) {
        std::vector<vouch::draft> drafts(count, {.queue = queue, .topic = topic, .payload = payload});
        for (auto& d : drafts) {
            d.id = next_id();
        }
        std::ignore = vouch::enqueue(store_, drafts, vouch::system_now());
    }

    std::string conninfo_;
    std::string prefix_;
    store store_;
};

} // namespace sides
