// SPDX-License-Identifier: MIT
// The reply of a participant in another service: an entry in the participant's store, sent by a relay, stored by the
// intake of the saga's service, and handled there by `reply_handler`.
//
//   command id        header `saga-reply-to`
//   status            header `saga-reply`: succeeded, rejected or failed
//   failure reason    header `saga-reply-error`: a code
//   result            payload
//   ordering key      lane: the command's
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/saga/command.hpp>

namespace vouch {
inline namespace v0 {

struct saga_reply {
    enum class status : std::uint8_t {
        succeeded, ///< the step is done
        rejected,  ///< nothing was done, and never will be: the step is not undone
        failed,    ///< the participant has given up, and something may have been done: the step is undone
    };
    vouch::id command{}; ///< its id in the saga's store
    saga_reply::status what = status::failed;
    std::string error{};  ///< a code; empty if it succeeded
    std::string result{}; ///< of a success
};

[[nodiscard]] constexpr std::string_view name_of(saga_reply::status status) noexcept {
    switch (status) {
    case saga_reply::status::succeeded: return "succeeded";
    case saga_reply::status::rejected: return "rejected";
    case saga_reply::status::failed: return "failed";
    }
    return "?";
}

/// The headers that tell the participant's service where the reply goes, and the saga's service what it answers.
inline constexpr std::string_view reply_topic_header = "saga-reply-topic";
inline constexpr std::string_view reply_to_header = "saga-reply-to";
inline constexpr std::string_view reply_header = "saga-reply";
inline constexpr std::string_view reply_error_header = "saga-reply-error";

/// The emission that sends a reply. The caller sets queue, topic and lane.
[[nodiscard]] inline emission emission_of(saga_reply reply) {
    return {.payload = std::move(reply.result),
            .headers = {{std::string(reply_to_header), to_string(reply.command)},
                        {std::string(reply_header), std::string(name_of(reply.what))},
                        {std::string(reply_error_header), std::move(reply.error)}}};
}

/// Reads an entry as a reply; nothing if it is none.
[[nodiscard]] inline std::optional<saga_reply> reply_of(const entry& e) {
    const auto to = detail::header_of(e, reply_to_header);
    const auto word = detail::header_of(e, reply_header);
    const auto command = to ? id::parse(*to) : std::nullopt;
    using enum saga_reply::status;
    for (const auto status : std::array{succeeded, rejected, failed}) {
        if (command && word == name_of(status)) {
            return saga_reply{.command = *command,
                              .what = status,
                              .error = std::string(detail::header_of(e, reply_error_header).value_or("")),
                              .result = e.payload};
        }
    }
    return std::nullopt;
}

} // namespace v0
} // namespace vouch
