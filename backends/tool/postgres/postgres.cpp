// SPDX-License-Identifier: MIT
// The commands on a PostgreSQL database.
#include <memory>
#include <string>

#include <vouch/postgres.hpp>

#include "../stores.hpp"
#include "postgres_database.hpp"

namespace {

std::unique_ptr<tool::database> open_store(const tool::arguments& with) {
    return std::make_unique<tool::postgres_database>(with);
}

std::string schema_text(const std::string& prefix) { return vouch::postgres::schema(prefix); }
std::string roles_text(const std::string& prefix) { return vouch::postgres::roles(prefix); }

} // namespace

const tool::store_kind tool::postgres_kind{
    .name = "postgres", .open = open_store, .schema = schema_text, .roles = roles_text};
