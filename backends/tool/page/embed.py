#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the page's HTML, CSS and JavaScript into a header, so that a program needs no files beside it.

    embed.py            write include/vouch/page/detail/assets.hpp
    embed.py --check    exit 1 if it differs from what would be written

The document is page.html with the style and the script in the places marked there. The Content-Security-Policy allows
these two by their hash and no others, so the hashes are written too. The output depends on the files alone.
"""

import base64
import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "include/vouch/page/detail/assets.hpp"
# In this order: a file uses what those before it define.
SCRIPTS = ["dom.js", "api.js", "chart.js", "overview.js", "list.js", "payload.js", "saga.js", "entry.js", "dead.js", "page.js"]
# The standard promises string literals of 65,536 characters.
PIECE = 8000

HEAD = """// SPDX-License-Identifier: MIT
// The page as text. Written by backends/tool/page/embed.py from the files in backends/tool/page/web; change those.
#pragma once

#include <string>
#include <string_view>

#include <vouch/version.hpp>

// clang-format off
namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

"""
TAIL = """
} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
// clang-format on
"""


def pieces(text):
    """Raw string literals of at most PIECE bytes, cut at the ends of lines."""
    piece = ""
    for line in text.splitlines(keepends=True):
        if piece and len((piece + line).encode()) > PIECE:
            yield piece
            piece = ""
        piece += line
    yield piece


def main():
    # The amalgamation drops such lines and joins blank ones, and the hash must stay true there.
    licence = "// SPDX-License-Identifier: MIT\n"
    html, css = ((HERE / "web" / name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    script = '"use strict";\n' + "".join((HERE / "web" / name).read_text(encoding="utf-8").replace(licence, "")
                                        for name in SCRIPTS)
    for text, end in ((css, "</style"), (script, "</script")):
        if end in text.lower():
            sys.exit(f"{end} must not occur in the text between its tags")
    document = html.replace("/* page.css */", css).replace("/* page.js */", script)
    if css not in document or script not in document:
        sys.exit("page.html has no place for the style or the script")
    if "\n\n\n" in document:
        sys.exit("two blank lines in a row would not survive the amalgamation")
    if ')page"' in document:
        sys.exit("the delimiter of the raw strings occurs in the text")

    out = HEAD
    for name, text in (("script_hash", script), ("style_hash", css)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        out += f'inline constexpr std::string_view {name} = "sha256-{digest}";\n'
    out += "\n[[nodiscard]] inline std::string document() {\n    std::string out;\n"
    for piece in pieces(document):
        out += f'    out += R"page({piece})page";\n'
    out += "    return out;\n}\n" + TAIL

    if sys.argv[1:] == ["--check"]:
        if not OUTPUT.is_file() or OUTPUT.read_text(encoding="utf-8") != out:
            sys.exit(f"{OUTPUT.name} is not what the files in web/ give; run backends/tool/page/embed.py")
        return
    OUTPUT.write_text(out, encoding="utf-8")


if __name__ == "__main__":
    main()
