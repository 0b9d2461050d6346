// SPDX-License-Identifier: MIT
// The progress of a saga, as each checkpoint stores it in the saga's entry: a plain value and its bytes.
//
// A reader passes over fields it does not know, so an older runner can read what a newer one of the same format wrote.
// All other bytes that `encode_progress` did not write are rejected by `decode_progress`.
//
// Invariants of a decoded progress: `at` is at most the number of steps that have begun, and `definition` is not empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/saga/detail/field_codec.hpp>

namespace vouch {
inline namespace v0 {

/// Whether a saga does its steps or undoes them.
enum class saga_direction : std::uint8_t { forward, back };

[[nodiscard]] constexpr std::string_view name_of(saga_direction d) noexcept {
    return d == saga_direction::forward ? "forward" : "back";
}

/// What is known of a step.
enum class step_state : std::uint8_t {
    begun,     ///< the current step; whether it has had an effect is not known yet
    done,      ///< it succeeded, and its result is kept
    failed,    ///< it is known to have had no effect: it rejected at once, or never started. It is not undone
    unknown,   ///< it may have had an effect: crash, timeout, attempts used up. It is undone
    undone,    ///< its compensation succeeded
    kept,      ///< it was done or unknown, and has no compensation
    skipped,   ///< its condition was false. It is not undone
    undecided, ///< the current step; its condition has not answered yet
};

[[nodiscard]] constexpr std::string_view name_of(step_state s) noexcept {
    switch (s) {
    case step_state::begun: return "begun";
    case step_state::done: return "done";
    case step_state::failed: return "failed";
    case step_state::unknown: return "unknown";
    case step_state::undone: return "undone";
    case step_state::kept: return "kept";
    case step_state::skipped: return "skipped";
    case step_state::undecided: return "undecided";
    }
    return "?";
}

/// A step that has begun.
struct step_record {
    std::string name{};
    step_state state = step_state::begun;
    std::string result{}; ///< of the forward action

    [[nodiscard]] friend bool operator==(const step_record&, const step_record&) = default;
};

struct saga_progress {
    std::string definition{};
    std::uint32_t version = 0;
    saga_direction direction = saga_direction::forward;
    std::size_t at = 0;                   ///< index of the current step; the number of steps if all are done
    std::vector<step_record> steps{};     ///< the steps that have begun
    std::string reason{};                 ///< why the saga compensates
    time_point since{};                   ///< when the current step began
    std::uint32_t tries = 0;              ///< failed attempts of the current compensation before this checkpoint
    id command{};                         ///< the command whose reply the saga waits for; nil: none
    id sender{};                          ///< the entry that sent this command
    std::optional<time_point> deadline{}; ///< of this command
    id origin{};                          ///< the saga's first entry; idempotency keys are derived from it
    id owner{}; ///< the entry that wrote this progress. If it is not the current entry, the saga was resumed from it

    [[nodiscard]] bool is_waiting() const noexcept { return !command.is_nil(); }
    [[nodiscard]] friend bool operator==(const saga_progress&, const saga_progress&) = default;
};

namespace detail {

enum class progress_field : std::uint8_t {
    definition = 1,
    version,
    direction,
    at,
    step,
    reason,
    since,
    tries,
    command,
    sender,
    deadline,
    owner,
};

[[nodiscard]] inline std::string encode_step(const step_record& record) {
    std::string out;
    out.push_back(static_cast<char>(record.state));
    append_number(out, record.name.size());
    out += record.name;
    out += record.result;
    return out;
}

[[nodiscard]] inline step_record read_step(field_reader& from) {
    step_record out;
    const auto state = from.number();
    if (state > static_cast<std::uint64_t>(step_state::undecided)) {
        from.fail();
    }
    out.state = static_cast<step_state>(state);
    out.name = std::string(from.take(from.number()));
    out.result = std::string(from.rest());
    return out;
}

inline void read_field(saga_progress& p, std::uint64_t field, field_reader& from) {
    switch (static_cast<progress_field>(field)) {
    case progress_field::definition: p.definition = std::string(from.rest()); break;
    case progress_field::version: p.version = static_cast<std::uint32_t>(from.number()); break;
    case progress_field::direction: p.direction = from.number() == 1 ? saga_direction::back : p.direction; break;
    case progress_field::at: p.at = static_cast<std::size_t>(from.number()); break;
    case progress_field::step: p.steps.push_back(read_step(from)); break;
    case progress_field::reason: p.reason = std::string(from.rest()); break;
    case progress_field::since: p.since = from.time(); break;
    case progress_field::tries: p.tries = static_cast<std::uint32_t>(from.number()); break;
    case progress_field::command: p.command = from.identity(); break;
    case progress_field::sender: p.sender = from.identity(); break;
    case progress_field::deadline: p.deadline = from.time(); break;
    case progress_field::owner: p.owner = from.identity(); break;
    }
}

} // namespace detail

[[nodiscard]] inline std::string encode_progress(const saga_progress& p) {
    using field = detail::progress_field;
    detail::field_writer out(p.origin);
    out.bytes(field::definition, p.definition);
    out.number(field::version, p.version);
    out.number(field::direction, static_cast<std::uint64_t>(p.direction));
    out.number(field::at, p.at);
    for (const auto& record : p.steps) {
        out.bytes(field::step, detail::encode_step(record));
    }
    out.bytes(field::reason, p.reason);
    out.time(field::since, p.since);
    out.number(field::tries, p.tries);
    out.identity(field::command, p.command);
    out.identity(field::sender, p.sender);
    if (p.deadline) {
        out.time(field::deadline, *p.deadline);
    }
    out.identity(field::owner, p.owner);
    return std::move(out).finish();
}

/// Returns nothing if the bytes are not what `encode_progress` of this format wrote.
[[nodiscard]] inline std::optional<saga_progress> decode_progress(std::string_view bytes) {
    const auto origin = saga_origin(bytes);
    if (!origin) {
        return std::nullopt;
    }
    saga_progress p{.origin = *origin};
    detail::field_reader all(detail::progress_fields(bytes));
    while (!all.done()) {
        const auto field = all.number();
        detail::field_reader content(all.take(all.number()));
        detail::read_field(p, field, content);
        if (!content.ok()) {
            return std::nullopt;
        }
    }
    const bool is_valid = all.ok() && !p.definition.empty() && p.at <= p.steps.size();
    return is_valid ? std::optional{std::move(p)} : std::nullopt;
}

} // namespace v0
} // namespace vouch
