// SPDX-License-Identifier: MIT
// Tests the suite itself: a clause must kill every mutant, with every seed, and every conforming store must pass.
// Prints, for each mutant, the clause that killed it, in the column of the clause's layer, with the calls and
// milliseconds it took. The last line is `killed N of N`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "matrix_page.hpp"
#include "subject.hpp"

namespace {

namespace suite = vouch::conformance;
using mutants::arguments;
using mutants::subject;

/// The clauses that each mutant breaks, as text, from a file that `--coverage` has written.
std::map<std::string, std::string> read_coverage(const std::string& path) {
    std::map<std::string, std::string> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (const auto colon = line.rfind(": "); !line.starts_with('#') && colon != std::string::npos) {
            out[line.substr(0, colon)] = line.substr(colon + 2);
        }
    }
    return out;
}

/// The clause to try first.
std::string hint_for(const mutants::mutant& m, const std::map<std::string, std::string>& known) {
    const auto found = known.find(m.name);
    if (found != known.end()) {
        return found->second.substr(0, found->second.find(' '));
    }
    return m.variant.row_locks ? "ORDER" : ""; // where races are found first
}

std::vector<subject> subjects(const arguments& args) {
    std::vector<subject> all;
    const auto add = [&](subject c, std::size_t seeds) {
        c.task.seeds.clear();
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            c.task.seeds.push_back(seed);
        }
        c.task.tries_standard = c.must_pass ? args.standard : !args.quick;
        c.task.seconds_per_clause = c.must_pass ? 300 : c.task.seconds_per_clause; // slow is not wrong
        c.task.explains = args.verbose;
        if (c.name.find(args.only) != std::string::npos) {
            all.push_back(std::move(c));
        }
    };
    const bool covers = !args.coverage.empty();
    for (const auto& o : mutants::conforming_stores) {
        if (!covers) {
            subject conforming{
                .name = "conforming: " + std::string(o.name), .variant = {.trait = o.trait}, .must_pass = true};
            conforming.task.wants_all = true;
            add(std::move(conforming), args.passes);
        }
    }
    for (const auto& o : mutants::conforming_committing) {
        if (!covers) {
            subject conforming{.name = "conforming: " + std::string(o.name),
                               .variant = {.trait = o.trait, .committing = o.how},
                               .must_pass = true};
            conforming.task.wants_all = true;
            add(std::move(conforming), args.passes);
        }
    }
    for (const auto& o : mutants::conforming_row_locks) {
        if (!covers) {
            subject conforming{
                .name = "conforming: " + std::string(o.name), .variant = {.row_locks = o.how}, .must_pass = true};
            conforming.task.wants_all = true;
            add(std::move(conforming), args.passes);
        }
    }
    if (!covers) {
        subject conforming{.name = "conforming: sqlite, each handle in its own process",
                           .statement = &mutants::separate_handles,
                           .must_pass = true};
        conforming.task.wants_all = true;
        add(std::move(conforming), args.passes);
    }
    const auto known = read_coverage(covers ? args.coverage : args.hints);
    for (const auto& m : mutants::all_mutants()) {
        if (covers && args.missing && known.contains(m.name)) {
            continue;
        }
        subject mutant{.name = m.name, .variant = m.variant, .statement = m.statement};
        mutant.task.wants_all = covers;
        mutant.task.killer = covers ? "" : hint_for(m, known);
        add(std::move(mutant), covers ? 1 : args.seeds);
    }
    return all;
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

void print_head() {
    std::printf("%-52s", "");
    for (const auto& layer : layers()) {
        std::printf(" %-13s", layer.c_str());
    }
    std::printf(" %5s %8s %8s\n", "seeds", "calls", "ms");
}

/// Prints one row: the name, the killing clause in the column of its layer, the number of seeds that killed, and what
/// the first kill took. A `!` after the clause means that the store hung, crashed or threw.
void print_row(const subject& c, const arguments& args) {
    std::printf("%-52s", c.name.c_str());
    for (const auto& layer : layers()) {
        std::string cell = ".";
        for (const auto& d : c.kills) {
            if (d.layer == layer) {
                cell = d.how == "fails" ? d.clause : d.clause + "!";
                break;
            }
        }
        std::printf(" %-13s", cell.c_str());
    }
    const bool is_dead = !c.kills.empty();
    const auto first = is_dead ? c.kills.front() : mutants::kill_record{};
    std::printf(" %2zu/%-2zu %8llu %8.0f%s%s%s\n", c.seeds_that_kill(), c.must_pass ? 0 : args.seeds,
                static_cast<unsigned long long>(first.calls), first.milliseconds,
                is_dead && first.profile != "quick" ? " standard" : "",
                is_dead == c.must_pass ? (is_dead ? " REJECTED" : " SURVIVES") : "",
                c.error.empty() ? "" : (" " + c.error).c_str());
    std::size_t printed = 0;
    for (const auto& d : c.kills) {
        if (args.verbose || (c.must_pass && ++printed <= 5)) {
            std::printf("    seed %llu, %s %s: %s\n", static_cast<unsigned long long>(d.seed), d.clause.c_str(),
                        d.how.c_str(), d.what.c_str());
        }
    }
    std::fflush(stdout);
}

