#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the suite as Catch2 test cases: one case per clause, all pass for a correct store, and one fails for a broken store.

    catch2_cases.py CASES_PROGRAM STORE_PROGRAM

STORE_PROGRAM lists the clauses.
"""

import os
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
    if code != 0 or f"All tests passed ({clauses} assertions in {clauses} test cases)" not in text:
        sys.exit(f"{text}\nexpected: {clauses} test cases that all pass")
    code, text = said(cases, "READ-*", FORGETFUL="1")
    if code == 0 or "next_due" not in text or "replay" not in text or "FAILED" not in text:
        sys.exit(f"{text}\nexpected: a clause about next_due fails and prints the command that repeats it")


if __name__ == "__main__":
    main()
