// SPDX-License-Identifier: MIT
// Ends server processes while writers enqueue, claim, settle and purge: `pg_terminate_backend` in the middle of COMMIT and
// elsewhere, `kill -9`, after which the server recovers from a crash, and immediate restarts. Half of the writers go through
// a proxy, which cuts their connections after random numbers of bytes. In the end the ledger of what the store said is
// compared with the tables.
//
//   kills [COUNT] [SEED]      COUNT processes are ended or connections cut
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <thread>

#include <signal.h>

#include "postgres/programs/cutting_proxy.hpp"
#include "postgres/programs/fault_server.hpp"
#include "postgres/programs/findings.hpp"
#include "postgres/programs/ledger.hpp"
#include "postgres/programs/writers.hpp"

namespace {

using namespace fault_program;
using namespace std::chrono_literals;

const std::string prefix = "kills.";
const std::string of_writers =
    " FROM pg_stat_activity WHERE application_name = 'kills_writer' AND pid <> pg_backend_pid()";

class killer {
  public:
    killer(const server& at, cutting_proxy& proxy, std::uint64_t seed)
        : server_(at), proxy_(proxy), on_(at.conninfo()), random_(seed) {}

    void kill(std::size_t count) {
        while (done() < count) {
            if (done() >= next_crash_) {
                next_crash_ += 100;
                crash();
            }
            if (done() >= next_restart_) {
                next_restart_ += 300;
                restart();
            }
            terminate();
            cut();
            std::this_thread::sleep_for(std::chrono::microseconds{random_() % 3000});
        }
    }

    void print() const {
        std::printf(
            "  %zu faults: %zu processes ended in COMMIT, %zu elsewhere, %zu by kill -9; %zu connections cut; %zu "
            "immediate restarts\n",
            done(), in_commit_, elsewhere_, crashes_, cuts_, restarts_);
    }

  private:
    [[nodiscard]] std::size_t done() const noexcept { return in_commit_ + elsewhere_ + crashes_ + cuts_ + restarts_; }

    /// Those in COMMIT, and now and then any one.
    void terminate() {
        const auto ended =
            on_.run("SELECT pg_terminate_backend(pid)" + of_writers + " AND state = 'active' AND query LIKE 'COMMIT%'");
        in_commit_ += ended.size();
        if (random_() % 8 == 0) {
            elsewhere_ +=
                on_.run("SELECT pg_terminate_backend(pid)" + of_writers + " ORDER BY random() LIMIT 1").size();
        }
    }

    void crash() {
        const auto found = on_.run("SELECT pid" + of_writers + " AND state = 'active' LIMIT 1");
        if (!found.empty() && ::kill(std::stoi(found[0][0]), SIGKILL) == 0) {
            crashes_ += 1;
        }
    }

    void cut() {
        if (is_cutting_ && !proxy_.has_cut()) {
            return;
        }
        cuts_ += is_cutting_ ? 1 : 0;
        is_cutting_ = true;
        using notices = cutting_proxy::server_notices;
        proxy_.cut_after(1 + random_() % 6000, random_() % 2 == 0 ? notices::at_once : notices::later);
    }

    void restart() {
        server_.stop("immediate");
        server_.start(settings);
        restarts_ += 1;
    }

  public:
    /// A commit waits a moment before it flushes, so that there is time to end its process.
    static constexpr const char* settings = "fsync=on commit_delay=500 commit_siblings=0";

  private:
    server server_;
    cutting_proxy& proxy_;
    bool is_cutting_ = false;
    direct on_;
    std::mt19937_64 random_;
    std::size_t in_commit_ = 0;
    std::size_t elsewhere_ = 0;
    std::size_t crashes_ = 0;
    std::size_t cuts_ = 0;
    std::size_t restarts_ = 0;
    std::size_t next_crash_ = 50;
    std::size_t next_restart_ = 150;
};

void play(std::size_t count, std::uint64_t seed) {
    const server at(server_folder());
    at.stop("fast");
    at.start(killer::settings);
    ledger book;
    error_counts errors;
    {
        const std::string name = " application_name=kills_writer";
        const auto folder = at.folder() + "/proxy";
        cutting_proxy proxy(folder, at.folder());
        writers all({at.conninfo() + name, server(folder).conninfo() + name}, {.prefix = prefix}, book, errors);
        killer kills(at, proxy, seed);
        kills.kill(count);
        all.stop();
        kills.print();
        expect(all.stored() > 0, "the writers have worked");
    }
    direct on(at.conninfo());
    book.compare(on, prefix);
    std::printf("  errors: %s\n", errors.text().c_str());
}

} // namespace

int main(int argc, char** argv) {
    try {
        const std::size_t count = argc > 1 ? std::stoul(argv[1]) : 400;
        const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 1;
        std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
        play(count, seed);
        return finish();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "kills: %s\n", e.what());
        return 2;
    }
}
