#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that a seed determines the run: two runs of a store's program print the same report, except for times.

    same_report.py PROGRAM [ARGUMENTS...]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(command, folder, name):
    path = Path(folder) / name
    result = subprocess.run([*command, "--json", str(path)], capture_output=True, text=True, errors="replace")
    report = json.loads(path.read_text(encoding="utf-8"))
    for clause in report["clauses"]:
        del clause["ms"]
    return result.returncode, result.stdout.splitlines(), report


def main():
    with tempfile.TemporaryDirectory() as folder:
        first, second = (run([*sys.argv[1:], "--quiet", "--profile", "quick"], folder, name) for name in ("1", "2"))
    for a, b in zip(first[1], second[1]):
        if a != b:
            print(f"first:  {a}\nsecond: {b}")
    for key in first[2]:
        if first[2][key] != second[2][key]:
            print(f"{key} differs")
    sys.exit(first != second)


if __name__ == "__main__":
    main()
