#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the suite's reports on troubled stores: JSON, HTML, JUnit and text name the same clauses with the same results.

    report_formats.py TROUBLE_PROGRAM          exit 1 if something is wrong
    report_formats.py TROUBLE_PROGRAM --fix    also write the options into conformance/README.md, which lists them

The stores crash, hang, are slow, or check no argument; one has a name that is markup and is not valid UTF-8.
"""

import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from html.parser import HTMLParser
from pathlib import Path

import report_schema

README = Path(__file__).resolve().parent.parent.parent / "conformance/README.md"
FORMATS = ("json", "html", "junit", "text")
VOID = {"meta"}


class page(HTMLParser):
    """What a web page contains. It fails on elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.attributes, self.texts = [], set(), [], []
        self.feed(text)
        self.close()
        if self.open:
            sys.exit(f"the page does not close {self.open}")

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            sys.exit(f"the page closes {tag} at the wrong place")

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))


def require(holds, what):
    if not holds:
        sys.exit(what)


def run(program, folder, *arguments, code):
    paths = {name: Path(folder) / f"report.{name}" for name in FORMATS}
    for path in paths.values():
        path.unlink(missing_ok=True)
    asked = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    said = subprocess.run([program, *arguments, "--quiet", "--profile", "quick", *asked], capture_output=True, timeout=120)
    require(said.returncode == code, f"{arguments}: exit code {said.returncode}, expected {code}\n{said.stdout}\n{said.stderr}")
    return {name: path.read_bytes() for name, path in paths.items()}


def same_results(files, name):
    """Compares the formats with each other. Returns the clauses by their results."""
    report = json.loads(files["json"])
    wrong = list(report_schema.wrong(report))
    require(not wrong, "\n".join(wrong))
    results = {c["id"]: c["result"] for c in report["clauses"]}
    by_result = {}
    for clause, result in results.items():
        by_result.setdefault(result, []).append(clause)
    failed = [c for c, result in results.items() if result in report_schema.FAILED]

    text = files["text"].decode(errors="replace").splitlines()
    require(text[-1].split() == ["failed", *failed], f"the text ends with {text[-1]}, expected the failed clauses {failed}")
    require(sum(line.startswith("  replay: ") for line in text) == len({c.split("-")[0] for c in failed}),
            "the text does not show one failure of every family")

    web = page(files["html"].decode("utf-8"))
    require(not web.seen & {"script", "link", "img", "iframe", "object"}, f"the page has elements it must not have: {web.seen}")
    targets = {value for key, value in web.attributes if key == "id"}
    for key, value in web.attributes:
        require(key != "src" and not key.startswith("on") and (key != "href" or value[1:] in targets),
                f"the page refers to {key}={value}")
    require([t for tag, t in web.texts if tag == "title"] == [f"{name} 0: failing"], "the title of the page is wrong")
    require({t for _, t in web.texts} >= set(results), "the page does not name every clause")
    require(targets >= set(failed), "the page does not show every failure")

    suite = xml.etree.ElementTree.fromstring(files["junit"]).find("testsuite")
    cases = {case.get("name").split(":")[0]: case for case in suite.findall("testcase")}
    expected = {"fail": "failure", "hangs": "error", "crashes": "error", "pass": None}
    require(list(cases) == list(results), "the JUnit report has other clauses")
    for clause, case in cases.items():
        marks = [child.tag for child in case]
        mark = expected.get(results[clause], "skipped")
        require(marks == ([mark] if mark else []), f"{clause} is {results[clause]}, but the JUnit report says {marks}")
    for attribute, mark in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        require(int(suite.get(attribute)) == len(suite.findall(f"testcase/{mark}")), f"{attribute} of the JUnit report is wrong")
    require(suite.get("name") == f"vouch conformance: {name} 0", "the name in the JUnit report is wrong")
    return by_result


def options_are_documented(program):
    said = subprocess.run([program, "none", "--help"], check=True, capture_output=True, text=True).stdout
    options = "".join(f"{line.strip()}\n" for line in said.splitlines() if line.startswith("  --"))
    text = README.read_text(encoding="utf-8")
    fresh = re.sub(r"(<!-- options: begin -->\n```text\n).*?(```\n)", lambda m: m[1] + options + m[2], text, flags=re.S)
    if sys.argv[2:] == ["--fix"]:
        README.write_text(fresh, encoding="utf-8")
    else:
        require(options and fresh == text, "conformance/README.md: the options are stale; run report_formats.py PROGRAM --fix")


def main():
    program = sys.argv[1]
    options_are_documented(program)
    hostile = "</title><script>alert(1)</script>&\"'\\x01\\xff"
    with tempfile.TemporaryDirectory() as folder:
        found = same_results(run(program, folder, "careless", "--clause", "VALID", code=1), hostile)
        require(len(found["fail"]) > 5 and found["pass"], f"the careless store: {found}")

        # A clause that crashes is one line, and the clauses after it are run.
        found = same_results(run(program, folder, "crashes", "--clause", "READ", "--skip", "READ-21", code=1), "trouble")
        require({"READ-18", "READ-19", "READ-20"} <= set(found["crashes"]) and {f"READ-{n:02}" for n in range(1, 18)} <= set(found["pass"])
                and "READ-21" in found["not-run"], f"the crashing store: {found}")

        # So is a clause that hangs; without a child process, the report ends there.
        deaf = ("deaf", "--clause", "WAKE", "--skip", "WAKE-06", "--patience", "2")
        found = same_results(run(program, folder, *deaf, code=3), "trouble")
        early = {f"WAKE-0{n}" for n in range(1, 5)}
        require(found["hangs"][:2] == ["WAKE-05", "WAKE-07"] and early <= set(found["pass"]), f"the deaf store: {found}")
        found = same_results(run(program, folder, *deaf, "--no-fork", code=3), "trouble")
        require(found["hangs"] == ["WAKE-05"] and early <= set(found["pass"]) and "WAKE-07" in found["not-run"],
                f"the deaf store without a child process: {found}")

        # A store that is too slow fails at once: its failure is not replayed.
        files = run(program, folder, "slow", "--layer", "cost", "--patience", "30", code=1)
        found = same_results(files, "trouble")
        require(len(found["fail"]) >= 4, f"the slow store: {found}")
        require(all(c.get("transcript", "") == "" for c in json.loads(files["json"])["clauses"]), "a cost failure has a replay")


if __name__ == "__main__":
    main()
