// SPDX-License-Identifier: MIT
// Why an entry is not running, as one sentence and as data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "entry_view.hpp"
#include "output.hpp"

namespace tool {

struct wait_reason {
    std::string code{};               ///< due_later, held, lease_over, blocked, waits_for_reply, due, succeeded, dead
    std::string sentence{};           ///< for people
    std::vector<vouch::id> entries{}; ///< the entries that it waits for
};

/// The live entry that blocks this one in its lane, if any.
[[nodiscard]] inline std::optional<vouch::entry> head_of_lane(const entry_view& in, const vouch::entry& e) {
    if (e.lane.empty()) {
        return std::nullopt;
    }
    auto page = vouch::query::live(e.queue);
    page.limit = 1000;
    for (auto found = in.list(page); !found.empty(); found = in.list(page)) {
        for (const auto& other : found) {
            if (other.sequence >= e.sequence) {
                return std::nullopt;
            }
            if (other.lane == e.lane) {
                return other;
            }
        }
        page.after = found.back().sequence;
    }
    return std::nullopt;
}

/// The live children of an entry: commands that have not replied.
[[nodiscard]] inline std::vector<vouch::entry> replies_awaited(const entry_view& in, const vouch::entry& e) {
    std::vector<vouch::entry> out;
    for (auto& child : in.list(vouch::query::children(e.id))) {
        if (is_live(child.state)) {
            out.push_back(std::move(child));
        }
    }
    return out;
}

[[nodiscard]] inline wait_reason why_not_running(const entry_view& in, const vouch::entry& e, vouch::time_point now) {
    using vouch::state;
    if (e.state == state::succeeded) {
        return {"succeeded", "the entry succeeded " + relative(e.updated_at, now)};
    }
    if (e.state == state::dead) {
        return {"dead",
                "the entry died " + relative(e.updated_at, now) + " with error " + plain(e.last_error) +
                    (vouch::is_saga(e) ? "; `requeue --resume` continues it" : "; `requeue` gives it a successor")};
    }
    if (e.state == state::claimed) {
        const auto until = e.lease_until.value_or(now);
        if (until > now) {
            return {"held", "held by " + plain(e.worker) + " until " + with_time(until, now)};
        }
        return {"lease_over", "held by " + plain(e.worker) + ", whose lease expired " + relative(until, now) +
                                  "; the next claim takes it over. Is a worker running for queue " + plain(e.queue) +
                                  '?'};
    }
    if (const auto head = head_of_lane(in, e)) {
        return {"blocked",
                "blocked in lane " + plain(e.lane) + " behind " + to_string(head->id) + ", which is " +
                    std::string(name_of(head->state)),
                {head->id}};
    }
    if (e.due_at > now) {
        wait_reason out{"due_later", "due " + with_time(e.due_at, now)};
        for (const auto& command : replies_awaited(in, e)) {
            out.code = "waits_for_reply";
            out.sentence += (out.entries.empty() ? "; waits for the reply of " : ", ") + to_string(command.id) + " (" +
                            plain(command.topic) + ", " + std::string(name_of(command.state)) + ')';
            out.entries.push_back(command.id);
        }
        return out;
    }
    return {"due", "due since " + with_time(e.due_at, now) +
                       "; no worker has claimed it. Is a worker running for queue " + plain(e.queue) + '?'};
}

} // namespace tool
