// SPDX-License-Identifier: MIT
// Why an entry is not running, as one sentence and as data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "database.hpp"
#include "output.hpp"
#include "times.hpp"

namespace tool {

struct wait_reason {
    /// succeeded, dead, held, lease_over, blocked, waits_for_reply, due_later, backs_off, expired, attempts_spent, queued
    /// (workers are busy), due (no worker is seen)
    std::string code{};
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

/// What is seen in the first live entries of a queue.
struct queue_view {
    std::size_t ahead = 0;              ///< due before the entry
    std::vector<std::string> workers{}; ///< that hold an entry under a running lease
    bool is_cut = false;                ///< whether there are more entries than were read
};

[[nodiscard]] inline queue_view look_at_queue(const stored_entries& in, const vouch::entry& e, vouch::time_point now) {
    queue_view out;
    auto first = vouch::query::live(e.queue);
    first.limit = 1000;
    const auto found = in.list(first);
    out.is_cut = found.size() == first.limit;
    for (const auto& other : found) {
        const bool is_claimed = other.state == vouch::state::claimed;
        if (is_claimed && other.lease_until && *other.lease_until > now) {
            out.workers.push_back(other.worker);
        }
        out.ahead += !is_claimed && other.id != e.id &&
                     (other.due_at < e.due_at || (other.due_at == e.due_at && other.sequence < e.sequence));
    }
    std::sort(out.workers.begin(), out.workers.end());
    out.workers.erase(std::unique(out.workers.begin(), out.workers.end()), out.workers.end());
    return out;
}

[[nodiscard]] inline std::string names_of(const std::vector<std::string>& workers) {
    constexpr std::size_t shown = 5;
    std::string out;
    for (std::size_t i = 0; i < workers.size() && i < shown; ++i) {
        out += (i == 0 ? "" : ", ") + plain(workers[i]);
    }
    return out + (workers.size() > shown ? " and others" : "");
}

/// Why a due entry has not been claimed.
[[nodiscard]] inline wait_reason why_not_claimed(database& in, const vouch::entry& e, vouch::time_point now,
                                                 bool looks_at_queue) {
    const auto since = "due since " + with_time(e.due_at, now);
    if (e.expires_at && *e.expires_at <= now) {
        return {"expired",
                since + "; it expired " + relative(*e.expires_at, now) + ", so the next claim ends it as dead"};
    }
    if (e.attempts_max != 0 && e.attempts >= e.attempts_max) {
        return {"attempts_spent", since + "; all attempts are spent (" + std::to_string(e.attempts_max) +
                                      "), so the next claim ends it as dead"};
    }
    const auto seen = looks_at_queue ? look_at_queue(in.stored(), e, now) : queue_view{};
    const auto ahead = seen.ahead == 0
                           ? std::string()
                           : "; " + std::to_string(seen.ahead) + (seen.is_cut ? " or more" : "") +
                                 (seen.ahead == 1 ? " entry of the queue is" : " entries of the queue are") +
                                 " due before it";
    if (!seen.workers.empty()) {
        return {"queued", since + ahead + "; workers are busy with other entries of queue " + plain(e.queue) + ": " +
                              names_of(seen.workers) + ". If it waits too long, run more of them"};
    }
    return {"due", since + ahead + "; no worker has claimed it. Is a worker running for queue " + plain(e.queue) + '?'};
}

[[nodiscard]] inline wait_reason why_due_later(database& in, const vouch::entry& e, vouch::time_point now) {
    wait_reason out{"due_later", "due " + with_time(e.due_at, now)};
    if (e.state == vouch::state::retrying && e.attempts > 0) {
        out.code = "backs_off";
        out.sentence += "; attempt " + std::to_string(e.attempts) +
                        (e.attempts_max != 0 ? " of " + std::to_string(e.attempts_max) : "") +
                        (e.last_error.empty() ? "" : " failed with " + plain(e.last_error)) +
                        "; `retry` makes it due now";
    }
    for (const auto& command : replies_awaited(in.stored(), e)) {
        out.code = "waits_for_reply";
        out.sentence += (out.entries.empty() ? "; waits for the reply of " : ", ") + to_string(command.id) + " (" +
                        plain(command.topic) + ", " + std::string(name_of(command.state)) + ')';
        out.entries.push_back(command.id);
    }
    return out;
}

[[nodiscard]] inline wait_reason why_claimed(const vouch::entry& e, vouch::time_point now) {
    const auto lease_end = e.lease_until.value_or(now);
    if (lease_end > now) {
        return {"held", "held by " + plain(e.worker) + " until " + with_time(lease_end, now) +
                            (e.woken ? "; it is due again as soon as that claim ends" : "")};
    }
    return {"lease_over", "held by " + plain(e.worker) + ", whose lease expired " + relative(lease_end, now) +
                              "; the next claim takes it over. Is a worker running for queue " + plain(e.queue) + '?'};
}

/// `depth` is how many entries that this one waits for are explained, too.
[[nodiscard]] inline wait_reason why_not_running(database& in, const vouch::entry& e, vouch::time_point now,
                                                 int depth = 1) {
    using vouch::state;
    const auto because = [&](wait_reason out, const vouch::entry& other) {
        const auto why = depth > 0 ? why_not_running(in, other, now, depth - 1).sentence : std::string();
        out.sentence += why.empty() ? "" : ". That one is " + why;
        return out;
    };
    if (e.state == state::succeeded) {
        return {"succeeded", "the entry succeeded " + relative(e.updated_at, now)};
    }
    if (e.state == state::dead) {
        return {"dead", "the entry died " + relative(e.updated_at, now) + " with error " + plain(e.last_error) +
                            (vouch::is_saga(e) ? "; `resume` continues it" : "; `requeue` gives it a successor")};
    }
    if (e.state == state::claimed) {
        return why_claimed(e, now);
    }
    if (const auto head = in.head_of_lane(e)) {
        return because({"blocked",
                        "blocked in lane " + plain(e.lane) + " behind " + to_string(head->id) + ", which is " +
                            std::string(name_of(head->state)),
                        {head->id}},
                       *head);
    }
    if (e.due_at <= now) {
        return why_not_claimed(in, e, now, depth > 0);
    }
    auto out = why_due_later(in, e, now);
    const auto child = out.entries.size() == 1 ? in.stored().find(out.entries.front()) : std::nullopt;
    return child ? because(std::move(out), *child) : out;
}

} // namespace tool
