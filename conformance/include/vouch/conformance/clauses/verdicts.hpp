// SPDX-License-Identifier: MIT
// Verdicts: the verdict table, cell by cell. Rows are operations, columns are states of the entry. Each cell compares the
// verdict and requires that the entry changes exactly if the verdict is `applied`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace verdict_checks {

inline constexpr auto asked_at = at(1000);

/// The state of entry `n` when an operation is called on it.
struct column {
    std::uint64_t n;
    std::string_view name;
    std::uint64_t epoch;
};

inline constexpr std::array columns{
    column{1, "pending", 0},
    column{2, "pending after a release", 1},
    column{3, "retrying", 1},
    column{4, "claimed, lease running", 1},
    column{5, "claimed, lease over", 1},
    column{6, "succeeded", 1},
    column{7, "born succeeded", 0},
    column{8, "dead", 1},
    column{9, "dead without a claim", 0},
    column{10, "absent", 0},
};

/// A store with an entry for every column. Entries that wait or have ended are not due yet; one lease has a microsecond
/// left, the other has just ended.
[[nodiscard]] inline any_store furnished(trial& t) {
    auto store = t.open(t.fresh_location());
    constexpr auto later = at(2000);
    const auto claimed = [&](std::uint64_t n, time_point now, duration lease) {
        put(store, draft_of(n, {.due_at = now, .progress = "begun"}));
        return take_one(store, now, {.lease = lease, .only = id_of(n)});
    };
    put(store, draft_of(1, {.due_at = later}));
    std::ignore = settle(store, claimed(2, at(0), duration{100}), release{later});
    std::ignore = settle(store, claimed(3, at(0), duration{100}), retry{"e", later});
    std::ignore = claimed(4, at(0), asked_at - at(0) + duration{1});
    std::ignore = claimed(5, at(0), asked_at - at(0));
    std::ignore = settle(store, claimed(6, later, duration{100}), succeed{"r"});
    put(store, draft_of(7, {.due_at = later, .result = "r"}));
    std::ignore = settle(store, claimed(8, later, duration{100}), bury{"e", "r"});
    put_dead(store, draft_of(9, {.due_at = later}));
    return store;
}

/// Requires that the entry with the number n has changed since, and no other entry.
inline void only_changed(const any_store& store, snapshot before, std::uint64_t n, const std::string& cell) {
    const auto after = get(store, n);
    for (auto& e : before.found) {
        if (e.id == after.id) {
            trial::expect(!(e == after), cell + ": what is applied changes the entry");
            e = after;
        }
    }
    trial::equal(snapshot_of(store).found, before.found, cell + ": no other entry changes");
}

/// Checks a row: `ask(column) -> verdict`.
template <class Ask>
void walk(any_store& store, std::string_view what, const std::array<verdict, columns.size()>& row, const Ask& ask) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto cell = std::string(what) + " on an entry that is " + std::string(columns[i].name);
        const auto before = snapshot_of(store);
        trial::equal(ask(columns[i]), row[i], cell + ": the verdict");
        if (row[i] == verdict::applied) {
            only_changed(store, before, columns[i].n, cell);
        } else {
            unchanged(store, before, cell + ": nothing changes");
        }
    }
}

struct named_outcome {
    std::string_view name;
    vouch::outcome outcome;
};

[[nodiscard]] inline std::array<named_outcome, 5> all_outcomes() {
    return {{{"succeed", succeed{"other"}},
             {"retry", retry{"other", at(3000)}},
             {"bury", bury{"other", "other"}},
             {"release", release{at(3000)}},
             {"advance", advance{"other", at(3000)}}}};
}

// Epochs that are not the entry's current one.

[[nodiscard]] inline std::uint64_t next_epoch(const column& c) { return c.epoch + 1; }
[[nodiscard]] inline std::uint64_t last_epoch(const column& c) { return c.epoch == 0 ? 2 : c.epoch - 1; }
[[nodiscard]] inline std::uint64_t largest_epoch(const column&) { return std::numeric_limits<std::uint64_t>::max(); }

inline constexpr std::array other_epochs{next_epoch, last_epoch, largest_epoch};

using enum verdict;
inline constexpr std::array<verdict, columns.size()> on_present{repeated, repeated, repeated, applied,  applied,
                                                                repeated, repeated, repeated, repeated, unknown};
