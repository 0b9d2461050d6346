// SPDX-License-Identifier: MIT
// Entries that a transaction has locked, as they are in memory: changed by verbs and then written back together. The end
// of an entry reaches others: it nudges its parent, opens its lane and counts in its group.
//
// Entries are locked even if nothing comes of it: a `repeated` nudge promises that no other transaction claims the entry
// before this one ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/entry_row.hpp>
#include <vouch/postgres/detail/lane_set.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class locked_entries {
  public:
    locked_entries(connection& on, session& in) noexcept : on_(on), session_(in) {}

    /// Names an entry for `lock`.
    void want(const id& which) { wanted_.add(which); }
    /// Names an entry that may end, by a settle with this epoch or by a cancel. Its lane is locked as well, and its
    /// parent if it will end.
    void want_to_end(const id& which, std::optional<std::uint64_t> epoch) {
        wanted_.add(which);
        ending_.add(which);
        epochs_.add(epoch ? std::optional(static_cast<std::int64_t>(*epoch)) : std::nullopt);
    }

    void lock(time_point now) {
        const bool has_ends = ending_.size() != 0;
        const auto lanes = has_ends ? on_.add(sql::lock_lanes, parameters(ending_)) : std::size_t{0};
        const auto entries = on_.add(sql::lock_entries, parameters(wanted_, ending_, epochs_, now));
        const auto answers = on_.exchange();
        if (has_ends) {
            answers[lanes].each([&](row one) {
                std::string queue;
                std::string lane;
                one.read(queue, lane);
                locked_lanes_.emplace(std::move(queue), std::move(lane));
            });
        }
        add_subjects(answers[entries]);
    }

    /// Applies the verb. `place` is what `write` returns if this completes a group.
    template <class Verb>
    [[nodiscard]] verdict change(const id& which, const Verb& verb, time_point now, std::size_t place = 0) {
        const auto found = subjects_.find(which);
        if (found == subjects_.end()) {
            return verdict::unknown;
        }
        auto& s = found->second;
        const auto answer = apply(s.now, verb, now);
        if (answer != verdict::applied) {
            return answer;
        }
        s.is_changed = true;
        s.note(verb);
        if (is_terminal(s.now.state)) {
            end(s, now, place);
        } else if (s.now.state != state::claimed && !s.is_blocked) {
            session_.wake(s.queue, s.now.due_at);
        }
        return answer;
    }

    /// Writes everything that has changed. Returns the places of the changes that completed a group.
    std::vector<std::size_t> write() {
        nudge_missed_parents();
        const auto changed = add_write();
        if (!changed) {
            return {};
        }
        const auto lanes = lanes_.empty() ? std::size_t{0} : on_.add(sql::open_lanes, parameters_of(lanes_));
        if (!lanes_.empty()) {
            on_.add(sql::drop_lanes, parameters_of(lanes_));
        }
        const auto groups = groups_.empty() ? std::size_t{0} : add_groups();
        const auto answers = on_.exchange();
        expect_written(answers[changed->place], changed->count);
        if (!lanes_.empty()) {
            answers[lanes].each([&](row one) {
                std::string queue;
                time_point gate{};
                one.read(queue, gate);
                session_.wake(queue, gate);
            });
        }
        return groups_.empty() ? std::vector<std::size_t>{} : completed(answers[groups]);
    }

  private:
    struct subject {
        std::uint64_t sequence = 0;
        state state_was{};
        std::uint64_t epoch_was = 0;
        bool is_blocked = false;
        bool is_changed = false;
        bool has_error = false;
        bool has_progress = false;
        life now{};
        std::string queue{};
        std::string group{};
        std::string lane{};
        id parent{};

        /// Notes which of the fields that were not read the verb has set.
        template <class Verb>
        void note(const Verb& verb) noexcept {
            if constexpr (std::is_same_v<Verb, vouch::settle>) {
                has_error = has_error || std::holds_alternative<retry>(verb.outcome) ||
                            std::holds_alternative<bury>(verb.outcome);
                has_progress = has_progress || std::holds_alternative<advance>(verb.outcome);
            } else {
                has_error = has_error || std::is_same_v<Verb, vouch::cancel>;
            }
        }
    };
    struct group_change {
        std::int64_t ended = 0;
        std::int64_t succeeded = 0;
        std::size_t last_place = 0; ///< of the last success
    };
    struct added_write {
        std::size_t place = 0;
        std::size_t count = 0;
    };

    void add_subjects(const rows& found) {
        found.each([&](row one) {
            subject s;
            auto& l = s.now;
            std::optional<time_point> gate;
            id which;
            one.read(s.sequence, which, s.queue, or_default{s.group}, or_default{s.lane}, or_default{s.parent}, l.state,
                     l.attempts, l.lapses, l.failures, l.epoch, l.due_at, gate, l.woken);
            if (l.state == state::claimed) {
                l.lease_until = gate;
            }
            expect_sound(l);
            s.state_was = l.state;
            s.epoch_was = l.epoch;
            s.is_blocked = is_live(l.state) && !gate;
            subjects_.emplace(which, std::move(s));
        });
    }

    void end(const subject& s, time_point now, std::size_t place) {
        if (!s.lane.empty()) {
            expect_locked({s.queue, s.lane});
            lanes_.emplace(s.queue, s.lane);
        }
        if (!s.group.empty()) {
            auto& change = groups_[s.group];
            change.ended += 1;
            if (s.now.state == state::succeeded) {
                change.succeeded += 1;
                change.last_place = place;
            }
        }
        if (!s.parent.is_nil()) {
            if (!subjects_.contains(s.parent)) {
                missed_parents_.emplace(s.parent, now);
            }
            std::ignore = change(s.parent, vouch::nudge{}, now); // absent or terminal: no effect
        }
    }

    /// The lane is chosen before the entry is locked. Between the two the entry may have been stored, perhaps under an id
    /// that was used before in another lane; an enqueue into its lane would then not be excluded.
    void expect_locked(const lane_set::value_type& lane) const {
        if (!locked_lanes_.contains(lane)) {
            throw error(error_kind::conflict, "postgres: another transaction has stored the entry meanwhile");
        }
    }

    /// The parents that were not locked with their children: they are absent, or the child was changed between the look at
    /// its parent and its lock.
    void nudge_missed_parents() {
        if (missed_parents_.empty()) {
            return;
        }
        array missed(pg_type::uuid);
        for (const auto& [parent, now] : missed_parents_) {
            missed.add(parent);
        }
        const array none_end(pg_type::uuid);
        const array no_epochs(pg_type::bigint);
        add_subjects(on_.ask(sql::lock_entries, parameters(missed, none_end, no_epochs, time_point{})));
        for (const auto& [parent, now] : missed_parents_) {
            std::ignore = change(parent, vouch::nudge{}, now);
        }
    }

    /// Adds the statement that writes all changed entries; nothing if there are none.
    [[nodiscard]] std::optional<added_write> add_write() {
        using t = pg_type;
        std::array<array, 16> columns{array(t::text),     array(t::bigint), array(t::smallint), array(t::bigint),
                                      array(t::smallint), array(t::bigint), array(t::bigint),   array(t::bigint),
                                      array(t::bigint),   array(t::bigint), array(t::bigint),   array(t::boolean),
                                      array(t::bigint),   array(t::text),   array(t::bytea),    array(t::bytea)};
        for (const auto& [which, s] : subjects_) {
            if (s.is_changed) {
                std::size_t next = 0;
                const auto put = [&](const auto&... values) { (columns[next++].add(values), ...); };
                const auto& l = s.now;
                put(s.queue, s.sequence, s.state_was, s.epoch_was, l.state, l.attempts, l.lapses, l.failures, l.epoch,
                    l.due_at, s.is_blocked ? std::nullopt : gate_of(l), l.woken, l.updated_at,
                    if_set{s.has_error, l.last_error}, l.result, if_set{s.has_progress, l.progress});
            }
        }
        if (columns[0].size() == 0) {
            return std::nullopt;
        }
        parameters values;
        for (const auto& column : columns) {
            values.add(column);
        }
        return added_write{on_.add(sql::write, values), columns[0].size()};
    }

    [[nodiscard]] std::size_t add_groups() {
        array names(pg_type::text);
        array ended(pg_type::bigint);
        array succeeded(pg_type::bigint);
        for (const auto& [name, change] : groups_) {
            names.add(name);
            ended.add(change.ended);
            succeeded.add(change.succeeded);
        }
        on_.add(sql::lock_groups, parameters(names));
        return on_.add(sql::group_end, parameters(names, ended, succeeded));
    }

    /// The entries are locked, so a row that is not as it was read means damage.
    void expect_written(const rows& written, std::size_t count) {
        row::expect(written.size() == count,
                    "postgres: the tables are damaged: an entry cannot be written back as it was read");
        written[0].read(session_.transaction_number);
    }

    [[nodiscard]] std::vector<std::size_t> completed(const rows& groups) {
        row::expect(groups.size() == groups_.size(),
                    "postgres: the tables are damaged: a group has members but no row");
        std::vector<std::size_t> places;
        groups.each([&](row one) {
            std::string name;
            std::uint64_t unfinished = 0;
            one.read(name, unfinished);
            const auto& change = groups_.at(name);
            if (unfinished == 0 && change.succeeded > 0) {
                places.push_back(change.last_place);
            }
        });
        return places;
    }

    connection& on_;
    session& session_;
    array wanted_{pg_type::uuid};
    array ending_{pg_type::uuid};
    array epochs_{pg_type::bigint};
    std::map<id, time_point> missed_parents_{};
    std::map<id, subject> subjects_{};
    lane_set locked_lanes_{};
    lane_set lanes_{};
    std::map<std::string, group_change> groups_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
