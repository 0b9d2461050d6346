// SPDX-License-Identifier: MIT
// Measures the memory store, as ratios within one run. All times are CPU times of this thread, because the machine may
// be busy. Exits with 1 if a ratio misses the limit printed beside it.
//
// 1. The whole cycle: enqueue, claim and settle in batches of 50, one transaction each, with 200-byte payloads,
//    compared with the hand-written `memory_baseline.hpp`. Both run alternately, each round on new stores; medians of
//    the rounds. steady: each batch is claimed and settled before the next is enqueued; backlog: all are enqueued, then
//    drained.
// 2. The claim of a batch, per entry: from begin to commit, including the copies that are returned and destroyed. All
//    pending entries are due, in order of arrival or in random order; ended entries, if any, were settled before.
//    Growth is relative to the smallest number of pending entries without ended ones. The caches are emptied before
//    each claim: a small store would otherwise stay in them, and a large one would not.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <vouch/memory.hpp>

#include "memory_baseline.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace {

constexpr std::size_t batch = 50;
constexpr std::size_t rounds = 25;
constexpr std::size_t entries_per_round = 100'000;
constexpr double cycle_floor = 1.0;
constexpr std::array<std::size_t, 3> pending_sizes{1'000, 100'000, 1'000'000};
constexpr std::size_t claims = pending_sizes.front() / batch;
constexpr vouch::time_point start{std::chrono::hours{24 * 365 * 55}};
constexpr vouch::duration lease = std::chrono::minutes{5};
const std::string payload(200, 'x');

[[nodiscard]] double cpu_seconds() {
    std::timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class Work>
[[nodiscard]] double seconds_of(Work&& work) {
    const auto before = cpu_seconds();
    work();
    return cpu_seconds() - before;
}

[[nodiscard]] double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "the benchmark is not valid: %s failed\n", what);
        std::exit(2);
    }
}

/// Makes ids like UUIDv7: the high half grows, the low half is random.
class id_maker {
  public:
    template <class Id>
    [[nodiscard]] Id next() {
        return {.high = ++count_, .low = random_()};
    }

  private:
    std::uint64_t count_ = 0;
    std::mt19937_64 random_{1};
};

/// Keeps freed memory in the process. Otherwise some of it would be returned after each round and cleared by the kernel
/// in the next one, at the cost of the side that needs it first.
void keep_memory() {
#if defined(__GLIBC__)
    constexpr int a_lot = 1 << 30;
    mallopt(M_TRIM_THRESHOLD, a_lot);
    mallopt(M_MMAP_THRESHOLD, a_lot);
#endif
}

class vouch_side {
  public:
    vouch_side() : drafts_(batch, {.queue = "mail", .topic = "user.registered", .payload = payload}) {}

    /// Enqueues a batch that is due now or, if not `in_order`, at random times before.
    void enqueue(bool in_order = true) {
        for (auto& d : drafts_) {
            d.id = ids_.next<vouch::id>();
            d.due_at = in_order ? now_ : start - std::chrono::seconds{d.id.low % 1'000'000};
        }
        auto tx = store_.begin();
        const auto receipts = tx.enqueue(drafts_, now_);
        tx.commit();
        require(receipts.back().what == vouch::receipt::kind::inserted, "enqueue");
    }

    void claim() {
        settles_.clear();
        auto tx = store_.begin();
        const auto claimed =
            tx.claim({.queue = "mail", .limit = batch, .now = now_, .lease = lease, .worker = "worker-1"});
        tx.commit();
        require(claimed.size() == batch, "claim");
        for (const auto& e : claimed) {
            settles_.emplace_back().ticket = vouch::ticket_of(e); // the outcome is `succeed`
        }
    }

    void settle() {
        auto tx = store_.begin();
        const auto settlements = tx.settle(settles_, now_);
        tx.commit();
        require(settlements.back().verdict == vouch::verdict::applied, "settle");
        now_ += std::chrono::milliseconds{1};
    }

  private:
    vouch::memory::store store_;
    vouch::time_point now_ = start;
    id_maker ids_;
    std::vector<vouch::draft> drafts_;
    std::vector<vouch::settle> settles_;
};

class baseline_side {
  public:
    baseline_side() : jobs_(batch, {.topic = "user.registered", .payload = payload}) {}

    void enqueue() {
        for (auto& j : jobs_) {
            j.id = ids_.next<baseline::id>();
            j.due_at = now_;
        }
        require(queue_.enqueue(jobs_) == batch, "baseline enqueue");
    }

    void claim() {
        tickets_.clear();
        const auto claimed = queue_.claim(batch, now_, lease.count());
        require(claimed.size() == batch, "baseline claim");
        for (const auto& j : claimed) {
            tickets_.push_back({j.id, j.epoch});
        }
    }

    void settle() {
        require(queue_.settle(tickets_) == batch, "baseline settle");
        now_ += 1000;
    }

  private:
    baseline::queue queue_;
    std::int64_t now_ = start.time_since_epoch().count();
    id_maker ids_;
    std::vector<baseline::job> jobs_;
    std::vector<baseline::ticket> tickets_;
};

