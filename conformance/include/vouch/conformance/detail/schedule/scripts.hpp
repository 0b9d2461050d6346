// SPDX-License-Identifier: MIT
// Scripts: short transactions and reads that meet in entries which none of them may name: the head of a lane, a parent, the
// owner of a key, an entry that a purge looks at.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/step_order.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/contract/capability.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Scripts that compete: each of `some` is run beside each of `others`.
struct contest {
    std::vector<operation> setup{};
    std::vector<script> some{};
    std::vector<script> others{};
};

namespace scripted {

inline constexpr time_point now = at(50);
inline constexpr time_point far_off = at(100'000);

// Operations.

[[nodiscard]] inline operation enqueue(draft d, time_point when = now) {
    return {.what = operation::kind::enqueue, .now = when, .drafts = {std::move(d)}};
}
[[nodiscard]] inline operation enqueue_all(std::vector<draft> drafts, time_point when) {
    return {.what = operation::kind::enqueue, .now = when, .drafts = std::move(drafts)};
}
[[nodiscard]] inline operation claim(std::size_t limit, std::uint64_t only = 0) {
    return {.what = operation::kind::claim,
            .now = now,
            .claim = request(now, {.limit = limit, .only = only == 0 ? id{} : id_of(only)})};
}
/// Claims entry n in a setup.
[[nodiscard]] inline operation hold(std::uint64_t n, duration lease = duration{1000}) {
    return {.what = operation::kind::claim, .now = at(1), .claim = request(at(1), {.lease = lease, .only = id_of(n)})};
}
[[nodiscard]] inline operation settle(std::uint64_t n, outcome o, time_point when = now) {
    return {.what = operation::kind::settle, .now = when, .settles = {{{id_of(n), 1}, std::move(o)}}};
}
[[nodiscard]] inline operation cancel(std::uint64_t n, time_point when = now) {
    return {.what = operation::kind::cancel, .now = when, .wanted = id_of(n)};
}
[[nodiscard]] inline operation nudge(std::uint64_t n) {
    return {.what = operation::kind::nudge, .now = now, .wanted = id_of(n)};
}
[[nodiscard]] inline operation purge(std::size_t limit = 1000) {
    return {.what = operation::kind::purge, .now = now, .purge = {.queue = "q", .before = now, .limit = limit}};
}
[[nodiscard]] inline operation find(std::uint64_t n) { return {.what = operation::kind::find, .wanted = id_of(n)}; }
[[nodiscard]] inline operation counts() { return {.what = operation::kind::counts, .queue = "q"}; }
[[nodiscard]] inline operation next_due() { return {.what = operation::kind::next_due, .queue = "q"}; }
[[nodiscard]] inline operation list(vouch::query q) { return {.what = operation::kind::list, .query = std::move(q)}; }

// Scripts.

[[nodiscard]] inline script in_one(std::vector<operation> operations) {
    return {{.operations = std::move(operations)}};
}
/// A transaction of one operation, then a read outside of it.
[[nodiscard]] inline script then_look(operation o, operation read) {
    return {{.operations = {std::move(o)}}, {.operations = {std::move(read)}, .is_outside = true}};
}

} // namespace scripted

/// The entries that the common scripts compete for: 4 stays claimed, the lease of 5 is over, 6 is dead, 7 and 8 are the
/// last members of a group, 2 and 3 are in a lane.
[[nodiscard]] inline std::vector<operation> common_setup(const capabilities& can) {
    using namespace scripted;
    const std::string lane = can.lanes ? "x" : "";
    const std::string group = can.groups ? "g" : "";
    return {enqueue_all(
                {draft_of(4), draft_of(5), draft_of(6), draft_of(7, {.group = group}), draft_of(8, {.group = group})},
                at(0)),
            hold(4),
            hold(5, duration{10}),
            hold(7),
            hold(8),
            cancel(6, at(2)),
            enqueue_all({draft_of(1), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane})}, at(3))};
}

/// Transactions of one or two operations, some with reads.
[[nodiscard]] inline std::vector<script> common_scripts() {
    using namespace scripted;
    return {
        then_look(claim(1), find(1)),
        in_one({claim(3)}),
        in_one({claim(1, 1), find(2)}),
        in_one({settle(4, succeed{})}),
        in_one({settle(4, retry{"e", now})}),
        in_one({settle(5, succeed{})}),
        in_one({{.what = operation::kind::settle,
                 .now = now,
                 .settles = {{{id_of(4), 1}, succeed{}}, {{id_of(5), 1}, succeed{}}}}}),
        in_one({settle(7, succeed{})}),
        then_look(settle(8, succeed{}), list(vouch::query::members("g"))),
        in_one({enqueue(draft_of(9, {.key = "k"}))}),
        in_one({enqueue(draft_of(10, {.key = "k"}))}),
        in_one({enqueue(draft_of(9))}),
        in_one({enqueue(draft_of(11, {.predecessor = id_of(6)}))}),
        in_one({enqueue(draft_of(12, {.predecessor = id_of(6)})), find(6)}),
        then_look(cancel(1), counts()),
        in_one({cancel(2), next_due()}),
        in_one({cancel(5)}),
        in_one({nudge(4)}),
        in_one({{.what = operation::kind::extend, .now = now, .tickets = {{id_of(5), 1}}, .lease = duration{100}}}),
        in_one({purge()}),
        in_one({settle(4, succeed{}), claim(2)}),
    };
}

