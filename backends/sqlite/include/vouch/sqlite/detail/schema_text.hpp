// SPDX-License-Identifier: MIT
// The tables and indexes as SQL text. `backends/README.md` explains every column and index.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Each step brings the tables from the version of its index to the next version; `@` stands for the prefix. Never
/// change a step that was released: append a new one.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE @entries (
  sequence INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL,
  gate INTEGER,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lapses INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  woken INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  worker TEXT NOT NULL,
  last_error TEXT NOT NULL,
  id BLOB NOT NULL,
  topic TEXT NOT NULL,
  tied INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  attempts_max INTEGER NOT NULL,
  expires_at INTEGER,
  trail BLOB,
  headers BLOB,
  progress BLOB,
  result BLOB,
  payload BLOB
);
CREATE UNIQUE INDEX @entries_id ON @entries (id);
CREATE INDEX @entries_gate ON @entries (partition, gate);
CREATE TABLE @dead (
  queue INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (queue, sequence)
) WITHOUT ROWID;
CREATE TABLE @payloads (
  sequence INTEGER PRIMARY KEY,
  payload BLOB NOT NULL
);
CREATE TABLE @relations (
  sequence INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  "key" TEXT,
  generation INTEGER NOT NULL,
  "group" TEXT,
  lane TEXT,
  is_live INTEGER NOT NULL,
  parent BLOB,
  predecessor BLOB,
  replaces INTEGER
);
CREATE UNIQUE INDEX @relations_key ON @relations (queue, "key", generation) WHERE "key" IS NOT NULL;
CREATE INDEX @relations_group ON @relations ("group") WHERE "group" IS NOT NULL;
CREATE INDEX @relations_lane ON @relations (queue, lane) WHERE lane IS NOT NULL AND is_live = 1;
CREATE INDEX @relations_parent ON @relations (parent) WHERE parent IS NOT NULL;
CREATE INDEX @relations_live_child ON @relations (parent) WHERE parent IS NOT NULL AND is_live = 1;
CREATE UNIQUE INDEX @relations_replaces ON @relations (replaces) WHERE replaces IS NOT NULL;
CREATE TABLE @groups (
  name TEXT PRIMARY KEY,
  members INTEGER NOT NULL,
  live INTEGER NOT NULL,
  unfinished INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE @meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO @meta VALUES ('sequence_floor', 0);
)"};

/// `text` with the prefix in place of every `@`. Requires a valid prefix; nothing else is ever inserted into SQL text.
[[nodiscard]] inline std::string with_prefix(std::string_view text, std::string_view prefix) {
    std::string out;
    out.reserve(text.size() + 16 * prefix.size());
    for (const char c : text) {
        if (c == '@') {
            out += prefix;
        } else {
            out += c;
        }
    }
    return out;
}

[[nodiscard]] inline std::string record_version(std::string_view prefix, std::size_t version) {
    return with_prefix("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                           ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
                       prefix);
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
