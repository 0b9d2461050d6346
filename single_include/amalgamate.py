#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joins the split headers into the single ones beside this script.

    single_include/amalgamate.py            write the single headers
    single_include/amalgamate.py --check    exit 1 if a committed one differs from what would be written

The output depends on the headers alone: no date, no commit, no path of this machine. A macro that is still defined at
the end of a single header is an error, because it would leak into every file that includes it.

The version, which also says what a compiler lacks, comes before every other include.

In the split headers, lines from `// amalgamate: split only` to `// amalgamate: end` do not reach the single ones.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "single_include"
ROOTS = [ROOT / "include", ROOT / "backends/memory/include", ROOT / "backends/sqlite/include",
         ROOT / "backends/postgres/include", ROOT / "backends/rabbitmq/include", ROOT / "backends/kafka/include", ROOT / "conformance/include",
         ROOT / "backends/tool/page/include"]

# Each single header and the ones it stands on: what those contain is included, not repeated.
SINGLES = {
    "vouch/vouch.hpp": [],
    "vouch/observe.hpp": ["vouch/vouch.hpp"],
    "vouch/worker.hpp": ["vouch/vouch.hpp", "vouch/observe.hpp"],
    "vouch/saga.hpp": ["vouch/vouch.hpp"],
    "vouch/webhook.hpp": ["vouch/vouch.hpp"],
    "vouch/relay.hpp": ["vouch/vouch.hpp"],
    "vouch/relay_saga.hpp": ["vouch/vouch.hpp", "vouch/saga.hpp", "vouch/relay.hpp"],
    "vouch/testing.hpp": ["vouch/vouch.hpp", "vouch/saga.hpp"],
    "vouch/testing_broker.hpp": ["vouch/vouch.hpp", "vouch/relay.hpp"],
    "vouch/sqlite.hpp": ["vouch/vouch.hpp"],
    "vouch/postgres.hpp": ["vouch/vouch.hpp"],
    "vouch/rabbitmq.hpp": ["vouch/vouch.hpp", "vouch/relay.hpp"],
    "vouch/kafka.hpp": ["vouch/vouch.hpp", "vouch/relay.hpp"],
    "vouch/page.hpp": ["vouch/vouch.hpp", "vouch/observe.hpp", "vouch/saga.hpp"],
    "vouch/conformance.hpp": ["vouch/vouch.hpp"],
    "vouch/conformance_broker.hpp": ["vouch/vouch.hpp", "vouch/relay.hpp"],
    "vouch/conformance_catch2.hpp": ["vouch/vouch.hpp", "vouch/conformance.hpp"],
    "vouch/conformance_gtest.hpp": ["vouch/vouch.hpp", "vouch/conformance.hpp"],
}

FIRST = "vouch/version.hpp"
PUBLIC_MACRO = re.compile(r"VOUCH_VERSION_(MAJOR|MINOR|PATCH)")
INCLUDE = re.compile(r'\s*#\s*include\s*(<([^>]+)>|"[^"]+")')
SPLIT_ONLY = "// amalgamate: split only"
SPLIT_ONLY_END = "// amalgamate: end"
MIXED = "vouch: a translation unit includes either the single headers or the split ones, not both"


class Problem(Exception):
    pass


def find(name):
    """The split header an `#include <name>` of ours means."""
    for root in ROOTS:
        if (root / name).is_file():
            return root / name
    return None


def guard(name):
    # Not #pragma once: a single header pasted into the main file must not warn.
    stem = Path(name).stem
    return "VOUCH_SINGLE_HEADER" if stem == "vouch" else f"VOUCH_SINGLE_HEADER_{stem.upper()}"


