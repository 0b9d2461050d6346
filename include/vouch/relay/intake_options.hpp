// SPDX-License-Identifier: MIT
// The options and the report of an intake.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <vouch/contract/time.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {

/// What to store for a message: topic, payload, lane, headers, expiry and trail as they are. The group stays behind,
/// because groups are counted within one store.
[[nodiscard]] inline emission emission_of(const message& m) {
    return {.topic = m.topic,
            .payload = m.payload,
            .lane = m.lane,
            .expires_at = m.expires_at,
            .headers = m.headers,
            .trail = m.trail};
}

struct intake_options {
    /// Required. Names the service or the stream that the messages come from. Message ids are unique within it, so the
    /// dedup key of an entry is `source/message id`. Without `/`.
    std::string source{};
    std::string queue{}; ///< the queue that gets the entries; empty: every queue that the outbox binds to the topic
    std::string dead_queue{}; ///< where messages that cannot be stored are dead entries; empty: `queue`, else `source`
    std::size_t batch_size = 200;            ///< messages per commit, at most
    duration wait = std::chrono::seconds{1}; ///< the longest wait for a message; a stop request ends it early
    /// The waits between tries while the store or the broker fails.
    exponential backoff{.base = std::chrono::milliseconds{50}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// What to store for a message. The queue, if it is empty, and the dedup key are filled in. An exception makes the
    /// message a dead entry, with the code of a `reject` or the name of the exception's class.
    std::function<emission(const message&)> map = emission_of;
};

/// What an intake has done.
struct intake_report {
    std::size_t received = 0;
    std::size_t stored = 0;     ///< messages that are entries now
    std::size_t duplicates = 0; ///< messages that had been stored before
    std::size_t dead = 0;       ///< messages that are dead entries now, because they cannot be handled
    std::size_t errors = 0;     ///< failures of the store or the broker that were waited for

    intake_report& operator+=(const intake_report& other) noexcept {
        received += other.received;
        stored += other.stored;
        duplicates += other.duplicates;
        dead += other.dead;
        errors += other.errors;
        return *this;
    }
};

} // namespace v0
} // namespace vouch
