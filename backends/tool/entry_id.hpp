// SPDX-License-Identifier: MIT
// The id of an entry on the command line.
#pragma once

#include <cstdio>
#include <string>

#include <vouch/vouch.hpp>

#include "arguments.hpp"

namespace tool {

/// The id on the command line. Throws `bad_usage` if it is not one.
[[nodiscard]] inline vouch::id entry_id_of(const arguments& with) {
    const auto id = vouch::id::parse(with.entry_id);
    if (!id) {
        throw bad_usage(with.verb + " needs an entry's id, as `list` prints it, not " + with.entry_id);
    }
    return *id;
}

} // namespace tool
