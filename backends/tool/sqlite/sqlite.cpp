// SPDX-License-Identifier: MIT
// The commands on a SQLite file.
#include <memory>
#include <string>

#include <vouch/sqlite.hpp>

#include "../stores.hpp"
#include "older_schema.hpp"
#include "sqlite_file.hpp"

namespace {

std::unique_ptr<tool::database> open_store(const tool::arguments& with) {
    return std::make_unique<tool::sqlite_file>(with);
}

std::string schema_text(const std::string& prefix) { return vouch::sqlite::schema(prefix); }

} // namespace

std::optional<int> tool::sqlite_file::run_on_older_schema(const arguments& with) {
    const auto older = older_schema::verb_of(with);
    if (older == nullptr || !is_older()) {
        return std::nullopt;
    }
    say(plain(difference()));
    return older(*this, with);
}

const tool::store_kind tool::sqlite_kind{.name = "sqlite", .open = open_store, .schema = schema_text, .roles = nullptr};