/// Prints and counts the rewrites that match no statement.
std::size_t count_idle_rewrites() {
    namespace sql = vouch::sqlite::detail;
    std::size_t idle = 0;
    for (const auto& r : mutants::rewrites) {
        const auto& s = sql::statements;
        if (std::none_of(s.begin(), s.end(), [&](const auto& one) {
                return mutants::rewritten(sql::text_of(one.which, "vouch_"), r).has_value();
            })) {
            std::printf("sqlite: %s: no statement matches %s; adapt the rewrite in sqlite_rewrites.hpp\n",
                        std::string(r.name).c_str(), r.from);
            idle += 1;
        }
    }
    return idle;
}

int judge(const arguments& args) {
    std::size_t wrong = count_idle_rewrites();
    std::size_t killed = 0;
    std::vector<std::string> survivors;
    auto all = subjects(args);
    print_head();
    mutants::run_all(
        all, args.jobs, [](subject&) {},
        [&](const subject& c) {
            print_row(c, args);
            wrong += c.error.empty() ? 0U : 1U;
            if (c.must_pass) {
                wrong += c.kills.empty() ? 0U : 1U;
            } else if (c.seeds_that_kill() == args.seeds) {
                killed += 1;
            } else {
                survivors.push_back(c.name + ", with " + std::to_string(args.seeds - c.seeds_that_kill()) + " of " +
                                    std::to_string(args.seeds) + " seeds");
            }
        });
    for (const auto& one : survivors) {
        std::printf("survives: %s\n", one.c_str());
    }
    std::printf("killed %zu of %zu\n", killed, killed + survivors.size());
    if (!args.html.empty() && !(std::ofstream(args.html) << mutants::matrix_page(all, args.seeds)).flush()) {
        std::fprintf(stderr, "cannot write %s\n", args.html.c_str());
        return 1;
    }
    return survivors.empty() && wrong == 0 ? 0 : 1;
}

/// Runs every example against every mutant. A clause that uses a whole budget is skipped once two mutants have broken
/// it.
int cover(const arguments& args) {
    auto all = subjects(args);
    std::map<std::string, std::size_t> broken;
    std::map<std::string, std::set<std::string>> by_name;
    std::size_t ended = 0;
    const auto begins = [&](subject& c) {
        for (const auto& clause : suite::all_clauses()) {
            const bool is_cheap = clause.layer == suite::layer::fixture || clause.layer == suite::layer::examples;
            if (!is_cheap && broken[std::string(clause.id)] >= 2) {
                c.task.skipped.insert(std::string(clause.id));
            }
        }
        c.task.tries_standard = false;
        c.task.seconds_per_clause = 10;
    };
    const auto note = [&](const subject& c) {
        auto& clauses = by_name[c.name];
        for (const auto& d : c.kills) {
            broken[d.clause] += clauses.insert(d.clause).second ? 1U : 0U;
        }
        std::fprintf(stderr, "%zu: %s\n", ++ended, c.name.c_str());
    };
    mutants::run_all(all, args.jobs, begins, note);
    // A mutant without a kill may have broken only skipped clauses: find one of them.
    std::vector<subject> rest;
    for (const auto& c : all) {
        if (by_name[c.name].empty()) {
            rest.push_back({.name = c.name, .variant = c.variant, .statement = c.statement});
        }
    }
    mutants::run_all(
        rest, args.jobs, [](subject&) {}, note);
    const auto kept = args.missing ? read_coverage(args.coverage) : std::map<std::string, std::string>{};
    std::ofstream file(args.coverage);
    file << "# Clauses that each mutant breaks with the quick profile. Written by `conformance_mutants --coverage`.\n";
    for (const auto& m : mutants::all_mutants()) {
        if (const auto line = kept.find(m.name); line != kept.end()) {
            file << m.name << ": " << line->second << "\n";
        } else if (const auto found = by_name.find(m.name); found != by_name.end()) {
            file << m.name << ":";
            for (const auto& clause : found->second) {
                file << " " << clause;
            }
            file << "\n";
        }
    }
    return file.flush() ? 0 : 1;
}

template <class Fixture>
int show_failure_of(Fixture& fixture, const arguments& args) {
    const suite::options how{.profile = suite::profile::quick, .clause = args.clause};
    const auto report = suite::check(
        fixture, how, {}, {.ended = [](const suite::clause_report& r) { return r.result != suite::result::fail; }});
    for (const auto& c : report.clauses) {
        if (c.result == suite::result::fail) {
            std::fputs(suite::failure_text(c, "./broken").c_str(), stdout);
            return 0;
        }
    }
    std::fprintf(stderr, "the mutant breaks no such clause with the quick profile\n");
    return 1;
}

/// Prints the first failure of a mutant as the author of such a store would see it.
int show(const arguments& args) {
    auto all = mutants::all_mutants();
    mutants::detail::add_violations(all, mutants::sanitizer_mutants);
    for (const auto& m : all) {
        if (m.name == args.show) {
            return mutants::with_fixture(m.variant, m.statement,
                                         [&](auto& fixture) { return show_failure_of(fixture, args); });
        }
    }
    std::fprintf(stderr, "there is no such mutant; --list prints their names\n");
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    const auto args = mutants::parse(argc, argv);
    if (args.is_wrong) {
        std::fputs(mutants::usage, stderr);
        return 64;
    }
    if (args.list) {
        for (const auto& m : mutants::all_mutants()) {
            std::printf("%-52s  %s\n", m.name.c_str(), m.sentence.c_str());
        }
        return 0;
    }
    if (!args.show.empty()) {
        return show(args);
    }
    return args.coverage.empty() ? judge(args) : cover(args);
}
