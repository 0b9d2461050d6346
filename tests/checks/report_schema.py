#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that JSON reports of the suite are as conformance/REPORT.md says.

    report_schema.py REPORT.json...

Every documented member is there with its type, and no other member is.
"""

import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "conformance/REPORT.md"
TYPES = {"text": str, "number": int, "list": list, "object": dict}
FAILED = {"fail", "hangs", "crashes"}


def schema():
    """The members of each object: {"report": {"store": ("text", "")}}."""
    out, name = {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            name = line[3:]
            out[name] = {}
        elif row := re.match(r"\| `([^`]+)` \| (\w+)(?:, if ([a-z ]+))? \|", line):
            out[name][row[1]] = (row[2], row[3] or "")
    return out


def wrong_members(where, value, members, conditions=frozenset()):
    for name, (kind, condition) in members.items():
        if condition and condition not in conditions:
            continue
        if name not in value:
            yield f"{where} lacks {name}"
        elif type(value[name]) is not TYPES[kind]:
            yield f"{where}: {name} is no {kind}"
    known = {name for name, (_, condition) in members.items() if not condition or condition in conditions}
    yield from (f"{where} has {name}, which REPORT.md does not describe" for name in value if name not in known)


def wrong(report):
    pages = schema()
    yield from wrong_members("the report", report, pages["report"])
    yield from wrong_members("counts", report["counts"], pages["counts"])
    yield from wrong_members("done", report["done"], pages["done"])
    for clause in report["clauses"]:
        conditions = {"it failed"} if clause["result"] in FAILED else {clause["result"]}
        yield from wrong_members(clause["id"], clause, pages["clause"], conditions)
    results = [clause["result"] for clause in report["clauses"]]
    for name, count in report["counts"].items():
        if results.count(name) != count:
            yield f"counts says {count} {name}, but {results.count(name)} clauses have that result"
    if (report["verdict"] == "failing") != any(result in FAILED for result in results):
        yield f"the verdict is {report['verdict']}"


def main():
    found = 0
    for name in sys.argv[1:]:
        for line in wrong(json.loads(Path(name).read_text(encoding="ascii"))):
            print(f"{name}: {line}")
            found += 1
    sys.exit(1 if found or len(sys.argv) < 2 else 0)


if __name__ == "__main__":
    main()
