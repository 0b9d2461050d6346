// SPDX-License-Identifier: MIT
// Where a saga stands, as it is checkpointed in its entry's progress: a plain value, and its bytes.
//
// The bytes are a mark, a format number, fields (number, length, content) and a checksum. A field with a number this
// reader does not know is passed over, so that an older runner can read what a newer one of the same format wrote.
// Anything else that is not to the letter is no progress: `decode_progress` says so and nothing is guessed.
//
// Invariants of what `decode_progress` gives: `at` is at most the number of steps begun; a name is never empty.
#pragma once

#include <array>
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

namespace vouch {
inline namespace v0 {

enum class saga_direction : std::uint8_t { forward, back };

[[nodiscard]] constexpr std::string_view name_of(saga_direction d) noexcept {
    return d == saga_direction::forward ? "forward" : "back";
}

/// What is known of a step.
enum class step_state : std::uint8_t {
    begun,     ///< it is its turn; whether it has done anything is not known yet
    done,      ///< it succeeded; its result is kept
    failed,    ///< known to have done nothing: it rejected at once, or was never started. Not undone
    unknown,   ///< it may have done something: crash, timeout, attempts spent. Undone
    undone,    ///< its compensation has succeeded
    kept,      ///< it was done or unknown, and has no compensation
    skipped,   ///< its condition said no. Not undone
    undecided, ///< it is its turn, and its condition has not answered yet
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
    std::size_t at = 0;               ///< the step whose turn it is; as many as there are steps: all done
    std::vector<step_record> steps{}; ///< those begun so far
    std::string reason{};             ///< why it was turned round
    time_point since{};               ///< when it came to this step
    std::uint32_t tries = 0;          ///< of this compensation that have failed, before this checkpoint
    id command{};                     ///< waits for this one; nil: for none
    id sender{};                      ///< the saga's entry that sent it
    std::optional<time_point> deadline{};
    id origin{}; ///< the first entry of this saga: what idempotency keys are made of
    id owner{};  ///< the entry that wrote this; another one means it was resumed

    [[nodiscard]] bool is_waiting() const noexcept { return !command.is_nil(); }
    [[nodiscard]] friend bool operator==(const saga_progress&, const saga_progress&) = default;
};

namespace detail {

inline constexpr char progress_format = 1; // below a space: see is_saga_progress

[[nodiscard]] constexpr std::uint32_t checksum(std::string_view bytes) noexcept { // FNV-1a
    std::uint32_t sum = 2166136261U;
    for (const char c : bytes) {
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return sum;
}

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
    origin,
    owner,
};

class progress_writer {
  public:
    progress_writer() : out_(saga_progress_mark) { out_.push_back(progress_format); }

    void bytes(progress_field field, std::string_view content) {
        if (!content.empty()) {
            number(static_cast<std::uint64_t>(field));
            number(content.size());
            out_ += content;
        }
    }
    void integer(progress_field field, std::uint64_t value) {
        std::string content;
        append(content, value);
        bytes(field, value == 0 ? std::string_view{} : std::string_view(content));
    }
    void time(progress_field field, time_point value) {
        integer(field, static_cast<std::uint64_t>(value.time_since_epoch().count()));
    }
    void identity(progress_field field, const id& value) {
        const auto raw = value.bytes();
        bytes(field, value.is_nil() ? std::string_view{} : std::string_view(std::string(raw.begin(), raw.end())));
    }
    void step(const step_record& record) {
        std::string content;
        content.push_back(static_cast<char>(record.state));
        append(content, record.name.size());
        content += record.name;
        content += record.result;
        bytes(progress_field::step, content);
    }

    [[nodiscard]] std::string finish() && {
        const auto sum = checksum(out_);
        for (int shift = 0; shift < 32; shift += 8) {
            out_.push_back(static_cast<char>((sum >> shift) & 0xffU));
        }
        return std::move(out_);
    }

    static void append(std::string& to, std::uint64_t value) { // seven bits a byte, lowest first
        for (; value >= 0x80; value >>= 7) {
            to.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
        }
        to.push_back(static_cast<char>(value));
    }

  private:
    void number(std::uint64_t value) { append(out_, value); }
    std::string out_;
};

/// Reads what there is; once something is missing, `ok` is false for good.
class progress_reader {
  public:
    explicit progress_reader(std::string_view from) noexcept : rest_(from) {}

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] bool done() const noexcept { return !ok_ || rest_.empty(); }

    [[nodiscard]] std::uint64_t number() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1).empty() ? 0x80 : last_);
            value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if (!ok_ || (byte & 0x80U) == 0) {
                return value;
            }
        }
        ok_ = false;
        return 0;
    }
    [[nodiscard]] std::string_view take(std::uint64_t size) noexcept {
        if (!ok_ || size > rest_.size()) {
            ok_ = false;
            return {};
        }
        const auto taken = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(taken.size());
        last_ = taken.empty() ? '\0' : taken.back();
        return taken;
    }
    [[nodiscard]] std::string_view rest() noexcept { return take(rest_.size()); }
    [[nodiscard]] id identity() noexcept {
        std::array<std::uint8_t, 16> raw{};
        const auto content = take(raw.size());
        for (std::size_t i = 0; i < content.size(); ++i) {
            raw[i] = static_cast<std::uint8_t>(content[i]);
        }
        return id::from_bytes(raw);
    }
    [[nodiscard]] time_point time() noexcept { return time_point{duration{static_cast<duration::rep>(number())}}; }
    void fail() noexcept { ok_ = false; }

  private:
    std::string_view rest_;
    char last_ = '\0';
    bool ok_ = true;
};

