#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every guarantee the README gives is a test's name.

    guarantees.py

Each bullet under `## Guarantees` in README.md carries one or more comments `<!-- test: sentence -->`, and each sentence
is, to the letter, the name of a TEST_CASE or the sentence of a check_property somewhere in tests/ or conformance/.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NAMED = re.compile(r'\b(?:TEST_CASE|check_property)\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def test_names():
    names = set()
    for folder in ("tests", "conformance"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            for match in NAMED.finditer(path.read_text(encoding="utf-8")):
                pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])
                names.add(re.sub(r"\\(.)", r"\1", "".join(pieces)))
    return names


def section(text, title):
    """The lines below the heading `title`, to the next heading of its rank or above, with their numbers."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"#{1,2} ", line):
            inside = line.strip() == f"## {title}"
        elif inside:
            yield number, line


def bullets(lines):
    """Each bullet as (line number, its whole text); a bullet goes on in the indented lines below it."""
    found = []
    for number, line in lines:
        if re.match(r"[-*] ", line):
            found.append([number, line])
        elif found and re.match(r"\s+\S", line):
            found[-1][1] += " " + line.strip()
    return found


def main():
    readme = ROOT / "README.md"
    if not readme.is_file():
        sys.exit("README.md is missing")
    guarantees = bullets(section(readme.read_text(encoding="utf-8"), "Guarantees"))
    if not guarantees:
        sys.exit("README.md: no bullets under '## Guarantees'")
    names = test_names()
    wrong = []
    for number, text in guarantees:
        sentences = [s.strip() for s in re.findall(r"<!--\s*test:\s*(.*?)\s*-->", text)]
        if not sentences:
            wrong.append(f"README.md:{number}: a guarantee without a <!-- test: ... -->")
        wrong += [f"README.md:{number}: no test is named '{s}'" for s in sentences if s not in names]
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
