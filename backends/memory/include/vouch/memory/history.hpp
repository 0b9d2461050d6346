// SPDX-License-Identifier: MIT
// A history of attempts in memory, for tests and for work that may be lost with the process.
//
//   vouch::memory::history_log history;
//   runner.history(std::ref(history));
//
// Unlike the tables of the other stores, it is not part of the transaction: if a settle is refused because another worker
// has taken over, its line remains. A settle that is repeated replaces its line. Any number of threads may use one object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <vouch/contract/attempt.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace memory {

class history_log {
  public:
    /// Keeps at most this many lines of each entry, the newest.
    explicit history_log(std::size_t lines_max = 100) : lines_max_(lines_max) {}

    template <class Transaction>
    void operator()(Transaction&, const attempt_line& line) {
        const std::lock_guard lock(mutex_);
        auto& lines = lines_[line.id];
        lines[line.epoch] = line;
        while (lines.size() > lines_max_) {
            lines.erase(lines.begin());
        }
    }

    /// The lines of an entry, oldest first.
    [[nodiscard]] std::vector<attempt_line> of(const id& which) const {
        const std::lock_guard lock(mutex_);
        std::vector<attempt_line> out;
        if (const auto found = lines_.find(which); found != lines_.end()) {
            for (const auto& [epoch, line] : found->second) {
                out.push_back(line);
            }
        }
        return out;
    }

    /// Removes lines of entries whose last attempt ended before `before`. Returns the number of entries.
    std::size_t purge(time_point before) {
        const std::lock_guard lock(mutex_);
        return std::erase_if(lines_, [&](const auto& of) { return of.second.rbegin()->second.at < before; });
    }

  private:
    mutable std::mutex mutex_{};
    std::size_t lines_max_;
    std::map<id, std::map<std::uint64_t, attempt_line>> lines_{};
};

} // namespace memory
} // namespace v0
} // namespace vouch
