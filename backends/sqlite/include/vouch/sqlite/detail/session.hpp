// SPDX-License-Identifier: MIT
// What is looked up by all that write, and what a transaction remembers of it from call to call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/id.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `corrupt` if a queue of that number could not have shelves.
[[nodiscard]] inline queue_number expect_number(std::int64_t number) {
    run::expect(number > 0 && number < INT64_MAX / 8, "sqlite: a queue's number is out of its range");
    return {number};
}

/// The queue's number, if anything was ever enqueued there.
[[nodiscard]] inline std::optional<queue_number> find_queue(connection& on, std::string_view name) {
    run row(on.prepared(sql::queue));
    if (!row.bind(name).step()) {
        return std::nullopt;
    }
    return expect_number(row.integer(0));
}

/// 0 if there is no such entry.
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
    run::expect(last < INT64_MAX / 2, "sqlite: the highest sequence is out of its range");
    return last;
}

class session {
  public:
    std::uint64_t last_sequence = 0;    ///< 0: not looked up yet
    std::vector<std::string> stirred{}; ///< queues in which work may have come nearer

    void stir(const std::string& queue) {
        if (stirred.empty() || stirred.back() != queue) {
            stirred.push_back(queue);
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

    /// As `find`, and gives the queue a number if it has none.
    [[nodiscard]] queue_number number(connection& on, const std::string& queue) {
        if (const auto found = find(on, queue)) {
            return *found;
        }
        run(on.prepared(sql::add_queue)).bind(queue).finish();
        const auto added = expect_number(sqlite3_last_insert_rowid(on.handle()));
        known_.emplace(queue, added);
        return added;
    }

    /// Between calls: the connection is the application's, too. It may roll back to a savepoint, which takes back what
    /// gave a queue its number, or join the transaction and use sequences of its own.
    void forget_stored() noexcept {
        last_sequence = 0;
        known_.reset();
    }

  private:
    std::optional<std::pair<std::string, queue_number>> known_{}; // the last one asked for
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
