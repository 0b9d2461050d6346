#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the suite says of a fixture nothing can be said about: its exit code, and words that must be there, line breaks as spaces.

    ends_clearly.py CODE WORDS -- COMMAND...
"""

import subprocess
import sys


def main():
    code, words, separator, *command = sys.argv[1:]
    assert separator == "--"
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    print(result.stdout)
    if result.returncode != int(code) or words not in " ".join(result.stdout.split()):
        sys.exit(f"expected exit code {code} and: {words}\nseen: exit code {result.returncode}")


if __name__ == "__main__":
    main()
