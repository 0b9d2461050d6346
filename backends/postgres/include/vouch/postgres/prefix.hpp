// SPDX-License-Identifier: MIT
// The prefix of all tables of a store, with or without the schema in which they are: `vouch_` means `public.vouch_`,
// and `billing.` means tables without a prefix in the schema `billing`. Several stores with different prefixes can share
// one database.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

inline constexpr std::string_view default_prefix = "vouch_";

/// Throws `invalid_argument` unless the prefix is `tables`, `schema.tables` or `schema.`, where each part has only
/// lower-case letters, digits and underscores and does not begin with a digit, a schema has at most 63 bytes and does not
/// begin with `pg_`, and the rest at most 40.
inline void validate_prefix(std::string_view prefix) {
    const auto refuse = [](const std::string& why) {
        throw error(error_kind::invalid_argument, "postgres: options: prefix " + why);
    };
    const auto fits = [](std::string_view name, std::size_t size_max) {
        const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
        const auto is_allowed = [&](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_'; };
        return name.size() <= size_max && std::all_of(name.begin(), name.end(), is_allowed) &&
               (name.empty() || !is_digit(name.front()));
    };
    const auto dot = prefix.find('.');
    const auto schema = dot == std::string_view::npos ? std::string_view("public") : prefix.substr(0, dot);
    const auto tables = dot == std::string_view::npos ? prefix : prefix.substr(dot + 1);
    constexpr std::size_t schema_max = 63;
    constexpr std::size_t tables_max = 40;
    if (prefix.empty() || schema.empty() || !fits(schema, schema_max) || !fits(tables, tables_max)) {
        refuse("has " + std::to_string(prefix.size()) +
               " bytes; it must be 1 to 40 lower-case letters, digits and underscores that do not begin with a digit, "
               "after the name of a schema and a dot if it is not in public");
    }
    if (schema.substr(0, 3) == "pg_") {
        refuse("names a schema that begins with pg_, which PostgreSQL reserves; choose another");
    }
}

} // namespace postgres
} // namespace v0
} // namespace vouch
