// SPDX-License-Identifier: MIT
// A SQLite file with entries in every state, and the tool that looks at it.
#pragma once

#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/folder.hpp"
#include "tool.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

using namespace std::chrono_literals;
using tool_test::answer;
using tool_test::ask;
using tool_test::ask_tool;
using tool_test::has_row;
using tool_test::says;
using vouch::state;

/// What is needed before the entries are stored.
struct operated_file {
    sqlite_test::folder in{};
    std::string path = in.fresh_path();
    std::string at = path + ' ';
    std::string quoted_at = at; ///< for a command inside single quotes
    vouch::sqlite::store file{path};
};

struct operated : operated_file, tool_test::some_of_everything<vouch::sqlite::store> {
    operated() : some_of_everything(file) {}
};

} // namespace sqlite_tool_test

#endif
