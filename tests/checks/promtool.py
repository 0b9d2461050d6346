#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has Prometheus' own promtool check the text that vouch::metrics writes.

    promtool.py FOLDER TEST_PROGRAM

Takes the promtool that is installed, else unpacks Debian's package into FOLDER, without installing the service. Exit 77,
and say so, where neither is to be had.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

TEST = "metrics: promtool accepts the text"


def unpacked(folder):
    tool = folder / "usr/bin/promtool"
    if tool.is_file():
        return str(tool)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("promtool", "prometheus"):  # a package of its own since Debian 13
        got = subprocess.run(["apt-get", "-qq", "download", name], cwd=folder, timeout=120, check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        packages = sorted(folder.glob(f"{name}_*.deb"))
        if got.returncode == 0 and packages:
            subprocess.run(["dpkg-deb", "-x", packages[-1].name, "."], cwd=folder, check=True)
            packages[-1].unlink()
            break
    return str(tool) if tool.is_file() else None


def main():
    folder, program = Path(sys.argv[1]).resolve(), sys.argv[2]
    promtool = shutil.which("promtool") or unpacked(folder)
    if promtool is None:
        print("SKIPPED: there is no promtool, and Debian's package cannot be downloaded; "
              "nothing has checked the metrics' text")
        sys.exit(77)
    result = subprocess.run([program, TEST], env={**os.environ, "VOUCH_PROMTOOL": promtool}, check=False)
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
