// SPDX-License-Identifier: MIT
// Lookups that all writing operations share, and what a transaction remembers between calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/queue_heads.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `corrupt` if the number is too large to have partitions.
[[nodiscard]] inline queue_number expect_number(std::int64_t number) {
    run::expect(number > 0 && number < INT64_MAX / 8, "sqlite: the file is damaged: a queue's number is out of range");
    return {number};
}

/// The queue's number; none if nothing was ever enqueued there.
[[nodiscard]] inline std::optional<queue_number> find_queue(connection& on, std::string_view name) {
    run row(on.prepared(sql::queue));
    if (!row.bind(name).step()) {
        return std::nullopt;
    }
    return expect_number(row.integer(0));
}

[[nodiscard]] inline queue_head find_head(connection& on, std::string_view queue, std::uint64_t after) {
    queue_head out;
    const auto number = find_queue(on, queue);
    const auto partition = number ? number->partition(state::pending) : -1;
    {
        run row(on.prepared(sql::new_since));
        row.bind(partition, after).step();
        row.read_all(out.last, out.has_new);
    }
    run row(on.prepared(sql::first_due));
    if (row.bind(partition).step()) {
        out.first.emplace();
        row.read_all(out.first->first, out.first->second);
    }
    return out;
}

/// Returns 0 if there is no such entry.
[[nodiscard]] inline std::uint64_t find_sequence(connection& on, const id& wanted) {
    run row(on.prepared(sql::sequence_of));
    std::uint64_t found = 0;
    if (row.bind(wanted).step()) {
        row.read(0, found);
    }
    return found;
}

/// The highest sequence ever used.
[[nodiscard]] inline std::uint64_t find_last_sequence(connection& on) {
    run row(on.prepared(sql::last_sequence));
    std::uint64_t last = 0;
    row.step();
    row.read(0, last);
    run::expect(last < INT64_MAX / 2, "sqlite: the file is damaged: the highest sequence is out of range");
    return last;
}

/// What a transaction remembers.
class session {
  public:
    std::uint64_t last_sequence = 0;         ///< 0: not looked up yet
    std::vector<std::string> woken_queues{}; ///< queues in which work may be due sooner

    void wake(const std::string& queue) {
        if (woken_queues.empty() || woken_queues.back() != queue) {
            woken_queues.push_back(queue);
        }
    }

    [[nodiscard]] std::optional<queue_number> find(connection& on, const std::string& queue) {
        if (known_ && known_->first == queue) {
            return known_->second;
        }
        const auto found = find_queue(on, queue);
        if (found) {
            known_.emplace(queue, *found);
        }
        return found;
    }

    /// Like `find`, but gives the queue a number if it has none.
    [[nodiscard]] queue_number number(connection& on, const std::string& queue) {
        if (const auto found = find(on, queue)) {
            return *found;
        }
        run(on.prepared(sql::add_queue)).bind(queue).finish();
        const auto added = expect_number(sqlite3_last_insert_rowid(on.handle()));
        known_.emplace(queue, added);
        return added;
    }

    /// Called before each operation, because the application may use the connection between two of them: it may roll
    /// back to a savepoint, which undoes the number of a queue, or join the transaction and use the next sequences.
    void forget_stored() noexcept {
        last_sequence = 0;
        known_.reset();
    }

  private:
    std::optional<std::pair<std::string, queue_number>> known_{}; // the last one that was looked up
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