[[nodiscard]] inline step_record read_step(progress_reader& from) {
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

inline void read_field(saga_progress& p, std::uint64_t field, progress_reader& from) {
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
    case progress_field::origin: p.origin = from.identity(); break;
    case progress_field::owner: p.owner = from.identity(); break;
    }
}

} // namespace detail

[[nodiscard]] inline std::string encode_progress(const saga_progress& p) {
    using field = detail::progress_field;
    detail::progress_writer out;
    out.bytes(field::definition, p.definition);
    out.integer(field::version, p.version);
    out.integer(field::direction, static_cast<std::uint64_t>(p.direction));
    out.integer(field::at, p.at);
    for (const auto& record : p.steps) {
        out.step(record);
    }
    out.bytes(field::reason, p.reason);
    out.time(field::since, p.since);
    out.integer(field::tries, p.tries);
    out.identity(field::command, p.command);
    out.identity(field::sender, p.sender);
    if (p.deadline) {
        out.time(field::deadline, *p.deadline);
    }
    out.identity(field::origin, p.origin);
    out.identity(field::owner, p.owner);
    return std::move(out).finish();
}

/// Nothing, if the bytes are not what `encode_progress` of this format wrote.
[[nodiscard]] inline std::optional<saga_progress> decode_progress(std::string_view bytes) {
    constexpr std::size_t head = saga_progress_mark.size() + 1;
    constexpr std::size_t tail = 4;
    if (!is_saga_progress(bytes) || bytes.size() < head + tail || bytes[head - 1] != detail::progress_format) {
        return std::nullopt;
    }
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < tail; ++i) {
        sum |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[bytes.size() - tail + i])) << (8 * i);
    }
    bytes.remove_suffix(tail);
    if (sum != detail::checksum(bytes)) {
        return std::nullopt;
    }
    saga_progress p;
    detail::progress_reader all(bytes.substr(head));
    while (!all.done()) {
        const auto field = all.number();
        detail::progress_reader content(all.take(all.number()));
        detail::read_field(p, field, content);
        if (!content.ok()) {
            return std::nullopt;
        }
    }
    const bool is_sound = all.ok() && !p.definition.empty() && p.at <= p.steps.size();
    return is_sound ? std::optional{std::move(p)} : std::nullopt;
}

} // namespace v0
} // namespace vouch
