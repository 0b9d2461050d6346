#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the code in the comments of public headers is code that the tests compile.

    comment_code.py              exit 1 and name every block that no compiled file has
    comment_code.py --self-test  plant blocks of all kinds and see the wrong ones caught

A block is a run of comment lines whose text is indented by three spaces or more, where the first is indented by exactly
three and does not continue a list. It is code if one of its lines ends with `;`, `{` or `}`, a comment at its end aside;
else it is a table or a drawing. Every block of code must occur in one of the files that the tests compile, white space and
comments aside. A line `...` or `// ...` stands for lines left out.

The files are those in tests/unit, tests/verify, tests/sqlite, tests/postgres, tests/kafka, tests/relay, tests/rabbitmq, tests/conformance and examples, and those in
tests/compile_fail that say `// expect-ok`. Headers in a folder `detail` are ours, so their comments are not checked.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADERS = ["include", "backends/*/include", "conformance/include"]
COMPILED = ["tests/unit", "tests/verify", "tests/sqlite", "tests/postgres", "tests/kafka", "tests/relay", "tests/rabbitmq",
            "tests/conformance", "tests/compile_fail", "examples"]
COMMENT = re.compile(r"\s*///?(?!/)(<?)( *)(.*)")


def blocks(text):
    """The first line's number and the lines of every indented block in a comment."""
    found, block, before = [], None, 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        match = COMMENT.fullmatch(line)
        indent = len(match[2]) if match and match[3] and not match[1] else 0
        if block is not None and indent >= 3:
            block[1].append(match[3])
        else:
            block = None
            if indent == 3 and before < 2:
                block = (number, [match[3]])
                found.append(block)
        before = indent
    return found


def without_comment(line):
    """A line without the comment at its end. `//` in a string is not one."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"', lambda match: "x" * len(match[0]), line)
    return line[:bare.find("//")] if "//" in bare else line


def is_code(lines):
    return any(without_comment(line).rstrip().endswith((";", "{", "}")) for line in lines)


def normal(lines):
    return re.sub(r"\s+", "", "\n".join(map(without_comment, lines)))


def chunks(lines):
    """What must occur, in parts where lines are left out."""
    parts = [[]]
    for line in lines:
        if line.strip() in ("...", "// ..."):
            parts.append([])
        else:
            parts[-1].append(line)
    return [part for part in map(normal, parts) if part]


def has(file, parts):
    at = 0
    for part in parts:
        found = file.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def problems(root):
    files = []
    for folder in COMPILED:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            text = path.read_text(encoding="utf-8")
            if folder != "tests/compile_fail" or "// expect-ok" in text:
                files.append(normal(text.splitlines()))
    for folder in HEADERS:
        for start in sorted(root.glob(folder)):
            for path in sorted(start.rglob("*.hpp")):
                if "detail" in path.relative_to(start).parts:
                    continue
                for number, lines in blocks(path.read_text(encoding="utf-8")):
                    if is_code(lines) and not any(has(file, chunks(lines)) for file in files):
                        yield f"{path.relative_to(root).as_posix()}:{number}: no file that the tests compile has this code"


def self_test():
    compiled = 'void f() {\n    int a = 1; // one\n    g(a,\n      "http://x");\n    int b = 2;\n}\n'
    good = {
        "the code": "//   int a = 1;",
        "on several lines, with a comment": '//   int a = 1;   // another comment\n//   g(a, "http://x");',
        "lines left out": "//   int a = 1;\n//   ...\n//   int b = 2;",
        "a member's comment": "    ///   int a = 1;",
        "a table": "//   state    dead; kept\n//   verb     claim; nudge",
        "a list": "//  1. Something that needs two lines, of which the second is\n//     indented;\n//     - and a third;",
        "a drawing": "//              x;",
        "prose": "// One sentence;\n//  another;",
    }
    bad = {
        "other code": "//   int a = 2;",
        "another order": "//   int b = 2;\n//   ...\n//   int a = 1;",
        "more code": "//   int a = 1;\n//   int c = 3;",
        "a type": "//   struct x {\n//       int a = 1;\n//   };",
        "after prose": "// For example:\n//   int a = 2;",
        "below a member": "    int a; ///< one\n    ///   int a = 2;",
    }

    def found(header, where="include/vouch/part/x.hpp"):
        with tempfile.TemporaryDirectory() as folder:
            files = {"tests/unit/x.cpp": compiled, "tests/compile_fail/y.cpp": "// expect: no\nint a = 2;\n", where: header}
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"// SPDX\n{text}\n", encoding="utf-8")
            return list(problems(Path(folder)))

    for name, header in good.items():
        assert found(header) == [], (name, found(header))
    for name, header in bad.items():
        assert len(found(header)) == 1, (name, found(header))
    assert found(bad["other code"], "include/vouch/part/detail/x.hpp") == []
    assert found(bad["other code"], "backends/sqlite/include/vouch/sqlite/x.hpp") != []
    print(f"{len(good)} blocks accepted, {len(bad)} refused")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    wrong = list(problems(ROOT))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
