#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that includes follow the architecture: contract <- policy <- observe <- outbox <- run <- saga <- testing.

    layers.py              exit 1 and name every violation
    layers.py --self-test  plant violations in a copy of the rules' world and see each of them caught

A header may include its own folder and what is below. A backend knows contract and policy, the conformance suite too;
only its simulation and its kit for brokers know run. No backend knows another, and only the umbrella vouch.hpp, testing
and that kit name the memory backend. Umbrellas (include/vouch/*.hpp) may otherwise include anything public. Every header reaches version.hpp, which
says what the compiler lacks.

Private rooms: `detail/` folders hold what only vouch includes, and their types live in `detail` namespaces. Umbrellas,
examples and READMEs include public headers only; a public header neither mentions `detail` in a comment nor names a
detail type in a public signature (aliases such as `using batch = std::vector<detail::x>` make a type opaque, and are
allowed).
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
    "relay": BASE | {"outbox", "observe", "run"},
    "testing": BASE | {"outbox", "observe", "saga", "run", "relay", "memory"},
    "rabbitmq": BASE | {"relay"},
    "kafka": BASE | {"relay", "outbox"},  # outbox: topic patterns choose the Kafka topic
    "conformance": BASE,
    "page": BASE | {"observe", "outbox", "saga"},
}
NAMES_MEMORY = {"include/vouch/vouch.hpp", "include/vouch/testing.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]vouch/([^>"]+)[>"]', re.MULTILINE)
NO_SIGNATURE = re.compile(r"^\s*(?:using|friend class|static_assert|requires|return|if|for|while|switch|throw|template)\b|^\s*[:}]")


def exposed(text):
    """The lines of a public header that show a reader, or let a caller name, what is private."""
    depth = 0  # of braces
    private_below = None  # the depth of the class whose private part we are in
    rooms = []  # depths of `namespace detail` and of function bodies
    for number, line in enumerate(text.splitlines(), 1):
        code, _, comment = line.partition("//")
        inside = bool(rooms) or private_below is not None
        if re.search(r"\bdetail\b", comment) and not comment.strip().startswith("namespace"):
            yield number, "a comment mentions detail"
        if re.match(r"\s*(?:private|protected):", code):
            private_below = depth
        elif re.match(r"\s*public:", code) and private_below == depth:
            private_below = None
        elif "detail::" in code and not inside and not NO_SIGNATURE.match(code) and signature_names_detail(code):
            yield number, "a public signature names a detail type"
        opens_room = re.match(r"\s*namespace (?:\w+::)*detail\b", code) or (
            code.rstrip().endswith("{") and re.search(r"\)[^;{}]*\{\s*$", code))
        before = depth
        depth += code.count("{") - code.count("}")
        if opens_room and depth > before and not rooms:
            rooms.append(before)
        if rooms and depth <= rooms[-1]:
            rooms.pop()
        if private_below is not None and depth < private_below:
            private_below = None


def signature_names_detail(code):
    """Whether `detail::` is in the part of a declaration before its body, as a return type or a parameter's type."""
    head = re.split(r"\)\s*(?:const\s*|noexcept\s*)*(?::(?!:)|\{)", code)[0]
    return bool(re.match(r"\s*(?:\[\[nodiscard\]\] |static |constexpr |explicit |inline )*[\w:<>&*, ]+[&* ]\w+\(.*", head)
                and "detail::" in head and "=" not in head.split("detail::")[0])


def layer_of(name):
    """`contract/id.hpp` is in contract; an umbrella, `vouch.hpp`, is in no layer."""
    folder, slash, _ = name.partition("/")
    return folder if slash else None


def violations(root):
    # A backend's headers are in backends/X/include/vouch/X/, with an umbrella beside that folder.
    backends = {path.name for path in (root / "backends").glob("*")}
    headers = [(path, path.relative_to(root).as_posix())
               for folder in ("include", "backends/*/include", "backends/tool/page/include", "conformance/include")
               for start in sorted(root.glob(folder)) for path in sorted(start.rglob("*.hpp"))]
    for path, where in headers:
        # The page is not a store: it stands above the layers that it shows.
        is_page = where.startswith("backends/tool/page/")
        backend = where.split("/")[1] if where.startswith("backends/") and not is_page else None
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
        if "/detail/" not in where:
            for number, what in exposed(path.read_text(encoding="utf-8")):
                yield f"{where}:{number}: {what}"
        for match in includes:
            if "detail/" in match[1] and layer is None:
                yield f"{where}: an umbrella must not include <vouch/{match[1]}>, which is private"
                continue
            included = layer_of(match[1])
            if included is None and Path(match[1]).stem in backends:
                included = Path(match[1]).stem  # a backend's umbrella is as much as its folder
            if layer is None:  # an umbrella
                wrong = included in backends and not (included == "memory" and where in NAMES_MEMORY)
            elif included is None:
                # version.hpp belongs to no layer; any other umbrella brings in everything.
                wrong = match[1] != "version.hpp"
            else:
                allowed = MAY_INCLUDE.get(layer, BASE) | {layer}
                if layer == "conformance" and "simulation" in name:
                    allowed = allowed | {"outbox", "observe", "saga", "run"}
                elif layer == "conformance" and "broker" in name:
                    allowed = allowed | {"outbox", "run", "relay", "memory"}
                elif name.startswith("relay/saga/"):
                    allowed = allowed | {"saga"}
                wrong = included not in allowed
            if wrong:
                yield f"{where}: must not include <vouch/{match[1]}>"


    for pages in ("README.md", "*/README.md", "*/*/README.md", "examples/*.cpp", "examples/*/*.hpp"):
        for path in sorted(root.glob(pages)):
            for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
                if "detail/" in match[1]:
                    yield f"{path.relative_to(root).as_posix()}: must not include <vouch/{match[1]}>, which is private"


