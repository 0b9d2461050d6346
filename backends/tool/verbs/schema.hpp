// SPDX-License-Identifier: MIT
// `vouch schema` and `vouch roles`: the version of the stored tables beside the version that this program needs, or the
// statements that create tables and roles.
#pragma once

#include <string>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../stores.hpp"

namespace tool {

inline int schema(database& in, const arguments& with) {
    const auto stored = in.version();
    if (is_json(with)) {
        print(text_of(json{{"stored", stored ? json(*stored) : json(nullptr)}, {"ours", in.our_version()}}) + "\n");
    } else {
        print("stored: " + (stored ? std::to_string(*stored) : std::string("none")) +
              "\nours:   " + std::to_string(in.our_version()) + "\n");
    }
    if (const auto wrong = in.difference(); !wrong.empty()) {
        say(plain(wrong));
        return store_error;
    }
    return done;
}

/// Prints the statements that create the tables. They need no database.
inline int print_schema(const arguments& with) {
    print(store_named(with.store_name).schema(with.prefix));
    return done;
}

/// Prints the statements that create roles. They need no server.
inline int roles(const arguments& with) {
    const auto& kind = with.location.empty() ? store_named(with.store_name.empty() ? "postgres" : with.store_name)
                                             : store_at(with.location);
    if (kind.roles == nullptr) {
        throw bad_usage("roles are for PostgreSQL; who may use a SQLite file is decided by the file's permissions");
    }
    print(kind.roles(with.prefix));
    return done;
}

} // namespace tool