template <class Side>
void steady(Side& side) {
    for (std::size_t n = 0; n < entries_per_round; n += batch) {
        side.enqueue();
        side.claim();
        side.settle();
    }
}

template <class Side>
void backlog(Side& side) {
    for (std::size_t n = 0; n < entries_per_round; n += batch) {
        side.enqueue();
    }
    for (std::size_t n = 0; n < entries_per_round; n += batch) {
        side.claim();
        side.settle();
    }
}

template <class Side, class Work>
[[nodiscard]] double entries_per_second(Work& work) {
    Side side;
    return static_cast<double>(entries_per_round) / seconds_of([&] { work(side); });
}

/// Does the same work on new stores of both sides, alternately. Effects of a busy machine concern both sides of a round
/// and cancel out in its ratio. The first round is a warm-up.
template <class Work>
[[nodiscard]] bool compare_cycle(const char* name, Work work) {
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> ratios;
    for (std::size_t round = 0; round <= rounds; ++round) {
        const auto our_rate = entries_per_second<vouch_side>(work);
        const auto their_rate = entries_per_second<baseline_side>(work);
        if (round > 0) {
            ours.push_back(our_rate);
            theirs.push_back(their_rate);
            ratios.push_back(our_rate / their_rate);
        }
    }
    const auto ratio = median(ratios);
    const bool good = ratio >= cycle_floor;
    std::printf("%-10s %12.0f %12.0f %8.2f %9.2f  %s\n", name, median(ours), median(theirs), ratio, cycle_floor,
                good ? "ok" : "BELOW");
    return good;
}

/// Writes to more memory than the caches hold.
void empty_caches() {
    static std::vector<unsigned char> memory(std::size_t{64} << 20);
    for (std::size_t i = 0; i < memory.size(); i += 64) {
        memory[i] += 1;
    }
}

struct queue_shape {
    std::size_t pending = 0;
    std::size_t ended = 0;
    bool in_order = true;
};

void time_claims(const queue_shape& shape, std::vector<double>& seconds) {
    vouch_side side;
    for (std::size_t n = 0; n < shape.ended; n += batch) {
        side.enqueue();
        side.claim();
        side.settle();
    }
    for (std::size_t n = 0; n < shape.pending; n += batch) {
        side.enqueue(shape.in_order);
    }
    for (std::size_t n = 0; n < claims; ++n) {
        empty_caches();
        seconds.push_back(seconds_of([&] { side.claim(); }));
    }
}

/// Nanoseconds per entry.
[[nodiscard]] double claim_cost(const queue_shape& shape) {
    std::vector<double> seconds;
    const int stores = shape.pending <= 100'000 ? 5 : 1; // a large store takes long to fill
    for (int n = 0; n < stores; ++n) {
        time_claims(shape, seconds);
    }
    return median(seconds) * 1e9 / batch;
}

[[nodiscard]] bool measure_cycles() {
    std::printf("memory store: whole cycle, batches of %zu, %zu-byte payloads, %zu entries, median of %zu rounds\n",
                batch, payload.size(), entries_per_round, rounds);
    std::printf("%-10s %12s %12s %8s %9s\n", "", "vouch/s", "baseline/s", "ratio", "at least");
    const bool steady_is_good = compare_cycle("steady", [](auto& side) { steady(side); });
    const bool backlog_is_good = compare_cycle("backlog", [](auto& side) { backlog(side); });
    return steady_is_good && backlog_is_good;
}

[[nodiscard]] bool measure_claims() {
    std::printf("\nmemory store: claim of %zu, caches emptied, nanoseconds per entry, median of at least %zu claims\n",
                batch, claims);
    std::printf("%-10s %10s %10s %12s %8s %9s\n", "order", "pending", "ended", "claim/entry", "growth", "at most");
    bool good = true;
    for (const bool in_order : {true, false}) {
        double first = 0;
        for (const auto pending : pending_sizes) {
            for (const auto ended : {std::size_t{0}, pending}) {
                // The better of two measurements, for the reference, too: now and then a whole measurement is twice as
                // slow as all others.
                const queue_shape what{.pending = pending, .ended = ended, .in_order = in_order};
                const auto cost = std::min(claim_cost(what), claim_cost(what));
                first = first > 0 ? first : cost;
                // Allows log n for the index, and a factor of two.
                const auto allowed = 2 * std::log2(pending) / std::log2(pending_sizes.front());
                const auto growth = cost / first;
                const bool within = growth <= allowed;
                std::printf("%-10s %10zu %10zu %12.0f %8.2f %9.2f  %s\n", in_order ? "arrival" : "random", pending,
                            ended, cost, growth, allowed, within ? "ok" : "ABOVE");
                good &= within;
            }
        }
    }
    return good;
}

} // namespace

int main() {
    keep_memory();
    const bool cycles = measure_cycles();
    const bool claims_stay = measure_claims();
    return cycles && claims_stay ? EXIT_SUCCESS : EXIT_FAILURE;
}
