#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a command and checks its exit code and that its output contains WORDS. Runs of white space count as one space.

    ends_clearly.py [--within SECONDS] CODE WORDS -- COMMAND...

For stores that the suite cannot test, and for wrong arguments: it must end with a clear message.
"""

import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    seconds = int(arguments[1]) if arguments[0] == "--within" else 60
    code, words, separator, *command = arguments[2:] if arguments[0] == "--within" else arguments
    if separator != "--":
        sys.exit("usage: ends_clearly.py [--within SECONDS] CODE WORDS -- COMMAND...")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds)
    print(result.stdout)
    if result.returncode != int(code) or words not in " ".join(result.stdout.split()):
        sys.exit(f"expected exit code {code} and the words: {words}\nseen: exit code {result.returncode} and the output above")


if __name__ == "__main__":
    main()
