// SPDX-License-Identifier: MIT
// Fixtures that cannot be tested, to check the suite's messages: `trouble throws|hangs [arguments of the suite]`; and
// reports of runs that have seen too little for a verdict: `trouble gaps`.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace {

bool throws = false;

struct hanging_store : vouch::memory::store {
    hanging_store() {}
    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id&) const {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::hours{1});
        }
    }
};

struct fixture {
    hanging_store open(const vouch::conformance::location&) {
        if (throws) {
            throw vouch::error(vouch::error_kind::io, "trouble: there is no such disk");
        }
        return {};
    }
};

/// The verdict on a run in which every clause passed and which has seen this.
std::string verdict_on(const vouch::conformance::tally& seen) {
    vouch::conformance::report r;
    r.gaps = vouch::conformance::detail::gaps_of(seen, {});
    std::string out(name_of(r.verdict()));
    return r.gaps.empty() ? out : out + ", " + r.gaps.front();
}

int print_gaps() {
    std::printf("29 of 100: %s\n", verdict_on({.histories = 100, .overlapping = 29}).c_str());
    std::printf("30 of 100: %s\n", verdict_on({.histories = 100, .overlapping = 30}).c_str());
    std::printf("no answers: %s\n", verdict_on({.commands = 1}).c_str());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 1 && argv[1] == std::string_view("gaps")) {
        return print_gaps();
    }
    throws = argc > 1 && argv[1] == std::string_view("throws");
    return vouch::conformance::run<fixture>({"trouble", "0"}, argc - 1, argv + 1);
}
