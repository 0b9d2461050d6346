#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every C++ file is formatted as .clang-format says.

    format.py          exit 1 and show what differs; exit 77 where there is no clang-format 14
    format.py --fix    format in place

The version matters: each one breaks some lines differently.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ["include", "backends", "conformance", "tests", "examples"]


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout
            if re.search(r"\bversion 14\.", version):
                return path
    return None


def main():
    tool = clang_format()
    if tool is None:
        print("clang-format 14 is not installed")
        sys.exit(77)
    files = [str(path) for folder in FOLDERS for suffix in ("hpp", "cpp")
             for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))]
    how = ["-i"] if sys.argv[1:] == ["--fix"] else ["--dry-run", "--Werror"]
    if subprocess.run([tool, *how, *files]).returncode != 0:
        sys.exit("not formatted; run tests/checks/format.py --fix")


if __name__ == "__main__":
    main()
