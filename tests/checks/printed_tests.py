#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the test a failure prints is one: it compiles, the memory store passes it, the broken store does not.

    printed_tests.py MUTANTS_PROGRAM [N]    of every N-th mutant, 7 if not said; 1: of all

Which clauses a mutant breaks is in conformance/mutants/coverage.txt. Of those that print a test, each mutant is asked for
another one. A test that shows no wrong answer (what is wrong may be what a call costs) must only pass on the memory store.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What threads, processes and runners do is printed as a picture; of capabilities the memory store has its own.
PICTURES = re.compile(r"^(ORDER|HISTORY|CRASH|SIM|COST|FAULT|WAKE|FIX|CAP)-")
SHOWN_AT_LEAST = 0.9
LONG = 100_000

MAIN = """
int main() {
    alarm(300);
    int wrong = 0;
    for (const auto& p : printed) {
        const auto told = [&](const char* what, const char* why) {
            std::printf("%s, %s: %s: %s\\n", p.mutant, p.clause, what, why);
            wrong += 1;
        };
        try {
            std::map<int, vouch::memory::store> stores;
            open_memory open = [&](int n) { return stores[n]; };
            p.on_memory(open);
        } catch (const std::exception& e) {
            told("the memory store does not pass", e.what());
        }
        if (p.shows) {
            try {
                run_on_mutant(p);
                told("the mutant passes", "the printed test shows nothing");
            } catch (const std::logic_error&) {
            } catch (const std::exception& e) {
                told("the mutant fails in another way", e.what());
            }
        }
    }
    return wrong == 0 ? 0 : 1;
}
"""

HEAD = """
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>
#include "candidate.hpp"

using open_memory = std::function<vouch::memory::store(int)>;
using open_mutant = std::function<vouch::conformance::any_store(int)>;

struct test {
    const char* mutant;
    const char* clause;
    bool shows;
    void (*on_memory)(open_memory&);
    void (*on_mutant)(open_mutant&);
};

template <class Fixture>
void run_on(Fixture& fixture, const test& t) {
    static int folders = 0;
    const auto root = std::filesystem::current_path() / std::to_string(++folders);
    open_mutant open = [&](int n) {
        const vouch::conformance::location where(root / std::to_string(n));
        std::filesystem::create_directories(where.directory());
        return vouch::conformance::erase([&] { return fixture.open(where); });
    };
    t.on_mutant(open);
}

void run_on_mutant(const test& t) {
    for (const auto& m : mutants::all_mutants()) {
        if (m.name == t.mutant) {
            mutants::with_fixture(m.temper, m.statement, [&](auto& fixture) { run_on(fixture, t); });
        }
    }
}
"""


def broken_clauses():
    text = (ROOT / "conformance/mutants/coverage.txt").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        name, _, clauses = line.rpartition(": ")
        yield name, [c for c in clauses.split() if not PICTURES.match(c)]


def printed(program, mutant, clause):
    said = subprocess.run([program, "--show", mutant, "--clause", clause], capture_output=True, text=True).stdout
    code = re.search(r"^    #include <vouch/conformance.hpp>\n(.*?^    \}\n)", said, re.S | re.M)
    return re.sub(r"^    ", "", code.group(1), flags=re.M) if code else None


def main():
    program, every = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    tests, silent, asked = [], [], 0
    for i, (mutant, clauses) in list(enumerate(broken_clauses()))[::every]:
        if not clauses:
            continue
        clause = clauses[i % len(clauses)]
        code = printed(program, mutant, clause)
        asked += 1
        if code is not None and len(code) > LONG:
            sys.exit(f"{mutant}, {clause}: nobody reads a test of {len(code)} bytes")
        if code is not None:
            tests.append((mutant, clause, code))
        if code is None or "// seen: " not in code:
            silent.append(f"{mutant}, {clause}")
    shown = asked - len(silent)
    source = HEAD
    for i, (_, _, code) in enumerate(tests):
        source += f"\nnamespace case_{i} {{\n{code}}}\n"
    source += "\nconst test printed[] = {\n"
    for i, (mutant, clause, code) in enumerate(tests):
        shows = "true" if "// seen: " in code else "false"
        source += f'    {{"{mutant}", "{clause}", {shows}, case_{i}::replay<open_memory&>, case_{i}::replay<open_mutant&>}},\n'
    source += "};\n" + MAIN
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        where = Path(folder)
        (where / "printed.cpp").write_text(source, encoding="utf-8")
        include = [f"-I{ROOT / part}" for part in ("include", "conformance/include", "conformance/mutants",
                                                   "backends/memory/include", "backends/sqlite/include")]
        build = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror", *include, "printed.cpp", "-o", "printed",
                 "-lsqlite3", "-pthread"]
        if subprocess.run(build, cwd=where).returncode != 0:
            sys.exit("a printed test does not compile")
        if subprocess.run([where / "printed"], cwd=where).returncode != 0:
            sys.exit("a printed test is none")
    for line in silent:
        print(f"{line}: no wrong answer is shown")
    print(f"{asked} failures: {len(tests)} tests compile and pass on the memory store, {shown} of them show what is wrong")
    if shown < SHOWN_AT_LEAST * asked:
        sys.exit("too few printed tests show what is wrong")


if __name__ == "__main__":
    main()
