#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every guarantee in README.md names a test that exists.

    guarantees.py

Each bullet under `## Guarantees` in README.md has one or more comments `<!-- test: sentence -->`. In this and every other
README.md, each such sentence is exactly the name of a TEST_CASE or check_property in tests/ or conformance/.
"""

import re
import sys

from readme_code import PAGES, ROOT

NAMED = re.compile(r'\b(?:TEST_CASE|check_property)\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
NAMES_TEST = re.compile(r"<!--\s*test:\s*(.*?)\s*-->")


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
    """Each bullet as (line number, its whole text), with the indented lines below it."""
    found = []
    for number, line in lines:
        if re.match(r"[-*] ", line):
            found.append([number, line])
        elif found and re.match(r"\s+\S", line):
            found[-1][1] += " " + line.strip()
    return found


def main():
    names = test_names()
    guarantees = bullets(section((ROOT / "README.md").read_text(encoding="utf-8"), "Guarantees"))
    wrong = [] if guarantees else ["README.md: no bullets under '## Guarantees'"]
    wrong += [f"README.md:{number}: a guarantee without a <!-- test: ... -->" for number, text in guarantees
              if not NAMES_TEST.search(text)]
    for page in PAGES:
        for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
            wrong += [f"{page}:{number}: no test is named '{s}'" for s in NAMES_TEST.findall(line) if s not in names]
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
