#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that includes follow the architecture: contract <- policy <- observe <- outbox <- run <- saga <- testing.

    layers.py              exit 1 and name every include that points the wrong way
    layers.py --self-test  plant violations in a copy of the rules' world and see each of them caught

A header may include its own folder and what is below. A backend knows contract
and policy, the conformance suite too; only its simulation knows run. No backend knows another, and only the umbrella
vouch.hpp and testing name the memory backend. Umbrellas (include/vouch/*.hpp) may otherwise include anything. Every
header reaches version.hpp, which says what the compiler lacks.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

BASE = {"contract", "policy"}
MAY_INCLUDE = {
    "contract": set(),
    "policy": {"contract"},
    "observe": BASE,
    "outbox": BASE | {"observe"},
    "run": BASE | {"outbox", "observe"},
    "saga": BASE | {"outbox", "observe", "run"},
    "testing": BASE | {"outbox", "observe", "saga", "run", "memory"},
    "conformance": BASE,
}
NAMES_MEMORY = {"include/vouch/vouch.hpp", "include/vouch/testing.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]vouch/([^>"]+)[>"]', re.MULTILINE)


def layer_of(name):
    """`contract/id.hpp` is in contract; an umbrella, `vouch.hpp`, is in no layer."""
    folder, slash, _ = name.partition("/")
    return folder if slash else None


def violations(root):
    # A backend's headers are in backends/X/include/vouch/X/, with an umbrella beside that folder.
    backends = {path.name for path in (root / "backends").glob("*")}
    headers = [(path, path.relative_to(root).as_posix())
               for folder in ("include", "backends/*/include", "conformance/include")
               for start in sorted(root.glob(folder)) for path in sorted(start.rglob("*.hpp"))]
    for path, where in headers:
        backend = where.split("/")[1] if where.startswith("backends/") else None
        name = where.partition("include/vouch/")[2] if "include/vouch/" in where else where
        layer = layer_of(name) or backend
        if backend and layer != backend:
            yield f"{where}: backend {backend} keeps its headers in vouch/{backend}/"
            continue
        if layer and layer not in MAY_INCLUDE and layer not in backends:
            yield f"{where}: '{layer}' is no layer this check knows"
            continue

        includes = list(INCLUDE.finditer(path.read_text(encoding="utf-8")))
        if not includes and name != "version.hpp":
            yield f"{where}: must include <vouch/version.hpp>, as it includes no other header of ours"
        for match in includes:
            included = layer_of(match[1])
            if included is None and Path(match[1]).stem in backends:
                included = Path(match[1]).stem  # a backend's umbrella is as much as its folder
            if layer is None:  # an umbrella
                wrong = included in backends and not (included == "memory" and where in NAMES_MEMORY)
            elif included is None:
                # version.hpp is nobody's layer; any other umbrella brings in everything.
                wrong = match[1] != "version.hpp"
            else:
                allowed = MAY_INCLUDE.get(layer, BASE) | {layer}
                if layer == "conformance" and "simulation" in name:
                    allowed = allowed | {"outbox", "observe", "saga", "run"}
                wrong = included not in allowed
            if wrong:
                yield f"{where}: must not include <vouch/{match[1]}>"


def self_test():
    good = {
        "include/vouch/vouch.hpp": "run/runner.hpp memory.hpp version.hpp",
        "include/vouch/testing.hpp": "testing/bench.hpp memory/store.hpp",
        "include/vouch/version.hpp": "",
        "include/vouch/contract/id.hpp": "contract/time.hpp version.hpp",
        "include/vouch/policy/retry.hpp": "contract/entry.hpp policy/backoff.hpp",
        "include/vouch/run/audit.hpp": "contract/id.hpp",
        "include/vouch/outbox/outbox.hpp": "observe/observer.hpp",
        "include/vouch/saga/saga.hpp": "outbox/outbox.hpp run/router.hpp",
        "include/vouch/run/runner.hpp": "observe/audit.hpp",
        "include/vouch/testing/bench.hpp": "memory.hpp run/runner.hpp",
        "backends/memory/include/vouch/memory/store.hpp": "contract/store.hpp policy/clock.hpp memory/heap.hpp",
        "backends/sqlite/include/vouch/sqlite.hpp": "sqlite/store.hpp",
        "backends/sqlite/include/vouch/sqlite/store.hpp": "contract/store.hpp",
        "conformance/include/vouch/conformance/suite.hpp": "contract/store.hpp conformance/model.hpp",
        "conformance/include/vouch/conformance/simulation.hpp": "run/runner.hpp",
    }
    bad = [
        ("include/vouch/contract/id.hpp", ""),
        ("include/vouch/contract/id.hpp", "policy/clock.hpp"),
        ("include/vouch/contract/id.hpp", "vouch.hpp"),
        ("include/vouch/policy/retry.hpp", "outbox/outbox.hpp"),
        ("include/vouch/run/audit.hpp", "outbox/outbox.hpp"),
        ("include/vouch/outbox/outbox.hpp", "run/runner.hpp"),
        ("include/vouch/saga/saga.hpp", "testing/bench.hpp"),
        ("include/vouch/saga/saga.hpp", "memory.hpp"),
        ("include/vouch/run/runner.hpp", "saga/saga.hpp"),
        ("include/vouch/run/runner.hpp", "testing/bench.hpp"),
        ("include/vouch/run/runner.hpp", "memory/store.hpp"),
        ("include/vouch/run/runner.hpp", "memory.hpp"),
        ("include/vouch/outbox.hpp", "memory/store.hpp"),
        ("include/vouch/outbox.hpp", "memory.hpp"),
        ("include/vouch/vouch.hpp", "sqlite/store.hpp"),
        ("include/vouch/helpers/x.hpp", "contract/id.hpp"),
        ("backends/memory/include/vouch/memory/store.hpp", "outbox/outbox.hpp"),
        ("backends/sqlite/include/vouch/sqlite/store.hpp", "memory/store.hpp"),
        ("backends/sqlite/include/vouch/sqlite.hpp", "memory/store.hpp"),
        ("backends/sqlite/include/vouch/contract/id.hpp", "contract/time.hpp"),
        ("conformance/include/vouch/conformance/suite.hpp", "run/runner.hpp"),
    ]

    def found(headers):
        with tempfile.TemporaryDirectory() as folder:
            for where, includes in headers.items():
                path = Path(folder) / where
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"#include <vouch/{name}>\n" for name in includes.split()), encoding="utf-8")
            return list(violations(Path(folder)))

    assert found(good) == [], found(good)
    for where, include in bad:
        caught = found({**good, where: include})
        assert len(caught) == 1 and caught[0].startswith(where), (where, include, caught)
    print(f"{len(bad)} planted violations, each caught")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    wrong = list(violations(ROOT))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
