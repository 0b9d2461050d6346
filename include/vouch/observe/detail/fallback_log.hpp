// SPDX-License-Identifier: MIT
// The log of a worker that has no logging observer. Thread-safe, except `need`.
#pragma once

#include <vouch/observe/logger.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Logs to stderr unless one of the observers writes a log.
class fallback_log {
  public:
    explicit fallback_log(log_level least) : log_(least) {}

    /// Must not be called while events are reported.
    void need(bool is_needed) noexcept { is_needed_ = is_needed; }
    void on(const event& e) noexcept {
        if (is_needed_) {
            log_.on(e);
        }
    }

  private:
    logger log_;
    bool is_needed_ = true;
};

} // namespace detail
} // namespace v0
} // namespace vouch
