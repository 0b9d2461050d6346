#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the suite as GoogleTest tests: one test per clause, none fails for a correct store, and one fails for a broken store.

    gtest_cases.py CASES_PROGRAM STORE_PROGRAM

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
    code, text = said(cases)
    counts = {word: int(count) for word, count in re.findall(r"\[  (PASSED|SKIPPED) *\] (\d+) test", text)}
    if code != 0 or counts.get("PASSED", 0) + counts.get("SKIPPED", 0) != clauses or counts.get("SKIPPED", 0) > clauses // 10:
        sys.exit(f"{text}\nexpected: {clauses} tests, of which nearly all pass and none fails")
    code, text = said(cases, "--gtest_filter=*.READ_*", FORGETFUL="1")
    if code == 0 or "next_due" not in text or "replay" not in text or "conformance_examples.READ_18" not in text:
        sys.exit(f"{text}\nexpected: a clause about next_due fails and prints the command that repeats it")


if __name__ == "__main__":
    main()
