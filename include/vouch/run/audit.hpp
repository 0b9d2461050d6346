// SPDX-License-Identifier: MIT
// The audit trail: one line per terminal outcome and per completed group, appended inside the settling transaction. So
// an outcome and its line are committed together or not at all. Failed attempts that will be retried are not audited;
// the entry's `last_error` shows the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct audit_line {
    enum class kind : std::uint8_t { succeeded, dead, group_completed };
    audit_line::kind what{};
    time_point at{};
    vouch::id id{}; ///< the entry; for a group the entry that completed it
    std::string queue{};
    std::string topic{};
    std::string group{};
    std::string worker{};
    std::string error{}; ///< a code, never a message
    std::uint32_t attempts = 0;
};

[[nodiscard]] constexpr std::string_view name_of(audit_line::kind kind) noexcept {
    switch (kind) {
    case audit_line::kind::succeeded: return "succeeded";
    case audit_line::kind::dead: return "dead";
    case audit_line::kind::group_completed: return "group_completed";
    }
    return "?";
}

/// Appends a line through the settling transaction. If it throws, the outcome is not stored: the runner keeps it and
/// settles it again later. If the process dies before that, the entry is claimed again when its lease ends.
template <class Transaction>
using audit_sink = std::function<void(Transaction&, const audit_line&)>;

} // namespace v0
} // namespace vouch
