#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the suite as GoogleTest tests: one test per clause, no example fails for a correct store, and one fails for a broken
store. STORE_PROGRAM itself is run with all clauses by another test.

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
    text = said(cases, "--gtest_list_tests")[1]
    if len(re.findall(r"^  \S", text, re.M)) != clauses:
        sys.exit(f"{text}\nexpected: {clauses} tests")
    code, text = said(cases, "--gtest_filter=conformance_examples.*")
    counts = {word: int(count) for word, count in re.findall(r"\[  (PASSED|SKIPPED) *\] (\d+) test", text)}
    if code != 0 or counts.get("PASSED", 0) < clauses // 2 or counts.get("SKIPPED", 0) > clauses // 10:
        sys.exit(f"{text}\nexpected: tests for most clauses, of which nearly all pass and none fails")
    code, text = said(cases, "--gtest_filter=*.READ_*", FORGETFUL="1")
    if code == 0 or "next_due" not in text or "replay" not in text or "conformance_examples.READ_18" not in text:
        sys.exit(f"{text}\nexpected: a clause about next_due fails and prints the command that repeats it")


if __name__ == "__main__":
    main()
