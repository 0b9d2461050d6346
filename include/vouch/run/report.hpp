// SPDX-License-Identifier: MIT
// The result of a runner's pass, in numbers and line by line. The same store, clock, ids and handlers give the same
// report, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {

/// How one claim ended.
struct trace_line {
    vouch::id id{};
    std::string topic{};
    std::uint32_t attempt = 0;
    event_kind what{};
    std::string error{}; ///< a code, never a message

    [[nodiscard]] friend bool operator==(const trace_line&, const trace_line&) = default;
};

[[nodiscard]] inline std::string to_string(const trace_line& line) {
    auto out = to_string(line.id) + ' ' + line.topic + " attempt " + std::to_string(line.attempt) + ": ";
    out += name_of(line.what);
    if (!line.error.empty()) {
        out += " (" + line.error + ')';
    }
    return out;
}

struct report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another worker had taken over the claim
    std::size_t unsettled = 0; ///< outcomes that could not be stored; the entries stay claimed until their leases end
    std::size_t held_up = 0;   ///< outcomes kept because an audit sink or a group callback threw; settled again later
    std::vector<trace_line> trace{};

    report& operator+=(const report& other) {
        claimed += other.claimed;
        succeeded += other.succeeded;
        advanced += other.advanced;
        retried += other.retried;
        dead += other.dead;
        released += other.released;
        stale += other.stale;
        unsettled += other.unsettled;
        held_up += other.held_up;
        for (const auto& line : other.trace) {
            trace.push_back(line);
        }
        return *this;
    }

    [[nodiscard]] friend bool operator==(const report&, const report&) = default;
};

/// One line per entry.
[[nodiscard]] inline std::string to_string(const report& r) {
    std::string out;
    for (const auto& line : r.trace) {
        out += to_string(line) + '\n';
    }
    return out;
}

} // namespace v0
} // namespace vouch
