// SPDX-License-Identifier: MIT
// Claim, settle, extend, nudge and cancel on one connection, inside a transaction. The contract's `apply` carries out
// the verbs: the life of an entry is read, changed in memory, and written back under the fence of its epoch and state.
// Requires valid arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/row.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class entry_writer {
  public:
    entry_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        std::vector<entry> claimed;
        const auto queue = r.limit == 0 ? std::nullopt : session_.find(on_, r.queue);
        if (!queue) {
            return claimed;
        }
        const auto partition = queue->partition(state::pending);
        if (r.only.is_nil()) {
            claimed.reserve(std::min<std::size_t>(r.limit, 64));
            run row(on_.prepared(sql::due));
            take(row.bind(r.queue, partition, r.now, std::uint64_t{r.limit}), r, claimed);
        } else {
            run row(on_.prepared(sql::due_only));
            take(row.bind(r.queue, partition, r.now, r.only), r, claimed);
        }
        write_claims(claimed, r);
        const auto by_due = [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        };
        if (!std::is_sorted(claimed.begin(), claimed.end(), by_due)) {
            std::sort(claimed.begin(), claimed.end(), by_due);
        }
        return claimed;
    }

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        std::vector<settlement> answers;
        answers.reserve(settles.size());
        while (!settles.empty()) {
            auto done = succeed_run(settles, now);
            if (done == 0) {
                answers.push_back(settle_alone(settles.front(), now));
                done = 1;
            } else {
                answers.insert(answers.end(), done, settlement{.verdict = verdict::applied});
            }
            settles = settles.subspan(done);
        }
        return answers;
    }

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        std::vector<verdict> verdicts;
        verdicts.reserve(tickets.size());
        for (const auto& t : tickets) {
            verdicts.push_back(extend(t, now, lease));
        }
        return verdicts;
    }

    [[nodiscard]] verdict extend(const ticket& t, time_point now, duration lease) {
        subject e;
        if (!look_up(t.id, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::extend{t, lease}, now);
        if (answer == verdict::applied) {
            hold(e);
        }
        return answer;
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        subject e;
        if (!look_up(wanted, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::nudge{}, now);
        if (answer == verdict::applied) {
            e.now.state == state::claimed ? hold(e) : wait(e, std::nullopt, false);
        }
        return answer;
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        subject e;
        if (!look_up(wanted, e)) {
            return verdict::unknown;
        }
        const auto answer = apply(e.now, vouch::cancel{error}, now);
        if (answer == verdict::applied) {
            end(e, error);
        }
        return answer;
    }

  private:
    static void take(run& row, const claim_request& r, std::vector<entry>& claimed) {
        while (row.step()) {
            auto& e = claimed.emplace_back();
            read_entry(row, e);
            apply(e, r);
        }
    }

    /// Writes the claimed entries, each run of consecutive sequences with one statement.
    void write_claims(const std::vector<entry>& claimed, const claim_request& r) {
        for (std::size_t first = 0; first < claimed.size();) {
            auto end = first + 1;
            while (end < claimed.size() && claimed[end].sequence == claimed[end - 1].sequence + 1) {
                ++end;
            }
            run row(on_.prepared(sql::claim));
            row.bind(claimed[first].sequence, claimed[end - 1].sequence, r.now, r.now + r.lease, r.worker);
            expect_changed(row.finish(), end - first);
            first = end;
        }
    }

    [[nodiscard]] settlement settle_alone(const vouch::settle& s, time_point now) {
        settlement answer;
        subject e;
        if (!look_up(s.ticket.id, e)) {
            return answer;
        }
        answer.verdict = apply(e.now, s, now);
        if (answer.verdict != verdict::applied) {
            return answer;
        }
        const bool failed = std::holds_alternative<retry>(s.outcome) || std::holds_alternative<bury>(s.outcome);
        const auto error = failed ? std::optional<std::string_view>(e.now.last_error) : std::nullopt;
        if (is_terminal(e.now.state)) {
            answer.group_completed = end(e, error);
        } else {
            wait(e, error, std::holds_alternative<advance>(s.outcome));
        }
        return answer;
    }

    /// The part of a stored entry that a verb needs.
    struct subject {
        std::uint64_t sequence = 0;
        state was{};
        std::uint64_t epoch_was = 0;
        bool is_blocked = false;
        life now{};
        queue_number number{};
        std::string queue{};
        std::string group{};
        std::string lane{};
        id parent{};
    };

    [[nodiscard]] bool look_up(const id& wanted, subject& e) {
        run row(on_.prepared(sql::life));
        if (!row.bind(wanted).step()) {
            return false;
        }
        std::optional<time_point> gate;
        row.read_all(e.sequence, e.now.state, e.now.attempts, e.now.lapses, e.now.failures, e.now.epoch, e.now.due_at,
                     e.now.lease_until, e.now.woken, gate, e.number.value, e.queue, or_none{e.group}, or_none{e.lane},
                     or_none{e.parent});
        expect_sound(e.now);
        e.was = e.now.state;
        e.epoch_was = e.now.epoch;
        e.is_blocked = is_live(e.was) && !gate;
        return true;
    }

    /// Nothing else writes in the transaction, so a row that has changed since it was read means damage.
    static void expect_changed(int changed, std::size_t expected) {
        if (static_cast<std::size_t>(changed) != expected) {
            throw error(error_kind::corrupt,
                        "sqlite: the file is damaged: an entry cannot be written back as it was read");
        }
    }
    static void expect_one(int changed) { expect_changed(changed, 1); }

    /// The fast path for successes that affect no other entry: writes those at the front that have consecutive
    /// sequences and the same epoch and result with one statement. Returns how many; 0 if the first is of another kind,
    /// or its ticket does not match.
    [[nodiscard]] std::size_t succeed_run(std::span<const vouch::settle> settles, time_point now) {
        const auto* const done = std::get_if<succeed>(&settles.front().outcome);
        const auto first = done == nullptr ? 0 : find_sequence(on_, settles.front().ticket.id);
        if (first == 0) {
            return 0;
        }
        const auto epoch = settles.front().ticket.epoch;
        auto last = first;
        for (const auto& next : settles.subspan(1)) {
            const auto* const too = std::get_if<succeed>(&next.outcome);
            if (too == nullptr || too->result != done->result || next.ticket.epoch != epoch ||
                find_sequence(on_, next.ticket.id) != last + 1) {
                break;
            }
            ++last;
        }
        if (last > first && count_ready(first, last, epoch) != last - first + 1) {
            last = first; // one of them does not match, so each gets its own verdict
        }
        run row(on_.prepared(sql::succeed));
        const auto changed = row.bind(first, last, epoch, blob{done->result}, now).finish();
        if (changed != 0) {
            expect_changed(changed, last - first + 1);
        }
        return static_cast<std::size_t>(changed);
    }

    [[nodiscard]] std::uint64_t count_ready(std::uint64_t first, std::uint64_t last, std::uint64_t epoch) {
        run row(on_.prepared(sql::count_ready));
        row.bind(first, last, epoch).step();
        return static_cast<std::uint64_t>(row.integer(0));
    }

    /// Writes a life that is pending or retrying. Without `error`, the stored one is kept.
    void wait(const subject& e, std::optional<std::string_view> error, bool is_checkpoint) {
        const auto gate = e.is_blocked ? std::nullopt : gate_of(e.now);
        run row(on_.prepared(is_checkpoint ? sql::write_checkpoint : sql::write_wait));
        const auto& l = e.now;
        if (is_checkpoint) {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at, l.lapses, optional_blob{l.progress});
        } else {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at, l.lapses);
        }
        expect_one(row.finish());
        if (gate) {
            session_.wake(e.queue);
        }
    }

    /// Writes a life that stays claimed.
    void hold(const subject& e) {
        run row(on_.prepared(sql::write_hold));
        row.bind(e.sequence, e.epoch_was, e.was, e.now.lease_until, e.now.woken, e.now.updated_at);
        expect_one(row.finish());
    }

    /// Writes a life that has ended, and updates its lane, parent and group. Returns whether it completed its group.
    bool end(const subject& e, std::optional<std::string_view> error) {
        const auto& l = e.now;
        {
            const auto result = l.result ? std::optional{blob{*l.result}} : std::nullopt;
            run row(on_.prepared(sql::write_end));
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.failures, l.epoch, error, result, l.updated_at,
                     e.number.partition(l.state), l.lapses);
            expect_one(row.finish());
        }
        if (l.state == state::dead) {
            run(on_.prepared(sql::add_dead)).bind(e.number.value, e.sequence).finish();
        }
        if (!e.lane.empty() || !e.parent.is_nil()) {
            run(on_.prepared(sql::end_relations)).bind(e.sequence).finish();
        }
        if (!e.lane.empty() && run(on_.prepared(sql::lane_open_next)).bind(e.number.value, e.lane).finish() > 0) {
            session_.wake(e.queue);
        }
        if (!e.parent.is_nil()) {
            std::ignore = nudge(e.parent, l.updated_at); // absent or terminal: no effect
        }
        if (e.group.empty()) {
            return false;
        }
        run row(on_.prepared(sql::group_end));
        const bool has_succeeded = l.state == state::succeeded;
        if (!row.bind(e.group, has_succeeded).step()) {
            throw vouch::error(error_kind::corrupt, "sqlite: the file is damaged: a group has members but no row");
        }
        return row.integer_between(0, 0) == 0 && has_succeeded;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
