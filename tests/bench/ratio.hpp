// SPDX-License-Identifier: MIT
// Ratios of two implementations that run alternately, as medians over rounds, printed with their floor and goal.
// Effects of a busy machine concern both implementations of a round and cancel out in its ratio.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Throws if the run is not valid.
inline void require(bool holds, const char* what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

/// Seconds or a rate per second: by the wall clock, and by the CPU time of this process.
struct measure {
    double clock = 0;
    double cpu = 0;
};

[[nodiscard]] inline measure present() {
    std::timespec cpu{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
            static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) * 1e-9};
}

template <class Work>
[[nodiscard]] measure seconds_of(Work&& work) {
    const auto before = present();
    work();
    const auto after = present();
    return {after.clock - before.clock, after.cpu - before.cpu};
}

[[nodiscard]] inline measure per_second(std::size_t count, const measure& seconds) {
    return {static_cast<double>(count) / seconds.clock, static_cast<double>(count) / seconds.cpu};
}

[[nodiscard]] inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// The rounds of one row.
class rounds {
  public:
    void add(const measure& ours, const measure& theirs) {
        ours_.push_back(ours.clock);
        theirs_.push_back(theirs.clock);
        clock_.push_back(ours.clock / theirs.clock);
        cpu_.push_back(ours.cpu / theirs.cpu);
    }

    [[nodiscard]] double ours() const { return median(ours_); }
    [[nodiscard]] double theirs() const { return median(theirs_); }
    [[nodiscard]] measure ratio() const { return {median(clock_), median(cpu_)}; }

  private:
    std::vector<double> ours_{};
    std::vector<double> theirs_{};
    std::vector<double> clock_{};
    std::vector<double> cpu_{};
};

enum class by {
    clock,
    cpu,
    clock_alone, ///< another process did the work, so its CPU time is unknown
};
enum class direction { at_least, at_most };

struct target {
    double floor = 0;
    double goal = 0;
    direction is = direction::at_least;
};

/// Prints rows and records whether one missed its floor.
class table {
  public:
    static void head(const char* title, const char* ours, const char* theirs) {
        std::printf("\n%-46s %8s %8s %7s %7s %7s %7s %8s\n", title, ours, theirs, "clock", "cpu", "floor", "goal",
                    "to goal");
    }

    /// Prints one row. A star marks the ratio that is compared with the floor.
    void row(const std::string& name, const rounds& of, by which, const target& t) {
        const auto ratio = of.ratio();
        const auto value = which == by::cpu ? ratio.cpu : ratio.clock;
        const double sign = t.is == direction::at_least ? 1 : -1;
        const bool good = sign * (value - t.floor) >= 0;
        std::printf("%-46s %8.0f %8.0f %6.2f%c ", name.c_str(), of.ours(), of.theirs(), ratio.clock,
                    which == by::cpu ? ' ' : '*');
        if (which == by::clock_alone) {
            std::printf("%6s  ", "-");
        } else {
            std::printf("%6.2f%c ", ratio.cpu, which == by::cpu ? '*' : ' ');
        }
        std::printf("%7.2f %7.2f %8.2f  %s\n", t.floor, t.goal, std::max(sign * (t.goal - value), 0.0),
                    good ? "ok" : "MISSED");
        std::fflush(stdout);
        is_good_ = is_good_ && good;
    }

    [[nodiscard]] bool is_good() const noexcept { return is_good_; }

  private:
    bool is_good_ = true;
};

} // namespace bench
