// SPDX-License-Identifier: MIT
// What the verbs need from a kind of store: the contract, and the few questions that the contract does not answer. A
// database is opened by its location and never created or migrated.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"

namespace tool {

template <class D>
concept database = std::constructible_from<D, const arguments&> && requires(D& in, const D& looked_at, vouch::entry e) {
    /// The schema version that this program needs, and the stored one; nothing if there are no tables.
    { D::our_version } -> std::convertible_to<std::int64_t>;
    { looked_at.version() } -> std::same_as<std::optional<std::int64_t>>;
    /// How the stored schema differs from ours, as a sentence; empty if it does not.
    { looked_at.difference() } -> std::same_as<std::string>;
    { looked_at.queues() } -> std::same_as<std::vector<std::string>>;
    /// The stored entries, for a verb that reads. Throws `unsupported` if the schema differs.
    requires vouch::reader<std::remove_cvref_t<decltype(in.stored())>>;
    /// The store, for a verb that writes. Throws `unsupported` if the schema differs.
    requires vouch::store<std::remove_cvref_t<decltype(in.store())>>;
    /// The live entry that blocks this one in its lane, if any.
    { in.head_of_lane(e) } -> std::same_as<std::optional<vouch::entry>>;
};

} // namespace tool
