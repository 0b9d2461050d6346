#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Uses the page in headless Chromium as a person would: real clicks, real keys, and a look at what is shown.

    page.py TOOL SHOP [SCREENSHOT_FOLDER]

TOOL is `vouch`, SHOP the program that fills a store. Exit 77, and say so, where Chromium or its driver is missing.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served
from webdriver import Browser, Failed, installed

TOOL, SHOP = sys.argv[1:3]
SHOTS = sys.argv[3] if len(sys.argv) > 3 else None


def check(is_true, what):
    if not is_true:
        raise Failed(what)


def is_quiet(browser):
    """Nothing was blocked by the policy, and no script failed."""
    said = browser.console()
    check(not said, "the console says " + "; ".join(said))


def counts(server, queue):
    return next(q for q in server.json("/api/overview")["queues"] if q["queue"] == queue)["counts"]


def every_view(server):
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "mail")
        check(len(b.find_all(".spark")) >= 3 * 7, "each queue has three charts")
        time.sleep(4)
        b.shoot(SHOTS, "1_overview")
        b.click("#find-stuck")
        b.find(".status", "6 entries")
        b.shoot(SHOTS, "2_list")
        b.click("a.topic", "charge")
        b.find("#why", "It is blocked in lane customer-7 behind")
        b.shoot(SHOTS, "3_entry_blocked")
        b.click(".why-panel a")
        b.find("#why", "Its last attempt failed with bank_closed.")
        is_quiet(b)


def a_late_answer(server):
    """An answer for a view that the person has left does not bring it back."""
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "mail")
        # Answers for the overview's redraw are held back until the list is shown.
        b.script("const real = window.fetch; let held = 0; window.fetch = async (path, how) => { const answer = await real(path, how);"
                 "if (path === 'api/overview' && held++ === 0) { window.isHeld = true; await new Promise(r => setTimeout(r, 3000)); window.isLate = true; }"
                 "return answer; };")
        end = time.monotonic() + 10
        while not b.script("return window.isHeld === true") and time.monotonic() < end:
            time.sleep(0.05)
        b.click("#find-stuck")
        b.find(".status", "6 entries")
        while not b.script("return window.isLate === true") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        b.find("h1", "Stuck entries", within=1)


def an_entry(server):
    with Browser() as b:
        b.open(server.address + "#/dead?queue=mail&error=address_rejected")
        b.click("a.topic", "invoice.send")
        b.find("#payload pre", '"to": "ada@example.com"')
        b.shoot(SHOTS, "3_entry")
        b.click("#payload [role=tab]", "Hex")
        b.find("#payload pre", "000000  7b 22 74 6f")
        time.sleep(5)  # a redraw keeps the form
        b.find("#payload pre", "000000  7b 22 74 6f")
        b.press("\ue012")  # the left arrow: the focus is still on the tab
        b.click("#payload [role=tab]", "Text")
        b.find("#payload pre", '{"to": "ada@example.com"')
        b.find("dt", "traceparent")
        is_quiet(b)


def sagas(server):
    with Browser() as b:
        b.open(server.address + "#/entries?queue=orders")
        for state, word in (("succeeded", "completed"), ("compensated", "compensated"), ("pending", "next steps"), ("dead", "stuck")):
            b.open(server.address + "#/entries?queue=orders")
            b.find(".status", "4 entries")
            for row in b.find_all("tbody tr"):
                if b.script("return arguments[0].querySelector('.badge').textContent", {"element-6066-11e4-a52e-4f735466cecf": row}) == state:
                    b._send("POST", f"{b.session}/element/{row}/click")  # anywhere on the row
                    break
            b.find(".steps .step-name", word)
            b.shoot(SHOTS, "4_saga_" + state)
        check(b.text(b.find(".step.here .step-name")) == "payment", "a dead saga shows where it is stuck")
        b.find(".saga-sentence", "Undoing because of address_unknown, stuck at step payment.")
        is_quiet(b)


def hostile_names(server):
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "<img src=x onerror=document.title='owned'>")
        b.open(server.address + "#/entries?state=stuck")
        b.click("a.topic", "</script><script>")
        b.find("#payload pre", "<script>document.title='owned'</script><b>bold</b>")
        b.find("dd", "\\u202egnp.exe")  # a change of direction is shown, not obeyed
        b.find("dd", "\"><svg onload=document.title='owned'>")
        check("owned" not in b.script("return document.title").replace("document.title='owned'", ""), "a name ran as code")
        check(b.script("return document.querySelectorAll('img, main script, main b b, main svg[onload]').length") == 0, "a name became markup")
        # Even if the page did build markup from data, the policy would not run it.
        b.script("const i = document.createElement('img'); i.setAttribute('onerror', 'document.title = \"ran\"'); i.src = 'x:'; document.body.append(i);"
                 "const s = document.createElement('script'); s.textContent = 'document.title = \"ran\"'; document.body.append(s);")
        time.sleep(0.3)
        check(b.script("return document.title") != "ran", "the policy lets foreign script run")
        check(any("Content Security Policy" in line for line in b.console()), "the policy says nothing")


