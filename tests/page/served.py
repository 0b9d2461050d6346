# SPDX-License-Identifier: MIT
"""`vouch serve` as a test starts it, and requests to it."""

import http.client
import json
import os
import re
import subprocess


class Served:
    """A server on loopback, on a port of its own."""

    def __init__(self, tool, store, *options, environment=None, run=()):
        self.process = subprocess.Popen([*run, tool, "serve", store, "--listen", "127.0.0.1:0", *options], text=True,
                                        stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/(?:#token=(\w+))?", line)
        if not found:
            raise RuntimeError(f"vouch serve does not start: {line!r}")
        self.port, self.token = int(found[1]), found[2]
        self.address = f"http://127.0.0.1:{self.port}/"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.code = self.process.wait(20)

    def ask(self, method, path, headers=None, body=None):
        """The status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        out = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return out

    def json(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, (status, body)
        return json.loads(body)
