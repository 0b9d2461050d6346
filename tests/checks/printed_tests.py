#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the tests that failures print: each one compiles, passes on the memory store and fails on the mutant.

    printed_tests.py MUTANTS_PROGRAM [N]    for every N-th mutant (default 7; 1: all)

conformance/mutants/coverage.txt says which clauses a mutant breaks. The script picks one of them, a different one for each
mutant. A printed test that shows no wrong answer, for instance because pages break at the wrong entry, only has to pass on the
memory store.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Failures with threads, processes, waits or runners print a picture, not a test. The memory store has other capabilities.
PICTURES = re.compile(r"^((ORDER|HISTORY|CRASH|SIM|COST|FAULT|WAKE|WAIT|THREAD|PROC|FIX|CAP)-|LIFE-(08|09|10)$|COMMIT-(08|1[1-4]|20)$)")
TOO_LONG = "bytes, too many to print."
SHOWN_AT_LEAST = 0.9
BYTES_MAX = 100_000

MAIN = """
int main() {
    alarm(300);
    int wrong = 0;
    for (const auto& p : printed) {
        const auto report = [&](const char* what, const char* why) {
            std::printf("%s, %s: %s: %s\\n", p.mutant, p.clause, what, why);
            wrong += 1;
        };
        try {
            std::map<int, vouch::memory::store> stores;
            open_memory open = [&](int n) { return stores[n]; };
            p.on_memory(open);
        } catch (const std::exception& e) {
            report("the memory store fails the test", e.what());
        }
        if (p.shows) {
            try {
                run_on_mutant(p);
                report("the mutant passes the test", "the test does not show the defect");
            } catch (const std::logic_error&) {
            } catch (const vouch::error& e) {
                // A transaction that the mutant leaves open may end the test earlier.
                if (e.kind() != vouch::error_kind::misuse) {
                    report("the mutant fails with another error", e.what());
                }
            } catch (const std::exception& e) {
                report("the mutant fails with another exception", e.what());
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
#include "subject.hpp"

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
            mutants::with_fixture(m.variant, m.statement, [&](auto& fixture) { run_on(fixture, t); });
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
    return re.sub(r"^    ", "", code.group(1), flags=re.M) if code else TOO_LONG if TOO_LONG in said else None


def main():
    program, every = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    tests, silent, asked = [], [], 0
    for i, (mutant, clauses) in list(enumerate(broken_clauses()))[::every]:
        if not clauses:
            continue
        clause = clauses[i % len(clauses)]
        code = printed(program, mutant, clause)
        if code == TOO_LONG:
            continue
        asked += 1
        if code is not None and len(code) > BYTES_MAX:
            sys.exit(f"{mutant}, {clause}: the printed test has {len(code)} bytes, the limit is {BYTES_MAX}")
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
            sys.exit("a printed test does not tell the mutant from the memory store; see above")
    for line in silent:
        print(f"{line}: the printed test shows no wrong answer")
    print(f"{asked} failures: {len(tests)} tests compile and pass on the memory store, {shown} of them show the defect")
    if shown < SHOWN_AT_LEAST * asked:
        sys.exit(f"only {shown} of {asked} printed tests show the defect, at least {SHOWN_AT_LEAST:.0%} must")


if __name__ == "__main__":
    main()
