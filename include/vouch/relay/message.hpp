// SPDX-License-Identifier: MIT
// What travels between two stores through a broker: the parts of an entry that another service needs. A relay makes
// messages from entries, an intake makes entries from messages. Messages of programs that do not use vouch have an id,
// a topic and a payload, and leave the rest empty.
#pragma once

#include <optional>
#include <string>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct message {
    /// The same each time the message is sent. Of a relay: as text the id of the entry, or of the first one if the entry
    /// replaces a dead one.
    std::string id{};
    std::string topic{};   ///< words joined by dots; brokers with routing keys route by it
    std::string payload{}; ///< bytes
    std::string key{};     ///< the entry's dedup key; empty: none
    std::string lane{};    ///< ordering key: messages of one lane arrive in the order of their publication; empty: none
    std::string group{};   ///< the entry's group; empty: none
    id_list trail{};       ///< the emissions that led to this message, oldest first
    header_list headers{}; ///< in the order given; names may repeat
    std::optional<time_point> created_at{};
    std::optional<time_point> expires_at{}; ///< from this time on the message is of no use

    [[nodiscard]] friend bool operator==(const message&, const message&) = default;
};

/// The message that says what the entry says.
[[nodiscard]] inline message message_of(const entry& e) {
    return {.id = to_string(e.id),
            .topic = e.topic,
            .payload = e.payload,
            .key = e.key,
            .lane = e.lane,
            .group = e.group,
            .trail = e.trail,
            .headers = e.headers,
            .created_at = e.created_at,
            .expires_at = e.expires_at};
}

} // namespace v0
} // namespace vouch
