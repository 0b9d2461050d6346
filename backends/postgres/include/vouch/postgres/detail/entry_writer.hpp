// SPDX-License-Identifier: MIT
// Settle, extend, nudge and cancel on one connection, inside a transaction. Two round trips: the first locks and reads
// all entries that the verdicts rest on, with the lanes and parents of those that may end. The contract's `apply` carries
// out the verbs in memory, and the second round trip writes what has changed. Successes that reach no other entry take one
// round trip. Requires valid arguments.
#pragma once

#include <algorithm>
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
#include <vouch/postgres/detail/rows.hpp>
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
        session_.has_plain_settles = is_complete;
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

    /// Whether `add_successes` may carry these out: it also requires that their entries reach no others.
    [[nodiscard]] static bool are_successes(std::span<const vouch::settle> settles) {
        std::vector<id> ids;
        ids.reserve(settles.size());
        for (const auto& s : settles) {
            if (!is_success(s)) {
                return false;
            }
            ids.push_back(s.ticket.id);
        }
        std::sort(ids.begin(), ids.end());
        return std::adjacent_find(ids.begin(), ids.end()) == ids.end();
    }

    /// Adds what settles all of them. If one of the verdicts is not `applied`, or an entry reaches others, it fails with
    /// `not_all_applied`. Returns the place of the answer.
    [[nodiscard]] std::size_t add_successes(std::span<const vouch::settle> settles, time_point now) {
        successes all;
        for (const auto& s : settles) {
            all.add(s);
        }
        return on_.add(sql::succeed_all, all.for_statement(now));
    }
    void read_successes(const rows& answer) { answer[0].read(session_.transaction_number); }

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
    /// The parameters of `succeed` and `succeed_all`. The entries are locked in the order in which they are added.
    class successes {
      public:
        void add(const vouch::settle& s) {
            ids_.add(s.ticket.id);
            epochs_.add(s.ticket.epoch);
            results_.add(std::get<succeed>(s.outcome).result);
        }
        [[nodiscard]] parameters for_statement(time_point now) const {
            return parameters(now, ids_, epochs_, results_);
        }

      private:
        array ids_{pg_type::uuid};
        array epochs_{pg_type::bigint};
        array results_{pg_type::bytea};
    };

    /// The table has no greater epoch than that of a bigint.
    [[nodiscard]] static bool is_success(const vouch::settle& s) noexcept {
        return std::holds_alternative<succeed>(s.outcome) && s.ticket.epoch <= INT64_MAX;
    }

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
        successes all;
        std::vector<std::size_t> asked;
        for (std::size_t i = 0; i < settles.size(); ++i) { // as a claim returned them
            if (is_success(settles[i]) && !repeated.contains(settles[i].ticket.id)) {
                asked.push_back(i);
                all.add(settles[i]);
            }
        }
        std::vector<bool> done(settles.size());
        if (!asked.empty()) {
            on_.ask(sql::succeed, all.for_statement(now)).each([&](row one) {
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
