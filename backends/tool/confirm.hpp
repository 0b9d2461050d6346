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
        std::fprintf(stderr, "vouch: %s: needs --yes, because stdin is not a terminal\n", what.c_str());
        return false;
    }
    std::fprintf(stderr, "%s? [y/N] ", what.c_str());
    const int answer = std::getchar();
    return answer == 'y' || answer == 'Y';
}

/// Prints the sentence for the verdict. Returns the exit code.
[[nodiscard]] inline int report(const arguments& with, vouch::verdict v, std::string_view applied,
                                std::string_view repeated, std::string_view stale) {
    if (with.json) {
        print(json_object{}.text("verdict", name_of(v)).str() + "\n");
    } else if (v == vouch::verdict::unknown) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.entry_id.c_str());
    } else {
        const auto said = v == vouch::verdict::applied ? applied : v == vouch::verdict::repeated ? repeated : stale;
        std::fprintf(v == vouch::verdict::stale ? stderr : stdout, "%s\n", std::string(said).c_str());
    }
    return v == vouch::verdict::unknown ? not_found : v == vouch::verdict::stale ? refused : done;
}

} // namespace tool
