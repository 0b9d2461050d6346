#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`vouch serve` as a program: its arguments, its address, and requests over real HTTP.

    serve.py TOOL SHOP [STORE_URL OPTIONS...]

With STORE_URL, a PostgreSQL store is served instead of a file with the shop's entries.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served

TOOL, SHOP = sys.argv[1:3]


def check(is_true, what):
    if not is_true:
        sys.exit(f"FAILED: {what}")


def refused(words, code, says, environment=None):
    done = subprocess.run([TOOL, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30,
                          env={**os.environ, **(environment or {})})
    check(done.returncode == code and says in done.stdout, f"serve {words}: {done.returncode} {done.stdout}")


def arguments(store):
    refused([], 2, "serve needs a store")
    refused([store, "more"], 2, "too many arguments: more")
    refused([store, "--listen"], 2, "--listen needs one value")
    refused([store, "--listen", "127.0.0.1"], 2, "--listen needs an address and a port")
    refused([store, "--listen", "127.0.0.1:99999"], 2, "--listen needs an address and a port")
    refused([store, "--sideways"], 2, "unknown option --sideways")
    refused([store, "--listen", "0.0.0.0:0"], 2, "needs a token")
    refused([store, "--listen", "192.0.2.7:0"], 2, "needs a token")
    refused([store, "--listen", "0.0.0.0:0"], 2, "needs --host", {"VOUCH_TOKEN": "t"})
    refused([store, "--listen", "192.0.2.7:0", "--token", "t"], 4, "cannot listen on 192.0.2.7")
    refused([store + "-missing"], 4, "cannot open")
    refused([store, "--prefix", "other_"], 4, "has no tables with the prefix other_")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused([store, "--listen", f"127.0.0.1:{taken.getsockname()[1]}"], 4, "the port is in use")
    check(not os.path.exists(store + "-missing"), "serve creates a file")


def answers(server):
    status, headers, body = server.ask("GET", "/")
    check(status == 200 and b"<title>vouch</title>" in body, "the page is not served")
    check("frame-ancestors 'none'" in headers["Content-Security-Policy"], "no policy")
    check(b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in body, "the page names another address")
    check(server.ask("GET", "/healthz")[2] == b"ok\n", "healthz")
    check(b"# TYPE vouch_entries gauge" in server.ask("GET", "/metrics")[2], "metrics")
    check(server.ask("GET", "/api/overview", {"Host": "evil.example"})[0] == 421, "another host is answered")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        check(server.ask(method, "/api/overview")[0] == 405, method)
    status, _, body = server.ask("HEAD", "/")
    check(status == 200 and body == b"", "HEAD")
    check(server.ask("POST", "/api/requeue", {"Authorization": "Bearer " + (server.token or "")}, "x" * 100_000)[0] == 413, "a large body is read")
    check(server.ask("GET", "/" + "x" * 3000)[0] == 414, "a long path is read")
    # What is no HTTP gets no answer of ours, and the server goes on.
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"\x00\xff\r\n\r\n")
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        check(b" 421 " in raw.recv(100), "two hosts are answered")
    check(server.ask("GET", "/healthz")[0] == 200, "the server has ended")


def changes(server, state_of):
    entry = server.json("/api/entries?state=pending&limit=1")["entries"][0]["id"]
    path, ours = f"/api/entries/{entry}/cancel", f"http://127.0.0.1:{server.port}"
    good = {"Authorization": "Bearer " + server.token, "Origin": ours}
    check(server.ask("POST", path)[0] == 401, "a change without the token")
    check(server.ask("POST", path, {**good, "Authorization": "Bearer x"})[0] == 401, "a change with another token")
    check(server.ask("POST", path, {**good, "Origin": "http://evil.example"})[0] == 403, "a change from another origin")
    check(state_of(entry) == "pending", "a refused change was made")
    check(server.ask("POST", path, good)[0] == 200 and state_of(entry) == "dead", "a change is refused")


def tokens(store):
    with Served(TOOL, store) as one, Served(TOOL, store) as other:
        check(one.token and len(one.token) == 32 and one.token != other.token, "tokens are not fresh")
    check(one.code == 0, f"SIGTERM ends it with {one.code}")
    with Served(TOOL, store, environment={"VOUCH_TOKEN": "from-the-environment"}) as server:
        check(server.token is None, "a given token is printed")
        check(json.loads(server.ask("GET", "/api/overview", {"Authorization": "Bearer from-the-environment"})[2])["may_write"], "VOUCH_TOKEN")
    with Served(TOOL, store, "--read-only") as server:
        check(server.token is None, "a read-only page has a token")
        check(server.ask("POST", "/api/requeue", {"Authorization": "Bearer "}, "until=1")[0] == 403, "a read-only page changes")


def other_address(store):
    """An address that other machines reach: everything needs the token, and only the named host is answered."""
    done = subprocess.Popen([TOOL, "serve", store, "--listen", "0.0.0.0:0", "--host", "ops.example:80", "--token", "tok"],
                            stdout=subprocess.PIPE, text=True)
    try:
        port = int(done.stdout.readline().rsplit(":", 1)[1].strip(" /\n"))
        server = Served.__new__(Served)
        server.port = port
        named = {"Host": "ops.example:80"}
        check(server.ask("GET", "/api/overview", named)[0] == 401, "reading from another machine needs no token")
        check(server.ask("GET", "/metrics", named)[0] == 401, "metrics for another machine need no token")
        check(server.ask("GET", "/api/overview", {**named, "Authorization": "Bearer tok"})[0] == 200, "the token does not help")
        check(server.ask("GET", "/", {"Host": f"127.0.0.1:{port}"})[0] == 421, "a host that was not named is answered")
    finally:
        done.terminate()
        done.wait(20)


def main():
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[3] if len(sys.argv) > 3 else None
        store = url or os.path.join(folder, "shop.db")
        if not url:
            subprocess.run([SHOP, store, "small"], check=True)
            arguments(store)
            tokens(store)
            other_address(store)
        with Served(TOOL, store, *sys.argv[4:]) as server:
            answers(server)
            changes(server, lambda entry: server.json("/api/entries/" + entry)["state"])
    print("passed")


if __name__ == "__main__":
    main()
