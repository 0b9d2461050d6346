// SPDX-License-Identifier: MIT
// `vouch schema`: the version of the stored tables beside the version that this program needs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

template <class Database>
int schema(Database& in, const arguments& with) {
    const auto ours = Database::our_version;
    if (with.json) {
        json_object out;
        out.raw("stored", in.version() ? std::to_string(*in.version()) : "null");
        print(out.number("ours", static_cast<std::uint64_t>(ours)).str() + "\n");
    } else {
        print("stored: " + (in.version() ? std::to_string(*in.version()) : std::string("none")) +
              "\nours:   " + std::to_string(ours) + "\n");
    }
    if (const auto wrong = in.difference(); !wrong.empty()) {
        std::fprintf(stderr, "vouch: %s\n", plain(wrong).c_str());
        return store_error;
    }
    return done;
}

} // namespace tool
