// SPDX-License-Identifier: MIT
// What the commands need from a kind of store: the contract, and the few questions that the contract does not answer. A
// database is opened by its location and never created or migrated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "any_store.hpp"
#include "arguments.hpp"

namespace tool {

class database {
  public:
    database() = default;
    database(const database&) = delete;
    database& operator=(const database&) = delete;
    virtual ~database() = default;

    /// The schema version that this program needs, and the stored one; nothing if there are no tables.
    [[nodiscard]] virtual std::int64_t our_version() const = 0;
    [[nodiscard]] virtual std::optional<std::int64_t> version() const = 0;
    /// How the stored schema differs from ours, as a sentence; empty if it does not.
    [[nodiscard]] virtual std::string difference() const = 0;
    /// Executes the verb on tables of an older schema, if it can; returns the exit code.
    [[nodiscard]] virtual std::optional<int> run_on_older_schema(const arguments&) { return std::nullopt; }

    /// The names of all queues with entries, sorted. Call it before `store`.
    [[nodiscard]] virtual std::vector<std::string> queues() const = 0;
    /// The stored entries, for a verb that reads. Throws `unsupported` if the schema differs.
    [[nodiscard]] virtual const stored_entries& stored() = 0;
    /// The store, for a verb that writes. Throws `unsupported` if the schema differs. After it, use nothing else.
    [[nodiscard]] virtual any_store& store() = 0;
    /// The live entry that blocks this one in its lane, if any.
    [[nodiscard]] virtual std::optional<vouch::entry> head_of_lane(const vouch::entry& e) = 0;
    /// The stored ids from `first` to `last`, at most `limit` of them, ascending.
    [[nodiscard]] virtual std::vector<vouch::id> ids_between(const vouch::id& first, const vouch::id& last,
                                                             std::size_t limit) = 0;
    /// What the application recorded of the attempts at an entry, oldest first.
    [[nodiscard]] virtual std::vector<vouch::attempt_line> history_of(const vouch::id& which) = 0;
    /// Copies everything to a new file. Throws `failure` if that is not for this kind of store.
    virtual void back_up(const std::string& to) = 0;
};

} // namespace tool
