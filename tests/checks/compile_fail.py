#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles one file that must not compile, and looks for the sentences its author is to be told.

    compile_fail.py FILE -- COMPILER [FLAGS...]

The file opens, below its SPDX line, with one or more lines `// expect: <fragment>`: the compiler must refuse the file,
and every fragment must be in what it says. A line `// expect-errors: <number>` says how many errors that are in all. A
file that opens with `// expect-ok` must compile. Flags that the file needs besides are in a line `// flags: <flag>...`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path


class Expectations:
    """What the lines at the top of a file say."""

    def __init__(self, text):
        self.compiles, self.fragments, self.errors, self.flags = False, [], None, []
        for line in text.splitlines():
            key, _, value = line.removeprefix("// ").partition(": ")
            if key == "expect-ok":
                self.compiles = True
            elif key == "expect":
                self.fragments.append(value.strip())
            elif key == "expect-errors":
                self.errors = int(value)
            elif key == "flags":
                self.flags = value.split()
            elif key != "SPDX-License-Identifier":
                break


def main():
    file, separator, *command = sys.argv[1:]
    assert separator == "--"
    expected = Expectations(Path(file).read_text(encoding="utf-8"))
    if not expected.compiles and not any(expected.fragments):
        sys.exit(f"{file}: no '// expect: <fragment>' line at the top")

    # The C locale keeps quotation marks and wording the same everywhere.
    result = subprocess.run([*command, *expected.flags, "-fsyntax-only", file], text=True,
                            env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if expected.compiles:
        if result.returncode != 0:
            sys.exit(f"{result.stdout}\n{file}: must compile, and does not")
        return
    if result.returncode == 0:
        sys.exit(f"{file}: compiles, and must not")
    missing = [fragment for fragment in expected.fragments if fragment not in result.stdout]
    if missing:
        said = "\n".join(f"    {fragment}" for fragment in missing)
        sys.exit(f"{result.stdout}\n{file}: refused, but the compiler did not say:\n{said}")
    errors = len(re.findall(r"\berror: ", result.stdout))
    if expected.errors is not None and errors != expected.errors:
        sys.exit(f"{result.stdout}\n{file}: {errors} errors, not {expected.errors}")


if __name__ == "__main__":
    main()
