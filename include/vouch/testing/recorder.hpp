// SPDX-License-Identifier: MIT
// An observer that keeps every event it receives, for tests. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/topic.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

/// An `event` with strings of its own.
struct recorded_event {
    event_kind what{};
    time_point at{};
    std::string queue{};
    std::string topic{};
    std::string group{};
    std::string error{};
    std::string tag{};
    vouch::id id{};
    std::uint32_t attempt = 0;
};

class recorder {
  public:
    /// Keeps the event. An observer must not throw, so running out of memory here ends the program.
    void on(const event& e) noexcept {
        const std::lock_guard lock(mutex_);
        events_.push_back({.what = e.what,
                           .at = e.at,
                           .queue = std::string(e.queue),
                           .topic = std::string(e.topic),
                           .group = std::string(e.group),
                           .error = std::string(e.error),
                           .tag = std::string(e.tag),
                           .id = e.id,
                           .attempt = e.attempt});
    }

    /// All events so far, in the order they were reported.
    [[nodiscard]] std::vector<recorded_event> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// The number of events of this kind whose topic matches the pattern.
    [[nodiscard]] std::size_t count(event_kind what, std::string_view pattern = "#") const {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const recorded_event& e) {
            return e.what == what && topic_matches(pattern, e.topic);
        }));
    }

  private:
    mutable std::mutex mutex_;
    std::vector<recorded_event> events_;
};

} // namespace testing
} // namespace v0
} // namespace vouch
