// SPDX-License-Identifier: MIT
// Kills processes and checks that no work is lost. Producers, runners, purges and migrations are killed with SIGKILL at
// named points and at random moments. Afterwards every order has exactly one entry, every entry has succeeded, and no
// claim has settled an entry that another claim held.
//
//   kill [--rounds N] [--seed N]                both broken variants, which must be caught, then the healthy store
//   kill --broken two-commits | no-fence        one broken variant only; exits with 1 because it is caught
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sqlite/programs/kill_findings.hpp"
#include "sqlite/programs/kill_points.hpp"
#include "sqlite/programs/kill_rounds.hpp"
#include "sqlite/programs/kill_scene.hpp"

namespace {

using namespace kill_test;

constexpr std::size_t kills_per_point = 30;
constexpr std::uint64_t broken_rounds = 60;

struct settings {
    std::uint64_t rounds = 500;
    std::uint64_t seed = 1;
    variant as = variant::healthy;
};

[[nodiscard]] settings read_settings(const std::vector<std::string>& words) {
    settings out;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const auto& value = words.at(i + 1);
        if (words[i] == "--rounds") {
            out.rounds = std::stoull(value);
        } else if (words[i] == "--seed") {
            out.seed = std::stoull(value);
        } else if (words[i] == "--broken" && (value == "two-commits" || value == "no-fence")) {
            out.as = value == "no-fence" ? variant::no_fence : variant::two_commits;
        } else {
            throw std::invalid_argument(words[i]);
        }
    }
    return out;
}

[[nodiscard]] bool report(const std::vector<std::string>& problems) {
    for (const auto& c : problems) {
        std::printf("  FAILED: %s\n", c.c_str());
    }
    return problems.empty();
}

[[nodiscard]] bool is_sound(const settings& how) {
    rounds test(how.as, how.seed);
    test.play(how.rounds);
    const auto found = test.finish();
    auto problems = found.problems();
    if (test.failures() != 0) {
        problems.push_back(std::to_string(test.failures()) + " processes failed without being killed");
    }
    const auto doubles_max = test.kills() * batch_size;
    if (found.double_executions > doubles_max) {
        problems.emplace_back("there are more double executions than the kills explain");
    }
    if (how.as == variant::healthy) {
        for (const auto at : all_points) {
            std::printf("  %-36s %5zu\n", name_of(at).data(), test.kills(at));
            if (test.kills(at) < kills_per_point) {
                problems.push_back("too few kills " + std::string(name_of(at)));
            }
        }
        if (found.late_settles == 0) {
            problems.emplace_back("no settle came late, so the fence was not tested");
        }
    }
    std::printf("  orders %zu, executions %zu, late settles refused %zu, integrity %s\n", found.orders,
                found.executions, found.late_settles, found.integrity.c_str());
    std::printf("rounds %llu, entries %zu, double executions %zu (at most %zu), losses %zu\n",
                static_cast<unsigned long long>(how.rounds), found.entries, found.double_executions, doubles_max,
                found.losses);
    return report(problems);
}

/// Whether the test finds the defect of a broken variant.
[[nodiscard]] bool is_caught(variant as, std::uint64_t seed) {
    std::printf("%s:\n", as == variant::no_fence ? "without the fence" : "order and entry in two commits");
    rounds test(as, seed);
    test.play(broken_rounds);
    const auto found = test.finish();
    const bool caught = (as == variant::no_fence ? found.wrongly_settled : found.losses) != 0;
    for (const auto& c : found.problems()) {
        std::printf("  caught: %s\n", c.c_str());
    }
    return caught || report({"a broken store passed"});
}

} // namespace

int main(int argc, char** argv) {
    try {
        const auto how = read_settings({argv + 1, argv + argc});
        std::printf("seed %llu\n", static_cast<unsigned long long>(how.seed));
        if (how.as != variant::healthy) {
            return is_sound(how) ? 0 : 1;
        }
        const bool caught = is_caught(variant::two_commits, how.seed) && is_caught(variant::no_fence, how.seed);
        std::printf("the store:\n");
        return is_sound(how) && caught ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "kill: %s\n", e.what());
        return 2;
    }
}
