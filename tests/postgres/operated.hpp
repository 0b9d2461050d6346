// SPDX-License-Identifier: MIT
// Tables with entries in every state, and the tool that looks at them.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "tool.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace postgres_tool_test {

using namespace std::chrono_literals;
using tool_test::ask_tool;
using tool_test::has_row;
using tool_test::says;
using vouch::state;

[[nodiscard]] inline std::string url() {
    const char* const folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    REQUIRE(folder != nullptr);
    return "'postgres://postgres@/postgres?host=" + std::string(folder) + "&application_name=the_tool' ";
}

struct operated_tables {
    std::string prefix = postgres_test::fresh_prefix();
    std::string at = url() + "--prefix " + prefix + ' ';
    std::string quoted_at = '"' + at.substr(1, at.rfind('\'') - 1) + '"' +
                            at.substr(at.rfind('\'') + 1); ///< for a command inside single quotes
    vouch::postgres::store tables{postgres_test::conninfo(), {.prefix = prefix}};
    postgres_test::application app{};
};

struct operated : operated_tables, tool_test::some_of_everything<vouch::postgres::store> {
    operated() : some_of_everything(tables) {}

    /// All that is stored, as one number.
    [[nodiscard]] std::string contents() const {
        return app.text("SELECT md5(string_agg(e::text, ',' ORDER BY sequence)) FROM " + prefix + "entries e");
    }
};

} // namespace postgres_tool_test

#endif
