#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that clauses, checks and mutants match. Fails on

- a clause without a check, or a check that no clause names;
- a mutant that breaks no clause;
- more than ten clauses that no mutant breaks (all of them are printed as unproven);
- a file of the suite that mentions mutants;
- with MUTANTS_PROGRAM: a coverage file that does not list exactly the program's mutants.

    loose_ends.py STORE_PROGRAM [MUTANTS_PROGRAM]

conformance/mutants/coverage.txt says which mutant breaks which clauses. `MUTANTS_PROGRAM --coverage FILE` writes it.
"""

import re
import subprocess
import sys
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parent.parent.parent / "conformance"
CHECKS = CONFORMANCE / "include/vouch/conformance/clauses"
COVERAGE = CONFORMANCE / "mutants/coverage.txt"
UNPROVEN_MAX = 10


def listed(program):
    return subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()


def check_ends(wrong):
    """Every clause names a check, and every function that takes a trial is named by a clause or called by a check."""
    for file in sorted(CHECKS.glob("*.hpp")):
        text = file.read_text(encoding="utf-8")
        table = "".join(re.findall(r"clause\{.*?\},\n", text, re.S))
        named = set(re.findall(r"(\w+_checks::\w+)", table))
        clauses = re.findall(r'clause\{\s*"([A-Z]+-\d\d)"(.*?)\},\n', text, re.S)
        wrong += [f"{name}: the clause has no check" for name, rest in clauses if not re.search(r"\w+_checks::\w+", rest)]
        for space, body in re.findall(r"namespace (\w+_checks) \{(.*?)\n\} // namespace \1", text, re.S):
            for name in re.findall(r"\nvoid (\w+)\(trial& t\) \{|\ninline void (\w+)\(trial& t\) \{", body):
                name = name[0] or name[1]
                calls = len(re.findall(rf"\b{name}\b", body)) - 1
                if f"{space}::{name}" not in named and calls == 0:
                    wrong.append(f"{file.name}: {name}: no clause names this check")
    for file in CONFORMANCE.glob("include/**/*.hpp"):
        if "mutant" in file.read_text(encoding="utf-8").lower():
            wrong.append(f"{file.name}: the suite must not mention mutants")


def main():
    store, *mutants = sys.argv[1:]
    wrong = []
    check_ends(wrong)
    clauses = {line.split()[0]: line.split(maxsplit=4)[4] for line in listed(store)}
    coverage = {}
    for line in COVERAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, broken = line.rpartition(":")
            coverage[name] = broken.split()
    wrong += [f"{name}: the mutant breaks no clause" for name, broken in coverage.items() if not broken]
    wrong += [f"{clause}: in {COVERAGE.name}, but the store program lists no such clause" for broken in coverage.values() for clause in broken
              if clause not in clauses]
    if mutants:
        there = {line[:100].strip() if "  " not in line else line.split("  ")[0] for line in listed(mutants[0])}
        wrong += [f"{name}: the mutant is not in {COVERAGE.name}; run `{mutants[0]} --coverage {COVERAGE}`" for name in sorted(there - coverage.keys())]
        wrong += [f"{name}: in {COVERAGE.name}, but there is no such mutant" for name in sorted(coverage.keys() - there)]
    proven = {clause for broken in coverage.values() for clause in broken}
    unproven = [name for name in clauses if name not in proven]
    for name in unproven:
        print(f"unproven: {name} {clauses[name]}")
    if len(unproven) > UNPROVEN_MAX:
        wrong.append(f"no mutant breaks {len(unproven)} clauses; at most {UNPROVEN_MAX} may be unproven")
    print(f"{len(clauses)} clauses, {len(coverage)} mutants, {len(unproven)} unproven")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
