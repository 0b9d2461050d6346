#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the suite as Catch2 test cases: one case per clause, the examples pass for a correct store, and one fails for a
broken store. STORE_PROGRAM itself is run with all clauses by another test.

    catch2_cases.py CASES_PROGRAM STORE_PROGRAM

STORE_PROGRAM lists the clauses.
"""

import os
import re
import subprocess
import sys


def said(*command, **environment):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, **environment})
    return result.returncode, result.stdout


def main():
    cases, store = sys.argv[1:]
    clauses = len([line for line in said(store, "--list")[1].splitlines() if line.strip()])
    text = said(cases, "--list-tests")[1]
    if f"\n{clauses} test cases" not in text:
        sys.exit(f"{text}\nexpected: {clauses} test cases")
    code, text = said(cases, "[examples]")
    counts = re.search(r"All tests passed \((\d+) assertions in (\d+) test cases\)", text)
    if code != 0 or not counts or counts[1] != counts[2] or int(counts[1]) < clauses // 2:
        sys.exit(f"{text}\nexpected: test cases for most clauses, which all pass")
    code, text = said(cases, "READ-*", FORGETFUL="1")
    if code == 0 or "next_due" not in text or "replay" not in text or "FAILED" not in text:
        sys.exit(f"{text}\nexpected: a clause about next_due fails and prints the command that repeats it")


if __name__ == "__main__":
    main()
