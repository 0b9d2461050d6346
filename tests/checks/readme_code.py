#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the code and the links in README.md and in every README.md beside the code.

    readme_code.py WORK_FOLDER -- COMPILER [FLAGS...]

- A ```cpp block is part of a file that the tests compile, and names it in the comment just above:
  `<!-- part of: tests/unit/x.cpp -->`. Its lines must occur there, in this order and without others between, blank
  lines and indentation aside. A block line `...` or `// ...` stands for lines left out.
- Any other ```cpp block has an `int main` and is a program: it must compile with the given flags and exit 0. If the next
  block is ```text, with at most one line of words between them, that is what the program prints, to the byte. A program
  that uses the conformance suite is only compiled, because the suite runs for minutes. One that uses PostgreSQL runs on
  a server of its own, which libpq finds by the environment, and is only compiled if no server is installed. Programs are skipped where the
  library that they need is not installed.
- A relative link leads to a file or folder of this repository, and its #anchor to a heading of that page.
"""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ["README.md", *(path.relative_to(ROOT).as_posix()
                        for folder in ("include", "backends", "conformance", "examples", "tests")
                        for path in sorted((ROOT / folder).rglob("README.md")))]
MUST_HAVE_CODE = {"README.md", "backends/README.md", *(f"include/vouch/{part}/README.md" for part in ("contract", "run", "saga"))}
# By what a program includes: the header that the machine must have, and the flags.
NEEDS = {
    "<vouch/sqlite.hpp>": ("sqlite3.h", [f"-I{ROOT}/backends/sqlite/include", "-lsqlite3"]),
    "<vouch/postgres.hpp>": ("libpq-fe.h", [f"-I{ROOT}/backends/postgres/include", "-lpq"]),
    "<vouch/conformance.hpp>": ("rapidcheck.h", [f"-I{ROOT}", "-fsyntax-only", "-DVOUCH_CLAUSES_ELSEWHERE"]),
}


class Block:
    def __init__(self, language, start, part_of):
        self.language, self.start, self.part_of = language, start, part_of
        self.lines = []
        self.gap = 0  # lines with words between the block before and this one

    @property
    def text(self):
        return "".join(f"{line}\n" for line in self.lines)


def blocks(text):
    found, block, gap, part_of = [], None, 0, None
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line.strip() == "```":
                found.append(block)
                block, gap, part_of = None, 0, None
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(line[3:].strip(), number, part_of)
            block.gap = gap
        elif match := re.fullmatch(r"\s*<!--\s*part of:\s*(\S+)\s*-->\s*", line):
            part_of = match[1]
        elif line.strip():
            gap, part_of = gap + 1, None
    return found


def missing_line(block, file):
    """The first line of the block that the file does not have where it should; None if it has them all."""
    def bare(lines):
        return [line.strip() for line in lines if line.strip()]

    chunks = [[]]
    for line in bare(block.lines):
        if line in ("...", "// ..."):
            chunks.append([])
        else:
            chunks[-1].append(line)
    rest = bare(file.read_text(encoding="utf-8").splitlines())
    for chunk in filter(None, chunks):
        starts = [i for i in range(len(rest)) if rest[i:i + len(chunk)] == chunk]
        if not starts:
            return next((line for line in chunk if line not in rest), chunk[0])
        rest = rest[starts[0] + len(chunk):]
    return None


# Runs a command on a PostgreSQL server; exits 77 if none is installed.
WITH_SERVER = [str(ROOT / "tests/postgres/cluster"), "run", "sh", "-c",
               'PGHOST=$VOUCH_POSTGRES_FOLDER PGUSER=postgres PGDATABASE=postgres exec "$0"']


def postgres_flags():
    """Debian keeps the headers of libpq in a folder of their own."""
    try:
        found = subprocess.run(["pg_config", "--includedir"], text=True, stdout=subprocess.PIPE)
    except FileNotFoundError:
        return []
    return ["-isystem", found.stdout.strip()] if found.returncode == 0 else []


def is_installed(header, compiler):
    found = subprocess.run([*compiler, "-E", "-x", "c++", "-"], input=f"#include <{header}>\n", text=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return found.returncode == 0


def run_program(page, block, expected, work, compiler):
    stem = f"{page.replace('/', '_').removesuffix('.md')}_{block.start}"
    source, program = work / f"{stem}.cpp", work / stem
    source.write_text(block.text, encoding="utf-8")
    is_postgres = "<vouch/postgres.hpp>" in block.text
    flags = []
    if is_postgres:
        compiler = [*compiler, *postgres_flags()]
    for header, more in (need for include, need in NEEDS.items() if include in block.text):
        if not is_installed(header, compiler):
            print(f"{page}:{block.start}: skipped, {header} is not installed")
            return None
        flags += more
    if subprocess.run([*compiler, str(source), "-o", str(program), *flags]).returncode != 0:
        return "does not compile"
    if "-fsyntax-only" in flags:
        return None
    with tempfile.TemporaryDirectory() as folder:  # for the files that the program makes
        command = [*(WITH_SERVER if is_postgres else []), str(program.resolve())]
        result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=60)
    if is_postgres and result.returncode == 77:
        print(f"{page}:{block.start}: not run, no PostgreSQL server is installed")
        return None
    if result.returncode != 0:
        return f"exits with {result.returncode}"
    if expected is not None and result.stdout != expected.text:
        sys.stdout.writelines(difflib.unified_diff(expected.text.splitlines(True), result.stdout.splitlines(True),
                                                   f"{page}:{expected.start}", "printed"))
        return f"does not print what line {expected.start} says"
    return None


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists():
            yield f"{page}: no such file: {link}"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{page}: no such heading: {link}"


def check(page, work, compiler):
    """What is wrong with a page, a line each."""
    yield from broken_links(page)
    found = blocks((ROOT / page).read_text(encoding="utf-8"))
    if page in MUST_HAVE_CODE and not any(block.language == "cpp" for block in found):
        yield f"{page}: no ```cpp block"
    for block, after in zip(found, [*found[1:], None]):
        if block.language != "cpp":
            continue
        if block.part_of is None and "int main" in block.text:
            expected = after if after and after.language == "text" and after.gap <= 1 else None
            problem = run_program(page, block, expected, work, compiler)
        elif block.part_of is None:
            problem = "neither a program nor `<!-- part of: file -->`"
        elif not (ROOT / block.part_of).is_file():
            problem = f"{block.part_of} does not exist"
        else:
            line = missing_line(block, ROOT / block.part_of)
            problem = f"{block.part_of} does not have, in this order: {line}" if line else None
        if problem:
            yield f"{page}:{block.start}: {problem}"


def main():
    work, separator, *compiler = sys.argv[1:]
    assert separator == "--"
    Path(work).mkdir(parents=True, exist_ok=True)
    wrong = [line for page in PAGES for line in check(page, Path(work), compiler)]
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
