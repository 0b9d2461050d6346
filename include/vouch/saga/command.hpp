// SPDX-License-Identifier: MIT
// What travels between a saga and a remote participant. A command is an entry in the participant's queue with the saga
// as its parent; its end is the reply, and wakes the saga in the same transaction. No message of its own is needed:
//
//   command           the entry                      reply               the entry, ended
//   command id        id                             command id          id
//   saga id           parent; header `saga`          status SUCCEEDED    state succeeded
//   step number       header `saga-step-number`      status FAILED       state dead
//   step name         header `saga-step`             result              result
//   is-compensation   header `saga-compensation`     failure reason      last_error
//   payload           payload                        time                updated_at
//   time              created_at
//
// A participant that has done nothing and never will throws `reject`, or buries with a result: a known failure, which
// is not undone. Any other death is unknown.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// A command as its participant sees it.
struct saga_command {
    vouch::id id{};
    vouch::id saga{}; ///< the saga's first entry, also after a resume
    std::string step{};
    std::size_t number = 0; ///< of the step, counted from 1
    bool is_compensation = false;
    std::string payload{};
    time_point at{}; ///< when it was sent
};

namespace detail {

inline constexpr std::string_view saga_header = "saga";
inline constexpr std::string_view step_header = "saga-step";
inline constexpr std::string_view number_header = "saga-step-number";
inline constexpr std::string_view compensation_header = "saga-compensation";

[[nodiscard]] inline std::optional<std::string_view> header_of(const entry& e, std::string_view name) noexcept {
    for (const auto& [key, value] : e.headers) {
        if (key == name) {
            return value;
        }
    }
    return std::nullopt;
}

[[nodiscard]] inline header_list command_headers(const id& saga, std::string_view step, std::size_t number,
                                                 bool is_compensation) {
    return {{std::string(saga_header), to_string(saga)},
            {std::string(step_header), std::string(step)},
            {std::string(number_header), std::to_string(number)},
            {std::string(compensation_header), is_compensation ? "true" : "false"}};
}

} // namespace detail

/// The command an entry is; nothing if it is none.
[[nodiscard]] inline std::optional<saga_command> command_of(const entry& e) {
    const auto saga = detail::header_of(e, detail::saga_header);
    const auto step = detail::header_of(e, detail::step_header);
    const auto number = detail::header_of(e, detail::number_header);
    const auto compensation = detail::header_of(e, detail::compensation_header);
    const auto saga_id = saga ? id::parse(*saga) : std::nullopt;
    if (e.parent.is_nil() || !saga_id || !step || !number || !compensation) {
        return std::nullopt;
    }
    saga_command out{.id = e.id,
                     .saga = *saga_id,
                     .step = std::string(*step),
                     .is_compensation = *compensation == "true",
                     .payload = e.payload,
                     .at = e.created_at};
    std::from_chars(number->data(), number->data() + number->size(), out.number);
    return out;
}

} // namespace v0
} // namespace vouch
