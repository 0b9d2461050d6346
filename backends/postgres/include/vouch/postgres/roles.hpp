// SPDX-License-Identifier: MIT
// Three roles for the tables of a store, as text for a person or a migration tool: one that may only enqueue, one that
// may only work, and one that may only look. They cannot log in; `GRANT vouch_enqueue TO web` grants one to a role that
// does. Stores of such roles are opened with `create = false`, because no role may create or migrate tables.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// What a role may do.
enum class access : unsigned char {
    enqueue, ///< store entries, also in the application's own transactions; not read payloads, results or errors
    work,    ///< what a worker does: enqueue, claim, settle, purge, read; and what the tool does
    look,    ///< read everything and change nothing
};

/// The name of a role: the prefix, without a dot, and `enqueue`, `work` or `look`. For the default prefix,
/// `vouch_enqueue`. Throws `invalid_argument` if it has more than 63 bytes, the most that PostgreSQL allows.
[[nodiscard]] inline std::string role_name(access may, std::string_view prefix = default_prefix) {
    constexpr std::array<std::string_view, 3> words{"enqueue", "work", "look"};
    const detail::table_names names(prefix);
    std::string out = names.schema == "public" ? "" : names.schema + '_';
    out.append(names.tables).append(words[static_cast<std::size_t>(may)]);
    constexpr std::size_t size_max = 63;
    if (out.size() > size_max) {
        throw error(error_kind::invalid_argument,
                    "postgres: roles: the prefix is too long: a role would have a name of " +
                        std::to_string(out.size()) + " bytes, and 63 are allowed");
    }
    return out;
}

/// The statements that create the three roles, or give existing ones exactly these rights. Run them as the owner of the
/// tables with the right to create roles, after `migrate` and again after every migration.
[[nodiscard]] inline std::string roles(std::string_view prefix = default_prefix) {
    // In the order of `access`. A role that enqueues opens lanes, counts members of groups and marks a dead entry as
    // replaced, so it may update these columns; it reads only the columns that dedup needs.
    constexpr std::array<std::string_view, 3> grants{
        R"(GRANT INSERT ON @entries TO {role};
GRANT SELECT (sequence, id, queue, key, "group", lane, state, generation, replaces, newest, gate, due_at) ON @entries TO {role};
GRANT UPDATE (gate, newest) ON @entries TO {role};
GRANT USAGE ON SEQUENCE @sequence TO {role};
GRANT SELECT, INSERT, UPDATE ON @groups TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON @lanes TO {role};
GRANT SELECT ON @meta, @listeners TO {role};
GRANT SELECT, INSERT ON @server TO {role};
)",
        R"(GRANT SELECT, INSERT, UPDATE, DELETE ON @entries, @groups, @lanes, @listeners TO {role};
GRANT USAGE ON SEQUENCE @sequence TO {role};
GRANT SELECT ON @meta TO {role};
GRANT SELECT, INSERT ON @server TO {role};
)",
        R"(GRANT SELECT ON @entries, @groups, @lanes, @listeners, @meta, @server TO {role};
)"};
    // Tables that only some applications have.
    struct optional_table {
        std::string_view name;
        std::array<std::string_view, 3> grants;
    };
    constexpr std::array optional_tables{optional_table{"audit", {"", "SELECT, INSERT", "SELECT"}},
                                         optional_table{"history", {"", "SELECT, INSERT, UPDATE, DELETE", "SELECT"}}};
    const detail::table_names names(prefix);
    std::string out;
    for (const auto may : {access::enqueue, access::work, access::look}) {
        const auto i = static_cast<std::size_t>(may);
        std::string text = R"(DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
REVOKE ALL ON @entries, @groups, @lanes, @listeners, @meta, @server FROM {role};
REVOKE ALL ON SEQUENCE @sequence FROM {role};
GRANT USAGE ON SCHEMA {schema} TO {role};
)";
        text += grants[i];
        for (const auto& table : optional_tables) {
            if (!table.grants[i].empty()) {
                text.append("DO $$ BEGIN IF to_regclass('@").append(table.name).append("') IS NOT NULL THEN GRANT ");
                text.append(table.grants[i]).append(" ON @").append(table.name).append(" TO {role}; END IF; END $$;\n");
            }
        }
        const auto put = [&](std::string_view word, const std::string& name) {
            const auto quoted = '"' + name + '"';
            for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + quoted.size())) {
                text.replace(at, word.size(), quoted);
            }
        };
        put("{role}", role_name(may, prefix));
        put("{schema}", names.schema);
        out += names.in(text);
    }
    return out;
}

} // namespace postgres
} // namespace v0
} // namespace vouch