def changes(server):
    with Browser() as b:
        b.open(server.address + "#/entries?queue=reports&state=live")
        b.click("a.topic", "report.monthly")
        b.click("button", "Cancel entry")
        b.click("dialog .danger", "Cancel entry")
        b.find("dialog h2", "Unlock changes")  # the token is asked for when it is needed
        b.type("#token-field", "wrong")
        b.click("dialog .primary", "Unlock")
        b.find(".toast.shown", "The token is not right.")
        check(counts(server, "reports")["dead"] == 0, "a wrong token changed something")
        b.click("#lock", "Unlock changes")
        b.type("#token-field", server.token)
        b.press("\ue007")
        b.find("#lock", "Changes unlocked")
        b.click("button", "Cancel entry")
        b.click("dialog .quiet", "Cancel")
        b.click("button", "Cancel entry")
        b.click("dialog .danger", "Cancel entry")
        b.find(".badge", "dead")
        b.click("button", "Requeue")
        b.click("dialog .primary", "Requeue")
        b.find("dt", "replaces")
        b.find(".badge", "pending")
        b.console()


def bulk_requeue(server):
    before = server.json("/api/entries?queue=mail&state=dead&limit=100")["entries"]
    wanted = sum(e["last_error"] == "smtp_timeout" for e in before)
    with Browser() as b:
        b.open(server.address + "#token=" + server.token)
        b.find("#lock", "Changes unlocked")
        check("token" not in b.script("return location.href"), "the token stays in the address")
        b.click("nav a", "Dead letters")
        b.find(".status", "read.")
        b.shoot(SHOTS, "5_dead_letters")
        b.type("#filter-error", "smtp_timeout")
        b.click("form .primary", "Search")
        b.find(".status", f"{wanted} entries")
        b.click("#requeue-all")
        b.find("#requeue-status", f"{wanted} entries get a successor")
        b.shoot(SHOTS, "5_dead_letters_confirm", is_whole=False)
        b.click("#requeue-close", "Cancel")
        check(counts_now(server) == len(before), "a cancelled requeue changed something")
        b.click("#requeue-all")
        b.click("#requeue-go", f"Requeue {wanted}")
        b.find("#requeue-status", f"{wanted} requeued.")
        b.click("#requeue-close", "Close")
        is_quiet(b)
    pending = server.json("/api/entries?queue=mail&state=pending&limit=100")["entries"]
    check(sum(e["predecessor"] is not None for e in pending) == wanted, "not all were requeued, or others")


def counts_now(server):
    return len(server.json("/api/entries?queue=mail&state=dead&limit=100")["entries"])


def live(server, store):
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "mail")
        subprocess.run([SHOP, store, "work", "1"], check=True, stdout=subprocess.DEVNULL)
        b.find(".queue h3", "fast", within=20)  # without a reload
        is_quiet(b)


def keyboard(server):
    with Browser() as b:
        b.open(server.address)
        b.find(".queue h3", "mail")
        b.press("s")
        b.find("h1", "Stuck entries")
        b.find(".status", "read.")
        b.script("document.querySelector('a.topic').focus()")
        b.press("\ue007")
        b.find("#why")
        b.press("d")
        b.find("h1", "Dead letters")
        names = b.script("return [...document.querySelectorAll('a, button, input, select')].filter(e => e.offsetParent && "
                         "!(e.textContent.trim() || e.getAttribute('aria-label') || e.labels && e.labels.length)).map(e => e.outerHTML)")
        check(not names, "without an accessible name: " + str(names))
        is_quiet(b)


def dark_and_narrow(server):
    with Browser(is_dark=True) as b:
        b.open(server.address)
        b.find(".queue h3", "mail")
        background = b.script("return getComputedStyle(document.body).backgroundColor")
        check(background == "rgb(16, 20, 29)", "dark is not dark: " + background)
        b.shoot(SHOTS, "6_dark")
    with Browser(390, 844) as b:
        for name, path, css in (("overview", "", ".queue"), ("list", "#/entries?state=live", "tbody tr"), ("dead", "#/dead", "tbody tr")):
            b.open(server.address + path)
            b.find(css)
            time.sleep(0.5)
            b.shoot(SHOTS, "7_narrow_" + name)
            wide = b.script("return document.documentElement.scrollWidth")
            check(wide <= 390, f"{name} is {wide} pixels wide on a phone")
        b.open(server.address + "#/entries?queue=orders&state=dead")
        b.click("a.topic", "order")
        b.find("#saga")
        b.shoot(SHOTS, "7_narrow_saga")
        check(b.script("return document.documentElement.scrollWidth") <= 390, "the saga is too wide for a phone")
        is_quiet(b)


def read_only(store):
    with Served(TOOL, store, "--read-only") as server, Browser() as b:
        b.open(server.address + "#/dead")
        b.find("#lock", "Read-only")
        b.find(".status", "read.")
        check(not b.find_all("#requeue-all"), "a read-only page offers a change")
        status, _, body = server.ask("POST", "/api/requeue", {"Authorization": "Bearer x"}, "until=1")
        check(status == 403 and json.loads(body)["error"] == "This page is read-only.", "a read-only page changes")


def main():
    if not installed():
        print("SKIPPED: Chromium or its driver is not installed (Debian: chromium chromium-driver); the page was not tried in a browser")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "shop.db")
        subprocess.run([SHOP, store, "small"], check=True)
        with Served(TOOL, store) as server:
            for test in (every_view, a_late_answer, an_entry, sagas, hostile_names, keyboard, dark_and_narrow, changes, bulk_requeue):
                test(server)
                print("passed:", test.__name__, flush=True)
            live(server, store)
            print("passed: live")
        check(server.code == 0, f"the server ended with {server.code}")
        read_only(store)
        print("passed: read_only")


if __name__ == "__main__":
    main()
