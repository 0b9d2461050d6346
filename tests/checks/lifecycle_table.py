#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that include/vouch/contract/README.md shows the lifecycle as the headers have it.

    lifecycle_table.py    exit 1 and name every row that differs

Compared are the table of transitions with transitions.hpp, each row's arrow in the diagram, and the table of verdicts with
detail/verdict_table.hpp.
"""

import re
import sys
from pathlib import Path

CONTRACT = Path(__file__).resolve().parent.parent.parent / "include/vouch/contract"
ROW = re.compile(r"transition\{state::(\w+), verb::(\w+), state::(\w+)(?:, condition::(\w+))?\}")


def rows(page, name):
    """The cells of a table between `<!-- name: begin -->` and `<!-- name: end -->`, without its two head lines."""
    table = page.partition(f"<!-- {name}: begin -->\n")[2].partition(f"<!-- {name}: end -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def problems(page, transitions, verdicts):
    wanted = [(a, verb, b, when or "always") for a, verb, b, when in ROW.findall(transitions)]
    shown = [tuple(row[:4]) for row in rows(page, "transitions")]
    if not wanted or wanted != shown:
        yield from (f"README.md lacks the transition {' '.join(row)}" for row in wanted if row not in shown)
        yield from (f"README.md shows a transition that is not there: {' '.join(row)}" for row in shown if row not in wanted)
        yield "the transitions of README.md are not those of transitions.hpp, in the same order"
    arrows = re.findall(r"^\s*(\w+) --> (\w+): (.*)$", page, re.MULTILINE)
    for a, verb, b, _ in wanted:
        if not any(arrow[:2] == (a, b) and verb in re.findall(r"\w+", arrow[2]) for arrow in arrows):
            yield f"the diagram in README.md has no arrow from {a} to {b} for {verb}"
    answers = [re.findall(r"\w+", line) for line in re.findall(r"^\s*/\* \w+ +\*/ \{(.*)\},$", verdicts, re.MULTILINE)]
    if not answers or answers != [row[1:] for row in rows(page, "verdicts")]:
        yield "the verdicts of README.md are not those of detail/verdict_table.hpp"


def main():
    wrong = list(problems(*((CONTRACT / name).read_text(encoding="utf-8")
                            for name in ("README.md", "transitions.hpp", "detail/verdict_table.hpp"))))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
