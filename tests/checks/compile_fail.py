#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles one file that must not compile, and looks for the sentences its author is to be told.

    compile_fail.py FILE -- COMPILER [FLAGS...]

The file opens, below its SPDX line, with one or more lines `// expect: <fragment>`: the compiler must refuse the file,
and every fragment must be in what it says. A file that opens with `// expect-ok` must compile.
"""

import os
import subprocess
import sys
from pathlib import Path


def expectations(text):
    """The fragments to look for; None when the file must compile."""
    fragments = []
    for line in text.splitlines():
        if line.strip() == "// expect-ok":
            return None
        if line.startswith("// SPDX-"):
            continue
        if not line.startswith("// expect: "):
            break
        fragments.append(line.removeprefix("// expect: ").strip())
    return fragments


def main():
    file, separator, *command = sys.argv[1:]
    assert separator == "--"
    fragments = expectations(Path(file).read_text(encoding="utf-8"))
    if fragments is not None and not any(fragments):
        sys.exit(f"{file}: no '// expect: <fragment>' line at the top")

    # The C locale keeps quotation marks and wording the same everywhere.
    result = subprocess.run([*command, "-fsyntax-only", file], text=True, env={**os.environ, "LC_ALL": "C"},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if fragments is None:
        if result.returncode != 0:
            sys.exit(f"{result.stdout}\n{file}: must compile, and does not")
        return
    if result.returncode == 0:
        sys.exit(f"{file}: compiles, and must not")
    missing = [fragment for fragment in fragments if fragment not in result.stdout]
    if missing:
        said = "\n".join(f"    {fragment}" for fragment in missing)
        sys.exit(f"{result.stdout}\n{file}: refused, but the compiler did not say:\n{said}")


if __name__ == "__main__":
    main()
