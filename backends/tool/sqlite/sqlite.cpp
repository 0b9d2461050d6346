// SPDX-License-Identifier: MIT
// The verbs on a SQLite file.
#include <cstdio>
#include <string>

#include <vouch/sqlite.hpp>

#include "../stores.hpp"
#include "../verbs.hpp"
#include "older_schema.hpp"
#include "sqlite_file.hpp"

namespace {

int run_on_store(const tool::arguments& with) {
    tool::sqlite_file in(with);
    if (const auto older = tool::older_schema::verb_of(with); older != nullptr && in.is_older()) {
        std::fprintf(stderr, "vouch: %s\n", tool::plain(in.difference()).c_str());
        return older(in, with);
    }
    return tool::run_verb(in, with);
}

std::string schema_text(const std::string& prefix) { return vouch::sqlite::schema(prefix); }

} // namespace

const tool::store_kind tool::sqlite_kind{
    .name = "sqlite", .run = run_on_store, .schema = schema_text, .roles = nullptr};
