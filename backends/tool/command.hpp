// SPDX-License-Identifier: MIT
// A command of the program as data. To add one, write a file in verbs/ and a line in commands.cpp; parsing, help,
// completions and the manual page follow.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "arguments.hpp"
#include "database.hpp"

namespace tool {

/// What stands on the command line besides options.
enum class takes : std::uint8_t {
    nothing,
    store,
    maybe_store,
    store_and_id,
    store_and_maybe_id,
    store_and_file,
    shell,
    maybe_command,
};

struct command {
    std::string_view name;
    std::string_view summary;
    takes words;
    std::string_view options; ///< their names, separated by spaces
    /// What a person should know, and examples; a line of an example begins with two spaces.
    std::string_view more;
    int (*run)(database&, const arguments&) = nullptr; ///< for a command that needs a store
    int (*run_alone)(const arguments&) = nullptr;      ///< without a store
};

[[nodiscard]] std::span<const command> all_commands();

/// Throws `bad_usage` if there is none.
[[nodiscard]] const command& command_named(std::string_view name);

/// The words after the command's name, for help: `STORE ID`.
[[nodiscard]] constexpr std::string_view words_of(takes words) {
    switch (words) {
    case takes::nothing: return "";
    case takes::store: return "STORE";
    case takes::maybe_store: return "[STORE]";
    case takes::store_and_id: return "STORE ID";
    case takes::store_and_maybe_id: return "STORE [ID]";
    case takes::store_and_file: return "STORE FILE";
    case takes::shell: return "SHELL";
    case takes::maybe_command: return "[COMMAND]";
    }
    return "";
}

/// Text that the help, the manual page and an error share.
inline constexpr std::string_view about_stores =
    "STORE is the path of a SQLite file, or postgres://[USER[:PASSWORD]@][HOST[:PORT]][/DATABASE][?OPTIONS]. libpq "
    "takes "
    "what is missing from PGHOST, PGUSER, PGPASSWORD, ~/.pgpass and so on. If STORE is left out, the environment "
    "variable VOUCH_STORE names it. ID is an entry's id, or the beginning of it if no other id begins so. A DURATION "
    "is "
    "500ms, 90s, 15m, 36h or 7d.";

inline constexpr std::string_view about_exit_codes = "0 done, 1 refused, not confirmed or interrupted, 2 usage, 3 no "
                                                     "such entry, 4 database error, 5 the output could not "
                                                     "be written.";

} // namespace tool
