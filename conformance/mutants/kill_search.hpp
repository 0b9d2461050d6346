// SPDX-License-Identifier: MIT
// Runs the suite against one store to find a clause that kills it with each of some seeds, or all clauses that it
// breaks. Each event is written as a line at once, so that the parent process can read it if the store hangs or
// crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/conformance/check.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>

namespace mutants {

namespace suite = vouch::conformance;

struct search_options {
    std::vector<std::uint64_t> seeds{1};
    std::string killer{};            ///< the clause to try first; empty: all clauses, in order
    bool wants_all = false;          ///< find every clause that fails, not only the first
    bool tries_standard = true;      ///< try the `standard` profile on a store that survives `quick`
    std::string after{};             ///< only clauses after this one; empty: all
    std::set<std::string> skipped{}; ///< clauses not to run
    bool explains = false;
    std::size_t seconds_per_clause = 30; ///< with the `quick` profile
};

template <class Fixture>
class kill_search {
  public:
    kill_search(Fixture& fixture, const search_options& what, std::FILE* to)
        : fixture_(fixture), options_(what), to_(to) {}

    void run() {
        auto killer = options_.killer;
        for (const auto seed : options_.seeds) {
            std::fprintf(to_, "seed\t%llu\n", static_cast<unsigned long long>(seed));
            if (!killer.empty() && fails(seed, suite::profile::quick, killer)) {
                continue;
            }
            if (fails(seed, suite::profile::quick, {}) ||
                (options_.tries_standard && fails(seed, suite::profile::standard, {}))) {
                killer = killer.empty() ? last_killer_ : killer;
            }
        }
    }

  private:
    [[nodiscard]] bool fails(std::uint64_t seed, suite::profile profile, const std::string& clause) {
        suite::options how{.seed = seed, .profile = profile, .clause = clause, .explains = options_.explains};
        constexpr std::size_t longer = 300;
        how.seconds_per_clause = profile == suite::profile::quick ? options_.seconds_per_clause : longer;
        bool has_begun = options_.after.empty();
        std::uint64_t calls = 0;
        double milliseconds = 0;
        bool has_failed = false;
        const auto begins = [&](const suite::clause& c) {
            const std::string id(c.id);
            const bool is_wanted = has_begun && !options_.skipped.contains(id);
            has_begun = has_begun || id == options_.after;
            if (is_wanted) {
                std::fprintf(to_, "begin\t%s\t%s\t%s\n", id.c_str(), text(name_of(c.layer)).c_str(),
                             text(name_of(profile)).c_str());
                std::fflush(to_);
            }
            return is_wanted;
        };
        const auto ended = [&](const suite::clause_report& r) {
            calls += r.calls;
            milliseconds += r.milliseconds;
            if (r.result != suite::result::fail) {
                return true;
            }
            has_failed = true;
            last_killer_ = r.clause.id;
            const auto what = one_line(r.failure.what + ": " + r.failure.seen + " / " + r.failure.expected);
            std::fprintf(to_, "fail\t%s\t%s\t%s\t%.0f\t%llu\t%s\n", last_killer_.c_str(),
                         text(name_of(r.clause.layer)).c_str(), text(name_of(profile)).c_str(), milliseconds,
                         static_cast<unsigned long long>(calls), what.substr(0, 2000).c_str());
            return options_.wants_all;
        };
        std::ignore = suite::check(fixture_, how, {}, {begins, ended});
        return has_failed;
    }

    [[nodiscard]] static std::string text(std::string_view words) { return std::string(words); }
    [[nodiscard]] static std::string one_line(std::string text) {
        for (auto& c : text) {
            c = c == '\n' || c == '\t' ? ' ' : c;
        }
        return text;
    }

    Fixture& fixture_;
    const search_options& options_;
    std::FILE* to_;
    std::string last_killer_{};
};

} // namespace mutants
