// SPDX-License-Identifier: MIT
// The writer's operations on one connection, inside a transaction. Verbs are the contract's `apply`: an entry's life is
// read, changed in memory, and written back under the fence of its epoch and state. Arguments are valid when they come
// here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/sqlite/connection.hpp>
#include <vouch/sqlite/row.hpp>
#include <vouch/sqlite/sql.hpp>
#include <vouch/sqlite/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// What a transaction remembers from call to call.
struct session {
    std::uint64_t last_sequence = 0;    ///< 0: not looked up yet
    std::vector<std::string> stirred{}; ///< queues in which work may have come nearer

    void stir(const std::string& queue) {
        if (stirred.empty() || stirred.back() != queue) {
            stirred.push_back(queue);
        }
    }
};

class writing {
  public:
    writing(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] receipt enqueue(const draft& d, time_point now) {
        if ((!d.key.empty() || !d.predecessor.is_nil()) && run(on_.prepared(sql::has_id)).bind(d.id).step()) {
            return {receipt::kind::duplicate, d.id};
        }
        if (!d.predecessor.is_nil()) {
            return enqueue_successor(d, now);
        }
        if (!d.key.empty()) {
            run newest(on_.prepared(sql::newest_of_key));
            if (newest.bind(d.queue, d.key).step()) {
                receipt answer{receipt::kind::duplicate, {}};
                newest.read(0, answer.id);
                return answer;
            }
        }
        return insert(d, {.key = d.key, .group = d.group, .lane = d.lane}, now);
    }

    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        std::vector<entry> claimed;
        const auto take = [&](sql due, sql claim, const auto& what) {
            {
                run row(on_.prepared(due));
                row.bind(r.queue, r.now, what);
                while (row.step()) {
                    auto& e = claimed.emplace_back();
                    read_entry(row, e);
                    apply(e, r);
                }
            }
            if (!claimed.empty()) {
                run row(on_.prepared(claim));
                const auto changed = row.bind(r.queue, r.now, what, r.now + r.lease, r.worker).finish();
                expect_changed(changed, claimed.size());
            }
        };
        if (r.only.is_nil()) {
            claimed.reserve(std::min<std::size_t>(r.limit, 64));
            take(sql::due, sql::claim, std::uint64_t{r.limit});
        } else if (r.limit > 0) {
            take(sql::due_only, sql::claim_only, r.only);
        }
        const auto by_due = [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        };
        if (!std::is_sorted(claimed.begin(), claimed.end(), by_due)) {
            std::sort(claimed.begin(), claimed.end(), by_due);
        }
        return claimed;
    }

    [[nodiscard]] settlement settle(const vouch::settle& s, time_point now) {
        settlement answer;
        if (succeed_alone(s, now)) {
            answer.verdict = verdict::applied;
            return answer;
        }
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
    /// What a fresh entry has from its predecessor, or from its draft.
    struct heritage {
        std::string_view key{};
        std::string_view group{};
        std::string_view lane{};
        std::uint32_t generation = 1;
        std::optional<std::uint64_t> replaces{};
    };

    [[nodiscard]] receipt enqueue_successor(const draft& d, time_point now) {
        std::uint64_t sequence = 0;
        state was{};
        std::string queue;
        std::string key;
        std::string group;
        std::string lane;
        std::uint32_t generation = 0;
        id successor;
        {
            run row(on_.prepared(sql::predecessor));
            if (!row.bind(d.predecessor).step()) {
                return {};
            }
            row.read_all(sequence, was, queue, key, group, lane, generation, successor);
        }
        if (was != state::dead || queue != d.queue) {
            return {};
        }
        if (!successor.is_nil()) {
            return {receipt::kind::duplicate, successor};
        }
        return insert(d, {.key = key, .group = group, .lane = lane, .generation = generation + 1, .replaces = sequence},
                      now);
    }

    [[nodiscard]] receipt insert(const draft& d, const heritage& h, time_point now) {
        const auto due = d.due_at.value_or(now);
        const bool is_done = d.result.has_value();
        const bool is_blocked = !h.lane.empty() && run(on_.prepared(sql::lane_is_taken)).bind(d.queue, h.lane).step();
        const auto gate = is_done || is_blocked ? std::nullopt : std::optional{due};
        const auto ended = is_done ? std::optional{now} : std::nullopt;
        const auto result = is_done ? std::optional{blob{*d.result}} : std::nullopt;
        const auto trail = encode(d.trail);
        const auto headers = encode(d.headers);

        const auto sequence = last_sequence() + 1;
        run row(on_.prepared(sql::insert));
        row.bind(sequence, d.id, d.queue, d.topic, optional_text{h.key}, optional_text{h.group}, optional_text{h.lane},
                 optional_id{d.parent}, optional_id{d.predecessor}, h.replaces, h.generation, d.attempts_max,
                 d.expires_at, now, is_done ? state::succeeded : state::pending, due, gate, ended, optional_blob{trail},
                 optional_blob{headers}, optional_blob{d.progress}, result, blob{d.payload});
        if (row.finish() == 0) {
            return {receipt::kind::duplicate, d.id};
        }
        session_.last_sequence = sequence;
        if (!h.group.empty()) {
            // The successor counts in the place of the dead one.
            run(on_.prepared(sql::group_enter)).bind(h.group, !h.replaces.has_value()).finish();
        }
        if (gate) {
            session_.stir(d.queue);
        }
        return {receipt::kind::inserted, d.id};
    }

    [[nodiscard]] std::uint64_t last_sequence() {
        if (session_.last_sequence == 0) {
            run row(on_.prepared(sql::last_sequence));
            row.step();
            row.read(0, session_.last_sequence);
        }
        return session_.last_sequence;
    }

    /// A stored entry as far as a verb can change it or its end concerns others.
    struct subject {
        std::uint64_t sequence = 0;
        state was{};
        std::uint64_t epoch_was = 0;
        bool is_blocked = false;
        life now{};
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
        row.read_all(e.sequence, e.now.state, e.now.attempts, e.now.failures, e.now.epoch, e.now.due_at,
                     e.now.lease_until, e.now.woken, gate, e.queue, e.group, e.lane, e.parent);
        e.was = e.now.state;
        e.epoch_was = e.now.epoch;
        e.is_blocked = is_live(e.was) && !gate;
        return true;
    }

    static void expect_changed(int changed, std::size_t expected) {
        if (static_cast<std::size_t>(changed) != expected) {
            throw error(error_kind::conflict, "sqlite: an entry was changed by somebody else under the fence");
        }
    }
    static void expect_one(int changed) { expect_changed(changed, 1); }

    /// The short way for a success that is nobody else's concern. False if it is none, or its ticket is not good.
    [[nodiscard]] bool succeed_alone(const vouch::settle& s, time_point now) {
        const auto* const done = std::get_if<succeed>(&s.outcome);
        return done != nullptr &&
               run(on_.prepared(sql::succeed)).bind(s.ticket.id, s.ticket.epoch, blob{done->result}, now).finish() == 1;
    }

    /// Writes a life that waits. `error` is unset where the last one stays.
    void wait(const subject& e, std::optional<std::string_view> error, bool is_checkpoint) {
        const auto gate = e.is_blocked ? std::nullopt : gate_of(e.now);
        run row(on_.prepared(is_checkpoint ? sql::write_checkpoint : sql::write_wait));
        const auto& l = e.now;
        if (is_checkpoint) {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at, optional_blob{l.progress});
        } else {
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.attempts, l.failures, l.due_at, gate, error,
                     l.updated_at);
        }
        expect_one(row.finish());
        if (gate) {
            session_.stir(e.queue);
        }
    }

    /// Writes a life that stays claimed.
    void hold(const subject& e) {
        run row(on_.prepared(sql::write_hold));
        row.bind(e.sequence, e.epoch_was, e.was, e.now.lease_until, e.now.woken, e.now.updated_at);
        expect_one(row.finish());
    }

    /// Writes a life that has ended, and tells whom that concerns. Says whether it completed its group.
    bool end(const subject& e, std::optional<std::string_view> error) {
        const auto& l = e.now;
        {
            const auto result = l.result ? std::optional{blob{*l.result}} : std::nullopt;
            run row(on_.prepared(sql::write_end));
            row.bind(e.sequence, e.epoch_was, e.was, l.state, l.failures, l.epoch, error, result, l.updated_at);
            expect_one(row.finish());
        }
        if (!e.lane.empty() && run(on_.prepared(sql::lane_open_next)).bind(e.queue, e.lane).finish() > 0) {
            session_.stir(e.queue);
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
            throw vouch::error(error_kind::corrupt, "sqlite: a group has members but is not counted");
        }
        return has_succeeded && row.integer(0) == 0;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
