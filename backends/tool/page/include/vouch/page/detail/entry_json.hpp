// SPDX-License-Identifier: MIT
// An entry and a saga as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/page/detail/json.hpp>
#include <vouch/page/detail/wait_reason.hpp>
#include <vouch/saga/inspect.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// What a list shows of an entry: no payload, result or progress.
[[nodiscard]] inline json row_of(const entry& e) {
    json out;
    out.id("id", e.id).raw("sequence", '"' + std::to_string(e.sequence) + '"'); // may exceed what JavaScript counts
    out.text("queue", e.queue).text("topic", e.topic).text("state", name_of(e.state));
    out.number("attempts", e.attempts).number("attempts_max", e.attempts_max).number("lapses", e.lapses);
    out.number("failures", e.failures).number("epoch", e.epoch).number("generation", e.generation);
    out.text("last_error", e.last_error).text("worker", e.worker).text("key", e.key).text("group", e.group);
    out.text("lane", e.lane).id("parent", e.parent).id("predecessor", e.predecessor);
    out.time("created_at", e.created_at).time("due_at", e.due_at).time("lease_until", e.lease_until);
    out.time("expires_at", e.expires_at).time("last_attempt_at", e.last_attempt_at).time("updated_at", e.updated_at);
    out.truth("is_saga", is_saga(e));
    const auto saga = is_saga(e) ? inspect(e) : std::nullopt;
    out.truth("is_compensated", saga && saga->is_compensated());
    return out;
}

[[nodiscard]] inline std::string json_of(const wait_reason& why) {
    json entries;
    for (const auto& waited : why.entries) {
        entries.item(json_id(waited));
    }
    return json{}.text("code", why.code).text("sentence", why.sentence).raw("entries", entries.array()).object();
}

/// Bytes, at most `shown_max` of them: as text if they are text, else as base64.
[[nodiscard]] inline std::string json_bytes(std::string_view bytes, std::size_t shown_max) {
    auto shown = bytes.substr(0, shown_max);
    while (shown.size() < bytes.size() && !shown.empty() &&
           (static_cast<unsigned char>(bytes[shown.size()]) & 0xc0U) == 0x80U) {
        shown.remove_suffix(1); // not in the middle of a character
    }
    const bool as_text = is_text(shown) && !(shown.empty() && !bytes.empty());
    json out;
    out.number("size", bytes.size()).truth("is_cut", as_text ? shown.size() < bytes.size() : bytes.size() > shown_max);
    out.text("encoding", as_text ? "text" : "base64");
    out.text("data", as_text ? std::string(shown) : base64(bytes.substr(0, shown_max)));
    return out.object();
}

/// Where a saga stands. The steps that have not begun are not stored.
[[nodiscard]] inline std::string json_of(const saga_status& s, bool with_results) {
    constexpr std::size_t result_shown_max = 1024;
    json steps;
    for (const auto& step : s.steps) {
        json one;
        one.text("name", step.name).text("state", name_of(step.state));
        if (with_results && !step.result.empty()) {
            one.raw("result", json_bytes(step.result, result_shown_max));
        }
        steps.item(one.object());
    }
    json out;
    out.text("definition", s.definition).number("version", s.version).text("direction", name_of(s.direction));
    out.number("at", s.at).text("step", s.step()).raw("steps", steps.array()).text("reason", s.reason);
    out.text("end", s.is_completed() ? "completed" : s.is_compensated() ? "compensated" : s.is_stuck() ? "dead" : "");
    out.number("attempts", std::uint64_t{s.attempts} + s.tries).id("origin", s.origin);
    out.id("waits_for", s.waits_for).time("waits_until", s.waits_until).text("waits_in", s.waits_in);
    return out.object();
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
