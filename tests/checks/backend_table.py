#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the table of stores in README.md agrees with the suite's reports, which conformance/REPORT.md describes.

    backend_table.py REPORT.json...          exit 1 if the table is stale
    backend_table.py --fix REPORT.json...    write the table

A report that does not exist, because no server for that store is installed, is left out: README's row stays as it is.
"""

import json
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "README.md"
BEGIN, END = "<!-- stores: begin -->\n", "<!-- stores: end -->\n"
WHERE = {"memory": "backends/memory/include/vouch/memory", "sqlite": "backends/sqlite/include/vouch/sqlite",
         "postgres": "backends/postgres", "log": "examples/log_store"}


def row(report):
    name, counts = report["store"], report["counts"]
    failed = counts["fail"] + counts["hangs"] + counts["crashes"]
    return (f"| [{name}]({WHERE[name]}) | {report['capabilities']} | {counts['pass']} | "
            f"{counts['unsupported']} | {counts['untested']} | {failed} | "
            f"{report['verdict']} |\n")


def main():
    fix = "--fix" in sys.argv
    files = [Path(name) for name in sys.argv[1:] if name != "--fix"]
    reports = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    if not reports:
        sys.exit("there is no report")
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    stored, _, after = behind.partition(END)
    rows = {name: line + "\n" for name in WHERE for line in stored.splitlines() if line.startswith(f"| [{name}]")}
    rows |= {report["store"]: row(report) for report in reports}
    for name in sorted(rows.keys() - {report["store"] for report in reports}):
        print(f"not checked, because there is no report: {name}")
    table = ("| store | can | pass | not declared | not tested | fail | verdict |\n|---|---|---|---|---|---|---|\n"
             + "".join(rows[name] for name in WHERE if name in rows))
    fresh = before + BEGIN + table + END + after
    if fix:
        README.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        sys.exit(f"README.md: the table of stores is stale; tests/checks/backend_table.py --fix REPORT.json... writes\n{table}")


if __name__ == "__main__":
    main()
