// SPDX-License-Identifier: MIT
// Whether the kit for clients of brokers has teeth: every broken client is killed by the clause that is meant for its
// defect, and the whole one passes every clause.
//
//   mutants                     run them all; exit 0 if every verdict is right
//   mutants --show N [OPTION]   the report of the kit about broken client number N; 0 is the whole client
//   mutants --hang [OPTION]     the report about a client that hangs
//   mutants --bare [OPTION]     the report about a fixture with one hook
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <vouch/conformance_broker.hpp>

#include "client.hpp"

namespace {

namespace kit = vouch::conformance::broker;

broken::defect shown = broken::defect::none;

struct shown_fixture : broken::fixture {
    shown_fixture() : broken::fixture(shown) {}
};

/// Has one hook only.
struct bare_fixture {
    auto publisher() { return broken::publisher(world); }
    auto consumer() { return broken::consumer(world); }
    std::size_t message_max() { return broken::message_max; }
    broken::server world{broken::defect::none};
};

/// A publisher that never returns.
struct hanging_fixture {
    struct client {
        std::vector<vouch::confirmation> publish(std::span<const vouch::message>) {
            for (;;) {
                std::this_thread::sleep_for(std::chrono::seconds{1});
            }
        }
    };
    auto publisher() { return client{}; }
    auto consumer() { return broken::consumer(world); }
    broken::server world{broken::defect::none};
};

[[nodiscard]] std::string passes() {
    broken::fixture whole;
    const auto report = vouch::conformance::check_broker(whole, {.silence = std::chrono::milliseconds{50}});
    return report.verdict() == kit::conformity::conformant ? "" : kit::to_text(report, "mutants --show 0");
}

/// Broken clients make clauses wait in vain, so the patience is short. A kill for lack of time would be a wrong one only
/// if the whole client were slow too.
[[nodiscard]] std::string survives(const broken::mutant& m) {
    broken::fixture one(m.defect);
    const auto report = vouch::conformance::check_broker(one, {.clause = std::string(m.clause),
                                                               .patience = std::chrono::milliseconds{800},
                                                               .silence = std::chrono::milliseconds{50}});
    const auto is_killed = report.count(kit::result::fail) == 1;
    return is_killed ? "" : "SURVIVES " + std::string(m.clause) + ": " + std::string(m.sentence) + "\n";
}

/// Most of the time is waiting, so many run at the same time.
[[nodiscard]] int run_all() {
    constexpr std::size_t threads_max = 8;
    std::vector<std::string> problems(std::size(broken::mutants));
    std::atomic<std::size_t> next = 0;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < threads_max; ++i) {
            threads.emplace_back([&] {
                for (auto n = next++; n < problems.size(); n = next++) {
                    problems[n] = survives(broken::mutants[n]);
                }
            });
        }
    }
    problems.push_back(passes());
    std::size_t wrong = 0;
    for (const auto& p : problems) {
        std::fputs(p.c_str(), stdout);
        wrong += p.empty() ? 0U : 1U;
    }
    std::printf("%zu broken clients and a whole one: %zu wrong verdicts\n", std::size(broken::mutants), wrong);
    return wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode.empty()) {
        return run_all();
    }
    if (mode == "--hang") {
        return vouch::conformance::run_broker<hanging_fixture>({"hanging", "0"}, argc - 1, argv + 1);
    }
    if (mode == "--bare") {
        return vouch::conformance::run_broker<bare_fixture>({"bare", "0"}, argc - 1, argv + 1);
    }
    const auto number = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
    if (mode != "--show" || argc < 3 || number > std::size(broken::mutants)) {
        std::fprintf(stderr, "usage: %s [--show N | --hang | --bare [OPTION]...]\n", argv[0]);
        return 64;
    }
    shown = number == 0 ? broken::defect::none : broken::mutants[number - 1].defect;
    return vouch::conformance::run_broker<shown_fixture>({"shown", "0"}, argc - 2, argv + 2);
}
