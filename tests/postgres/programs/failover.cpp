// SPDX-License-Identifier: MIT
// Two servers with synchronous streaming replication: the primary is killed while writers work, its replica is promoted,
// and the writers go on there. Nothing that was said to be stored is missing on the new primary. Before that, server
// processes are ended while their COMMIT waits for a replica that is away: such a commit may be lost with the primary, so it
// may not be said to be stored.
//
//   failover [COUNT]      the number of failovers
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/postgres.hpp>

#include "postgres/programs/fault_server.hpp"
#include "postgres/programs/findings.hpp"
#include "postgres/programs/ledger.hpp"
#include "postgres/programs/writers.hpp"

namespace {

using namespace fault_program;
using namespace std::chrono_literals;
namespace postgres = vouch::postgres;

constexpr const char* settings = "synchronous_standby_names=*";

class servers {
  public:
    servers() : primary_(server_folder()), other_(server_folder() + "/other") {
        primary_.stop("fast");
        primary_.start(settings);
        other_.follow(primary_, settings);
        wait_for_replica();
    }
    servers(const servers&) = delete;
    servers& operator=(const servers&) = delete;
    ~servers() {
        try { // `cluster run` removes the folder of the first one only, which has the other's inside
            for (const auto* one : {&primary_, &other_}) {
                if (one->folder() != server_folder()) {
                    one->remove();
                }
            }
        } catch (const std::exception& e) {
            std::fprintf(stderr, "failover: %s\n", e.what());
        }
    }

    [[nodiscard]] const server& primary() const noexcept { return primary_; }
    [[nodiscard]] const server& replica() const noexcept { return other_; }

    /// Both hosts, always in the same order.
    [[nodiscard]] static std::string conninfo() {
        return "host=" + server_folder() + "," + server_folder() +
               "/other dbname=postgres user=postgres target_session_attrs=read-write";
    }

    /// Kills the primary and promotes the replica, which may have to be started.
    void fail_over() {
        primary_.stop("immediate");
        promote();
    }
    void promote() {
        other_.promote();
        std::swap(primary_, other_);
    }
    /// Makes a new replica in the place of the primary that was killed. Commits wait for it.
    void restore() {
        std::system(("rm -rf " + other_.folder() + "/data").c_str());
        other_.follow(primary_, settings);
        wait_for_replica();
    }
    void wait_for_replica() {
        direct on(primary_.conninfo());
        while (on.number("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 0) {
            std::this_thread::sleep_for(20ms);
        }
    }

  private:
    server primary_;
    server other_;
};

/// Writers work while the primary fails again and again.
void fail_over_under_load(servers& all, std::size_t count) {
    ledger book;
    error_counts errors;
    errors.set_expected(vouch::error_kind::read_only);
    std::chrono::steady_clock::duration longest{};
    {
        writers working({servers::conninfo(), servers::conninfo()}, {.prefix = "failover."}, book, errors);
        for (std::size_t i = 0; i < count; ++i) {
            std::this_thread::sleep_for(1s);
            all.fail_over();
            const auto begin = std::chrono::steady_clock::now();
            const auto answers = working.stored();
            all.restore();
            while (working.stored() < answers + 20) { // the writers go on by themselves
                std::this_thread::sleep_for(5ms);
            }
            longest = std::max(longest, std::chrono::steady_clock::now() - begin);
        }
        working.stop();
    }
    direct on(all.primary().conninfo());
    book.compare(on, "failover.");
    std::printf("  %zu failovers; errors: %s; with a new replica the writers went on after at most %.1f s\n", count,
                errors.text().c_str(), std::chrono::duration<double>(longest).count());
}

/// The replica is away, so that COMMIT waits; then the server's process is ended or its wait cancelled, and the primary is
/// lost.
void end_waiting_commits(servers& all, const std::string& how, std::uint64_t number) {
    const std::string prefix = "waiting" + std::to_string(number) + ".";
    postgres::store store(servers::conninfo() + " application_name=waiting", {.prefix = prefix});
    all.replica().stop("fast");
    error_counts errors;
    auto what = said::absent;
    const vouch::id which{.high = 1, .low = number};
    std::jthread writer([&] {
        what = errors.run([&] {
            auto tx = store.begin();
            std::ignore =
                tx.enqueue(std::array{vouch::draft{.id = which, .queue = "q", .topic = "t"}}, vouch::system_now());
            tx.commit();
        });
    });
    direct on(all.primary().conninfo());
    const std::string waiting =
        " FROM pg_stat_activity WHERE application_name = 'waiting' AND wait_event = 'SyncRep' AND query LIKE 'COMMIT%'";
    while (on.number("SELECT count(*)" + waiting) == 0) {
        std::this_thread::sleep_for(5ms);
    }
    on.run("SELECT " + how + "(pid)" + waiting);
    writer.join();
    all.primary().stop("immediate");
    all.replica().start(settings);
    all.promote();
    direct after(all.primary().conninfo());
    const bool is_there = after.number("SELECT count(*) FROM " + prefix + "entries") == 1;
    expect(!is_there, "the replica was away; if it has the commit, nothing was tested");
    expect(what != said::stored, how + ": a commit that the replica does not have is not said to be stored");
    std::printf("  %s of a commit that waits for the replica: %s\n", how.c_str(),
                what == said::stored   ? "said stored"
                : what == said::absent ? "said absent"
                                       : "in doubt");
    all.restore();
}

} // namespace

int main(int argc, char** argv) {
    try {
        const std::size_t count = argc > 1 ? std::stoul(argv[1]) : 2;
        servers all;
        end_waiting_commits(all, "pg_terminate_backend", 1);
        end_waiting_commits(all, "pg_cancel_backend", 2);
        fail_over_under_load(all, count);
        return finish();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "failover: %s\n", e.what());
        return 2;
    }
}
