// SPDX-License-Identifier: MIT
// How long the kit waits, and which clauses it runs. The waits are upper bounds: what happens earlier ends them.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// The client that is tested.
struct identity {
    std::string name{};
    std::string version{};
};

struct options {
    std::string clause{};            ///< only clauses whose id starts with this; empty: all
    std::vector<std::string> skip{}; ///< no clauses whose ids start with one of these
    /// The longest wait for what must happen: a message, a new connection, a member that joins its group.
    duration patience = std::chrono::seconds{30};
    duration silence = std::chrono::seconds{1}; ///< how long nothing may arrive where nothing must
    std::chrono::seconds per_clause{180};       ///< a clause that takes longer hangs, and the program ends
    bool progress = false;                      ///< print each clause to stderr before it is run
};

/// Whether the options let this clause run.
[[nodiscard]] inline bool is_chosen(std::string_view id, const options& how) {
    const auto is_named = [&](const std::string& prefix) { return id.starts_with(prefix); };
    return is_named(how.clause) && std::none_of(how.skip.begin(), how.skip.end(), is_named);
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
