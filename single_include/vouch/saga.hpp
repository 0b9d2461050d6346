// SPDX-License-Identifier: MIT
// Sagas on any store: definitions, the engine, remote participants, inspection, the inbox, webhook deliveries.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_SAGA
#define VOUCH_SINGLE_HEADER_SAGA

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// ---- vouch/saga/origin.hpp
// The identity of a saga: the id of its first entry. Keys, commands and requests to cancel are derived from it, so it
// must not change when a dead saga is resumed under another entry.

namespace vouch {
inline namespace v0 {

/// The idempotency key of a step's action, or of its compensation: the same for every try, however often its command is
/// sent, and after a resume. `saga` is the saga's first entry.
[[nodiscard]] constexpr id saga_key(const id& saga, std::string_view step, bool is_compensation) noexcept {
    return derive(derive(saga, step), is_compensation ? "undo" : "forward");
}

/// The first entry of the saga that `e` carries on and whose progress names no origin yet, because no claim of it has
/// reached a checkpoint. A resume copies the progress: predecessors with the same progress are the same saga.
template <class Reader>
[[nodiscard]] id first_entry_of(const Reader& from, const entry& e) {
    auto first = e.id;
    auto before = e.predecessor;
    while (!before.is_nil()) {
        const auto found = from.find(before);
        if (found && found->progress != e.progress) {
            break;
        }
        first = before;
        before = found ? found->predecessor : id{};
    }
    return first;
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/progress.hpp
// Where a saga stands, as it is checkpointed in its entry's progress: a plain value, and its bytes.
//
// The bytes are a mark, a format number, fields (number, length, content) and a checksum. A field with a number this
// reader does not know is passed over, so that an older runner can read what a newer one of the same format wrote.
// Anything else that is not to the letter is no progress: `decode_progress` says so and nothing is guessed.
//
// Invariants of what `decode_progress` gives: `at` is at most the number of steps begun; a name is never empty.

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

// ---- vouch/saga/results.hpp
// What the steps before have come to, for a step's condition and for its action. It is a view of a saga's progress and
// is not kept beyond the call it is handed to.

namespace vouch {
inline namespace v0 {

class step_results {
  public:
    explicit step_results(const saga_progress& p) noexcept : progress_(p) {}

    /// The result of a step, if it is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> of(std::string_view step) const noexcept {
        const auto* const record = find(step);
        return record != nullptr && record->state == step_state::done ? std::optional<std::string_view>(record->result)
                                                                      : std::nullopt;
    }
    /// The same as a value. Bytes the codec rejects are a permanent failure.
    template <decodable T>
    [[nodiscard]] std::optional<T> as(std::string_view step) const {
        const auto result = of(step);
        try {
            return result ? std::optional<T>(codec<T>::decode(*result)) : std::nullopt;
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable_result");
        }
    }
    /// Whether the step was left out, by its condition.
    [[nodiscard]] bool is_skipped(std::string_view step) const noexcept {
        const auto* const record = find(step);
        return record != nullptr && record->state == step_state::skipped;
    }

  private:
    [[nodiscard]] const step_record* find(std::string_view step) const noexcept {
        const auto found = std::find_if(progress_.steps.begin(), progress_.steps.end(),
                                        [&](const step_record& s) { return s.name == step; });
        return found == progress_.steps.end() ? nullptr : &*found;
    }

    const saga_progress& progress_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/saga/call.hpp
// What a step's action is handed: the saga's context, the idempotency key of what it is about to do, the results of the
// steps before it, and, for a compensation, the result of its own forward action.
//
// A call belongs to one call of one action; it is used by one thread.

namespace vouch {
inline namespace v0 {

class step_call {
  public:
    step_call(const delivery& d, const saga_progress& p, std::size_t step, std::string_view result) noexcept
        : delivery_(d), progress_(p), step_(step), result_(result) {}
    step_call(const step_call&) = delete;
    step_call& operator=(const step_call&) = delete;

    /// The saga. After a resume it is the first entry's id: what names the saga outside must not change.
    [[nodiscard]] const id& saga() const noexcept { return progress_.origin; }
    [[nodiscard]] const std::string& step() const noexcept { return progress_.steps[step_].name; }
    [[nodiscard]] bool is_compensation() const noexcept { return progress_.direction == saga_direction::back; }
    /// The idempotency key to hand on: the same for every try of this action of this saga, also after a resume.
    [[nodiscard]] id key() const noexcept { return saga_key(saga(), step(), is_compensation()); }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return delivery_.attempt(); } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return delivery_.now(); }
    [[nodiscard]] const std::stop_token& stop() const noexcept { return delivery_.stop(); }
    /// The saga's payload as a value.
    template <decodable T>
    [[nodiscard]] T as() const {
        return delivery_.as<T>();
    }
    [[nodiscard]] const std::string& payload() const noexcept { return delivery_.payload(); }

    /// Why the saga was turned round; empty on the way forward.
    [[nodiscard]] const std::string& reason() const noexcept { return progress_.reason; }
    /// Whether it is known that the forward action succeeded. If not, there may be nothing to undo, and no result.
    [[nodiscard]] bool is_known() const noexcept { return progress_.steps[step_].state == step_state::done; }
    /// Of the forward action that is being undone; empty on the way forward.
    [[nodiscard]] std::string_view result() const noexcept { return result_; }
    /// The same as a value. Bytes the codec rejects are a permanent failure.
    template <decodable T>
    [[nodiscard]] T result_as() const {
        try {
            return codec<T>::decode(result_);
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable_result");
        }
    }
    /// Of another step, if it is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> result_of(std::string_view step) const noexcept {
        return results().of(step);
    }
    /// Of all steps so far.
    [[nodiscard]] step_results results() const noexcept { return step_results(progress_); }

  private:
    const delivery& delivery_;
    const saga_progress& progress_;
    std::size_t step_;
    std::string_view result_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/saga/cancel.hpp
// Asking a saga to turn round. A saga is never just killed: cancelling it is a request, a mark with an id derived from
// the saga's, and a nudge so that it is seen soon. The saga then undoes what it has done and ends compensated.
//
// Marks are entries of a queue of their own, which nobody works on: a purge of the saga's queue does not take them away
// before they are seen. One small entry stays per request; purge that queue by age, longer than a saga may take.

namespace vouch {
inline namespace v0 {

inline constexpr std::string_view saga_marks_queue = "saga.marks";

/// The id of the mark that asks a saga to turn round. `origin` is its first entry, so that a resume does not lose it.
[[nodiscard]] constexpr id cancel_mark_of(const id& origin) noexcept { return derive(origin, "saga.cancel"); }

/// Requests that the saga be turned round, within the caller's transaction. Applied, or repeated if it was due anyway
/// or had been asked before: the mark is seen before the saga completes; one that is being undone goes on being undone.
/// Stale: it has ended; unknown: there is no such entry, or it is no saga (`is_saga`); then nothing is written. Throws
/// `unsupported` if it is a saga whose progress this version cannot read.
template <class Writer>
[[nodiscard]] verdict request_cancel(Writer& tx, const id& saga, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(saga);
    if (!found || !is_saga(*found)) {
        return verdict::unknown;
    }
    if (is_terminal(found->state)) {
        return verdict::stale;
    }
    const auto progress = decode_progress(found->progress);
    if (!progress) {
        throw error(error_kind::unsupported,
                    "saga: the progress of " + to_string(saga) + " cannot be read; use the version that wrote it");
    }
    const auto answer = tx.nudge(saga, now);
    if (answer == verdict::applied || answer == verdict::repeated) {
        const auto origin = progress->origin.is_nil() ? first_entry_of(tx, *found) : progress->origin;
        const std::array mark{draft{.id = cancel_mark_of(origin),
                                    .queue = std::string(saga_marks_queue),
                                    .topic = "saga.cancel",
                                    .result = std::string{}}};
        tx.enqueue(mark, now);
    }
    return answer;
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/compensation.hpp
// What a compensating command carries, unless the definition makes its payload: the saga's context and what the forward
// command answered. A participant takes it as a value:
//
//   router.on<vouch::compensation>("refund", [](const vouch::compensation& c, vouch::delivery& d) {
//       refund(c.context_as<order>(), c.reply);
//   });
//
// As bytes: the length of the context in decimal, `+` if there is a reply or `-` if there is none, the context, the
// reply.

namespace vouch {
inline namespace v0 {

struct compensation {
    std::string context{};              ///< the saga's payload
    std::optional<std::string> reply{}; ///< nothing: it is not known whether the forward command has done anything

    /// The context as a value. Bytes the codec rejects are a permanent failure.
    template <decodable T>
    [[nodiscard]] T context_as() const {
        try {
            return codec<T>::decode(context);
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable");
        }
    }

    [[nodiscard]] friend bool operator==(const compensation&, const compensation&) = default;
};

template <>
struct codec<compensation> {
    [[nodiscard]] static std::string encode(const compensation& c) {
        return std::to_string(c.context.size()) + (c.reply ? '+' : '-') + c.context + c.reply.value_or(std::string{});
    }
    [[nodiscard]] static compensation decode(std::string_view bytes) {
        std::size_t size = 0;
        const auto* const end = bytes.data() + bytes.size();
        const auto [mark, wrong] = std::from_chars(bytes.data(), end, size);
        const auto rest = wrong == std::errc{} ? std::string_view(mark, static_cast<std::size_t>(end - mark)) : "";
        const bool has_reply = rest.starts_with('+');
        const bool is_whole = has_reply ? rest.size() > size : rest.starts_with('-') && rest.size() == size + 1;
        if (!is_whole) {
            throw reject("undecodable");
        }
        return {.context = std::string(rest.substr(1, size)),
                .reply = has_reply ? std::optional(std::string(rest.substr(1 + size))) : std::nullopt};
    }
};

} // namespace v0
} // namespace vouch

// ---- vouch/saga/definition.hpp
// What a saga consists of: named steps, each with a forward action and a way to undo it, in this process or at a remote
// participant; retries and timeouts; what is emitted at the end. A definition is a value, checked when it is built, and
// only read afterwards, by as many threads as like.
//
//   const auto order_saga = vouch::define_saga<order>("order", {.completed = "order.confirmed"})
//       .step("payment", charge, refund)                                                   // in this process
//       .step("gift wrap", wrap).when([](const order& o) { return o.is_gift; })            // or skipped
//       .command("shipping", {.queue = "shipping", .topic = "schedule", .undo = "cancel"}) // at a participant
//       .build();
//
// Change the steps or their conditions, and the version changes too: a saga is carried on by the version it began with,
// or not at all.

namespace vouch {
inline namespace v0 {

/// An action, brought to one form: does something, and gives its result as bytes. It throws `reject` if it has done
/// nothing and never will, and anything else to be called again by policy.
using step_action = std::function<std::string(step_call&)>;

/// Whether a step is done at all. A pure function: the same context and results always give the same answer. It is
/// asked when it is the step's turn, and its answer is recorded before anything follows from it; after that it is not
/// asked again. Throwing is the step's failure, with nothing done.
using step_condition = std::function<bool(const delivery&, const step_results&)>;

struct step_options {
    std::optional<retry_policy> retry{}; ///< unset: the saga's
    /// How long the step may take, retries included; 0: as long as its retries do. A command counts from its sending.
    duration timeout{};
};

/// A step at a remote participant: commands go to its queue in the same store, and what becomes of them is the reply.
struct command_options {
    std::string queue{};                 ///< required
    std::string topic{};                 ///< required; of the forward command
    std::string undo{};                  ///< topic of the compensating command; empty: nothing to undo
    std::optional<retry_policy> retry{}; ///< attempts_max: of each command; all of it: of the compensating commands
    duration timeout = std::chrono::hours{1}; ///< after which the reply is not waited for
};

struct saga_step {
    std::string name{};
    step_action forward{}; ///< for a command: makes its payload
    step_action undo{};    ///< empty: there is none. For a command: makes its payload
    std::string queue{};   ///< of the participant; empty: in this process
    std::string topic{};
    std::string undo_topic{};
    std::optional<retry_policy> retry{};
    duration timeout{};
    bool carries_compensation = false; ///< its compensating command has a `compensation` for its payload
    step_condition condition{};        ///< empty: it is always done
    bool is_otherwise = false;         ///< it is done exactly if the step before it was skipped

    [[nodiscard]] bool is_remote() const noexcept { return !queue.empty(); }
    [[nodiscard]] bool has_undo() const noexcept { return static_cast<bool>(undo); }
};

struct saga_options {
    std::uint32_t version = 1;
    std::string completed{};   ///< topic emitted when all steps are done; empty: none
    std::string compensated{}; ///< topic emitted when all is undone; empty: none
    std::string queue{};       ///< where these go; empty: to every queue bound to them
    retry_policy retry{};      ///< for steps that say nothing of their own
};

/// How the groups begin that sagas share with their commands.
inline constexpr std::string_view saga_group_prefix = "saga:";

struct saga_definition {
    std::string name{}; ///< also the topic of its entries
    saga_options options{};
    std::vector<saga_step> steps{};
    std::function<void(const delivery&)> check{}; ///< throws if the payload is no context of this saga

    [[nodiscard]] const retry_policy& retry_of(const saga_step& s) const { return s.retry ? *s.retry : options.retry; }

    [[nodiscard]] bool has_commands() const noexcept {
        return std::any_of(steps.begin(), steps.end(), [](const saga_step& s) { return s.is_remote(); });
    }

    /// An entry of this saga, to be emitted through the same outbox: fill in what else it needs. It is of this version
    /// from the beginning. If it sends commands it has a group of its own, and so have they: that keeps a reply from
    /// being purged before the saga has read it. With another group, or none (for a store without groups), keep the
    /// participants' ended entries for longer than a saga takes; a reply that is gone is unknown. Such a group is
    /// reported as any other when all of it has succeeded; its name begins with `saga_group_prefix`.
    [[nodiscard]] emission begin(const outbox& from, std::string queue, std::string payload) const {
        return {.queue = std::move(queue),
                .topic = name,
                .payload = std::move(payload),
                .group = has_commands() ? std::string(saga_group_prefix) + to_string(from.fresh_id()) : std::string{},
                .progress = encode_progress({.definition = name, .version = options.version})};
    }
    template <encodable Context>
    [[nodiscard]] emission begin(const outbox& from, std::string queue, const Context& context) const {
        return begin(from, std::move(queue), encode(context));
    }
};

/// Throws `invalid_argument` for a definition that cannot be run.
inline void validate(const saga_definition& d) {
    const auto name_max = limits{}.name_max;
    detail::check_required_name({"saga", "name"}, d.name, name_max);
    detail::check_name({"saga", "completed"}, d.options.completed, name_max);
    detail::check_name({"saga", "compensated"}, d.options.compensated, name_max);
    detail::check_name({"saga", "queue"}, d.options.queue, name_max);
    if (d.options.version == 0) {
        detail::refuse({"saga", "version"}, "is 0, versions count from 1");
    }
    if (d.steps.empty()) {
        detail::refuse({"saga", "steps"}, "are none, a saga has at least one");
    }
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        detail::check_required_name({"saga step", "name", i}, s.name, name_max);
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            if (d.steps[earlier].name == s.name) {
                detail::refuse({"saga step", "name", i}, "is the same as that of step " + std::to_string(earlier));
            }
        }
        if (!s.forward) {
            detail::refuse({"saga step", "forward action", i}, "is missing");
        }
        if (s.is_otherwise && (i == 0 || !d.steps[i - 1].condition)) {
            detail::refuse({"saga step", "otherwise", i}, "has no step with a condition before it");
        }
        if (s.timeout < duration::zero()) {
            detail::refuse({"saga step", "timeout", i}, "is negative");
        }
        if (s.is_remote()) {
            detail::check_required_name({"saga step", "queue", i}, s.queue, name_max);
            detail::check_required_name({"saga step", "topic", i}, s.topic, name_max);
            detail::check_name({"saga step", "undo topic", i}, s.undo_topic, name_max);
            if (s.timeout == duration::zero()) {
                detail::refuse({"saga step", "timeout", i}, "is 0, a command needs one");
            }
        }
    }
}

namespace detail {

template <class F, class Context>
concept action_of = std::invocable<F&, const Context&, step_call&> || std::invocable<F&, const Context&> ||
    std::invocable<F&, step_call&> || std::invocable<F&>;

template <class F, class Context>
concept condition_of = std::predicate<F&, const Context&, const step_results&> || std::predicate<F&, const Context&> ||
    std::predicate<F&, const step_results&>;

/// Calls a condition in whatever form it was given.
template <class Context, class F>
[[nodiscard]] step_condition make_condition(F&& given) {
    static_assert(condition_of<std::decay_t<F>, Context>,
                  "vouch: a condition takes `const Context&`, then `const step_results&`, and returns a bool; either "
                  "argument may be left out");
    return [f = std::forward<F>(given)](const delivery& d, const step_results& results) mutable -> bool {
        if constexpr (std::predicate<decltype(f)&, const step_results&>) {
            return f(results);
        } else if constexpr (std::predicate<decltype(f)&, const Context&>) {
            return f(d.as<Context>());
        } else {
            return f(d.as<Context>(), results);
        }
    };
}

template <class Context, class F>
[[nodiscard]] decltype(auto) act(F& f, step_call& call) {
    if constexpr (std::invocable<F&, step_call&>) {
        return f(call);
    } else if constexpr (std::invocable<F&>) {
        return f();
    } else if constexpr (std::invocable<F&, const Context&>) {
        return f(call.template as<Context>());
    } else {
        return f(call.template as<Context>(), call);
    }
}

/// Calls an action in whatever form it was given, and encodes what it returns.
template <class Context, class F>
[[nodiscard]] step_action make_action(F&& given) {
    static_assert(action_of<std::decay_t<F>, Context>,
                  "vouch: an action takes `const Context&`, then `step_call&`; either may be left out");
    return [f = std::forward<F>(given)](step_call& call) mutable -> std::string {
        using returned = std::remove_cvref_t<decltype(act<Context>(f, call))>;
        if constexpr (std::is_void_v<returned>) {
            act<Context>(f, call);
            return {};
        } else if constexpr (std::convertible_to<returned, std::string_view>) {
            return std::string(std::string_view(act<Context>(f, call)));
        } else {
            static_assert(encodable<returned>, "vouch: an action returns nothing, a string, or a value with a codec");
            return encode(act<Context>(f, call));
        }
    };
}

} // namespace detail

/// `Context` is what the saga's payload decodes to.
template <decodable Context>
class saga_builder {
  public:
    saga_builder(std::string name, saga_options options) {
        made_.name = std::move(name);
        made_.options = std::move(options);
        made_.check = [](const delivery& d) { static_cast<void>(d.as<Context>()); };
    }

    /// A step in this process.
    template <class Forward>
    saga_builder& step(std::string name, Forward&& forward, step_options how = {}) {
        made_.steps.push_back({.name = std::move(name),
                               .forward = detail::make_action<Context>(std::forward<Forward>(forward)),
                               .retry = std::move(how.retry),
                               .timeout = how.timeout});
        return *this;
    }
    template <class Forward, class Undo>
    requires detail::action_of<std::decay_t<Undo>, Context> saga_builder& step(std::string name, Forward&& forward,
                                                                               Undo&& undo, step_options how = {}) {
        step(std::move(name), std::forward<Forward>(forward), std::move(how));
        made_.steps.back().undo = detail::make_action<Context>(std::forward<Undo>(undo));
        return *this;
    }

    /// A step at a participant. The forward command carries the saga's payload, the compensating one a `compensation`:
    /// that payload and the forward command's reply. Both together fit into a payload, or the saga turns round.
    saga_builder& command(std::string name, command_options how) {
        return command(std::move(name), std::move(how), [](step_call& call) { return call.payload(); });
    }
    /// The same, with payloads made by these.
    template <class Forward>
    saga_builder& command(std::string name, command_options how, Forward&& payload) {
        const bool can_undo = !how.undo.empty();
        command(std::move(name), std::move(how), std::forward<Forward>(payload), [](step_call& call) {
            return compensation{call.payload(),
                                call.is_known() ? std::optional(std::string(call.result())) : std::nullopt};
        });
        made_.steps.back().carries_compensation = can_undo;
        return *this;
    }
    template <class Forward, class Undo>
    saga_builder& command(std::string name, command_options how, Forward&& payload, Undo&& undo_payload) {
        if (how.queue.empty()) {
            detail::refuse({"saga step", "queue", made_.steps.size()}, "is empty");
        }
        const bool can_undo = !how.undo.empty();
        made_.steps.push_back({.name = std::move(name),
                               .forward = detail::make_action<Context>(std::forward<Forward>(payload)),
                               .queue = std::move(how.queue),
                               .topic = std::move(how.topic),
                               .undo_topic = std::move(how.undo),
                               .retry = std::move(how.retry),
                               .timeout = how.timeout});
        if (can_undo) {
            made_.steps.back().undo = detail::make_action<Context>(std::forward<Undo>(undo_payload));
        }
        return *this;
    }

    /// The step just added is done only if this says so, else it is skipped: a pure function of the context and of the
    /// results of the steps before, as `step_condition` describes.
    template <class Condition>
    saga_builder& when(Condition&& condition) {
        last("when").condition = detail::make_condition<Context>(std::forward<Condition>(condition));
        return *this;
    }
    /// The step just added is done exactly if the one before it was skipped: of the two, one is chosen.
    saga_builder& otherwise() {
        auto& step = last("otherwise");
        step.is_otherwise = true;
        const auto before = made_.steps.size() > 1 ? made_.steps[made_.steps.size() - 2].name : std::string{};
        step.condition = [before](const delivery&, const step_results& results) { return results.is_skipped(before); };
        return *this;
    }

    /// Throws `invalid_argument` for a definition that cannot be run.
    [[nodiscard]] saga_definition build() const {
        validate(made_);
        return made_;
    }

  private:
    [[nodiscard]] saga_step& last(const char* wanted_by) {
        if (made_.steps.empty()) {
            detail::refuse({"saga step", wanted_by, 0}, "comes before any step");
        }
        if (made_.steps.back().condition) {
            detail::refuse({"saga step", wanted_by, made_.steps.size() - 1}, "is a second condition");
        }
        return made_.steps.back();
    }

    saga_definition made_;
};

template <decodable Context>
[[nodiscard]] saga_builder<Context> define_saga(std::string name, saga_options options = {}) {
    return {std::move(name), std::move(options)};
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/command.hpp
// What travels between a saga and a remote participant. A command is an entry in the participant's queue with the saga
// as its parent; its end is the reply, and wakes the saga in the same transaction. No message of its own is needed:
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
// A command may be delivered more than once, and a compensating command that is not answered is sent again under
// another id: a participant that must not act twice keeps the key in mind, not the id (`inbox.hpp`).
//
// A participant that has done nothing and never will throws `reject`, or buries with a result: a known failure, which
// is not undone, if the command was claimed once. An earlier claim may have done something; so may one that ended in
// any other death: unknown, and undone.

namespace vouch {
inline namespace v0 {

/// A command as its participant sees it.
struct saga_command {
    vouch::id id{};   ///< another one each time a command is sent
    vouch::id key{};  ///< the idempotency key: the same however often this action of this saga is asked for
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
inline constexpr std::string_view key_header = "saga-key";

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

/// The command an entry is; nothing if it is none.
[[nodiscard]] inline std::optional<saga_command> command_of(const entry& e) {
    const auto saga = detail::header_of(e, detail::saga_header);
    const auto step = detail::header_of(e, detail::step_header);
    const auto number = detail::header_of(e, detail::number_header);
    const auto compensation = detail::header_of(e, detail::compensation_header);
    const auto key = detail::header_of(e, detail::key_header);
    const auto saga_id = saga ? id::parse(*saga) : std::nullopt;
    if (e.parent.is_nil() || !saga_id || !step || !number || !compensation) {
        return std::nullopt;
    }
    const bool is_compensation = *compensation == "true";
    const auto known_key = key ? id::parse(*key) : std::nullopt;
    saga_command out{.id = e.id,
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

// ---- vouch/saga/commanding.hpp
// A claimed saga's dealings with its remote participants: sending a command, finding out what became of it, calling it
// back. What is read of a command that has ended is final.

namespace vouch {
inline namespace v0 {

/// When a saga that nobody here can carry on is looked at again.
inline constexpr duration saga_look_again = std::chrono::minutes{1};

namespace detail {

template <class Store>
class commanding {
  protected:
    commanding(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : store_(store), definition_(what), delivery_(d), now_(d.now()), p_(std::move(at)) {}

    [[nodiscard]] std::optional<vouch::entry> find_command() const {
        auto found = store_.find(p_.command);
        return found && found->parent == p_.sender ? found : std::nullopt; // else somebody else's, with the same id
    }

    /// Cancels the command, unless it has ended or somebody holds it. Gives what is known of it afterwards, which is
    /// final unless it is live.
    [[nodiscard]] std::optional<vouch::entry> call_back(const std::string& code) {
        auto found = find_command();
        if (found && is_live(found->state)) {
            static_cast<void>(transact(store_, [&](auto& tx) { return tx.cancel(p_.command, code, now_); }));
            found = find_command();
        }
        return found;
    }

    /// False if no store would take it; then nothing is sent.
    [[nodiscard]] bool send(const std::string& topic, std::string payload, const id& key) {
        const auto& to = step();
        auto headers = headers_of({.key = key,
                                   .saga = p_.origin,
                                   .step = to.name,
                                   .number = p_.at + 1,
                                   .is_compensation = p_.direction == saga_direction::back});
        const auto attempts_max = definition_.retry_of(to).attempts_max;
        try {
            validate(draft{.id = entry().id, .queue = to.queue, .topic = topic, .payload = payload, .headers = headers},
                     store_.capabilities());
        } catch (const error&) {
            return false;
        }
        p_.command = delivery_.emit({.queue = to.queue,
                                     .topic = topic,
                                     .payload = std::move(payload),
                                     .group = shared_group(),
                                     .lane = command_lane(),
                                     .parent = entry().id,
                                     .attempts_max = attempts_max,
                                     .headers = std::move(headers)});
        p_.sender = entry().id;
        p_.deadline = later(now_, to.timeout);
        return true;
    }

    /// A lane made of the saga's, so that the commands of one order stay in order at every participant. It is of the
    /// commands alone: in the saga's own lane a command would wait for sagas, which may be waiting for it.
    [[nodiscard]] std::string command_lane() const {
        return entry().lane.empty() ? std::string{} : "saga:" + to_string(derive(id{}, entry().lane));
    }

    /// Whether the store takes the compensating command of this step with what is known so far. One that the definition
    /// makes is looked at when it is made.
    [[nodiscard]] bool undo_fits(const std::optional<std::string>& reply) const {
        return !step().carries_compensation ||
               encode(compensation{delivery_.payload(), reply}).size() <= store_.capabilities().limits.payload_max;
    }

    /// The saga's group, if it has one of its own: while the saga lives, nothing of that is purged. In anybody else's
    /// group a dead command would count for ever.
    [[nodiscard]] std::string shared_group() const {
        return entry().group.starts_with(saga_group_prefix) ? entry().group : std::string{};
    }

    void forget_command() {
        p_.command = {};
        p_.sender = {};
        p_.deadline.reset();
        moved_ = true;
    }

    /// When to look at a command again that nothing may have become of by `at`. One sent by the entry this saga was
    /// resumed from does not wake it.
    [[nodiscard]] time_point look_again(const vouch::entry& command, time_point at) const {
        return command.parent == entry().id ? at : std::min(at, later(now_, saga_look_again));
    }

    /// Call inside a catch clause.
    [[nodiscard]] caught caught_here() {
        auto why = caught::current();
        delivery_.explain(why.text);
        return why;
    }

    [[nodiscard]] const vouch::entry& entry() const noexcept { return delivery_.entry(); }
    [[nodiscard]] const saga_step& step() const { return definition_.steps[p_.at]; }
    [[nodiscard]] step_record& record() { return p_.steps[p_.at]; }

    Store& store_;
    const saga_definition& definition_;
    delivery& delivery_;
    time_point now_;
    saga_progress p_;
    bool moved_ = false; ///< since the last checkpoint
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/retreat.hpp
// A claimed saga on its way back: what was done or may have been done is undone in reverse, by an action here or by a
// compensating command, until nothing is left or a compensation is stuck. And the ways in which any claim of a saga
// ends.

namespace vouch {
inline namespace v0 {

/// What a claim of a saga comes to.
struct saga_ruling {
    vouch::outcome outcome{};
    bool completes = false; ///< then no request to cancel may have come in the meantime
    id origin{};

    operator vouch::outcome() const { return outcome; } // NOLINT: implicit, as a handler's result
};

namespace detail {

template <class Store, class Rules>
class retreat : protected commanding<Store> {
    using base = commanding<Store>;

  protected:
    using base::call_back, base::caught_here, base::definition_, base::delivery_, base::entry, base::find_command,
        base::forget_command;
    using base::look_again, base::moved_, base::now_, base::p_, base::record, base::send, base::step, base::store_;
    using base::undo_fits;

    retreat(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : base(store, what, std::move(at), d) {}

    [[nodiscard]] saga_ruling go_back() {
        if (p_.is_waiting()) {
            const bool is_forward = record().state == step_state::begun;
            if (auto waiting = is_forward ? hear_late() : hear_undo()) {
                return std::move(*waiting);
            }
        }
        auto next = Rules::next_to_undo(p_);
        while (next && !definition_.steps[*next].has_undo()) {
            p_.steps[*next].state = step_state::kept;
            next = Rules::next_to_undo(p_);
        }
        if (!next) {
            // That it has turned round is kept before anything that may have to wait for its topic to be bound.
            const bool must_wait = moved_ && !definition_.options.compensated.empty();
            return must_wait ? checkpoint(now_) : finish("compensated", definition_.options.compensated);
        }
        if (p_.at != *next) {
            p_.at = *next;
            p_.tries = 0;
            moved_ = true;
        }
        if (step().is_remote()) {
            return send_undo();
        }
        return moved_ ? checkpoint(now_) : run_undo();
    }

    /// The forward command that was live when the saga turned round: it is called back, and waited for if somebody
    /// holds it. Nothing, when it is known what became of it.
    [[nodiscard]] std::optional<saga_ruling> hear_late() {
        const auto command = call_back(p_.reason);
        if (command && Rules::must_wait_for(*command)) {
            return wait_until(look_again(*command, command->lease_until.value_or(now_)));
        }
        record().state = Rules::learned_late(command ? &*command : nullptr);
        if (record().state == step_state::done) {
            record().result = command->result.value_or(std::string{});
            if (is_too_large() || !undo_fits(record().result)) {
                record().result.clear();
                record().state = step_state::unknown;
            }
        }
        forget_command();
        return std::nullopt;
    }

    /// Nothing, when the compensating command has succeeded.
    [[nodiscard]] std::optional<saga_ruling> hear_undo() {
        auto command = find_command();
        if (command && is_live(command->state) && now_ < *p_.deadline) {
            return wait_until(look_again(*command, *p_.deadline));
        }
        command = call_back("timed_out");
        if (command && is_live(command->state)) {
            return wait_until(look_again(*command, command->lease_until.value_or(now_)));
        }
        if (command && command->state == state::succeeded) {
            record().state = step_state::undone;
            forget_command();
            return std::nullopt;
        }
        if (is_resumed_) { // what the dead one gave up over is not held against this one
            p_.tries = 0;
            forget_command();
            return std::nullopt;
        }
        const auto code = !command ? std::string("reply_lost") : command->last_error;
        const auto& policy = definition_.retry_of(step());
        const bool has_rejected = command && command->result;
        p_.tries += 1;
        const auto delay = delay_after(policy, entry().id, p_.tries);
        if (has_rejected || Rules::gives_up(p_.tries, attempts_max_of(entry(), policy)) || !delay) {
            return saga_ruling{bury{.error = code}};
        }
        forget_command();
        return checkpoint(later(now_, *delay));
    }

    /// If it cannot be sent, what has been learned is kept first, so that a dead saga shows where it is stuck.
    [[nodiscard]] saga_ruling send_undo() {
        try {
            step_call call(delivery_, p_, p_.at, Rules::handed_to_undo(p_, p_.at));
            if (!send(step().undo_topic, step().undo(call), Rules::key_of(p_))) {
                return moved_ ? checkpoint(now_) : saga_ruling{bury{.error = "invalid_command"}};
            }
        } catch (...) {
            const auto why = caught_here();
            return moved_ ? checkpoint(now_)
                          : try_again_or(why, [](const std::string& code) { return saga_ruling{bury{.error = code}}; });
        }
        return checkpoint(*p_.deadline);
    }

    [[nodiscard]] saga_ruling run_undo() {
        const auto stuck = [](const std::string& code) { return saga_ruling{bury{.error = code}}; };
        if (entry().attempts + p_.tries > attempts_max_of(entry(), definition_.retry_of(step()))) {
            return stuck("attempts_exhausted");
        }
        try {
            step_call call(delivery_, p_, p_.at, Rules::handed_to_undo(p_, p_.at));
            static_cast<void>(step().undo(call));
        } catch (...) {
            return try_again_or(caught_here(), stuck);
        }
        record().state = step_state::undone;
        return checkpoint(now_);
    }

    [[nodiscard]] bool is_undoing_here() const {
        return !p_.is_waiting() && p_.at < definition_.steps.size() && !definition_.steps[p_.at].is_remote();
    }

    // Ways to end a claim.

    [[nodiscard]] saga_ruling wait_until(time_point at) {
        return moved_ ? checkpoint(at) : saga_ruling{release{.at = at}};
    }

    template <class Else>
    [[nodiscard]] saga_ruling try_again_or(const caught& why, Else&& otherwise) {
        if (why.is_permanent) {
            return otherwise(why.code);
        }
        const auto& policy = definition_.retry_of(step());
        const auto attempts = entry().attempts + p_.tries;
        const auto delay = delay_after(policy, entry().id, attempts);
        if (attempts >= attempts_max_of(entry(), policy) || !delay) {
            return otherwise(why.code);
        }
        const auto at = later(delivery_.time(), *delay);
        if (p_.direction == saga_direction::back && now_ < at && is_expired(at) && !is_expired(now_)) {
            // A compensation goes on after the expiry; a retry would be the runner's last.
            p_.tries = attempts;
            return checkpoint(at);
        }
        return {retry{.error = why.code, .at = at}};
    }

    [[nodiscard]] saga_ruling checkpoint(time_point at) { return {advance{.progress = encode_progress(p_), .at = at}}; }

    /// On the way forward some room is left, so that turning round always fits.
    [[nodiscard]] bool is_too_large() const {
        constexpr std::size_t room = 512;
        return encode_progress(p_).size() + room > store_.capabilities().limits.progress_max;
    }

    [[nodiscard]] saga_ruling finish(const std::string& how, const std::string& topic) {
        if (!topic.empty()) {
            header_list headers{{std::string(saga_header), to_string(p_.origin)}};
            if (!p_.reason.empty()) {
                headers.emplace_back("saga-reason", p_.reason);
            }
            delivery_.emit({.queue = definition_.options.queue,
                            .topic = topic,
                            .payload = delivery_.payload(),
                            .headers = std::move(headers)});
            try {
                validate(delivery_.emitted(), store_.capabilities());
            } catch (const error& e) { // work is done: it waits for somebody to bind the topic
                delivery_.tag(e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission");
                return {release{.at = later(now_, saga_look_again)}};
            }
        }
        delivery_.tag(how);
        return {succeed{.result = last_words()}, false, p_.origin};
    }

    /// The progress as it is at the end, without results if they are too much.
    [[nodiscard]] std::string last_words() {
        auto bytes = encode_progress(p_);
        if (bytes.size() > store_.capabilities().limits.result_max) {
            for (auto& s : p_.steps) {
                s.result.clear();
            }
            bytes = encode_progress(p_);
        }
        return bytes;
    }

    [[nodiscard]] bool is_expired(time_point at) const noexcept {
        return entry().expires_at && at >= *entry().expires_at;
    }

    bool is_resumed_ = false; ///< by this entry, from one that is dead
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/claim.hpp
// One claim of one saga: where it stands is read from the entry's progress, one thing is done, and the outcome says how
// it goes on. Decisions are in `rules.hpp`.
//
// What is decided without executing an action may be decided anew, so it shares a claim with what comes next; an action
// is followed by a checkpoint, and so is the answer of a condition, which is not the engine's to decide anew. All that
// is read of a command is final once it has ended, and one that ends later wakes the saga, also while it is claimed:
// nothing read outside the settling transaction can be slept through.

namespace vouch {
inline namespace v0 {

namespace detail {

/// One claim of one saga.
template <class Store, class Rules>
class saga_claim : retreat<Store, Rules> {
    using base = retreat<Store, Rules>;
    using base::caught_here, base::checkpoint, base::definition_, base::delivery_, base::entry, base::find_command,
        base::finish;
    using base::forget_command, base::go_back, base::is_expired, base::is_resumed_, base::is_too_large;
    using base::is_undoing_here, base::look_again, base::moved_, base::now_, base::p_, base::record, base::send;
    using base::step, base::store_, base::try_again_or, base::undo_fits;

  public:
    saga_claim(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : base(store, what, std::move(at), d) {
        if (p_.owner != entry().id) {
            p_.origin = p_.origin.is_nil() ? first_entry_of(store_, entry()) : p_.origin;
            is_resumed_ = !p_.owner.is_nil() || p_.origin != entry().id;
            p_.owner = entry().id;
            p_.tries = 0;
            p_.since = now_;
            is_unsaved_ = !is_resumed_; // a checkpoint would hide that it was resumed
        }
        if (p_.steps.empty()) {
            come_to(0);
        }
    }

    [[nodiscard]] saga_ruling go_on() {
        if (p_.direction == saga_direction::back) {
            return go_back();
        }
        if (Rules::heeds_cancel() && store_.find(cancel_mark_of(p_.origin))) {
            return turn_round("cancelled");
        }
        return go_forward();
    }

    /// Time or attempts have run out for the entry as a whole.
    [[nodiscard]] saga_ruling end(ending why) {
        const std::string code = why == ending::expired ? "expired" : "attempts_exhausted";
        if (!Rules::turns_round_at_the_end()) {
            return {bury{.error = code}};
        }
        if (p_.direction == saga_direction::forward) {
            return turn_round(code);
        }
        if (why == ending::exhausted && is_undoing_here()) {
            return {bury{.error = code}};
        }
        return go_back();
    }

  private:
    // Forward.

    [[nodiscard]] saga_ruling go_forward() {
        if (p_.at == definition_.steps.size()) {
            return complete();
        }
        if (p_.is_waiting()) {
            return hear_reply();
        }
        if (record().state == step_state::undecided) {
            return choose();
        }
        return step().is_remote() ? send_forward() : run_forward();
    }

    /// Asks the step's condition. A definition that has lost it does the step.
    [[nodiscard]] saga_ruling choose() {
        bool answer = true;
        try {
            answer = !step().condition || step().condition(delivery_, step_results(p_));
        } catch (...) {
            return try_again_or(caught_here(),
                                [&](const std::string& code) { return fail_step(step_state::failed, code); });
        }
        if (Rules::is_chosen(answer)) {
            record().state = step_state::begun;
        } else {
            record().state = step_state::skipped;
            delivery_.tag("skipped " + step().name);
            come_to(Rules::after(p_.at));
            if (is_too_large()) { // turning round must always fit
                p_.steps.resize(p_.at);
                p_.at -= 1;
                return turn_round("progress_too_large");
            }
        }
        return Rules::records_answers() ? checkpoint(now_) : go_forward();
    }

    [[nodiscard]] saga_ruling run_forward() {
        if (is_unsaved_ && step().timeout > duration::zero()) {
            return checkpoint(now_); // else its time would begin anew with every claim
        }
        const auto& policy = definition_.retry_of(step());
        if (entry().attempts > attempts_max_of(entry(), policy)) {
            return fail_step(Rules::learned_from_failing(), "attempts_exhausted");
        }
        if (is_too_late(now_) && !is_first_try()) {
            return fail_step(Rules::learned_from_failing(), "timed_out");
        }
        try {
            step_call call(delivery_, p_, p_.at, {});
            record().result = step().forward(call);
        } catch (...) {
            const auto why = caught_here();
            if (why.is_permanent) {
                return fail_step(Rules::learned_from_rejecting(is_first_try()), why.code);
            }
            auto next = after_failure(entry(), why.code, policy, delivery_.time());
            const auto* const again = std::get_if<retry>(&next);
            if (again == nullptr) {
                return fail_step(Rules::learned_from_failing(), why.code);
            }
            if (is_expired(again->at)) { // there would be no further try
                return fail_step(Rules::learned_from_failing(), "expired");
            }
            return is_too_late(again->at) ? fail_step(Rules::learned_from_failing(), "timed_out")
                                          : saga_ruling{std::move(next)};
        }
        record().state = step_state::done;
        come_to(Rules::after(p_.at));
        return is_too_large() ? drop_result() : checkpoint(now_);
    }

    [[nodiscard]] saga_ruling send_forward() {
        try {
            step_call call(delivery_, p_, p_.at, {});
            if (!undo_fits(std::nullopt) || !send(step().topic, step().forward(call), Rules::key_of(p_))) {
                return fail_step(step_state::failed, "invalid_command");
            }
        } catch (...) { // nothing has been sent
            return try_again_or(caught_here(),
                                [&](const std::string& code) { return fail_step(step_state::failed, code); });
        }
        return checkpoint(*p_.deadline);
    }

    [[nodiscard]] saga_ruling hear_reply() {
        const auto command = find_command();
        if (command && is_live(command->state)) {
            return now_ < *p_.deadline ? saga_ruling{release{.at = look_again(*command, *p_.deadline)}}
                                       : turn_round("timed_out");
        }
        const auto learned = Rules::learned_from(command ? &*command : nullptr);
        forget_command();
        if (learned != step_state::done) {
            return fail_step(learned, !command ? "reply_lost" : command->last_error);
        }
        record().state = learned;
        record().result = command->result.value_or(std::string{});
        if (!undo_fits(record().result)) {
            record().result.clear();
            return fail_step(step_state::unknown, "result_too_large");
        }
        come_to(Rules::after(p_.at));
        if (is_too_large()) {
            return drop_result();
        }
        const bool executes =
            p_.at < definition_.steps.size() && !step().is_remote() && record().state == step_state::begun;
        return executes ? checkpoint(now_) : go_forward();
    }

    [[nodiscard]] saga_ruling complete() {
        auto out = finish("completed", definition_.options.completed);
        out.completes = std::holds_alternative<succeed>(out.outcome) && Rules::heeds_cancel();
        return out;
    }

    // Turning.

    [[nodiscard]] saga_ruling fail_step(step_state learned, const std::string& code) {
        record().state = learned;
        return turn_round(code);
    }

    [[nodiscard]] saga_ruling turn_round(const std::string& reason) {
        p_.direction = saga_direction::back;
        p_.reason = error_code(reason);
        p_.tries = 0;
        const bool is_at_a_step = p_.at < p_.steps.size() && !p_.is_waiting();
        if (is_at_a_step && record().state == step_state::undecided) {
            record().state = step_state::failed;
        } else if (is_at_a_step && record().state == step_state::begun) {
            const bool may_have_run = !step().is_remote();
            record().state = may_have_run ? Rules::learned_from_claims(is_first_try()) : step_state::failed;
        }
        moved_ = true;
        return go_back();
    }

    /// A result that cannot be kept cannot be handed to its compensation either: the step is undone as an unknown one.
    [[nodiscard]] saga_ruling drop_result() {
        p_.steps.resize(p_.at); // without the step it had come to, of which nothing has begun
        p_.at -= 1;
        record().result.clear();
        return fail_step(step_state::unknown, "progress_too_large");
    }

    void come_to(std::size_t next) {
        p_.at = next;
        p_.since = now_;
        if (next < definition_.steps.size() && p_.steps.size() == next) {
            const auto& coming = definition_.steps[next];
            p_.steps.push_back(
                {.name = coming.name, .state = coming.condition ? step_state::undecided : step_state::begun});
        }
    }

    /// Whether no earlier claim can have called the action whose turn it is. A checkpoint sets attempts and lapses to
    /// 0; since then every claim but this one was handed back untouched, because any other way to end leaves a trace in
    /// one of the two. What the entries did that this one was resumed from is not known.
    [[nodiscard]] bool is_first_try() const noexcept {
        return !is_resumed_ && entry().attempts == 1 && entry().lapses == 0;
    }
    [[nodiscard]] bool is_too_late(time_point at) const {
        return step().timeout > duration::zero() && at >= later(p_.since, step().timeout);
    }

    bool is_unsaved_ = false; ///< there is no checkpoint of this entry's own yet
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/inbox.hpp
// The table of messages a consumer has processed, as entries born succeeded. A message that comes again, from another
// store or a broker that delivers at least once, runs nothing and gets the stored result.
//
//   const auto reply = vouch::inbox::once(tx, "billing", message_id, now, [&] { return charge(tx); });
//
// A saga's participant hands it the command's key, not its id: a compensating command that is sent again has another
// id.
//
//   const auto key = vouch::command_of(d.entry())->key;
//   const auto reply = vouch::inbox::once(tx, "billing", key, now, [&] { return refund(tx); });
//
// Everything is in the caller's transaction: the work's writes, the mark and the result are one commit, so a crash
// half-way leaves nothing. Of two that race one commits; the other gets a `conflict`, is repeated by `transact` or the
// runner, and then finds the result. The window is as long as the entries stay: purge the queue by age.

namespace vouch {
inline namespace v0 {
namespace inbox {

/// The queue that holds what a consumer has processed. Nobody works on it.
[[nodiscard]] inline std::string queue_of(std::string_view consumer) { return "inbox." + std::string(consumer); }

/// Runs `work()`, which returns nothing or a string, once per consumer and message, and returns what it returned, now
/// or then. What `work` throws goes through, and the caller's transaction is to be rolled back.
template <class Writer, class Work>
std::string once(Writer& tx, std::string_view consumer, const id& message, time_point now, Work&& work) {
    static_assert(explain_writer<Writer>());
    if (consumer.empty()) {
        detail::refuse({"inbox", "consumer"}, "is empty");
    }
    const auto mark = derive(message, queue_of(consumer));
    if (const auto stored = tx.find(mark)) {
        return stored->result.value_or(std::string{});
    }
    std::string result;
    if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
        work();
    } else {
        static_assert(std::convertible_to<std::invoke_result_t<Work&>, std::string>,
                      "vouch: the work of inbox::once returns nothing or a string");
        result = work();
    }
    const std::array drafts{draft{.id = mark, .queue = queue_of(consumer), .topic = "processed", .result = result}};
    if (tx.enqueue(drafts, now).front().what != receipt::kind::inserted) {
        throw error(error_kind::conflict, "inbox: the message has been processed in the meantime");
    }
    return result;
}

} // namespace inbox
} // namespace v0
} // namespace vouch

// ---- vouch/saga/inspect.hpp
// Looking at a saga from outside, without its definition: its entry says how it stands.

namespace vouch {
inline namespace v0 {

struct saga_status {
    vouch::id id{};
    vouch::id origin{}; ///< the first entry of this saga, before any resume; nil: not begun
    std::string definition{};
    std::uint32_t version = 0;
    vouch::state state = vouch::state::pending; ///< of the entry
    saga_direction direction = saga_direction::forward;
    std::size_t at = 0;               ///< index of the step whose turn it is
    std::vector<step_record> steps{}; ///< those begun, with their results
    std::string reason{};             ///< why it was turned round
    std::string last_error{};         ///< of the entry: dead ones say what they are stuck with
    std::uint32_t attempts = 0;       ///< at the step whose turn it is
    std::uint32_t tries = 0;          ///< of this compensation that have failed, before this checkpoint
    vouch::id waits_for{};            ///< a command; nil: for none
    std::optional<time_point> waits_until{};
    std::string waits_in{}; ///< the command's queue and state, where a reader was given

    [[nodiscard]] bool is_completed() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::forward;
    }
    [[nodiscard]] bool is_compensated() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::back;
    }
    /// Dead: for a person, who may `resume` it.
    [[nodiscard]] bool is_stuck() const noexcept { return state == vouch::state::dead; }
    /// Of the step whose turn it is; empty: all are done, or it has not begun.
    [[nodiscard]] std::string_view step() const noexcept {
        return at < steps.size() ? std::string_view(steps[at].name) : std::string_view{};
    }
};

/// How a saga stands; nothing if the entry is none, or its progress cannot be read.
[[nodiscard]] inline std::optional<saga_status> inspect(const entry& e) {
    // The last words of one that has ended well are its result.
    const bool has_ended = e.state == state::succeeded && e.result && is_saga_progress(*e.result);
    auto p = is_saga(e) ? decode_progress(has_ended ? *e.result : e.progress) : std::nullopt;
    if (!p) {
        return std::nullopt;
    }
    return saga_status{.id = e.id,
                       .origin = p->origin,
                       .definition = std::move(p->definition),
                       .version = p->version,
                       .state = e.state,
                       .direction = p->direction,
                       .at = p->at,
                       .steps = std::move(p->steps),
                       .reason = std::move(p->reason),
                       .last_error = e.last_error,
                       .attempts = e.attempts,
                       .tries = p->tries,
                       .waits_for = p->command,
                       .waits_until = p->deadline};
}

/// The same by id, with what is known of the command it waits for.
template <class Reader>
[[nodiscard]] std::optional<saga_status> inspect(const Reader& from, const id& saga) {
    const auto found = from.find(saga);
    auto status = found ? inspect(*found) : std::nullopt;
    if (status && !status->waits_for.is_nil()) {
        const auto command = from.find(status->waits_for);
        status->waits_in = command ? command->queue + ' ' + command->topic + ' ' + std::string(name_of(command->state))
                                   : std::string("gone");
    }
    return status;
}

/// One line: no payloads and no results. Times count from `start`, in whole milliseconds.
[[nodiscard]] inline std::string to_string(const saga_status& s, time_point start = {}) {
    auto out = s.definition + " v" + std::to_string(s.version) + ' ';
    if (s.is_completed() || s.is_compensated()) {
        out += s.is_completed() ? "completed" : "compensated";
    } else {
        out += s.is_stuck() ? "dead, " : "";
        out += std::string(name_of(s.direction)) + " at ";
        out += s.step().empty() ? std::string("the end") : std::string(s.step());
    }
    if (!s.reason.empty()) {
        out += " because " + s.reason;
    }
    out += " [";
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
        out += (i == 0 ? "" : ", ") + s.steps[i].name + ' ' + std::string(name_of(s.steps[i].state));
    }
    out += ']';
    if (is_terminal(s.state)) {
        return s.is_stuck() && !s.last_error.empty() ? out + ", stuck with " + s.last_error : out;
    }
    if (s.attempts + s.tries > 0) {
        out += ", attempt " + std::to_string(s.attempts + s.tries);
    }
    if (!s.waits_for.is_nil()) {
        out += ", waits for " + (s.waits_in.empty() ? to_string(s.waits_for) : s.waits_in);
    }
    if (!s.waits_for.is_nil() && s.waits_until) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*s.waits_until - start).count();
        out += " until " + std::to_string(ms) + "ms";
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/requeue.hpp
// Beginning a dead saga anew. That is not what is usually wanted: `resume` carries a dead saga on, under the keys its
// participants know, and does nothing a second time.

namespace vouch {
inline namespace v0 {

/// Gives a dead saga a successor that is another saga with the same payload: it begins at the first step, under keys of
/// its own, and does again what the dead one has done and not undone. Inserted; duplicate of the successor it already
/// has; or refused, if it is absent, not dead, no saga, or its progress cannot be read.
template <class Writer>
[[nodiscard]] receipt requeue_saga(Writer& tx, const id& dead, const id& fresh, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(dead);
    const auto progress = found ? decode_progress(found->progress) : std::nullopt;
    if (!progress) {
        return {};
    }
    return detail::replace_dead(
        tx, found, fresh, now,
        encode_progress(
            {.definition = progress->definition, .version = progress->version, .origin = fresh, .owner = fresh}));
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/rules.hpp
// The decisions of the saga engine, each a pure function: what an ended command tells of its step, which step is to be
// undone next, when to give up. The engine (`saga.hpp`) carries them out. They are a parameter of the engine so that a
// test can replace one by a wrong one and see that it is caught; the default is what is shipped.

namespace vouch {
inline namespace v0 {

struct saga_rules {
    /// What a forward command that has ended tells of its step; null: it is gone, and nothing is known of it.
    ///
    /// A rejection says that this attempt has done nothing. It says nothing about earlier ones, so it is a known
    /// failure only if the command was claimed once. `epoch` counts every claim ever; the other counters do not:
    /// a dead entry no longer tells a claim that lapsed from one that was handed back.
    [[nodiscard]] static step_state learned_from(const entry* command) noexcept {
        if (command == nullptr) {
            return step_state::unknown;
        }
        if (command->state == state::succeeded) {
            return step_state::done;
        }
        const bool has_rejected_at_once = command->result.has_value() && command->epoch == 1;
        const bool was_never_claimed = command->epoch == 0;
        return has_rejected_at_once || was_never_claimed ? step_state::failed : step_state::unknown;
    }

    /// The same, of a command that was still live when the saga turned round.
    [[nodiscard]] static step_state learned_late(const entry* command) noexcept { return learned_from(command); }

    /// What an action in this process that has used up its attempts, or its time, tells of its step.
    [[nodiscard]] static step_state learned_from_failing() noexcept { return step_state::unknown; }

    /// What an action in this process that rejects tells of its step: as with a command, nothing of earlier tries.
    [[nodiscard]] static step_state learned_from_rejecting(bool is_first_try) noexcept {
        return is_first_try ? step_state::failed : step_state::unknown;
    }

    /// What is known of a step that was begun in this process when the saga turns round before calling it in this
    /// claim.
    [[nodiscard]] static step_state learned_from_claims(bool is_first_try) noexcept {
        return is_first_try ? step_state::failed : step_state::unknown;
    }

    /// Whether a step is done whose condition has answered; else it is skipped.
    [[nodiscard]] static bool is_chosen(bool answer) noexcept { return answer; }

    /// Whether a condition's answer is recorded before anything follows from it. Else a condition that answers
    /// otherwise later would have a step skipped that was done, or done that was skipped.
    [[nodiscard]] static bool records_answers() noexcept { return true; }

    /// The step after one that is done or skipped.
    [[nodiscard]] static std::size_t after(std::size_t step) noexcept { return step + 1; }

    /// Whether what the saga waits for may still come to something, so that nothing earlier is undone yet.
    [[nodiscard]] static bool must_wait_for(const entry& command) noexcept { return is_live(command.state); }

    /// The last step that has done something, or may have; none: all is undone.
    [[nodiscard]] static std::optional<std::size_t> next_to_undo(const saga_progress& p) noexcept {
        for (std::size_t i = p.steps.size(); i-- > 0;) {
            if (p.steps[i].state == step_state::done || p.steps[i].state == step_state::unknown) {
                return i;
            }
        }
        return std::nullopt;
    }

    /// The forward result handed to a compensation.
    [[nodiscard]] static std::string_view handed_to_undo(const saga_progress& p, std::size_t step) noexcept {
        return p.steps[step].result;
    }

    /// The idempotency key of the command that is sent for the step whose turn it is.
    [[nodiscard]] static id key_of(const saga_progress& p) noexcept {
        return saga_key(p.origin, p.steps[p.at].name, p.direction == saga_direction::back);
    }

    /// Whether a compensation whose commands have failed so often is given up.
    [[nodiscard]] static bool gives_up(std::uint32_t tries, std::uint32_t tries_max) noexcept {
        return tries >= tries_max;
    }

    /// Whether a saga on its way forward heeds a request to turn round.
    [[nodiscard]] static bool heeds_cancel() noexcept { return true; }

    /// Whether running out of time or of attempts turns the saga round; else it is buried where it stands.
    [[nodiscard]] static bool turns_round_at_the_end() noexcept { return true; }
};

} // namespace v0
} // namespace vouch

// ---- vouch/saga/saga.hpp
// The saga engine: a handler that runs one step per claim and settles it with `advance`, so that leases, fences,
// retries and dead letters are those of any entry. A saga ends succeeded, tagged `completed` or `compensated`, or dead
// where a compensation is stuck, from where `resume` goes on.
//
//   vouch::add_saga(router, store, order_saga);                       // on the runner of the saga's queue
//   outbox.emit(tx, order_saga.begin("orders", order{...}));
//
// A saga is only read when it runs, by as many threads as like, if its definitions' actions may.

namespace vouch {
inline namespace v0 {

/// The handler of all versions of one saga.
template <class Store, class Rules = saga_rules>
class saga {
  public:
    using transaction = typename Store::transaction;

    /// The store outlives the saga. Throws `invalid_argument` for definitions that cannot be run, of several names, or
    /// twice of the same version.
    saga(Store& store, std::vector<saga_definition> versions) : store_(store), versions_(std::move(versions)) {
        if (versions_.empty()) {
            detail::refuse({"saga", "definitions"}, "are none");
        }
        for (std::size_t i = 0; i < versions_.size(); ++i) {
            validate(versions_[i]);
            for (std::size_t earlier = 0; earlier < i; ++earlier) {
                if (versions_[i].name != versions_[earlier].name) {
                    detail::refuse({"saga", "definitions"}, "have different names");
                }
                if (versions_[i].options.version == versions_[earlier].options.version) {
                    detail::refuse({"saga", "version"}, "is given twice");
                }
            }
        }
    }

    static constexpr bool runs_sagas = true; ///< no other handler is given a saga that has begun

    [[nodiscard]] const std::string& topic() const noexcept { return versions_.front().name; }

    [[nodiscard]] saga_ruling work(delivery& d) const {
        return with_claim(d, [](auto& claim) { return claim.go_on(); });
    }

    /// A request to cancel that came while the saga was completing is not overlooked.
    void record(transaction& tx, const saga_ruling& ruling) const {
        if (ruling.completes && tx.find(cancel_mark_of(ruling.origin))) {
            throw failure("cancelled");
        }
    }

    [[nodiscard]] outcome ended(delivery& d, ending why) const {
        return with_claim(d, [&](auto& claim) { return claim.end(why); });
    }

  private:
    template <class Use>
    [[nodiscard]] saga_ruling with_claim(delivery& d, Use&& use) const {
        const auto& bytes = d.entry().progress;
        const bool is_new = bytes.empty();
        const auto decoded = is_new ? std::optional{saga_progress{}} : decode_progress(bytes);
        if (!decoded) {
            return look_again(d, "unreadable_progress");
        }
        if (!is_new && decoded->definition != topic()) {
            return look_again(d, "unknown_definition");
        }
        const auto* const definition = is_new ? newest() : find(decoded->version);
        if (definition == nullptr || !fits(*decoded, *definition)) {
            return look_again(d, "unknown_version");
        }
        auto progress = *decoded;
        progress.definition = definition->name;
        progress.version = definition->options.version;
        if (definition->check) {
            try {
                definition->check(d);
            } catch (const reject&) {
                if (progress.steps.empty() && d.attempt() == 1 && d.entry().lapses == 0) {
                    throw; // nothing has been done
                }
                return look_again(d, "undecodable");
            }
        }
        try {
            detail::saga_claim<Store, Rules> claim(store_, *definition, std::move(progress), d);
            return use(claim);
        } catch (const error& e) { // the store's trouble, not the step's: it costs no attempt
            return look_again(d, std::string(name_of(e.kind())));
        }
    }

    [[nodiscard]] static saga_ruling look_again(delivery& d, std::string tag) {
        d.tag(std::move(tag));
        return {release{.at = later(d.now(), saga_look_again)}};
    }

    /// Steps that have been changed without changing the version are another version all the same.
    [[nodiscard]] static bool fits(const saga_progress& p, const saga_definition& d) noexcept {
        const bool is_at_its_end = p.at == p.steps.size() && !p.steps.empty();
        return p.steps.size() <= d.steps.size() && (!is_at_its_end || p.at == d.steps.size()) &&
               std::equal(p.steps.begin(), p.steps.end(), d.steps.begin(),
                          [](const step_record& begun, const saga_step& step) { return begun.name == step.name; });
    }

    [[nodiscard]] const saga_definition* find(std::uint32_t version) const noexcept {
        for (const auto& d : versions_) {
            if (d.options.version == version) {
                return &d;
            }
        }
        return nullptr;
    }
    [[nodiscard]] const saga_definition* newest() const noexcept {
        return &*std::max_element(versions_.begin(), versions_.end(),
                                  [](const auto& a, const auto& b) { return a.options.version < b.options.version; });
    }

    Store& store_;
    std::vector<saga_definition> versions_;
};

/// Lets the router hand entries of this saga, of any of these versions, to the engine. The store outlives the router.
template <class Store, class Rules = saga_rules>
router<Store>& add_saga(router<Store>& to, Store& store, std::vector<saga_definition> versions) {
    saga<Store, Rules> handler(store, std::move(versions));
    auto topic = handler.topic();
    // Steps have policies of their own; the route's is for what goes wrong between them.
    return to.on(std::move(topic), std::move(handler),
                 retry_policy{.backoff = exponential{.base = std::chrono::seconds{1}, .max = saga_look_again},
                              .attempts_max = std::numeric_limits<std::uint32_t>::max()});
}
template <class Store>
router<Store>& add_saga(router<Store>& to, Store& store, saga_definition only) {
    return add_saga(to, store, std::vector{std::move(only)});
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/webhook.hpp
// Webhook deliveries: one entry per (event, subscription), however often the event is routed; limits and delays of each
// subscription, as they are at the time of the attempt, over defaults; dead letters in the same transaction as the
// death; a requeue that begins anew. Its words, for those who know them as a delivery saga:
//
//   status Pending, InProgress, PendingRetry, Completed, DeadLettered    state pending, claimed, retrying, succeeded,
//   dead attempt_count        failures, and one more if it succeeded next_attempt_at      due_at final_error_code
//   last_error: of the last failed attempt; kept after a success
//
// The handler knows nothing of HTTP: it is given a function that sends. It is only read when it runs, by as many
// threads as like, if that function may.

namespace vouch {
inline namespace v0 {

class webhook {
  public:
    static constexpr std::string_view topic = "webhook";

    struct subscription {
        std::string id{};
        std::string url{};
        std::uint32_t attempts_max = 0; ///< 0: as many as its own schedule has delays, and one; else the default
        std::optional<vouch::backoff> backoff{}; ///< unset: the default
    };

    /// What is to be sent.
    struct request {
        vouch::id id{}; ///< the idempotency key: the same for every attempt
        std::string event{};
        webhook::subscription subscription{};
        std::string body{};
        std::uint32_t attempt = 0; ///< counted from 1
    };

    /// Nothing: there is no such subscription any more.
    using lookup = std::function<std::optional<subscription>(std::string_view id)>;
    /// Sends, and gives the status of the response. Whatever it throws is a failed attempt.
    using sender = std::function<int(const request&)>;

    webhook(lookup subscriptions, sender send, retry_policy defaults = {})
        : subscriptions_(std::move(subscriptions)), send_(std::move(send)), defaults_(std::move(defaults)) {}

    /// For the route: `router.on(std::string(webhook::topic), hook, hook.retry())`. It sets no limit of its own: the
    /// subscription does, at each attempt. A route without it cuts every subscription at the runner's limit.
    [[nodiscard]] retry_policy retry() const {
        return {.backoff = defaults_.backoff, .attempts_max = std::numeric_limits<std::uint32_t>::max()};
    }

    /// What holds for a subscription: what it says, over the defaults.
    [[nodiscard]] retry_policy retry_of(const subscription& s) const {
        const bool has_schedule = s.backoff && s.backoff->attempts();
        const auto otherwise = has_schedule ? *s.backoff->attempts() : attempts_max_of(entry{}, defaults_);
        return {.backoff = s.backoff ? s.backoff : defaults_.backoff,
                .attempts_max = s.attempts_max != 0 ? s.attempts_max : otherwise};
    }

    /// The delivery of an event to a subscription, to be emitted in the transaction of the event. The same pair again
    /// is a duplicate, as long as the first is stored. Nothing of the subscription but its id is stored.
    [[nodiscard]] static emission of(std::string queue, const std::string& event, const subscription& to,
                                     std::string body) {
        if (event.empty() || to.id.empty()) {
            detail::refuse({"webhook", event.empty() ? "event" : "subscription"}, "is empty");
        }
        return {.queue = std::move(queue),
                .topic = std::string(topic),
                .payload = std::move(body),
                // The length keeps ("a/b", "c") and ("a", "b/c") apart.
                .key = std::to_string(event.size()) + '/' + event + '/' + to.id,
                .headers = {{"webhook-event", event}, {"webhook-subscription", to.id}}};
    }

    /// 2xx is a success, anything else a failed attempt with the code `http_<status>`. A subscription that is gone ends
    /// it at once, and so does one whose limit lies below the attempts there were.
    [[nodiscard]] outcome operator()(delivery& d) const {
        const auto event = d.header("webhook-event");
        const auto to = d.header("webhook-subscription");
        if (!event || !to) {
            throw reject("no_webhook");
        }
        const auto known = subscriptions_(*to);
        if (!known) {
            throw reject("no_subscription");
        }
        const auto policy = retry_of(*known);
        if (d.attempt() > attempts_max_of(d.entry(), policy)) {
            return bury{.error = "attempts_exhausted"};
        }
        std::string code;
        try {
            const int status = send_({.id = d.id(),
                                      .event = std::string(*event),
                                      .subscription = *known,
                                      .body = d.payload(),
                                      .attempt = d.attempt()});
            if (status >= 200 && status < 300) {
                return succeed{};
            }
            code = "http_" + std::to_string(status);
        } catch (...) {
            const auto why = detail::caught::current();
            if (why.is_permanent) {
                throw;
            }
            code = why.code;
            d.explain(why.text);
        }
        return after_failure(d.entry(), code, policy, d.time());
    }

    /// For `runner::audit`: calls `hook(transaction, audit_line)` for every delivery that is given up, in the
    /// transaction in which it dies. If it throws, the delivery is not dead yet; it is settled again later.
    template <class Transaction, class Hook>
    [[nodiscard]] static audit_sink<Transaction> dead_letters(Hook&& hook) {
        return [hook = std::forward<Hook>(hook)](Transaction& tx, const audit_line& line) {
            if (line.what == audit_line::kind::dead && line.topic == topic) {
                hook(tx, line);
            }
        };
    }

  private:
    lookup subscriptions_;
    sender send_;
    retry_policy defaults_;
};

} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_SAGA
