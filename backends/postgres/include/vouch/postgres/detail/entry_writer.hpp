// SPDX-License-Identifier: MIT
// Settle, extend, nudge and cancel on one connection, inside a transaction. Two round trips: the first locks and reads
// all entries that the verdicts rest on, with the lanes and parents of those that may end. The contract's `apply` carries
// out the verbs in memory, and the second round trip writes what has changed. Successes that reach no other entry take one
// round trip. Requires valid arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/locked_entries.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class entry_writer {
  public:
    entry_writer(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        on_.set_doing("settle");
        const auto done = succeed_together(settles, now);
        locked_entries entries(on_, session_);
        bool is_complete = true;
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!done[i]) {
                const auto& [ticket, o] = settles[i];
                if (std::holds_alternative<succeed>(o) || std::holds_alternative<bury>(o)) {
                    entries.want_to_end(ticket.id, ticket.epoch);
                } else {
                    entries.want(ticket.id);
                }
                is_complete = false;
            }
        }
        std::vector<settlement> answers(settles.size(), settlement{.verdict = verdict::applied});
        if (is_complete) {
            return answers;
        }
        entries.lock(now);
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!done[i]) {
                answers[i].verdict = entries.change(settles[i].ticket.id, settles[i], now, i);
            }
        }
        for (const auto last : entries.write()) {
            answers[last].group_completed = true;
        }
        return answers;
    }

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        on_.set_doing("extend");
        locked_entries entries(on_, session_);
        for (const auto& t : tickets) {
            entries.want(t.id);
        }
        entries.lock(now);
        std::vector<verdict> verdicts;
        verdicts.reserve(tickets.size());
        for (const auto& t : tickets) {
            verdicts.push_back(entries.change(t.id, vouch::extend{t, lease}, now));
        }
        entries.write();
        return verdicts;
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        on_.set_doing("nudge");
        locked_entries entries(on_, session_);
        entries.want(wanted);
        return change_one(entries, wanted, vouch::nudge{}, now);
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        on_.set_doing("cancel");
        locked_entries entries(on_, session_);
        entries.want_to_end(wanted, std::nullopt);
        return change_one(entries, wanted, vouch::cancel{error}, now);
    }

  private:
    template <class Verb>
    [[nodiscard]] static verdict change_one(locked_entries& entries, const id& wanted, const Verb& verb,
                                            time_point now) {
        entries.lock(now);
        const auto answer = entries.change(wanted, verb, now);
        entries.write();
        return answer;
    }

    /// The fast path for successes that reach no other entry. Returns which settles are done; the others are of another
    /// kind, or their ticket does not match. Entries that the batch names twice are left out, because order matters.
    [[nodiscard]] std::vector<bool> succeed_together(std::span<const vouch::settle> settles, time_point now) {
        std::map<id, std::size_t> places;
        std::set<id> repeated;
        for (std::size_t i = 0; i < settles.size(); ++i) {
            if (!places.emplace(settles[i].ticket.id, i).second) {
                repeated.insert(settles[i].ticket.id);
            }
        }
        array ids(pg_type::uuid);
        array epochs(pg_type::bigint);
        array results(pg_type::bytea);
        std::vector<std::size_t> asked;
        for (std::size_t i = 0; i < settles.size(); ++i) { // in this order they are locked: as a claim returned them
            const auto& s = settles[i];
            const auto* const success = std::get_if<succeed>(&s.outcome);
            if (success != nullptr && !repeated.contains(s.ticket.id) && s.ticket.epoch <= INT64_MAX) {
                asked.push_back(i);
                ids.add(s.ticket.id);
                epochs.add(s.ticket.epoch);
                results.add(success->result);
            }
        }
        std::vector<bool> done(settles.size());
        if (ids.size() != 0) {
            on_.ask(sql::succeed, parameters(now, ids, epochs, results)).each([&](row one) {
                std::optional<id> which; // none: all of them
                one.read(session_.transaction_number, which);
                if (which) {
                    done[places.at(*which)] = true;
                } else {
                    for (const auto place : asked) {
                        done[place] = true;
                    }
                }
            });
        }
        return done;
    }

    connection& on_;
    session& session_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