def self_test():
    good = {
        "include/vouch/vouch.hpp": "run/runner.hpp memory.hpp version.hpp",
        "include/vouch/testing.hpp": "testing/bench.hpp memory/store.hpp",
        "include/vouch/version.hpp": "",
        "include/vouch/contract/id.hpp": "contract/time.hpp version.hpp",
        "include/vouch/policy/retry.hpp": "contract/entry.hpp policy/backoff.hpp",
        "include/vouch/observe/observer.hpp": "contract/id.hpp",
        "include/vouch/outbox/outbox.hpp": "observe/observer.hpp",
        "include/vouch/saga/saga.hpp": "outbox/outbox.hpp run/router.hpp",
        "include/vouch/run/runner.hpp": "observe/observer.hpp run/detail/phases.hpp",
        "include/vouch/relay/relay.hpp": "run/router.hpp relay/message.hpp",
        "include/vouch/relay/saga/participant.hpp": "saga/command.hpp relay/message.hpp",
        "backends/rabbitmq/include/vouch/rabbitmq/publisher.hpp": "relay/message.hpp contract/error.hpp",
        "conformance/include/vouch/conformance/broker/kit.hpp": "relay/publisher.hpp memory.hpp",
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
        ("include/vouch/observe/observer.hpp", "outbox/outbox.hpp"),
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
        ("include/vouch/relay/relay.hpp", "saga/command.hpp"),
        ("include/vouch/saga/saga.hpp", "relay/relay.hpp"),
        ("backends/rabbitmq/include/vouch/rabbitmq/publisher.hpp", "run/router.hpp"),
        ("backends/memory/include/vouch/memory/store.hpp", "outbox/outbox.hpp"),
        ("backends/sqlite/include/vouch/sqlite/store.hpp", "memory/store.hpp"),
        ("backends/sqlite/include/vouch/sqlite.hpp", "memory/store.hpp"),
        ("backends/sqlite/include/vouch/contract/id.hpp", "contract/time.hpp"),
        ("conformance/include/vouch/conformance/suite.hpp", "run/runner.hpp"),
        ("include/vouch/saga.hpp", "saga/detail/engine.hpp"),
        ("examples/01.cpp", "run/detail/phases.hpp"),
        ("README.md", "run/detail/phases.hpp"),
    ]

    shows = [  # in a public header
        "/// Like detail::phases.",
        "detail::claims claim(int limit);",
        "[[nodiscard]] detail::claims claim(int limit) const {",
        "class runner {\n  public:\n    void settle(detail::batch& b);",
    ]
    hides = [
        "class runner {\n  public:\n    using batch = detail::batch;\n  private:\n    detail::claims claim(int limit);",
        "namespace detail {\ndetail::claims claim(int limit);\n}",
        "inline int f(int x) {\n    return detail::g(x);\n}",
    ]

    def found(headers, more=""):
        with tempfile.TemporaryDirectory() as folder:
            for where, includes in headers.items():
                path = Path(folder) / where
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"#include <vouch/{name}>\n" for name in includes.split())
                                + (more if where == "include/vouch/run/runner.hpp" else ""), encoding="utf-8")
            return list(violations(Path(folder)))

    assert found(good) == [], found(good)
    for where, include in bad:
        caught = found({**good, where: include})
        assert len(caught) == 1 and caught[0].startswith(where), (where, include, caught)
    for more in shows:
        caught = found(good, more)
        assert len(caught) == 1 and caught[0].startswith("include/vouch/run/runner.hpp:"), (more, caught)
    for more in hides:
        assert found(good, more) == [], (more, found(good, more))
    print(f"{len(bad) + len(shows)} planted violations, each caught")


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
