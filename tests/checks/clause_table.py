#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the table of clauses in conformance/include/vouch/conformance/clauses/README.md is that of the suite.

    clause_table.py PROGRAM          exit 1 if the table differs from the output of PROGRAM --list
    clause_table.py PROGRAM --fix    write the table

It also checks that no id occurs twice and that every sentence ends with a full stop.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "conformance/include/vouch/conformance/clauses/README.md"
BEGIN, END = "<!-- clauses: begin -->\n", "<!-- clauses: end -->\n"


def main():
    program, *rest = sys.argv[1:]
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    clauses = [line.split(maxsplit=4) for line in listed]
    wrong = [f"{c[0]}: the sentence does not end with a full stop" for c in clauses if not c[4].endswith(".")]
    wrong += [f"{name} occurs twice" for name in {c[0] for c in clauses} if [c[0] for c in clauses].count(name) > 1]
    wrong += [f"{c[0]} is not a valid id" for c in clauses if not re.fullmatch(r"[A-Z]+-\d\d", c[0])]

    rows = "".join(f"| {name} | {layer} | {level} | {needs} | {sentence} |\n"
                   for name, layer, level, needs, sentence in clauses)
    table = f"{len(clauses)} clauses.\n\n| clause | layer | level | needs | sentence |\n|---|---|---|---|---|\n{rows}"
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    _, _, after = behind.partition(END)
    fresh = before + BEGIN + table + END + after
    if rest == ["--fix"]:
        README.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        wrong.append(f"{README.relative_to(ROOT)}: the table is stale; run tests/checks/clause_table.py PROGRAM --fix")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
