// SPDX-License-Identifier: MIT
// The verbs on a PostgreSQL database.
#include <string>

#include <vouch/postgres.hpp>

#include "../stores.hpp"
#include "../verbs.hpp"
#include "postgres_database.hpp"

namespace {

int run_on_store(const tool::arguments& with) {
    tool::postgres_database in(with);
    return tool::run_verb(in, with);
}

std::string schema_text(const std::string& prefix) { return vouch::postgres::schema(prefix); }
std::string roles_text(const std::string& prefix) { return vouch::postgres::roles(prefix); }

} // namespace

const tool::store_kind tool::postgres_kind{
    .name = "postgres", .run = run_on_store, .schema = schema_text, .roles = roles_text};
