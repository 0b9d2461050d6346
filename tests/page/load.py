#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much the page slows down a worker: rounds of a worker at full speed, alone and beside 50 requests a second.

    load.py TOOL SHOP [--rounds N] [--seconds S] [--rate R] [--entries N] [--at-most PERCENT] [--run COMMAND]

Prints the entries per second of both kinds of rounds, which take turns, and the difference of their medians; and how much
processor time an entry costs the worker, which says more on a machine that does other work too. Exit 1 if
the worker is slower by more than PERCENT. On a machine that does other work too, `--run 'chrt -f 10'` keeps the rounds alike.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served


CLIENTS = 4


def requests(server, rate, stop, count, wrong):
    """What an open page asks, and a search beside it."""
    some = server.json("/api/entries?state=live&limit=1")["entries"][0]["id"]
    paths = ["/api/overview", "/api/entries?state=stuck", "/api/entries/" + some, "/metrics", "/api/entries?queue=fast&state=live"]
    start, mine = time.monotonic(), 0
    while not stop.is_set():
        status, _, _ = server.ask("GET", paths[mine % len(paths)])
        mine += 1
        with count:
            count.value += 1
            wrong.value += status != 200
        stop.wait(max(0.0, start + mine / rate - time.monotonic()))


def worker(shop, store, how):
    """Entries per second, and microseconds of the processor per entry."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*how.run.split(), shop, store, "work", str(how.seconds)], stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(done.stdout) / how.seconds, 1e6 * used / int(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("shop")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--at-most", type=float, default=5.0)
    parser.add_argument("--run", default="", help="what runs the worker and the server, such as `chrt -f 10` on a machine that does other work too")
    how = parser.parse_args()
    alone, beside, rates, cpu = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "load.db")
        subprocess.run([how.shop, store, "large", str(how.entries)], check=True)
        worker(how.shop, store, how)  # warm
        for _ in range(how.rounds):
            alone.append(worker(how.shop, store, how))
            with Served(how.tool, store, run=how.run.split()) as server:
                stop, done, wrong = multiprocessing.Event(), multiprocessing.Value("q"), multiprocessing.Value("q")
                asking = [multiprocessing.Process(target=requests, args=(server, how.rate / CLIENTS, stop, done, wrong))
                          for _ in range(CLIENTS)]
                for one in asking:
                    one.start()
                beside.append(worker(how.shop, store, how))
                stop.set()
                for one in asking:
                    one.join()
                ticks = open(f"/proc/{server.process.pid}/stat").read().rsplit(")")[1].split()
                cpu.append((int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK") / how.seconds)
            assert done.value > 0 and wrong.value == 0, (done.value, wrong.value)
            rates.append(done.value / how.seconds)
            print(f"alone {alone[-1][0]:8.0f}/s {alone[-1][1]:6.2f} us   beside {rates[-1]:3.0f} requests/s {beside[-1][0]:8.0f}/s {beside[-1][1]:6.2f} us", flush=True)
    (a, cost_a), (b, cost_b) = (map(statistics.median, zip(*kind)) for kind in (alone, beside))
    slower = 100 * (1 - b / a)
    spread = 100 * (max(alone)[0] - min(alone)[0]) / a
    print(f"median alone {a:.0f}/s, beside {statistics.median(rates):.0f} requests/s {b:.0f}/s: {slower:+.1f} % slower; "
          f"rounds alone differ by {spread:.0f} %; "
          f"the processor's time per entry grows by {100 * (cost_b / cost_a - 1):+.1f} %; the server uses {100 * statistics.median(cpu):.0f} % of a core")
    sys.exit(1 if slower > how.at_most else 0)


if __name__ == "__main__":
    main()
