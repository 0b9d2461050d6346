// SPDX-License-Identifier: MIT
// Puts the names of the tables into SQL text. Nothing else is ever put into SQL text: names and payloads of entries are
// parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/detail/mix.hpp>
#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// The two parts of a prefix. Throws `invalid_argument` if it is not valid.
struct table_names {
    explicit table_names(std::string_view prefix) {
        validate_prefix(prefix);
        const auto dot = prefix.find('.');
        schema = dot == std::string_view::npos ? "public" : prefix.substr(0, dot);
        tables = dot == std::string_view::npos ? prefix : prefix.substr(dot + 1);
    }

    /// `text` with the prefix of tables in place of every `@`, and the prefix of indexes, whose schema is that of their
    /// table, in place of every `#`.
    [[nodiscard]] std::string in(std::string_view text) const {
        std::string out;
        out.reserve(text.size() + 16 * (schema.size() + tables.size()));
        for (const char c : text) {
            if (c == '@') {
                out.append(1, '"').append(schema).append("\".");
            }
            if (c == '@' || c == '#') {
                out += tables;
            } else {
                out += c;
            }
        }
        return out;
    }

    /// The channel for NOTIFY. A hash, because a channel's name is shorter than a schema's and a prefix may be together.
    [[nodiscard]] std::string channel() const {
        std::uint64_t sum = 0;
        for (const char c : schema + '.' + tables) {
            sum = vouch::detail::mix(sum ^ static_cast<unsigned char>(c));
        }
        return "vouch_" + std::to_string(sum);
    }

    std::string schema;
    std::string tables;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
