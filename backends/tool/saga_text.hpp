// SPDX-License-Identifier: MIT
// Where a saga stands, for people.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "any_store.hpp"
#include "output.hpp"
#include "times.hpp"

namespace tool {

/// The state that a list shows. A saga that has undone its work has succeeded, as far as the store knows.
[[nodiscard]] inline std::string_view shown_state(const vouch::entry& e) {
    if (e.state == vouch::state::succeeded && vouch::is_saga(e)) {
        const auto status = vouch::inspect(e);
        return status && status->is_compensated() ? "compensated" : "succeeded";
    }
    return name_of(e.state);
}

/// "forward at payment", "compensated": without steps.
[[nodiscard]] inline std::string direction_text(const vouch::saga_status& s) {
    if (s.is_completed() || s.is_compensated()) {
        return s.is_completed() ? "completed" : "compensated";
    }
    return (s.is_stuck() ? "dead, " : "") + std::string(name_of(s.direction)) + " at " +
           (s.step().empty() ? "the end" : plain(s.step()));
}

/// The status of a saga as one line.
[[nodiscard]] inline std::string saga_line(const stored_entries& in, const vouch::entry& e, vouch::time_point now) {
    const auto s = vouch::inspect(in, e.id);
    if (!s) {
        return "the saga's progress cannot be read";
    }
    auto out = plain(s->definition) + " v" + std::to_string(s->version) + ' ' + direction_text(*s);
    out += s->reason.empty() ? "" : " because " + plain(s->reason);
    for (std::size_t i = 0; i < s->steps.size(); ++i) {
        out += (i == 0 ? " [" : ", ") + plain(s->steps[i].name) + ' ' + std::string(name_of(s->steps[i].state));
    }
    out += s->steps.empty() ? "" : "]";
    if (is_terminal(s->state)) {
        return s->is_stuck() && !s->last_error.empty() ? out + ", stuck with " + plain(s->last_error) : out;
    }
    if (!s->waits_for.is_nil()) {
        out += ", waits for " + plain(s->waits_in);
        out += s->waits_until ? ", timeout " + due(*s->waits_until, now) : "";
    }
    return out;
}

} // namespace tool
