// SPDX-License-Identifier: MIT
// Why an entry is not running, as one sentence for people and as data. It says the same as `vouch show`, in words for a
// page with buttons.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct wait_reason {
    /// due_later, held, lease_over, blocked, in_lane, waits_for_reply, due, succeeded or dead
    std::string code{};
    std::string sentence{};
    std::vector<id> entries{}; ///< those that it waits for
};

/// "3 min", "2 h": the largest unit that fits.
[[nodiscard]] inline std::string roughly(duration d) {
    using namespace std::chrono;
    const auto in = [&](auto unit, const char* name) { return std::to_string(d / unit) + name; };
    if (d < minutes{2}) {
        return in(seconds{1}, " s");
    }
    if (d < hours{2}) {
        return in(minutes{1}, " min");
    }
    return d < hours{48} ? in(hours{1}, " h") : in(hours{24}, " days");
}

/// "in 3 min" or "2 h ago".
[[nodiscard]] inline std::string relative(time_point at, time_point now) {
    const auto left = later(at, -now.time_since_epoch()).time_since_epoch();
    return left > duration::zero() ? "in " + roughly(left) : roughly(-std::max(left, -duration::max())) + " ago";
}

/// The entry that blocks another one in its lane.
struct lane_head {
    std::optional<vouch::entry> entry{};
    bool is_known = true; ///< false: it was not found within the bound, and there may be one
};
using lane_search = std::function<lane_head(const entry&)>;

/// Seeks it among the oldest live entries of the queue.
template <class Reader>
[[nodiscard]] lane_head head_among_oldest(const Reader& in, const entry& e, std::size_t read_max) {
    auto page = query::live(e.queue);
    page.limit = read_max;
    auto oldest = in.list(page);
    for (auto& other : oldest) {
        if (other.sequence >= e.sequence) {
            return {};
        }
        if (other.lane == e.lane) {
            return {.entry = std::move(other)};
        }
    }
    return {.is_known = oldest.size() < read_max};
}

namespace reasons {

[[nodiscard]] inline wait_reason of_terminal(const entry& e, time_point now) {
    const auto when = relative(e.updated_at, now);
    if (e.state == state::succeeded) {
        return {"succeeded", "It succeeded " + when + '.'};
    }
    return {"dead", "It died " + when + " with the error " + e.last_error + ". " +
                        (!e.parent.is_nil() ? "It is a command of a saga: the saga decides what follows."
                         : is_saga(e)       ? "Resume continues it where it stopped."
                                            : "Requeue gives it a successor.")};
}

[[nodiscard]] inline wait_reason of_claimed(const entry& e, time_point now) {
    const auto until = e.lease_until.value_or(now);
    const auto since = e.last_attempt_at ? " since " + roughly(std::max(now - *e.last_attempt_at, duration{})) : "";
    if (until > now) {
        return {"held", "Worker " + e.worker + " holds it" + since + "; its lease ends " + relative(until, now) + '.'};
    }
    return {"lease_over", "Worker " + e.worker + " held it, and its lease ended " + relative(until, now) +
                              " without an outcome. The next claim takes it over. Is a worker running for queue " +
                              e.queue + '?'};
}

[[nodiscard]] inline std::string after_failure(const entry& e) {
    return e.state == state::retrying && !e.last_error.empty() ? " Its last attempt failed with " + e.last_error + '.'
                                                               : "";
}

} // namespace reasons

template <class Reader>
[[nodiscard]] wait_reason why_not_running(const Reader& in, const entry& e, time_point now, const lane_search& head) {
    if (is_terminal(e.state)) {
        return reasons::of_terminal(e, now);
    }
    if (e.state == state::claimed) {
        return reasons::of_claimed(e, now);
    }
    const auto before = e.lane.empty() ? lane_head{} : head(e);
    if (before.entry && before.entry->id != e.id) {
        return {"blocked",
                "It is blocked in lane " + e.lane + " behind " + to_string(before.entry->id) + ", which is " +
                    std::string(name_of(before.entry->state)) +
                    (before.entry->last_error.empty() ? "." : " after the error " + before.entry->last_error + '.'),
                {before.entry->id}};
    }
    if (!before.is_known && e.due_at <= now) {
        return {"in_lane", "It waits in lane " + e.lane + ", probably for its turn." + reasons::after_failure(e)};
    }
    wait_reason out;
    if (is_saga(e)) {
        auto children = query::children(e.id);
        for (const auto& command : in.list(children)) {
            if (is_live(command.state)) {
                out.sentence += (out.entries.empty() ? "It waits for the reply of " : ", ") + command.topic +
                                " in queue " + command.queue + ", which is " + std::string(name_of(command.state));
                out.entries.push_back(command.id);
            }
        }
    }
    if (!out.entries.empty()) {
        out.code = "waits_for_reply";
        out.sentence += e.due_at > now ? "; it looks again " + relative(e.due_at, now) + '.' : ".";
        return out;
    }
    if (e.due_at > now) {
        return {"due_later", "It is due " + relative(e.due_at, now) + '.' + reasons::after_failure(e)};
    }
    return {"due", "It has been due for " + roughly(now - std::max(e.due_at, later(now, -duration::max()))) +
                       ", and no worker has claimed it. Is a worker running for queue " + e.queue + '?' +
                       reasons::after_failure(e)};
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