/// Pairs of transactions of one operation that have no entry in common.
[[nodiscard]] inline std::vector<std::pair<script, script>> separate_scripts() {
    using namespace scripted;
    return {{in_one({nudge(4)}), in_one({cancel(1)})},
            {in_one({enqueue(draft_of(9))}), in_one({settle(4, succeed{})})},
            {in_one({claim(1, 1)}), in_one({settle(7, succeed{})})}};
}

/// 2 is the head of lane x, with 3 behind it; 4 is claimed and alone in lane y; 5 is claimed and the head of lane z, with 6
/// behind it, which is due later.
[[nodiscard]] inline contest lane_contest() {
    using namespace scripted;
    return {.setup = {enqueue_all({draft_of(2, {.lane = "x"}), draft_of(3, {.lane = "x"}), draft_of(4, {.lane = "y"}),
                                   draft_of(5, {.lane = "z"}), draft_of(6, {.lane = "z", .due_at = far_off})},
                                  at(0)),
                      hold(4), hold(5)},
            .some = {in_one({cancel(2)}),
                     in_one({settle(5, succeed{})}),
                     in_one({enqueue(draft_of(9, {.lane = "x"}))}),
                     in_one({enqueue(draft_of(10, {.lane = "y"}))}),
                     in_one({next_due(), enqueue(draft_of(11, {.lane = "y", .due_at = far_off}))}),
                     {{.operations = {enqueue(draft_of(13, {.lane = "w"}))}}, {.operations = {claim(1, 13)}}}},
            .others = {in_one({settle(4, succeed{})}), in_one({settle(4, bury{"e", {}}), next_due()}),
                       in_one({cancel(2), cancel(3)}), in_one({cancel(3)}), in_one({nudge(6)}),
                       then_look(claim(3), next_due()), in_one({enqueue(draft_of(12, {.lane = "y"}))}),
                       in_one({enqueue(draft_of(14, {.lane = "w"}))})}};
}

/// 1 is due and the parent of 2, which waits, and of 3, which is claimed. 4 is due later and the parent of 5. 6 is claimed
/// and the parent of 7.
[[nodiscard]] inline contest parent_contest() {
    using namespace scripted;
    return {.setup = {enqueue_all({draft_of(1), draft_of(2, {.parent = id_of(1), .due_at = far_off}),
                                   draft_of(3, {.parent = id_of(1)}), draft_of(4, {.due_at = far_off}),
                                   draft_of(5, {.parent = id_of(4), .due_at = far_off}), draft_of(6),
                                   draft_of(7, {.parent = id_of(6), .due_at = far_off})},
                                  at(0)),
                      hold(3), hold(6)},
            .some = {in_one({cancel(2)}), in_one({settle(3, succeed{})}), in_one({cancel(5)}), in_one({cancel(7)}),
                     in_one({cancel(2), cancel(7), find(1)})},
            .others = {then_look(claim(1, 1), find(2)), then_look(claim(3), find(3)),
                       then_look(settle(6, release{far_off}), find(7)), then_look(nudge(4), find(5)),
                       in_one({claim(1, 1), find(3)})}};
}

/// 6 is dead and owns the key k; nothing has the key l.
[[nodiscard]] inline contest key_contest() {
    using namespace scripted;
    return {.setup = {enqueue(draft_of(6, {.key = "k"}), at(0)), cancel(6, at(2))},
            .some = {in_one({enqueue(draft_of(11, {.predecessor = id_of(6)}))}),
                     in_one({enqueue(draft_of(13, {.key = "l"})), list(vouch::query::keyed("q", "k"))})},
            .others = {in_one({enqueue(draft_of(12, {.predecessor = id_of(6)}))}),
                       then_look(enqueue(draft_of(14, {.key = "k"})), list(vouch::query::keyed("q", "k"))),
                       in_one({enqueue(draft_of(15, {.key = "l"})), enqueue(draft_of(16, {.key = "k"}))}),
                       in_one({purge()})}};
}

/// 1 is dead, 2 is dead and in the group g, 3 is dead and owns the key k.
[[nodiscard]] inline contest purge_contest(const capabilities& can) {
    using namespace scripted;
    const std::string group = can.groups ? "g" : "";
    return {.setup = {enqueue_all({draft_of(1), draft_of(2, {.group = group}), draft_of(3, {.key = "k"})}, at(0)),
                      cancel(1, at(2)), cancel(2, at(2)), cancel(3, at(2))},
            .some = {in_one({purge()}), in_one({purge(), enqueue(draft_of(13, {.key = "k"}))})},
            .others = {in_one({enqueue(draft_of(9, {.parent = id_of(1)}))}),
                       in_one({enqueue(draft_of(10, {.group = group}))}),
                       in_one({enqueue(draft_of(11, {.predecessor = id_of(3)}))}),
                       in_one({enqueue(draft_of(12, {.key = "k"})), find(3)}), in_one({purge(2)}),
                       in_one({cancel(2), find(1)})}};
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
