// SPDX-License-Identifier: MIT
// The kinds of stores. Each has a folder, and one source file with what is declared here, which is compiled if the
// library of the store is installed. A kind that is not built in is an error that says so.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "database.hpp"

namespace tool {

struct store_kind {
    std::string_view name;
    /// Opens the store that the command line names. Throws `vouch::error`.
    std::unique_ptr<database> (*open)(const arguments&);
    /// The statements that create the tables with this prefix.
    std::string (*schema)(const std::string& prefix);
    /// The statements that create roles for these tables; null if the store has no roles.
    std::string (*roles)(const std::string& prefix);
};

#ifdef VOUCH_TOOL_HAS_SQLITE
extern const store_kind sqlite_kind;
#endif
#ifdef VOUCH_TOOL_HAS_POSTGRES
extern const store_kind postgres_kind;
#endif

[[noreturn]] inline void throw_not_built_in(const std::string& name, const std::string& package) {
    throw vouch::error(vouch::error_kind::unsupported, "this program was built without the " + name +
                                                           " store; build it where " + package + " is installed");
}

[[nodiscard]] inline const store_kind& sqlite_store() {
#ifdef VOUCH_TOOL_HAS_SQLITE
    return sqlite_kind;
#else
    throw_not_built_in("SQLite", "libsqlite3-dev");
#endif
}

[[nodiscard]] inline const store_kind& postgres_store() {
#ifdef VOUCH_TOOL_HAS_POSTGRES
    return postgres_kind;
#else
    throw_not_built_in("PostgreSQL", "libpq-dev");
#endif
}

/// The kind of the store that a location names: a URL of PostgreSQL, or the path of a SQLite file.
[[nodiscard]] inline const store_kind& store_at(std::string_view location) {
    const bool is_url = location.starts_with("postgres://") || location.starts_with("postgresql://");
    return is_url ? postgres_store() : sqlite_store();
}

/// The kind that `--for` names; without it, SQLite if it is built in.
[[nodiscard]] inline const store_kind& store_named(std::string_view name) {
    if (name == "postgres") {
        return postgres_store();
    }
    if (name == "sqlite") {
        return sqlite_store();
    }
    if (!name.empty()) {
        throw bad_usage("--for must be sqlite or postgres");
    }
#ifdef VOUCH_TOOL_HAS_SQLITE
    return sqlite_store();
#else
    return postgres_store();
#endif
}

} // namespace tool