inline constexpr std::array<verdict, columns.size()> on_other{stale, stale, stale, stale, stale,
                                                              stale, stale, stale, stale, unknown};
inline constexpr std::array<verdict, columns.size()> on_nudge{applied, applied, applied, applied, applied,
                                                              stale,   stale,   stale,   stale,   unknown};
inline constexpr std::array<verdict, columns.size()> on_nudge_again{repeated, repeated, repeated, repeated, repeated,
                                                                    stale,    stale,    stale,    stale,    unknown};
inline constexpr std::array<verdict, columns.size()> on_cancel{applied, applied, applied,  stale,    applied,
                                                               stale,   stale,   repeated, repeated, unknown};

inline void settle_present(trial& t) {
    for (const auto& o : all_outcomes()) {
        auto store = furnished(t);
        walk(store, o.name, on_present, [&](const column& c) {
            return settle(store, {id_of(c.n), c.epoch}, o.outcome, asked_at).verdict;
        });
    }
}

inline void settle_other(trial& t) {
    auto store = furnished(t);
    for (const auto& o : all_outcomes()) {
        for (const auto epoch : other_epochs) {
            walk(store, std::string(o.name) + " with another epoch", on_other, [&](const column& c) {
                return settle(store, {id_of(c.n), epoch(c)}, o.outcome, asked_at).verdict;
            });
        }
    }
}

inline void extend_present(trial& t) {
    auto store = furnished(t);
    walk(store, "extend", on_present, [&](const column& c) {
        return extend(store, {id_of(c.n), c.epoch}, asked_at, duration{100});
    });
}

inline void extend_other(trial& t) {
    auto store = furnished(t);
    for (const auto epoch : other_epochs) {
        walk(store, "extend with another epoch", on_other, [&](const column& c) {
            return extend(store, {id_of(c.n), epoch(c)}, asked_at, duration{100});
        });
    }
}

inline void nudge_once(trial& t) {
    auto store = furnished(t);
    walk(store, "nudge", on_nudge, [&](const column& c) { return nudge(store, id_of(c.n), asked_at); });
}

inline void nudge_again(trial& t) {
    auto store = furnished(t);
    for (const auto& c : columns) {
        nudge(store, id_of(c.n), asked_at);
    }
    walk(store, "a second nudge", on_nudge_again, [&](const column& c) { return nudge(store, id_of(c.n), asked_at); });
    walk(store, "a later nudge", on_nudge_again, [&](const column& c) { return nudge(store, id_of(c.n), at(3000)); });
}

inline void cancel_any(trial& t) {
    auto store = furnished(t);
    walk(store, "cancel", on_cancel, [&](const column& c) { return cancel(store, id_of(c.n), asked_at, "other"); });
}

} // namespace verdict_checks

inline constexpr std::array verdict_table{
    clause{"VERDICT-01", layer::examples, level::must, needs::nothing,
           "A settle with the entry's current epoch is applied if the entry is claimed, whether its lease runs or is "
           "over; repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::settle_present},
    clause{"VERDICT-02", layer::examples, level::must, needs::nothing,
           "A settle with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::settle_other},
    clause{"VERDICT-03", layer::examples, level::must, needs::nothing,
           "An extend with the entry's current epoch is applied if the entry is claimed, whether its lease runs or is "
           "over; repeated if it is pending, retrying, succeeded or dead; unknown if it is absent.",
           verdict_checks::extend_present},
    clause{"VERDICT-04", layer::examples, level::must, needs::nothing,
           "An extend with any other epoch, lower or higher, is stale in every state, and unknown if the entry is "
           "absent.",
           verdict_checks::extend_other},
    clause{"VERDICT-05", layer::examples, level::must, needs::nothing,
           "A nudge of a pending, retrying or claimed entry is applied; of a succeeded or dead one it is stale; of an "
           "absent one it is unknown.",
           verdict_checks::nudge_once},
    clause{"VERDICT-06", layer::examples, level::must, needs::nothing,
           "A nudge of an entry that is already due or marked is repeated; of a succeeded or dead one it is stale; of "
           "an absent one it is unknown.",
           verdict_checks::nudge_again},
    clause{"VERDICT-07", layer::examples, level::must, needs::nothing,
           "A cancel is applied if the entry is pending, retrying, or claimed with its lease over; stale if its lease "
           "runs or it succeeded; repeated if it is dead; unknown if it is absent.",
           verdict_checks::cancel_any},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
