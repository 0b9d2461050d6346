// SPDX-License-Identifier: MIT
// Four processes claim from one file while a fifth fills it. Leases are short. Sometimes a process sleeps longer than
// its lease, so another takes over and its settles come too late. Each process logs every ticket and every verdict it
// gets. Afterwards the logs together must show that
// 1. no ticket (an id with an epoch) was issued twice, and no epoch of an entry is missing;
// 2. every entry was settled exactly once, with its last ticket, and is stored as succeeded;
// 3. a verdict was stale only if a later ticket had been issued, and some verdicts were stale;
// 4. every process did at least half as much as the busiest one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <istream>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/folder.hpp"

namespace {

using steady = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;
using vouch::sqlite::store;

constexpr std::size_t processes = 4;
constexpr std::uint64_t entries = 20'000;
constexpr std::size_t batch = 40;
constexpr std::size_t batches_per_nap = 20;
constexpr std::chrono::milliseconds lease{150};
constexpr std::chrono::milliseconds nap{2 * lease};
constexpr unsigned seconds_max = 240;
constexpr double share_floor = 0.5;
const std::string queue = "mail";

[[nodiscard]] vouch::id nth_id(std::uint64_t n) { return {.high = n, .low = n}; }

/// The expectations that did not hold, and how often.
std::map<std::string, std::size_t> failures;

void expect(bool holds, const char* what) {
    if (!holds) {
        failures[what] += 1;
    }
}

// A log has a line for each event, with its entry and epoch.

enum class happening : char { claimed = 'c', applied = 'a', stale = 's', other = '?' };

struct line {
    happening what{};
    std::uint64_t entry = 0;
    std::uint64_t epoch = 0;
};

std::ostream& operator<<(std::ostream& to, const line& l) {
    return to << static_cast<char>(l.what) << ' ' << l.entry << ' ' << l.epoch << '\n';
}

std::istream& operator>>(std::istream& from, line& l) {
    char what = 0;
    from >> what >> l.entry >> l.epoch;
    l.what = static_cast<happening>(what);
    return from;
}

[[nodiscard]] happening happening_of(vouch::verdict answer) {
    switch (answer) {
    case vouch::verdict::applied: return happening::applied;
    case vouch::verdict::stale: return happening::stale;
    default: return happening::other;
    }
}

// The work of a process.

class claimer {
  public:
    claimer(const std::string& path, const std::string& log, std::string name)
        : store_(path), log_(log), name_(std::move(name)) {}

    /// Runs until no work is left. Returns the longest wait for the write lock.
    milliseconds run(std::size_t first_nap) {
        for (std::size_t batches = first_nap;; ++batches) {
            const auto claimed = claim();
            if (claimed.empty()) {
                if (store_.find(nth_id(entries)) && !store_.next_due(queue)) {
                    return worst_wait_;
                }
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
                continue;
            }
            if (batches % batches_per_nap == 0) {
                std::this_thread::sleep_for(nap);
            }
            settle(claimed);
        }
    }

  private:
    [[nodiscard]] store::transaction begin() {
        const auto before = steady::now();
        auto tx = store_.begin();
        worst_wait_ = std::max<milliseconds>(worst_wait_, steady::now() - before);
        return tx;
    }

    [[nodiscard]] std::vector<vouch::entry> claim() {
        auto tx = begin();
        auto claimed =
            tx.claim({.queue = queue, .limit = batch, .now = vouch::system_now(), .lease = lease, .worker = name_});
        tx.commit();
        for (const auto& e : claimed) {
            log_ << line{happening::claimed, e.id.high, e.epoch};
        }
        return claimed;
    }

    void settle(const std::vector<vouch::entry>& claimed) {
        std::vector<vouch::settle> settles;
        for (const auto& e : claimed) {
            settles.emplace_back().ticket = vouch::ticket_of(e); // the outcome is `succeed`
        }
        auto tx = begin();
        const auto answers = tx.settle(settles, vouch::system_now());
        tx.commit();
        for (std::size_t i = 0; i < answers.size(); ++i) {
            log_ << line{happening_of(answers[i].verdict), claimed[i].id.high, claimed[i].epoch};
        }
    }

