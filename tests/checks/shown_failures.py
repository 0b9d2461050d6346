#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the failures shown in conformance/README.md are what the suite prints for those mutants.

    shown_failures.py MUTANTS_PROGRAM          exit 1 if a failure differs
    shown_failures.py MUTANTS_PROGRAM --fix    write the failures

Each failure is a text block below the comment `<!-- shown: NAME of a mutant, CLAUSE -->`.
"""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "conformance/README.md"
SHOWN = re.compile(r"<!-- shown: ([^\n]+), ([A-Z]+-\d\d) -->\n```text\n(.*?)```\n", re.S)


def main():
    program, *rest = sys.argv[1:]

    def fresh(shown):
        name, clause = shown.group(1), shown.group(2)
        said = subprocess.run([program, "--show", name, "--clause", clause], capture_output=True, text=True)
        said = re.sub(r"[ \t]+$", "", said.stdout, flags=re.M).rstrip("\n") + "\n"
        return f"<!-- shown: {name}, {clause} -->\n```text\n{said}```\n"

    text = README.read_text(encoding="utf-8")
    if len(SHOWN.findall(text)) < 3:
        sys.exit("conformance/README.md shows fewer than three failures")
    new = SHOWN.sub(fresh, text)
    if rest == ["--fix"]:
        README.write_text(new, encoding="utf-8")
    elif new != text:
        sys.exit("conformance/README.md: a shown failure is stale; run tests/checks/shown_failures.py MUTANTS_PROGRAM --fix")


if __name__ == "__main__":
    main()
