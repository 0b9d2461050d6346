// SPDX-License-Identifier: MIT
// The power goes at random requests to the disk, and what was not synced is forgotten or torn. With
// `synchronous = FULL` nothing acknowledged is lost; with NORMAL the newest commits may be, whole and in order; with
// OFF commits must be seen to be lost, or the disk of this test forgets nothing. Now and then a commit fails though the
// power stays: what a reader is told then must be what is there when the power has gone and come back.
//
//   power_loss [--points N] [--seed N]
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sqlite/programs/disk.hpp"
#include "sqlite/programs/disk_vfs.hpp"
#include "sqlite/programs/power_findings.hpp"
#include "sqlite/programs/power_trial.hpp"

namespace {

using namespace power_test;

struct settings {
    std::uint64_t points = 1500;
    std::uint64_t seed = 1;
};

[[nodiscard]] settings read_settings(const std::vector<std::string>& words) {
    settings out;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        if (words[i] == "--points") {
            out.points = std::stoull(words.at(i + 1));
        } else if (words[i] == "--seed") {
            out.seed = std::stoull(words.at(i + 1));
        } else {
            throw std::invalid_argument(words[i]);
        }
    }
    return out;
}

[[nodiscard]] bool expect(bool holds, const char* what) {
    if (!holds) {
        std::printf("  FAILED: %s\n", what);
    }
    return holds;
}

[[nodiscard]] bool passes(disk_vfs& vfs, mode as, const char* name, const settings& how) {
    trial t(vfs, as, how.seed);
    while (t.found().points < how.points) {
        t.cut_the_power();
    }
    const auto& f = t.found();
    std::printf("synchronous=%s: points tried %zu, commits acknowledged %zu, lost %zu (at %zu points), in doubt %zu "
                "(landed %zu, answered %zu), half done or out of order %zu, damaged %zu\n",
                name, f.points, f.acknowledged, f.lost, f.points_with_loss, f.in_doubt, f.landed, f.answered, f.mixed,
                f.damaged);
    if (as == mode::full) {
        for (const auto r : disk::all_requests) {
            const auto found = f.cuts.find(r);
            std::printf("  %-22s %5zu\n", name_of(r).data(), found == f.cuts.end() ? 0 : found->second);
        }
    }
    if (as == mode::off) {
        return expect(f.lost > 0, "nothing was lost without syncs: this disk forgets nothing");
    }
    const bool is_sound = expect(f.damaged == 0, "a file was not sound after the power came back") &&
                          expect(f.mixed == 0, "a transaction came back by halves, or without an earlier one");
    return is_sound && expect(f.answered > 0, "no commit failed while the power stayed") &&
           (as == mode::normal || expect(f.lost == 0, "an acknowledged commit was lost"));
}

} // namespace

int main(int argc, char** argv) {
    try {
        const auto how = read_settings({argv + 1, argv + argc});
        std::printf("seed %llu\n", static_cast<unsigned long long>(how.seed));
        disk_vfs vfs;
        const bool full = passes(vfs, mode::full, "FULL", how);
        const bool normal = passes(vfs, mode::normal, "NORMAL", {how.points / 2, how.seed});
        const bool off = passes(vfs, mode::off, "OFF", {how.points / 5, how.seed});
        return full && normal && off ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "power_loss: %s\n", e.what());
        return 2;
    }
}
