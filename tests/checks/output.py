#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program and compares what it prints, byte for byte, with a file.

    output.py EXPECTED PROGRAM [ARGUMENTS...]
"""

import difflib
import subprocess
import sys
from pathlib import Path


def main():
    expected_file, *command = sys.argv[1:]
    result = subprocess.run(command, stdout=subprocess.PIPE, timeout=60)
    if result.returncode != 0:
        sys.exit(f"{command[0]} exited with {result.returncode}")
    expected = Path(expected_file).read_bytes() if Path(expected_file).is_file() else b""
    if result.stdout != expected:
        sys.stdout.writelines(difflib.unified_diff(
            expected.decode(errors="backslashreplace").splitlines(keepends=True),
            result.stdout.decode(errors="backslashreplace").splitlines(keepends=True),
            expected_file, "printed"))
        sys.exit(f"\n{command[0]} does not print what {expected_file} says")


if __name__ == "__main__":
    main()
