// SPDX-License-Identifier: MIT
// Enqueue on one connection, inside a transaction. Drafts that affect no other entry are inserted several at a time.
// Requires valid arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
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

class draft_inserter {
  public:
    draft_inserter(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        std::vector<receipt> receipts;
        receipts.reserve(drafts.size());
        while (!drafts.empty()) {
            const auto next = drafts.first(std::min(drafts.size(), rows_at_once));
            if (next.size() == rows_at_once && std::all_of(next.begin(), next.end(), is_plain)) {
                insert_many(next, now, receipts);
                drafts = drafts.subspan(rows_at_once);
            } else {
                receipts.push_back(enqueue(drafts.front(), now));
                drafts = drafts.subspan(1);
            }
        }
        return receipts;
    }

  private:
    static_assert(rows_at_once <= run::ids_max);

    /// The fields that a new entry takes from its predecessor, or else from its draft.
    struct inherited {
        std::string_view key{};
        std::string_view group{};
        std::string_view lane{};
        std::uint32_t generation = 1;
        std::optional<std::uint64_t> replaces{};
    };

    /// Encoded fields of a row. They are bound without a copy and must live until the row is inserted.
    struct encoded {
        std::string trail{};
        std::string headers{};
    };

    /// Whether the entry needs only its own row.
    [[nodiscard]] static bool is_plain(const draft& d) noexcept {
        return d.key.empty() && d.group.empty() && d.lane.empty() && d.parent.is_nil() && d.predecessor.is_nil() &&
               !d.result && d.payload.size() <= payload_in_row_max;
    }

    void insert_many(std::span<const draft> drafts, time_point now, std::vector<receipt>& receipts) {
        const auto first = last_sequence() + 1;
        std::array<encoded, rows_at_once> parts;
        {
            run row(on_.prepared(sql::insert_many));
            row.bind(now);
            for (std::size_t i = 0; i < rows_at_once; ++i) {
                const auto& d = drafts[i];
                bind_row(row, i, d, parts[i], first + i, {.number = session_.number(on_, d.queue), .gate = due(d, now)},
                         now);
            }
            const bool all = static_cast<std::size_t>(row.finish()) == rows_at_once;
            for (std::size_t i = 0; i < rows_at_once; ++i) {
                // If some are missing, the inserted ones are those with the sequences chosen here.
                const bool is_there = all || find_sequence(on_, drafts[i].id) == first + i;
                receipts.push_back({is_there ? receipt::kind::inserted : receipt::kind::duplicate, drafts[i].id});
                if (is_there) {
                    session_.wake(drafts[i].queue);
                }
            }
        }
        session_.last_sequence = first + rows_at_once - 1;
    }

    [[nodiscard]] receipt enqueue(const draft& d, time_point now) {
        if ((!d.key.empty() || !d.predecessor.is_nil()) && find_sequence(on_, d.id) != 0) {
            return {receipt::kind::duplicate, d.id};
        }
        if (!d.predecessor.is_nil()) {
            return enqueue_successor(d, now);
        }
        if (!d.key.empty()) {
            const auto queue = session_.number(on_, d.queue);
            run newest(on_.prepared(sql::newest_of_key));
            if (newest.bind(queue.value, d.key).step()) {
                receipt answer{receipt::kind::duplicate, {}};
                newest.read(0, answer.id);
                return answer;
            }
        }
        return insert(d, {.key = d.key, .group = d.group, .lane = d.lane}, now);
    }

    [[nodiscard]] receipt enqueue_successor(const draft& d, time_point now) {
        std::uint64_t sequence = 0;
        state was{};
        std::int64_t queue = 0;
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
            row.read_all(sequence, was, queue, or_none{key}, or_none{group}, or_none{lane}, generation,
                         or_none{successor});
            run::expect(generation < UINT32_MAX,
                        "sqlite: the file is damaged: an entry's generation is at its maximum");
        }
        const auto wanted = session_.find(on_, d.queue);
        if (was != state::dead || !wanted || queue != wanted->value) {
            return {};
        }
        if (!successor.is_nil()) {
            return {receipt::kind::duplicate, successor};
        }
        return insert(d, {.key = key, .group = group, .lane = lane, .generation = generation + 1, .replaces = sequence},
                      now);
    }

    [[nodiscard]] receipt insert(const draft& d, const inherited& h, time_point now) {
        const auto queue = session_.number(on_, d.queue);
        const auto sequence = last_sequence() + 1;
        const bool is_blocked =
            !h.lane.empty() && run(on_.prepared(sql::lane_is_taken)).bind(queue.value, h.lane).step();
        const bool is_tied = !h.group.empty() || !h.lane.empty() || !d.parent.is_nil();
        const auto gate = d.result ? std::optional{now} : is_blocked ? std::nullopt : std::optional{due(d, now)};
        {
            encoded parts;
            run row(on_.prepared(sql::insert));
            row.bind(now);
            bind_row(row, 0, d, parts, sequence, {.number = queue, .gate = gate, .is_tied = is_tied}, now);
            if (row.finish() == 0) {
                return {receipt::kind::duplicate, d.id};
            }
        }
        session_.last_sequence = sequence;
        insert_related(d, h, queue, sequence);
        if (gate && !d.result) {
            session_.wake(d.queue);
        }
        return {receipt::kind::inserted, d.id};
    }

    /// Inserts what is stored in other tables.
    void insert_related(const draft& d, const inherited& h, queue_number queue, std::uint64_t sequence) {
        if (d.payload.size() > payload_in_row_max) {
            run(on_.prepared(sql::insert_payload)).bind(sequence, blob{d.payload}).finish();
        }
        if (!h.key.empty() || !h.group.empty() || !h.lane.empty() || !d.parent.is_nil() || h.replaces) {
            run(on_.prepared(sql::insert_relations))
                .bind(sequence, queue.value, optional_text{h.key}, h.generation, optional_text{h.group},
                      optional_text{h.lane}, optional_id{d.parent}, optional_id{d.predecessor}, h.replaces)
                .finish();
        }
        if (!h.group.empty()) {
            // A successor counts instead of its dead predecessor.
            run(on_.prepared(sql::group_enter)).bind(h.group, !h.replaces.has_value()).finish();
        }
    }

    /// The indexed values of a new row.
    struct position {
        queue_number number{};
        std::optional<time_point> gate{};
        bool is_tied = false;
    };

    static void bind_row(run& to, std::size_t index, const draft& d, encoded& parts, std::uint64_t sequence,
                         const position& at, time_point now) {
        parts.trail = encode(d.trail);
        parts.headers = encode(d.headers);
        const auto state = d.result ? state::succeeded : state::pending;
        const auto payload = d.payload.size() > payload_in_row_max ? std::nullopt : std::optional{blob{d.payload}};
        const auto result = d.result ? std::optional{blob{*d.result}} : std::nullopt;
        to.bind_from(static_cast<int>(2 + index * new_row_parameters), sequence, at.number.partition(state), at.gate,
                     state, due(d, now), d.id, d.topic, at.is_tied, d.attempts_max, d.expires_at,
                     optional_blob{parts.trail}, optional_blob{parts.headers}, optional_blob{d.progress}, result,
                     payload);
    }

    [[nodiscard]] static time_point due(const draft& d, time_point now) noexcept { return d.due_at.value_or(now); }

    [[nodiscard]] std::uint64_t last_sequence() {
        if (session_.last_sequence == 0) {
            session_.last_sequence = find_last_sequence(on_);
        }
        return session_.last_sequence;
    }

    connection& on_;
    session& session_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
