#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A person with a million entries, three of which are stuck for different reasons, finds all three and why.

    million.py TOOL SHOP [ENTRIES] [SCREENSHOT_FOLDER]

Counts the clicks, measures every kind of request, and checks that no answer comes from reading more than a page. Exit 77
where Chromium or its driver is missing.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served
from webdriver import Browser, Failed, installed

TOOL, SHOP = sys.argv[1:3]
ENTRIES = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
SHOTS = sys.argv[4] if len(sys.argv) > 4 else None
SLOWEST = 0.25  # seconds for one request, on any machine


def measure(server, path, times=20):
    took = []
    for _ in range(times):
        start = time.monotonic()
        status, _, _ = server.ask("GET", path)
        took.append(time.monotonic() - start)
        assert status == 200, path
    print(f"{path:55} median {statistics.median(took) * 1000:6.1f} ms, slowest {max(took) * 1000:6.1f} ms")
    if statistics.median(took) > SLOWEST:
        raise Failed(f"{path} takes {statistics.median(took):.2f} s")


def walk(server):
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "mail", within=30)
        b.clicks = 0
        start = time.monotonic()
        b.shoot(SHOTS, "8_million_overview")
        b.click("#find-stuck")
        b.find(".status", "3 entries, oldest first", within=120)
        why = [b.text(e) for e in b.find_all("td.why")]
        seconds = time.monotonic() - start
        b.shoot(SHOTS, "8_million_stuck")
        print(f"{b.clicks} click, {seconds:.1f} s until the search has read everything; the three reasons:")
        for expected in ("no worker has claimed it. Is a worker running for queue reports?",
                         "Worker mailer-3 held it, and its lease ended 2 h ago without an outcome.",
                         "It is blocked in lane customer-7 behind"):
            found = [w for w in why if expected in w]
            if len(found) != 1:
                raise Failed(f"not shown once: {expected}; shown: {why}")
            print("  " + found[0])
        if b.clicks > 3 or seconds > 60:
            raise Failed("it takes too long")


def main():
    if not installed():
        print("SKIPPED: Chromium or its driver is not installed (Debian: chromium chromium-driver)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "million.db")
        subprocess.run([SHOP, store, "large", str(ENTRIES)], check=True)
        with Served(TOOL, store) as server:
            walk(server)
            some = server.json("/api/entries?queue=mail&state=live&limit=1")["entries"][0]["id"]
            for path in ("/", "/healthz", "/api/overview", "/metrics", "/api/entries", "/api/entries?state=stuck",
                         "/api/entries?queue=mail&topic=nothing", "/api/entries?state=dead", "/api/entries?worker=nobody&older_than=1h",
                         "/api/entries/" + some):
                measure(server, path)
            overview = server.json("/api/overview")
            oldest = min(q["counted_at"] for q in overview["queues"])
            print(f"the counts are {(overview['now'] - oldest) / 1000:.1f} s old")


if __name__ == "__main__":
    main()
