// SPDX-License-Identifier: MIT
// Cuts the power at random requests to the disk; unsynced data is lost or torn. With `synchronous = FULL` no
// acknowledged commit may be lost. With NORMAL the newest commits may be lost, whole and in order. With OFF some
// commits must be lost, or the disk of this test loses nothing. Some commits fail without a power cut: what a reader
// sees after such a commit must survive the next power cut.
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
    std::printf("synchronous=%s: power cuts %zu, commits acknowledged %zu, lost %zu (at %zu cuts), in doubt %zu "
                "(survived %zu, decided before the cut %zu), partial or out of order %zu, damaged %zu\n",
                name, f.points, f.acknowledged, f.lost, f.points_with_loss, f.in_doubt, f.landed, f.answered, f.mixed,
                f.damaged);
    if (as == mode::full) {
        for (const auto r : disk::all_requests) {
            const auto found = f.cuts.find(r);
            std::printf("  %-22s %5zu\n", name_of(r).data(), found == f.cuts.end() ? 0 : found->second);
        }
    }
    if (as == mode::off) {
        return expect(f.lost > 0,
                      "some commits are lost without syncs; if none is, the disk of this test loses nothing");
    }
    const bool is_sound = expect(f.damaged == 0, "the file is intact after every power cut") &&
                          expect(f.mixed == 0, "every transaction survives as a whole, and only with all earlier ones");
    return is_sound &&
           expect(f.answered > 0, "some commits fail without a power cut; if none does, that case was not tested") &&
           (as == mode::normal || expect(f.lost == 0, "no acknowledged commit is lost"));
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
