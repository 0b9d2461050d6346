// SPDX-License-Identifier: MIT
// An entry as text and as JSON, without its payload, result and progress, which may be confidential.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <vouch/vouch.hpp>

#include "json.hpp"
#include "output.hpp"
#include "times.hpp"

namespace tool {

/// An entry without its payload, result and progress, which may be confidential.
[[nodiscard]] inline json_object json_of(const vouch::entry& e) {
    json_object out;
    out.id("id", e.id).number("sequence", e.sequence).text("queue", e.queue).text("topic", e.topic);
    out.text("state", name_of(e.state)).number("attempts", e.attempts).number("lapses", e.lapses);
    out.number("failures", e.failures)
        .number("epoch", e.epoch)
        .number("generation", e.generation)
        .number("attempts_max", e.attempts_max);
    out.text("last_error", e.last_error).text("worker", e.worker).text("key", e.key).text("group", e.group);
    out.text("lane", e.lane).id("parent", e.parent).id("predecessor", e.predecessor);
    out.time("created_at", e.created_at).time("due_at", e.due_at).time("lease_until", e.lease_until);
    out.time("expires_at", e.expires_at).time("last_attempt_at", e.last_attempt_at).time("updated_at", e.updated_at);
    return out;
}

/// A line of `list`.
[[nodiscard]] inline std::string line_of(const vouch::entry& e, vouch::time_point now) {
    return to_string(e.id) + "  " + plain(e.queue) + "  " + plain(e.topic) + "  " + std::string(name_of(e.state)) +
           "  attempt " + std::to_string(e.attempts) + (e.last_error.empty() ? "" : "  " + plain(e.last_error)) + "  " +
           relative(e.updated_at, now) + "\n";
}

/// All fields, one per line.
[[nodiscard]] inline std::string text_of(const vouch::entry& e, vouch::time_point now) {
    std::string out;
    const auto line = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) {
            out += std::string(name) + std::string(17 - name.size(), ' ') + value + "\n";
        }
    };
    const auto time = [&](std::string_view name, const std::optional<vouch::time_point>& at) {
        line(name, at ? with_time(*at, now) : "");
    };
    const auto id = [&](std::string_view name, const vouch::id& which) {
        line(name, which.is_nil() ? "" : to_string(which));
    };
    id("id", e.id);
    line("queue", plain(e.queue));
    line("topic", plain(e.topic));
    line("state", std::string(name_of(e.state)));
    line("attempts", std::to_string(e.attempts) + (e.attempts_max != 0 ? " of " + std::to_string(e.attempts_max) : "") +
                         ", lapses " + std::to_string(e.lapses) + ", failures " + std::to_string(e.failures) +
                         ", claims ever " + std::to_string(e.epoch));
    line("last_error", plain(e.last_error));
    line("worker", plain(e.worker));
    line("key", plain(e.key));
    line("group", plain(e.group));
    line("lane", plain(e.lane));
    id("parent", e.parent);
    id("predecessor", e.predecessor);
    line("sequence", std::to_string(e.sequence) + ", generation " + std::to_string(e.generation));
    time("created_at", e.created_at);
    time("due_at", e.due_at);
    time("lease_until", e.lease_until);
    time("expires_at", e.expires_at);
    time("last_attempt_at", e.last_attempt_at);
    time("updated_at", e.updated_at);
    for (const auto& step : e.trail) {
        id("trail", step);
    }
    for (const auto& [name, value] : e.headers) {
        line("header", plain(name) + ": " + plain(value));
    }
    line("payload", std::to_string(e.payload.size()) + " bytes");
    line("progress", e.progress.empty() ? "" : std::to_string(e.progress.size()) + " bytes");
    line("result", e.result ? std::to_string(e.result->size()) + " bytes" : "");
    return out;
}

} // namespace tool
