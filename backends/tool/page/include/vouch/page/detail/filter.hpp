// SPDX-License-Identifier: MIT
// Which entries a request asks for. A store's query has one path and two filters; the rest is compared here, entry by
// entry, over a bounded number of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/depth.hpp>
#include <vouch/page/detail/parameters.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct filter {
    std::string queue{};
    std::string state{}; ///< the name of a state, or live, ended or stuck
    std::string topic{};
    std::string key{};
    std::string lane{};
    std::string group{};
    std::string error{};
    std::string worker{};
    id parent{};
    std::optional<duration> older_than{}; ///< since it was enqueued
    std::optional<duration> newer_than{};
    duration stuck_after{};

    [[nodiscard]] bool is_one_of_live() const noexcept {
        return state == "live" || state == "stuck" || state == "pending" || state == "retrying" || state == "claimed";
    }
    /// Whether the path names its entries across queues.
    [[nodiscard]] bool is_across_queues() const noexcept { return !parent.is_nil() || !group.empty(); }

    /// The path that reads the fewest entries.
    [[nodiscard]] query path_in(const std::string& in) const {
        if (!parent.is_nil()) {
            return query::children(parent);
        }
        if (!group.empty()) {
            return query::members(group);
        }
        if (!key.empty()) {
            return query::keyed(in, key);
        }
        return state == "dead" ? query::dead(in) : is_one_of_live() ? query::live(in) : query::all(in);
    }

    [[nodiscard]] bool has_state(const entry& e, time_point now) const {
        if (state == "stuck") {
            return is_live(e.state) && vouch::detail::is_stuck(e, is_saga(e), later(now, -stuck_after));
        }
        return state.empty() || (state == "live" && is_live(e.state)) || (state == "ended" && is_terminal(e.state)) ||
               state == name_of(e.state);
    }
    [[nodiscard]] bool matches(const entry& e, time_point now) const {
        const auto is = [](const std::string& wanted, const std::string& has) {
            return wanted.empty() || wanted == has;
        };
        return is(queue, e.queue) && is(topic, e.topic) && is(key, e.key) && is(lane, e.lane) && is(group, e.group) &&
               is(error, e.last_error) && is(worker, e.worker) && (parent.is_nil() || parent == e.parent) &&
               (!older_than || e.created_at <= later(now, -*older_than)) &&
               (!newer_than || e.created_at >= later(now, -*newer_than)) && has_state(e, now);
    }
};

[[nodiscard]] inline filter filter_of(const parameters& p, duration stuck_after) {
    filter out{.queue = p.text("queue"),
               .state = p.text("state"),
               .topic = p.text("topic"),
               .key = p.text("key"),
               .lane = p.text("lane"),
               .group = p.text("group"),
               .error = p.text("error"),
               .worker = p.text("worker"),
               .parent = p.identity("parent"),
               .older_than = p.length("older_than"),
               .newer_than = p.length("newer_than"),
               .stuck_after = stuck_after};
    constexpr std::array<std::string_view, 9> states{"",         "live",    "ended",     "stuck", "pending",
                                                     "retrying", "claimed", "succeeded", "dead"};
    for (const auto known : states) {
        if (out.state == known) {
            return out;
        }
    }
    throw bad_request("state must be pending, retrying, claimed, succeeded, dead, live, ended or stuck");
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
