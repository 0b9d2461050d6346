// SPDX-License-Identifier: MIT
// An entry's id on the command line: all of it, or its beginning if only one stored id begins so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "database.hpp"

namespace tool {

/// The first and the last id that begin with these hexadecimal digits; dashes are ignored.
[[nodiscard]] inline std::optional<std::pair<vouch::id, vouch::id>> ids_that_begin_with(std::string_view text) {
    std::string digits;
    for (const char c : text) {
        if (c != '-') {
            digits += c;
        }
    }
    constexpr std::size_t all = 32;
    if (digits.empty() || digits.size() > all ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        return std::nullopt;
    }
    const auto filled = [&](char with) {
        auto full = digits + std::string(all - digits.size(), with);
        for (const std::size_t dash : {8U, 13U, 18U, 23U}) {
            full.insert(dash, "-");
        }
        return *vouch::id::parse(full);
    };
    return std::pair(filled('0'), filled('f'));
}

/// The id that the text names. Throws `failure` if it is no id, or the beginning of none or of several.
[[nodiscard]] inline vouch::id resolved_id(database& in, const std::string& text) {
    if (const auto whole = vouch::id::parse(text)) {
        return *whole;
    }
    const auto range = ids_that_begin_with(text);
    if (!range) {
        throw bad_usage("this needs an entry's id, as `list` prints it, or its beginning, not " + text);
    }
    constexpr std::size_t shown = 10;
    const auto found = in.ids_between(range->first, range->second, shown + 1);
    if (found.empty()) {
        throw failure(not_found, "there is no entry whose id begins with " + text);
    }
    if (found.size() > 1) {
        std::string candidates;
        for (std::size_t i = 0; i < found.size() && i < shown; ++i) {
            candidates += (i == 0 ? "" : ", ") + to_string(found[i]);
        }
        throw failure(usage, "several ids begin with " + text + ": " + candidates +
                                 (found.size() > shown ? " ..." : "") + "; give more of it");
    }
    return found.front();
}

[[nodiscard]] inline vouch::id entry_id_of(database& in, const arguments& with) {
    return resolved_id(in, with.entry_id);
}

/// The entry that the command line names. Throws `failure` if there is none.
[[nodiscard]] inline vouch::entry entry_of(database& in, const arguments& with) {
    const auto which = entry_id_of(in, with);
    auto found = in.stored().find(which);
    if (!found) {
        throw failure(not_found, "there is no entry " + to_string(which));
    }
    return std::move(*found);
}

} // namespace tool
