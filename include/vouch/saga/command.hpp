// SPDX-License-Identifier: MIT
// A command of a saga to a remote participant. It is an entry in the participant's queue whose parent is the saga. The
// end of that entry is the reply: the transaction that ends it also wakes the saga. No reply message is sent.
// The left half shows the parts of a command, the right half those of its reply, each with the field that holds it.
//
//   command           the entry                      reply               the entry, ended
//   command id        id                             command id          id
//   saga id           parent; header `saga`          status SUCCEEDED    state succeeded
//   step number       header `saga-step-number`      status FAILED       state dead
//   step name         header `saga-step`             result              result
//   is-compensation   header `saga-compensation`     failure reason      last_error
//   idempotency key   header `saga-key`              time                updated_at
//   payload           payload; `compensation.hpp`
//   ordering key      lane: the saga's
//   time              created_at
//
// A command may be delivered more than once, and a compensating command that fails is sent again under another id. A
// participant that must not act twice remembers the key, not the id (`inbox.hpp`).
//
// A participant that has done nothing and never will throws `reject`, or buries the command with a result. If the
// command was claimed only once, that is a known failure, and the step is not undone. In every other case a dead command
// may have had an effect, and the step is undone.
//
// A participant in another service has a store of its own (`relay/saga/`). There the command arrives as a message;
// its entry's parent is the saga, which is not in that store, and the header `saga-command` names the command's id in the
// saga's store.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// A command, as its participant sees it.
struct saga_command {
    vouch::id id{};               ///< the entry's id; a command that is sent again has another
    vouch::id key{};              ///< the idempotency key: the same for every command for this action of this saga
    vouch::id saga{};             ///< the saga's first entry; a resume does not change it
    std::string step{};           ///< the step's name
    std::size_t number = 0;       ///< the step's number, from 1
    bool is_compensation = false; ///< it undoes the step
    std::string payload{};        ///< by default the saga's payload, or a `compensation`
    time_point at{};              ///< when it was sent
};

namespace detail {

inline constexpr std::string_view saga_header = "saga";
inline constexpr std::string_view step_header = "saga-step";
inline constexpr std::string_view number_header = "saga-step-number";
inline constexpr std::string_view compensation_header = "saga-compensation";
inline constexpr std::string_view key_header = "saga-key";
inline constexpr std::string_view remote_header = "saga-command";

/// The progress of a command that was sent to another service, and may have arrived there. Its claims are those of the relay and of the reply, so
/// their number says nothing about the participant's attempts.
inline constexpr std::string_view relayed_progress = "vouch:relayed";

[[nodiscard]] inline bool is_relayed(const entry& command) noexcept { return command.progress == relayed_progress; }

[[nodiscard]] inline std::optional<std::string_view> header_of(const entry& e, std::string_view name) noexcept {
    for (const auto& [key, value] : e.headers) {
        if (key == name) {
            return value;
        }
    }
    return std::nullopt;
}

[[nodiscard]] inline header_list headers_of(const saga_command& c) {
    return {{std::string(saga_header), to_string(c.saga)},
            {std::string(step_header), c.step},
            {std::string(number_header), std::to_string(c.number)},
            {std::string(compensation_header), c.is_compensation ? "true" : "false"},
            {std::string(key_header), to_string(c.key)}};
}

} // namespace detail

/// Reads an entry as a command; nothing if no saga sent it. Of a command from another service, `id` is its id there.
[[nodiscard]] inline std::optional<saga_command> command_of(const entry& e) {
    const auto saga = detail::header_of(e, detail::saga_header);
    const auto step = detail::header_of(e, detail::step_header);
    const auto number = detail::header_of(e, detail::number_header);
    const auto compensation = detail::header_of(e, detail::compensation_header);
    const auto key = detail::header_of(e, detail::key_header);
    const auto remote = detail::header_of(e, detail::remote_header);
    const auto saga_id = saga ? id::parse(*saga) : std::nullopt;
    const auto own_id = remote ? id::parse(*remote) : std::optional(e.id);
    if ((e.parent.is_nil() && !remote) || !own_id || !saga_id || !step || !number || !compensation) {
        return std::nullopt;
    }
    const bool is_compensation = *compensation == "true";
    const auto known_key = key ? id::parse(*key) : std::nullopt;
    saga_command out{.id = *own_id,
                     .key = known_key.value_or(saga_key(*saga_id, *step, is_compensation)),
                     .saga = *saga_id,
                     .step = std::string(*step),
                     .is_compensation = is_compensation,
                     .payload = e.payload,
                     .at = e.created_at};
    std::from_chars(number->data(), number->data() + number->size(), out.number);
    return out;
}

} // namespace v0
} // namespace vouch
