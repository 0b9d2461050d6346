// SPDX-License-Identifier: MIT
// Asks before what cannot be undone, and prints what the store answered.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

/// Whether the user agrees: by `--yes`, or at the terminal.
[[nodiscard]] inline bool is_confirmed(const arguments& with, const std::string& what) {
    if (with.yes) {
        return true;
    }
    if (isatty(STDIN_FILENO) == 0) {
        say(what + ": needs --yes, because stdin is not a terminal");
        return false;
    }
    std::fprintf(stderr, "%s? [y/N] ", what.c_str());
    const int answer = std::getchar();
    return answer == 'y' || answer == 'Y';
}

[[nodiscard]] inline bool is_json(const arguments& with) { return with.json || with.ndjson; }

/// Prints the sentence for the verdict. Returns the exit code.
[[nodiscard]] inline int report(const arguments& with, vouch::verdict v, std::string_view applied,
                                std::string_view repeated, std::string_view stale) {
    if (is_json(with)) {
        print(text_of(json{{"verdict", name_of(v)}}) + "\n");
    } else if (v == vouch::verdict::unknown) {
        say("there is no entry " + plain(with.entry_id));
    } else if (v == vouch::verdict::stale) {
        say(std::string(stale));
    } else {
        print(std::string(v == vouch::verdict::applied ? applied : repeated) + "\n");
    }
    return v == vouch::verdict::unknown ? not_found : v == vouch::verdict::stale ? refused : done;
}

} // namespace tool
