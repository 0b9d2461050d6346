#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has a real Prometheus scrape vouch's metrics, and sees each alert of backends/tool/monitoring/alerts.yml fire.

    alerts.py TROUBLE

TROUBLE is the program that prints the metrics of a shop. First all is well, and no alert may fire; then everything goes
wrong, and each must; then nothing answers, and VouchAbsent must. The times in the rules are shortened, their thresholds
are not. `promtool` checks the rules as they are. Exit 77 where Prometheus is not installed.
"""

import http.client
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MONITORING = ROOT / "backends/tool/monitoring"
RULES = MONITORING / "alerts.yml"
ABSENT = "VouchAbsent"
# To make the last look at a queue old takes ten minutes, so the shop claims it.
OLD_LOOK = 'vouch_look_age_seconds{queue="mail"} 601\n'


class Shop(http.server.BaseHTTPRequestHandler):
    """Prints the metrics anew for each scrape, with one more round of trouble each time."""
    rounds = 0
    is_well = True
    is_gone = False
    trouble = ""

    def do_GET(self):
        if Shop.is_gone:
            self.send_error(503)
            return
        Shop.rounds += not Shop.is_well
        text = subprocess.run([Shop.trouble, str(Shop.rounds)], stdout=subprocess.PIPE, text=True, check=True).stdout
        if not Shop.is_well:
            text = re.sub(r'vouch_look_age_seconds\{queue="mail"\}.*\n', OLD_LOOK, text)
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def shortened(rules):
    """The same rules with ranges of 20 s and without waiting."""
    rules = re.sub(r"\bfor: \d+m", "for: 0s", rules)
    rules = re.sub(r"\[\d+m\]", "[20s]", rules)
    return re.sub(r"offset \d+m", "offset 20s", rules)


def firing(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/api/v1/alerts")
        alerts = json.loads(connection.getresponse().read())["data"]["alerts"]
        connection.close()
    except (OSError, http.client.HTTPException, ValueError):
        return set()
    return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}


def scraped(port):
    """The number of scrapes that succeeded."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/api/v1/query?query=sum(count_over_time(up[1h]))")
        result = json.loads(connection.getresponse().read())["data"]["result"]
        connection.close()
        return int(result[0]["value"][1]) if result else 0
    except (OSError, http.client.HTTPException, ValueError):
        return 0


def wait_for(what, is_true, seconds=90):
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            sys.exit(f"waited {seconds} s in vain: {what()}")
        time.sleep(0.3)


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    print(done.stdout.strip().splitlines()[-1].strip())


def run_prometheus(folder, names):
    shop = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    (folder / "rules.yml").write_text(shortened(RULES.read_text()))
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n"
        f"scrape_configs: [{{job_name: vouch, static_configs: [{{targets: ['127.0.0.1:{shop.server_port}']}}]}}]\n")
    port = free_port()
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        wait_for(lambda: "the first scrapes; " + (folder / "log").read_text()[-1000:], lambda: scraped(port) >= 5)
        wait_for(lambda: "quiet", lambda: ABSENT not in firing(port))
        if firing(port):
            sys.exit(f"all is well, and yet these fire: {sorted(firing(port))}")
        print("all is well: no alert fires")
        Shop.is_well = False
        seen = set()
        expected = names - {ABSENT}
        wait_for(lambda: f"these do not fire: {sorted(expected - seen)}", lambda: (seen.update(firing(port)), expected <= seen)[1])
        print(f"trouble: {len(expected)} alerts fire")
        Shop.is_gone = True
        wait_for(lambda: ABSENT + " does not fire", lambda: ABSENT in firing(port), 400)
        print(f"gone: {ABSENT} fires")
    finally:
        server.terminate()
        server.wait(30)
        shop.shutdown()


def main():
    Shop.trouble = sys.argv[1]
    names = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    text = subprocess.run([Shop.trouble, "1"], stdout=subprocess.PIPE, text=True, check=True).stdout
    known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    for where, used in (("alerts.yml", RULES.read_text()), ("dashboard.json", json.dumps(dashboard["panels"]))):
        for name in set(re.findall(r"\bvouch_[a-z_]+", used)) - {"vouch"}:
            if re.sub(r"_(bucket|sum|count)$", "", name) not in known and name not in known:
                sys.exit(f"{where} uses {name}, which vouch does not print")
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        print("SKIPPED: Prometheus is not installed (Debian: prometheus); the alerts were not tried")
        sys.exit(77)
    promtool("check", "rules", RULES)
    promtool("test", "rules", MONITORING / "alerts_test.yml")
    with tempfile.TemporaryDirectory() as folder:
        run_prometheus(Path(folder), names)


if __name__ == "__main__":
    main()
