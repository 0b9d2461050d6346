// SPDX-License-Identifier: MIT
// Why an entry is not running, as one sentence and as data.
#pragma once

#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "output.hpp"
#include "times.hpp"

namespace tool {

struct wait_reason {
    std::string code{};               ///< due_later, held, lease_over, blocked, waits_for_reply, due, succeeded, dead
    std::string sentence{};           ///< for people
    std::vector<vouch::id> entries{}; ///< the entries that it waits for
};

/// The live children of an entry: commands that have not replied.
template <vouch::reader Reader>
[[nodiscard]] std::vector<vouch::entry> replies_awaited(const Reader& in, const vouch::entry& e) {
    std::vector<vouch::entry> out;
    for (auto& child : in.list(vouch::query::children(e.id))) {
        if (is_live(child.state)) {
            out.push_back(std::move(child));
        }
    }
    return out;
}

template <class Database>
[[nodiscard]] wait_reason why_not_running(Database& in, const vouch::entry& e, vouch::time_point now) {
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
    if (const auto head = in.head_of_lane(e)) {
        return {"blocked",
                "blocked in lane " + plain(e.lane) + " behind " + to_string(head->id) + ", which is " +
                    std::string(name_of(head->state)),
                {head->id}};
    }
    if (e.due_at > now) {
        wait_reason out{"due_later", "due " + with_time(e.due_at, now)};
        for (const auto& command : replies_awaited(in.stored(), e)) {
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
