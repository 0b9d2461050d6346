// SPDX-License-Identifier: MIT
// Whether the suite has teeth: every broken store must be killed by a clause, and every merely odd one must pass.
// Prints which clause of which layer killed which; the last line is `killed N of N`.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contained_run.hpp"
#include "mutants.hpp"
#include "plain_fixture.hpp"
#include "sqlite_mutants.hpp"

namespace {

namespace suite = vouch::conformance;

struct arguments {
    std::string only{};
    std::string layer{};
    std::size_t seeds = 1;
    std::size_t jobs = 1;
    bool coverage = false;
    bool first = false;
    bool quick = false;
    bool list = false;
    bool verbose = false;
    bool is_wrong = false;
};

constexpr const char* usage = "  --only NAME   those whose name contains it\n"
                              "  --layer NAME  this layer alone\n"
                              "  --seeds N     each with N seeds; all must kill\n"
                              "  --coverage    run every clause, list those that no mutant breaks\n"
                              "  --first       stop each mutant at its first failure\n"
                              "  --quick       the quick budget only\n"
                              "  --jobs N      so many at a time\n"
                              "  --list        print the mutants and exit\n"
                              "  --verbose     say what was seen\n";

arguments parse(int argc, char** argv) {
    arguments out;
    const auto number = [&](int i, std::size_t& into) {
        const std::string_view text = i < argc ? argv[i] : "";
        const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
        out.is_wrong = out.is_wrong || wrong != std::errc{} || end != text.data() + text.size() || into == 0;
    };
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--only" && i + 1 < argc) {
            out.only = argv[++i];
        } else if (word == "--layer" && i + 1 < argc) {
            out.layer = argv[++i];
        } else if (word == "--seeds") {
            number(++i, out.seeds);
        } else if (word == "--jobs") {
            number(++i, out.jobs);
        } else if (word == "--coverage") {
            out.coverage = true;
        } else if (word == "--first") {
            out.first = true;
        } else if (word == "--quick") {
            out.quick = true;
        } else if (word == "--list") {
            out.list = true;
        } else if (word == "--verbose") {
            out.verbose = true;
        } else {
            out.is_wrong = true;
        }
    }
    return out;
}

/// A store to be judged, with one seed, and what has become of it.
struct candidate {
    std::string name{};
    mutants::temper temper{};
    const mutants::rewrite* statement = nullptr;
    bool must_pass = false;
    std::uint64_t seed = 1;
    suite::profile profile = suite::profile::quick;
    mutants::outcome outcome{};
};

void judge(const candidate& c, const arguments& asked, std::FILE* to) {
    suite::options how{.seed = c.seed, .profile = c.profile, .seconds_per_clause = 20};
    if (c.profile != suite::profile::quick || c.must_pass) {
        how.seconds_per_clause = 300;
    }
    for (const auto& clause : suite::all_clauses()) {
        if (name_of(clause.layer) == asked.layer) {
            how.layer = clause.layer;
        }
    }
    auto stop = mutants::until::first_failure_of_each_layer;
    if (asked.coverage || c.must_pass) {
        stop = mutants::until::end;
    } else if (asked.first || asked.seeds > 1) {
        stop = mutants::until::first_failure;
    }
    if (c.statement != nullptr) {
        mutants::rewrite_in_force = c.statement;
        mutants::sqlite_fixture fixture;
        mutants::detail::run_clauses(fixture, how, stop, to);
    } else {
        mutants::plain_fixture fixture(c.temper);
        mutants::detail::run_clauses(fixture, how, stop, to);
    }
}

std::vector<std::string> layers() {
    std::vector<std::string> out;
    for (const auto& c : suite::all_clauses()) {
        const std::string name(name_of(c.layer));
        if (std::find(out.begin(), out.end(), name) == out.end()) {
            out.push_back(name);
        }
    }
    return out;
}

void print_row(const candidate& c, bool verbose) {
    std::printf("%-52s", (c.name + (c.seed > 1 ? " #" + std::to_string(c.seed) : "")).c_str());
    for (const auto& layer : layers()) {
        std::string cell = ".";
        for (const auto& d : c.outcome.deaths) {
            if (d.layer == layer) {
                cell = d.how == "fails" ? d.clause : d.clause + "!";
                break;
            }
        }
        std::printf(" %-13s", cell.c_str());
    }
    const auto& o = c.outcome;
    const bool has_survived = !o.is_killed() && !c.must_pass;
    std::printf(" %7.0f ms %s%s%s\n", o.milliseconds, std::string(name_of(c.profile)).c_str(),
                has_survived ? " SURVIVES" : (o.is_killed() && c.must_pass ? " REJECTED" : ""), o.trouble.c_str());
    for (const auto& d : o.deaths) {
        if (verbose || c.must_pass || d.how != "fails") {
            std::printf("    %s %s: %s\n", d.clause.c_str(), d.how.c_str(),
                        (verbose ? d.what : d.what.substr(0, 200)).c_str());
        }
    }
    if (verbose) {
        std::printf("    slowest: %s, %.0f ms\n", o.slowest.second.c_str(), o.slowest.first);
    }
    std::fflush(stdout);
}

