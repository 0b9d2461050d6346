// SPDX-License-Identifier: MIT
// What all processes of a kill test share: the database, the times of the rounds, and a log of what the processes have
// done, independent of the database. Each line is one write to a file opened for appending, so it is complete even if
// the process dies right after it.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

#include "sqlite/folder.hpp"

namespace kill_test {

/// What is broken on purpose, to test the test.
enum class variant : std::uint8_t { healthy, two_commits, no_fence };

inline constexpr std::size_t batch_size = 4;
inline constexpr vouch::duration lease = std::chrono::minutes{1};

/// The event that a line of the log records.
enum class logged : char {
    ordered = 'o',     ///< an order, after its COMMIT
    rolled_back = 'r', ///< an order, before its ROLLBACK
    executed = 'x',    ///< a claim, in the handler
    settled = 's',     ///< a claim, after the settle was applied
    refused = 'l',     ///< a claim, after the settle came too late
};

class scene {
  public:
    explicit scene(variant as) : variant_(as) {}

    [[nodiscard]] variant as() const noexcept { return variant_; }
    [[nodiscard]] std::string database() const { return folder_.file("orders.db"); }
    [[nodiscard]] std::string log_path() const { return folder_.file("log"); }
    [[nodiscard]] std::string fresh_database() const { return folder_.fresh_path(); }

    /// Rounds are further apart than a lease, so every round finds the leases of the previous one expired.
    [[nodiscard]] static vouch::time_point time_of(std::uint64_t round) {
        return vouch::time_point{std::chrono::hours{24 * 365 * 50}} + static_cast<std::int64_t>(round) * 10 * lease;
    }

    void write_log(logged what, const std::string& of) const {
        const int file = ::open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const auto line = std::string(1, static_cast<char>(what)) + ' ' + of + '\n';
        const bool written = file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
        ::close(file);
        if (!written) {
            throw std::runtime_error("cannot write a line to the log");
        }
    }
    void write_log(logged what, const vouch::id& id, std::uint64_t epoch) const {
        write_log(what, to_string(id) + ' ' + std::to_string(epoch));
    }

  private:
    sqlite_test::folder folder_{};
    variant variant_;
};

} // namespace kill_test
