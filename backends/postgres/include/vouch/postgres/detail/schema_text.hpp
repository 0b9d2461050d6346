// SPDX-License-Identifier: MIT
// The tables and indexes as SQL text. `backends/postgres/README.md` explains every column and index.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/postgres/detail/table_names.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Each step brings the tables from the version of its index to the next version; `table_names` explains `@` and `#`.
/// Never change a step that was released: append a new one.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @meta (
  name text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
CREATE SEQUENCE @sequence;
CREATE TABLE @entries (
  sequence bigint NOT NULL,
  id uuid NOT NULL,
  gate bigint,
  due_at bigint NOT NULL,
  attempts bigint NOT NULL,
  lapses bigint NOT NULL,
  failures bigint NOT NULL,
  epoch bigint NOT NULL,
  updated_at bigint NOT NULL,
  last_attempt_at bigint,
  created_at bigint NOT NULL,
  expires_at bigint,
  attempts_max bigint NOT NULL,
  generation bigint NOT NULL,
  replaces bigint,
  state smallint NOT NULL,
  woken boolean NOT NULL,
  newest boolean NOT NULL,
  parent uuid,
  predecessor uuid,
  queue text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  "group" text COLLATE "C",
  lane text COLLATE "C",
  worker text COLLATE "C" NOT NULL,
  last_error text COLLATE "C" NOT NULL,
  trail bytea,
  headers bytea,
  progress bytea,
  result bytea,
  payload bytea NOT NULL,
  PRIMARY KEY (queue, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE @entries ALTER COLUMN payload SET STORAGE EXTERNAL, ALTER COLUMN progress SET STORAGE EXTERNAL,
  ALTER COLUMN result SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX #entries_id ON @entries (id);
CREATE INDEX #entries_gate ON @entries (queue, gate, sequence) WHERE gate IS NOT NULL;
CREATE INDEX #entries_ended ON @entries (queue, state, updated_at, sequence) WHERE state >= 3 AND newest;
CREATE INDEX #entries_dead ON @entries (queue, sequence) WHERE state = 4;
CREATE UNIQUE INDEX #entries_key ON @entries (queue, key) WHERE key IS NOT NULL AND newest;
CREATE UNIQUE INDEX #entries_replaces ON @entries (queue, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX #entries_group ON @entries ("group", sequence) WHERE "group" IS NOT NULL;
CREATE INDEX #entries_parent ON @entries (parent, sequence) WHERE parent IS NOT NULL;
CREATE INDEX #entries_live_child ON @entries (parent) WHERE parent IS NOT NULL AND state < 3;
CREATE INDEX #entries_lane ON @entries (queue, lane, sequence) WHERE lane IS NOT NULL AND state < 3;
CREATE TABLE @lanes (
  queue text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  PRIMARY KEY (queue, lane)
);
CREATE TABLE @groups (
  name text COLLATE "C" PRIMARY KEY,
  members bigint NOT NULL,
  live bigint NOT NULL,
  unfinished bigint NOT NULL
);
CREATE UNLOGGED TABLE @listeners (
  pid integer PRIMARY KEY
);
CREATE UNLOGGED TABLE @server (
  number smallint PRIMARY KEY CHECK (number = 1),
  life uuid NOT NULL
);
)"};

/// Creates the schema, for a migration tool.
[[nodiscard]] inline std::string create_schema(const table_names& names) {
    return names.schema == "public" ? "" : "CREATE SCHEMA IF NOT EXISTS \"" + names.schema + "\";\n";
}

[[nodiscard]] inline std::string record_version(const table_names& names, std::size_t version) {
    return names.in("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                    ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n");
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
