// SPDX-License-Identifier: MIT
// Enqueue on one connection, inside a transaction. Drafts are stored many at a time, in one round trip; those that turn out
// to be duplicates, and successors of dead entries, take more. Requires valid arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/draft_arrays.hpp>
#include <vouch/postgres/detail/lane_set.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class draft_inserter {
  public:
    draft_inserter(connection& on, session& in) noexcept : on_(on), session_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        on_.set_doing("enqueue");
        std::vector<receipt> receipts;
        receipts.reserve(drafts.size());
        while (!drafts.empty()) {
            const auto together = count_together(drafts);
            if (together == 0) {
                receipts.push_back(enqueue_successor(drafts.front(), now));
                drafts = drafts.subspan(1);
            } else {
                insert_together(drafts.first(together), now, receipts);
                drafts = drafts.subspan(together);
            }
        }
        return receipts;
    }

    /// Whether `add_all` can store these.
    [[nodiscard]] static bool is_one_statement(std::span<const draft> drafts) {
        return !drafts.empty() && count_together(drafts) == drafts.size() &&
               (drafts.size() == 1 || std::all_of(drafts.begin(), drafts.end(), is_plain));
    }

    /// Adds what stores the drafts, if none is a duplicate; otherwise nothing is stored. Returns the place of the answer.
    [[nodiscard]] std::size_t add_all(std::span<const draft> drafts, time_point now) {
        on_.set_doing("enqueue");
        const auto& d = drafts.front();
        if (drafts.size() == 1 && is_plain(d)) {
            return on_.add(sql::insert_one, parameters_of_one(d, now));
        }
        for (const auto& one : drafts) {
            note_stored(one, now); // before it is known: a duplicate wakes workers for nothing
        }
        if (drafts.size() > 1) {
            return on_.add(sql::insert_all, arrays_of(drafts).for_statement(now));
        }
        const auto lanes = lanes_of(d);
        const auto place = add_insert(arrays_of(drafts), lanes, now);
        if (!lanes.empty()) {
            on_.add(sql::drop_lanes, parameters_of(lanes)); // if it was a duplicate
        }
        return place;
    }
    /// Whether the drafts were stored. A duplicate among several is an error, `not_all_stored`.
    [[nodiscard]] bool read_all(std::span<const draft> drafts, time_point now, const rows& answer) {
        if (answer.size() == 0) {
            session_.woken_queues.clear();
            return false;
        }
        const auto& d = drafts.front();
        auto first = answer[0];
        if (drafts.size() == 1 && is_plain(d)) {
            note_stored(d, now);
        } else if (drafts.size() == 1) {
            first.skip(); // the id
        }
        first.read(session_.transaction_number);
        return true;
    }

  private:
    [[nodiscard]] static bool is_plain(const draft& d) noexcept { return d.group.empty() && d.lane.empty(); }

    [[nodiscard]] parameters parameters_of_one(const draft& d, time_point now) const {
        const auto trail = encode_trail(d.trail);
        const auto headers = encode_headers(d.headers);
        return parameters(now, on_.names().channel(), d.id, d.queue, d.topic, or_null{d.key}, or_null{d.parent},
                          d.due_at.value_or(now), d.expires_at, d.attempts_max, or_null{trail}, or_null{headers},
                          or_null{d.progress}, d.result, d.payload);
    }

    [[nodiscard]] static draft_arrays arrays_of(std::span<const draft> drafts) {
        draft_arrays rows;
        for (const auto& d : drafts) {
            rows.add(d, {.key = d.key, .group = d.group, .lane = d.lane});
        }
        return rows;
    }

    [[nodiscard]] static lane_set lanes_of(const draft& d) {
        lane_set lanes;
        if (!d.lane.empty()) {
            lanes.emplace(d.queue, d.lane);
        }
        return lanes;
    }

    /// How many drafts at the front one statement can store. The statement answers by id, so no id may repeat.
    [[nodiscard]] static std::size_t count_together(std::span<const draft> drafts) {
        constexpr std::size_t count_max = 1000;
        constexpr std::size_t bytes_max = 4 * 1024 * 1024;
        std::size_t bytes = 0;
        std::size_t count = 0;
        for (const auto& d : drafts) {
            bytes += d.payload.size() + d.progress.size() + (d.result ? d.result->size() : 0);
            const bool is_full = count == count_max || (count > 0 && bytes > bytes_max);
            if (is_full || !d.predecessor.is_nil()) {
                break;
            }
            ++count;
        }
        return count_distinct(drafts.first(count));
    }

    /// How many drafts there are before the first whose id repeats.
    [[nodiscard]] static std::size_t count_distinct(std::span<const draft> drafts) {
        std::vector<std::pair<id, std::size_t>> places;
        places.reserve(drafts.size());
        for (const auto& d : drafts) {
            places.emplace_back(d.id, places.size());
        }
        std::sort(places.begin(), places.end());
        auto count = drafts.size();
        for (std::size_t i = 1; i < places.size(); ++i) {
            if (places[i].first == places[i - 1].first) {
                count = std::min(count, places[i].second);
            }
        }
        return count;
    }

    void insert_together(std::span<const draft> drafts, time_point now, std::vector<receipt>& receipts) {
        lane_set lanes;
        for (const auto& d : drafts) {
            if (!d.lane.empty()) {
                lanes.emplace(d.queue, d.lane);
            }
        }
        const auto stored = insert(arrays_of(drafts), lanes, now);
        bool has_all = true;
        for (const auto& d : drafts) {
            if (stored.size() == drafts.size() || std::binary_search(stored.begin(), stored.end(), d.id)) {
                note_stored(d, now);
                receipts.push_back({receipt::kind::inserted, d.id});
            } else {
                receipts.push_back(insert_or_find(d, now));
                has_all = false;
            }
        }
        if (!has_all && !lanes.empty()) {
            on_.ask(sql::drop_lanes, parameters_of(lanes)); // those in which nothing was stored
        }
    }

    /// Returns the place of the answer.
    [[nodiscard]] std::size_t add_insert(const draft_arrays& rows, const lane_set& lanes, time_point now) {
        if (!lanes.empty()) {
            on_.add(sql::lock_new_lanes, parameters_of(lanes));
        }
        const auto place = on_.add(rows.has_group() ? sql::insert : sql::insert_ungrouped, rows.for_statement(now));
        if (!lanes.empty()) {
            on_.add(sql::open_lanes, parameters_of(lanes));
        }
        return place;
    }

    /// The ids of those that were stored, sorted.
    [[nodiscard]] std::vector<id> insert(const draft_arrays& rows, const lane_set& lanes, time_point now) {
        const auto place = add_insert(rows, lanes, now);
        std::vector<id> stored;
        const auto answers = on_.exchange();
        stored.reserve(answers[place].size());
        answers[place].each([&](row one) { one.read(stored.emplace_back(), session_.transaction_number); });
        std::sort(stored.begin(), stored.end());
        return stored;
    }

    void note_stored(const draft& d, time_point now) {
        if (!d.result) {
            session_.wake(d.queue, d.due_at.value_or(now));
        }
    }

    /// A draft that was not stored: finds the entry of which it is a duplicate. If that was purged meanwhile, the draft
    /// is stored after all.
    [[nodiscard]] receipt insert_or_find(const draft& d, time_point now) {
        constexpr int tries = 8;
        for (int i = 0; i < tries; ++i) {
            if (const auto owner = find_owner(d)) {
                return {receipt::kind::duplicate, *owner};
            }
            if (!insert(arrays_of(std::span(&d, 1)), lanes_of(d), now).empty()) {
                note_stored(d, now);
                return {receipt::kind::inserted, d.id};
            }
        }
        throw error(error_kind::conflict,
                    "postgres: enqueue: other transactions keep storing and purging the same key");
    }

    [[nodiscard]] std::optional<id> find_owner(const draft& d) {
        const auto by_id = on_.add(sql::owner_by_id, parameters(d.id));
        if (!d.key.empty()) {
            on_.add(sql::owner_by_key, parameters(d.queue, d.key, d.id));
        }
        const auto answers = on_.exchange();
        for (auto i = by_id; i < answers.size(); ++i) {
            if (answers[i].size() != 0) {
                id owner;
                answers[i][0].read(owner);
                return owner;
            }
        }
        return std::nullopt;
    }

    /// A dead entry, locked against other successors and against a purge.
    struct predecessor {
        std::uint64_t sequence = 0;
        state ended{};
        std::string queue{};
        bool is_newest = false;
        inherited gives{};
    };

    [[nodiscard]] std::optional<predecessor> lock_predecessor(const id& wanted) {
        const auto found = on_.ask(sql::predecessor, parameters(wanted));
        if (found.size() == 0) {
            return std::nullopt;
        }
        predecessor p;
        found[0].read(p.sequence, p.ended, p.queue, or_default{p.gives.key}, or_default{p.gives.group},
                      or_default{p.gives.lane}, p.gives.generation, p.is_newest);
        row::expect(p.gives.generation < UINT32_MAX,
                    "postgres: the tables are damaged: an entry's generation is at its maximum");
        p.gives.generation += 1;
        p.gives.replaces = p.sequence;
        return p;
    }

    [[nodiscard]] receipt enqueue_successor(const draft& d, time_point now) {
        if (const auto owner = find_owner({.id = d.id})) {
            return {receipt::kind::duplicate, *owner};
        }
        const auto dead = lock_predecessor(d.predecessor);
        if (!dead || dead->ended != state::dead || dead->queue != d.queue) {
            return {};
        }
        if (!dead->is_newest) {
            const auto found = on_.ask(sql::successor, parameters(d.queue, dead->sequence));
            row::expect(found.size() == 1, "postgres: the tables are damaged: a replaced entry has no successor");
            receipt answer{receipt::kind::duplicate, {}};
            found[0].read(answer.id);
            return answer;
        }
        draft_arrays rows;
        rows.add(d, dead->gives);
        lane_set lanes;
        if (!dead->gives.lane.empty()) {
            lanes.emplace(d.queue, dead->gives.lane);
        }
        on_.add(sql::set_replaced, parameters(d.queue, dead->sequence)); // first: the key has one newest owner
        if (insert(rows, lanes, now).empty()) {
            throw error(error_kind::conflict, "postgres: enqueue: another transaction has stored the same id");
        }
        note_stored(d, now);
        return {receipt::kind::inserted, d.id};
    }

    connection& on_;
    session& session_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