/// Runs all, some at a time; `done` is called for each in the order of their ends.
void run_all(std::vector<candidate>& all, const arguments& asked, const std::function<void(candidate&)>& done) {
    struct running {
        candidate* whose;
        std::unique_ptr<mutants::contained_run> run;
    };
    std::vector<running> at_work;
    std::size_t next = 0;
    const auto start = [&](candidate& c) {
        const auto patience = c.must_pass || c.profile != suite::profile::quick ? 1800 : 120;
        std::fprintf(stderr, "%zu of %zu: %s (%s)\n", next, all.size(), c.name.c_str(),
                     std::string(name_of(c.profile)).c_str());
        at_work.push_back({&c, std::make_unique<mutants::contained_run>([&](std::FILE* to) { judge(c, asked, to); },
                                                                        std::chrono::seconds{patience})});
    };
    while (next < all.size() || !at_work.empty()) {
        while (next < all.size() && at_work.size() < asked.jobs) {
            start(all[next++]);
        }
        std::vector<pollfd> ready;
        for (const auto& r : at_work) {
            ready.push_back({r.run->descriptor(), POLLIN, 0});
        }
        poll(ready.data(), ready.size(), 200);
        for (std::size_t i = ready.size(); i-- > 0;) {
            const bool has_ended = ready[i].revents != 0 && !at_work[i].run->read();
            if (!has_ended && !at_work[i].run->is_late()) {
                continue;
            }
            auto& c = *at_work[i].whose;
            c.outcome = at_work[i].run->finish();
            at_work.erase(at_work.begin() + static_cast<std::ptrdiff_t>(i));
            const bool goes_on = !c.outcome.is_killed() && c.profile == suite::profile::quick && !asked.quick;
            if (goes_on) {
                c.profile = suite::profile::standard;
                start(c);
            } else {
                done(c);
            }
        }
    }
}

std::vector<candidate> candidates(const arguments& asked) {
    std::vector<candidate> all;
    const auto add = [&](candidate c) {
        if (c.name.find(asked.only) != std::string::npos) {
            all.push_back(std::move(c));
        }
    };
    for (const auto& o : mutants::oddities) {
        add({.name = "odd: " + std::string(o.name), .temper = {.habit = o.habit}, .must_pass = true});
    }
    for (const auto& m : mutants::all_mutants()) {
        for (std::uint64_t seed = 1; seed <= asked.seeds; ++seed) {
            add({.name = m.name, .temper = m.temper, .statement = m.statement, .seed = seed});
        }
    }
    return all;
}

/// Rewrites that would change nothing.
std::size_t count_idle_rewrites() {
    namespace sql = vouch::sqlite::detail;
    std::size_t idle = 0;
    for (const auto& r : mutants::rewrites) {
        const auto& s = sql::statements;
        if (std::none_of(s.begin(), s.end(), [&](const auto& one) {
                return mutants::rewritten(sql::text_of(one.which, "vouch_"), r).has_value();
            })) {
            std::printf("no statement has: %s\n", r.from);
            idle += 1;
        }
    }
    return idle;
}

} // namespace

int main(int argc, char** argv) {
    const auto asked = parse(argc, argv);
    if (asked.is_wrong) {
        std::fputs(usage, stderr);
        return 64;
    }
    if (asked.list) {
        for (const auto& m : mutants::all_mutants()) {
            std::printf("%-52s %s\n", m.name.c_str(), m.sentence.c_str());
        }
        return 0;
    }
    std::size_t wrong = count_idle_rewrites();
    std::size_t killed = 0;
    std::size_t mutants_run = 0;
    std::set<std::string> proven;
    std::vector<std::string> survivors;
    std::printf("%-52s", "");
    for (const auto& layer : layers()) {
        std::printf(" %-13s", layer.c_str());
    }
    std::printf("\n");

    auto all = candidates(asked);
    run_all(all, asked, [&](candidate& c) {
        print_row(c, asked.verbose);
        wrong += c.outcome.trouble.empty() ? 0U : 1U;
        if (c.must_pass) {
            wrong += c.outcome.is_killed() ? 1U : 0U;
            return;
        }
        mutants_run += 1;
        killed += c.outcome.is_killed() ? 1U : 0U;
        if (!c.outcome.is_killed()) {
            survivors.push_back(c.name);
        }
        for (const auto& d : c.outcome.deaths) {
            proven.insert(d.clause);
        }
    });

    for (const auto& name : survivors) {
        std::printf("survives: %s\n", name.c_str());
    }
    if (asked.coverage) {
        for (const auto& c : suite::all_clauses()) {
            const bool was_run = asked.layer.empty() || name_of(c.layer) == asked.layer;
            if (was_run && !proven.contains(std::string(c.id))) {
                std::printf("unproven: %s %s\n", std::string(c.id).c_str(), std::string(c.sentence).c_str());
            }
        }
    }
    std::printf("killed %zu of %zu\n", killed, mutants_run);
    return killed == mutants_run && wrong == 0 ? 0 : 1;
}
