#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the clauses printed in conformance/README.md are those of the suite.

    clause_table.py PROGRAM          exit 1 if the table differs from what PROGRAM --list says
    clause_table.py PROGRAM --fix    write it

It also checks what the table itself can get wrong: an id twice, a sentence without an end.
"""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "conformance/README.md"
BEGIN, END = "<!-- clauses: begin -->\n", "<!-- clauses: end -->\n"


def main():
    program, *rest = sys.argv[1:]
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    clauses = [line.split(maxsplit=4) for line in listed]
    wrong = [f"{c[0]}: the sentence has no end" for c in clauses if not c[4].endswith(".")]
    wrong += [f"{name} is there twice" for name in {c[0] for c in clauses} if [c[0] for c in clauses].count(name) > 1]
    wrong += [f"{c[0]}: is no id" for c in clauses if not re.fullmatch(r"[A-Z]+-\d\d", c[0])]

    rows = "".join(f"| {name} | {layer} | {level} | {needs} | {sentence} |\n"
                   for name, layer, level, needs, sentence in clauses)
    table = f"{len(clauses)} clauses.\n\n| clause | layer | level | needs | |\n|---|---|---|---|---|\n{rows}"
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    _, _, after = behind.partition(END)
    fresh = before + BEGIN + table + END + after
    if rest == ["--fix"]:
        README.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        wrong.append("conformance/README.md: the table of clauses is stale; run tests/checks/clause_table.py --fix")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
