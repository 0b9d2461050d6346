// SPDX-License-Identifier: MIT
// What a transaction remembers from call to call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite/connection.hpp>
#include <vouch/sqlite/shelf.hpp>
#include <vouch/sqlite/sql.hpp>
#include <vouch/sqlite/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// The queue's number, if anything was ever enqueued there.
[[nodiscard]] inline std::optional<queue_number> find_queue(connection& on, std::string_view name) {
    run row(on.prepared(sql::queue));
    if (!row.bind(name).step()) {
        return std::nullopt;
    }
    return queue_number{row.integer(0)};
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
        const queue_number added{sqlite3_last_insert_rowid(on.handle())};
        known_.emplace(queue, added);
        return added;
    }

    /// Between calls: what gave a queue its number may be undone by then.
    void forget_queues() noexcept { known_.reset(); }

  private:
    std::optional<std::pair<std::string, queue_number>> known_{}; // the last one asked for
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