    store store_;
    std::ofstream log_;
    std::string name_;
    milliseconds worst_wait_{};
};

/// Enqueues the entries slowly: an expired lease is claimed next only if the waiting entries are younger.
void produce(const std::string& path) {
    constexpr std::chrono::milliseconds oldest{20};
    constexpr std::uint64_t at_once = 200;
    store to(path);
    for (std::uint64_t n = 0; n < entries; n += at_once) {
        for (;;) {
            const auto due = to.next_due(queue);
            if (!due || *due > vouch::system_now() - oldest) {
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        std::vector<vouch::draft> drafts(at_once, {.queue = queue, .topic = "user.registered", .payload = "x"});
        for (std::uint64_t i = 0; i < at_once; ++i) {
            drafts[i].id = nth_id(n + i + 1);
        }
        vouch::enqueue(to, drafts, vouch::system_now());
    }
}

struct pipe_ends {
    pipe_ends() {
        if (pipe(ends.data()) != 0) {
            throw std::runtime_error("cannot create a pipe");
        }
    }
    std::array<int, 2> ends{}; // to read from, to write to
};

[[nodiscard]] std::string log_of(const sqlite_test::folder& in, std::size_t process) {
    return in.file("log-" + std::to_string(process));
}

[[nodiscard]] bool be_process(const sqlite_test::folder& in, const std::string& path, std::size_t number,
                              const pipe_ends& ready, const pipe_ends& go, const pipe_ends& waits) {
    try {
        alarm(seconds_max); // in case the parent has died
        close(go.ends[1]);
        claimer it(path, log_of(in, number), "process-" + std::to_string(number));
        char byte = 0;
        if (write(ready.ends[1], &byte, 1) != 1 || read(go.ends[0], &byte, 1) != 0) {
            return false;
        }
        const std::pair<std::size_t, double> worst{number, it.run(number * batches_per_nap / processes + 1).count()};
        return write(waits.ends[1], &worst, sizeof worst) == sizeof worst;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "process %zu: %s\n", number, e.what());
        return false;
    }
}

/// Returns the longest wait of each process for the write lock, in milliseconds.
[[nodiscard]] std::array<double, processes> let_them_meet(const sqlite_test::folder& in, const std::string& path) {
    const pipe_ends ready;
    const pipe_ends go;
    const pipe_ends waits;
    for (std::size_t n = 0; n < processes; ++n) { // no connection is open here
        if (fork() == 0) {
            const bool went_well = be_process(in, path, n, ready, go, waits);
            std::_Exit(went_well ? EXIT_SUCCESS : EXIT_FAILURE); // only the parent removes the folder
        }
    }
    close(ready.ends[1]);
    close(waits.ends[1]);
    char byte = 0;
    for (std::size_t n = 0; n < processes; ++n) {
        expect(read(ready.ends[0], &byte, 1) == 1, "every process opens the file");
    }
    close(go.ends[1]);
    produce(path);
    std::array<double, processes> worst{};
    for (std::size_t n = 0; n < processes; ++n) {
        std::pair<std::size_t, double> one{};
        int status = 0;
        expect(wait(&status) > 0 && status == 0 && read(waits.ends[0], &one, sizeof one) == sizeof one,
               "every process exits with 0 and reports its waits");
        worst.at(one.first) = one.second;
    }
    return worst;
}

// The check of the logs.

struct story {
    std::size_t claims = 0;
    std::size_t applied = 0;
    std::size_t stale = 0;
    std::set<std::uint64_t> claimed{}; ///< epochs
    std::vector<std::uint64_t> late{}; ///< epochs that were refused
    std::uint64_t settled = 0;         ///< the epoch that was applied

    void add(const line& l) {
        switch (l.what) {
        case happening::claimed:
            claims += 1;
            claimed.insert(l.epoch);
            break;
        case happening::applied:
            applied += 1;
            settled = l.epoch;
            break;
        case happening::stale:
            stale += 1;
            late.push_back(l.epoch);
            break;
        case happening::other: expect(false, "a settle is applied or stale"); break;
        }
    }
};

void check_entry(const store& in, std::uint64_t number, const story& s) {
    const auto stored = in.find(nth_id(number));
    expect(stored && stored->state == vouch::state::succeeded, "an entry is stored as succeeded");
    expect(s.claims == s.claimed.size(), "no ticket is issued twice");
    expect(stored && !s.claimed.empty() && *s.claimed.rbegin() == s.claimed.size() && stored->epoch == s.claimed.size(),
           "the epochs of an entry have no gap");
    expect(s.applied == 1, "an entry is settled exactly once");
    expect(!s.claimed.empty() && s.settled == *s.claimed.rbegin(), "an entry is settled with its last ticket");
    expect(std::all_of(s.late.begin(), s.late.end(), [&](auto epoch) { return epoch < s.settled; }),
           "a settle is refused only after a takeover");
}

[[nodiscard]] bool is_sound(const std::string& path) {
    sqlite3* db = nullptr;
    std::string answer;
    const auto read_answer = [](void* to, int, char** values, char**) {
        *static_cast<std::string*>(to) += values[0];
        return 0;
    };
    const bool read = sqlite3_open(path.c_str(), &db) == SQLITE_OK &&
                      sqlite3_exec(db, "PRAGMA integrity_check", read_answer, &answer, nullptr) == SQLITE_OK;
    sqlite3_close(db);
    return read && answer == "ok";
}

} // namespace

int main() {
    const sqlite_test::folder in;
    const auto path = in.fresh_path();
    { const store created(path); }
    const auto started = steady::now();
    const auto worst = let_them_meet(in, path);
    const std::chrono::duration<double> took = steady::now() - started;

    std::map<std::uint64_t, story> stories;
    story total;
    std::vector<std::size_t> shares;
    std::printf("%-10s %9s %9s %9s %9s %15s\n", "process", "claimed", "settled", "stale", "share", "longest wait, ms");
    for (std::size_t n = 0; n < processes; ++n) {
        story own;
        std::ifstream log(log_of(in, n));
        for (line l; log >> l;) {
            stories[l.entry].add(l);
            own.add(l);
            total.add(l);
        }
        shares.push_back(own.applied);
        std::printf("%-10zu %9zu %9zu %9zu %8.1f%% %15.1f\n", n, own.claims, own.applied, own.stale,
                    100.0 * static_cast<double>(own.applied) / static_cast<double>(entries), worst.at(n));
    }

    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    const auto share = static_cast<double>(*least) / static_cast<double>(*most);
    std::printf("smallest / largest share: %.2f (limit %.2f); longest wait %.1f ms; %.1f s, %.0f entries per second\n",
                share, share_floor, *std::max_element(worst.begin(), worst.end()), took.count(),
                static_cast<double>(entries) / took.count());

    expect(stories.size() == entries, "every entry is claimed");
    const store after(path);
    for (const auto& [number, s] : stories) {
        check_entry(after, number, s);
    }
    expect(after.counts(queue)[vouch::state::succeeded] == entries, "no entry is lost");
    expect(total.stale > 0, "some leases expire before the settle; if none does, takeovers were not tested");
    expect(share >= share_floor, "every process settles at least half as many entries as the busiest one");
    expect(is_sound(path), "the file passes integrity_check");
    for (const auto& [what, times] : failures) {
        std::printf("FAILED %zu times: %s\n", times, what.c_str());
    }
    return failures.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
