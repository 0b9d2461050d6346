// SPDX-License-Identifier: MIT
// An entry as text and as JSON, without its payload, result and progress, which may be confidential.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "json.hpp"
#include "output.hpp"
#include "saga_text.hpp"
#include "table.hpp"
#include "times.hpp"

namespace tool {

/// An entry without its payload, result and progress, which may be confidential.
[[nodiscard]] inline json json_of(const vouch::entry& e) {
    return {{"id", to_string(e.id)},
            {"sequence", e.sequence},
            {"queue", e.queue},
            {"topic", e.topic},
            {"state", name_of(e.state)},
            {"shown_state", shown_state(e)},
            {"attempts", e.attempts},
            {"lapses", e.lapses},
            {"failures", e.failures},
            {"epoch", e.epoch},
            {"generation", e.generation},
            {"attempts_max", e.attempts_max},
            {"last_error", e.last_error},
            {"worker", e.worker},
            {"key", e.key},
            {"group", e.group},
            {"lane", e.lane},
            {"parent", json_of(e.parent)},
            {"predecessor", json_of(e.predecessor)},
            {"created_at", json_of(e.created_at)},
            {"due_at", json_of(e.due_at)},
            {"lease_until", json_of(e.lease_until)},
            {"expires_at", json_of(e.expires_at)},
            {"last_attempt_at", json_of(e.last_attempt_at)},
            {"updated_at", json_of(e.updated_at)}};
}

inline const std::vector<std::string> list_titles{"ID", "QUEUE", "TOPIC", "STATE", "ATTEMPTS", "CHANGED", "ERROR"};

/// A line of `list`.
[[nodiscard]] inline std::vector<table::cell> list_row(const vouch::entry& e, vouch::time_point now) {
    const auto state = shown_state(e);
    return {to_string(e.id),
            cell_text(e.queue),
            cell_text(e.topic),
            {std::string(state), colour_of(state)},
            std::to_string(e.attempts),
            relative(e.updated_at, now),
            cell_text(e.last_error)};
}

/// All fields, one per line.
[[nodiscard]] inline std::string fields_of(const vouch::entry& e, vouch::time_point now) {
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
    line("state", std::string(shown_state(e)));
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
