#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the table of stores in README.md agrees with the suite's reports, which conformance/REPORT.md describes.

    backend_table.py REPORT.json...          exit 1 if the table is stale
    backend_table.py --fix REPORT.json...    write the table
"""

import json
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "README.md"
BEGIN, END = "<!-- stores: begin -->\n", "<!-- stores: end -->\n"
WHERE = {"memory": "backends/memory/include/vouch/memory", "sqlite": "backends/sqlite/include/vouch/sqlite",
         "log": "examples/log_store"}


def row(report):
    name, counts = report["store"], report["counts"]
    failed = counts["fail"] + counts["hangs"] + counts["crashes"]
    return (f"| [{name}]({WHERE[name]}) | {report['capabilities']} | {counts['pass']} | "
            f"{counts['unsupported']} | {counts['untested']} | {failed} | "
            f"{report['verdict']} |\n")


def main():
    fix = "--fix" in sys.argv
    reports = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:] if name != "--fix"]
    table = ("| store | can | pass | not declared | not tested | fail | verdict |\n|---|---|---|---|---|---|---|\n"
             + "".join(row(report) for report in sorted(reports, key=lambda r: list(WHERE).index(r["store"]))))
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    _, _, after = behind.partition(END)
    fresh = before + BEGIN + table + END + after
    if fix:
        README.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        sys.exit(f"README.md: the table of stores is stale; tests/checks/backend_table.py --fix REPORT.json... writes\n{table}")


if __name__ == "__main__":
    main()