class Single:
    """One single header being put together."""

    def __init__(self, contained):
        self.contained = contained  # split header -> the single header below this one that holds it
        self.seen = set()
        self.below = set()
        self.system = set()
        self.lead = ""
        self.first = []
        self.body = []

    def add(self, name, origin):
        if name in self.contained:
            self.below.add(self.contained[name])
            return
        if name in self.seen:
            return
        self.seen.add(name)
        path = find(name)
        if path is None:
            raise Problem(f"{origin}: <{name}> is in none of {', '.join(r.relative_to(ROOT).as_posix() for r in ROOTS)}")

        lines = []
        depth = 0
        split_only = False
        where = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            bare = line.strip()
            if bare == SPLIT_ONLY:
                split_only = True
            elif bare == SPLIT_ONLY_END:
                split_only = False
                continue
            if split_only or bare == "#pragma once" or bare.startswith("// SPDX-License-Identifier:"):
                continue
            if re.match(r"#\s*if", bare):
                depth += 1
            elif re.match(r"#\s*endif", bare):
                depth -= 1
            include = INCLUDE.match(line)
            if include is None or name == FIRST:
                lines.append(line)
            elif include[2] is None:
                raise Problem(f"{where}:{number}: include our own headers as <vouch/...>, not by a relative path")
            elif include[2].startswith("vouch/"):
                if depth:
                    raise Problem(f"{where}:{number}: a vouch header under #if cannot be joined unconditionally")
                self.add(include[2], f"{where}:{number}")
            elif depth:
                lines.append(line)  # wanted only where the condition holds
            else:
                self.system.add(include[2])
        if split_only:
            raise Problem(f"{where}: '{SPLIT_ONLY}' without '{SPLIT_ONLY_END}'")
        text = "\n".join(lines).strip("\n")
        if name in SINGLES and all(not line or line.startswith("//") for line in lines):
            self.lead = f"{text}\n" if text else ""  # an umbrella says what the whole file is
        else:
            part = self.first if name == FIRST else self.body
            part.append(f"// ---- {name}\n{text}\n")

    def text(self, name):
        parts = [
            "// SPDX-License-Identifier: MIT\n"
            f"{self.lead}"
            "// Joined from the split headers by single_include/amalgamate.py; change those, not this file.\n"
            f"#ifndef {guard(name)}\n"
            f"#define {guard(name)}\n"
            "\n"
            "#ifdef VOUCH_SPLIT_HEADERS\n"
            f'#error "{MIXED}"\n'
            "#endif\n",
            *self.first,
        ]
        if self.below:
            parts.append("".join(f"#include <{b}>\n" for b in sorted(self.below)))
        # Standard headers first (no dot in their names), then everybody else's.
        for group in ([s for s in self.system if "." not in s], [s for s in self.system if "." in s]):
            if group:
                parts.append("".join(f"#include <{s}>\n" for s in sorted(group)))
        parts += [re.sub(r"\n{3,}", "\n\n", part) for part in self.body]
        parts.append(f"#endif // {guard(name)}\n")
        return "\n".join(parts)


def leaked(text, name):
    defined = {}
    for number, line in enumerate(text.splitlines(), 1):
        define = re.match(r"\s*#\s*define\s+(\w+)", line)
        undef = re.match(r"\s*#\s*undef\s+(\w+)", line)
        if define:
            defined[define[1]] = number
        elif undef:
            defined.pop(undef[1], None)
    defined.pop(guard(name), None)
    return [(macro, number) for macro, number in defined.items() if not PUBLIC_MACRO.fullmatch(macro)]


def build():
    """The text of every single header, and notes about what is not there yet."""
    texts, holds, notes = {}, {}, []
    for name, below in SINGLES.items():
        if find(name) is None:
            notes.append(f"{name} has no split header yet: skipped")
            continue
        contained = {split: lower for lower in below for split in holds.get(lower, ())}
        single = Single(contained)
        single.add(name, "amalgamate.py")
        holds[name] = single.seen | set(contained)
        texts[name] = single.text(name)
        for macro, number in leaked(texts[name], name):
            raise Problem(f"single_include/{name}:{number}: macro {macro} is still defined at the end; #undef it")

    reached = set().union(*holds.values())
    for root in ROOTS:
        for path in sorted(root.rglob("*.hpp")):
            if path.relative_to(root).as_posix() not in reached:
                notes.append(f"{path.relative_to(ROOT).as_posix()} is in no single header: include it from an umbrella")
    return texts, notes


def main():
    parser = argparse.ArgumentParser(description="Joins the split headers into the single ones.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing")
    check = parser.parse_args().check
    try:
        texts, notes = build()
    except Problem as problem:
        sys.exit(f"amalgamate: {problem}")

    for note in notes:
        print(f"amalgamate: {note}", file=sys.stderr)
    stale = [name for name, text in texts.items()
             if not (OUTPUT / name).is_file() or (OUTPUT / name).read_bytes() != text.encode("utf-8")]
    if check:
        for name in stale:
            print(f"amalgamate: single_include/{name} is stale; run single_include/amalgamate.py", file=sys.stderr)
        sys.exit(1 if stale or notes else 0)
    for name in stale:
        (OUTPUT / name).parent.mkdir(parents=True, exist_ok=True)
        # Replaced, not rewritten: a compiler may be reading the old one.
        new = (OUTPUT / name).with_suffix(".new")
        new.write_bytes(texts[name].encode("utf-8"))
        new.replace(OUTPUT / name)
        print(f"amalgamate: wrote single_include/{name}")


if __name__ == "__main__":
    main()
