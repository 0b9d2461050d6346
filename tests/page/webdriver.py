# SPDX-License-Identifier: MIT
"""A small client for WebDriver, which drives Chromium as a person would: real clicks and real keys. Standard library only."""

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars", "--disable-dev-shm-usage"]


def installed():
    """The paths of the driver and the browser; None where one of them is missing."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return (driver, browser) if driver and browser else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Failed(Exception):
    pass


class Browser:
    """One browser with a profile of its own."""

    def __init__(self, width=1280, height=900, is_dark=False):
        driver, browser = installed()
        self.profile = tempfile.TemporaryDirectory(prefix="vouch-page-", ignore_cleanup_errors=True)
        self.port = free_port()
        self.driver = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.clicks = 0
        self._wait_for_port()
        flags = [*FLAGS, f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"]
        # `goog:loggingPrefs` collects what the page writes to its console, such as violations of its policy.
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": browser, "args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = "/session/" + answer["sessionId"]
        self.emulate(width, height)
        if is_dark:
            self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._send("DELETE", self.session)
        except (Failed, OSError):
            pass
        self.driver.terminate()
        self.driver.wait(10)
        self.profile.cleanup()

    def _wait_for_port(self):
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 0.2):
                    return
            except OSError:
                time.sleep(0.05)
        raise Failed("chromedriver does not start")

    def _send(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body if body is not None else {}) if method == "POST" else None)
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise Failed(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def emulate(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def cdp(self, command, **parameters):
        return self._send("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address):
        self._send("POST", self.session + "/url", {"url": address})

    def script(self, text, *arguments):
        return self._send("POST", self.session + "/execute/sync", {"script": text, "args": list(arguments)})

    def find_all(self, css):
        return [e[ELEMENT] for e in self._send("POST", self.session + "/elements", {"using": "css selector", "value": css})]

    def find(self, css, containing=None, within=10):
        """The first element that matches and is visible; waits for it."""
        end = time.monotonic() + within
        while True:
            for e in self.find_all(css):
                try:
                    if self._is_shown(e) and (containing is None or containing in self.text(e)):
                        return e
                except Failed:  # drawn again meanwhile
                    pass
            if time.monotonic() > end:
                seen = self.script("return document.body.innerText")
                raise Failed(f"there is no {css}" + (f" with {containing!r}" if containing else "") + f"; the page says:\n{seen[:1500]}")
            time.sleep(0.05)

    def _is_shown(self, element):
        return self._send("GET", f"{self.session}/element/{element}/displayed")

    def text(self, element):
        return self._send("GET", f"{self.session}/element/{element}/text")

    def click(self, css, containing=None):
        """A click of the mouse in the middle of the element, as WebDriver does it: it fails if something covers it."""
        for attempt in range(5):
            try:
                self._send("POST", f"{self.session}/element/{self.find(css, containing)}/click")
                break
            except Failed as e:
                if "stale" not in str(e) or attempt == 4:
                    raise
        self.clicks += 1

    def type(self, css, text):
        self._send("POST", f"{self.session}/element/{self.find(css)}/value", {"text": text})

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def console(self):
        """What was written to the console since the last call."""
        return [entry["message"] for entry in self._send("POST", self.session + "/se/log", {"type": "browser"})]

    def shoot(self, folder, name, is_whole=True):
        if folder is None:
            return
        os.makedirs(folder, exist_ok=True)
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 2400), "scale": 1}} if is_whole else {}
        data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole, **clip)["data"]
        with open(os.path.join(folder, name + ".png"), "wb") as file:
            file.write(base64.b64decode(data))
