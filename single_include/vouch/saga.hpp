// SPDX-License-Identifier: MIT
// Sagas on any store: definitions, remote participants, inspection. `router.on(definition)` runs them.
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

// ---- vouch/saga/compensation.hpp
// The payload of a compensating command, unless the definition makes its own: the saga's payload and the reply to the
// forward command. A participant receives it as a value:
//
//   router.on<vouch::compensation>("refund", [](const vouch::compensation& c, vouch::delivery& d) {
//       refund(c.context_as<order>(), c.reply);
//   });
//
// Its bytes: the length of the context in decimal, `+` if there is a reply or `-` if there is none, the context, and the
// reply.

namespace vouch {
inline namespace v0 {

struct compensation {
    std::string context{};              ///< the saga's payload
    std::optional<std::string> reply{}; ///< nothing: it is not known whether the forward command had an effect

    /// The context, decoded. Throws `reject("undecodable")` if the codec throws anything but a `failure`.
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

// ---- vouch/saga/detail/field_codec.hpp
// The bytes of a saga's progress: a mark, a format number, the saga's origin, fields and a checksum. A field is a number,
// a length and a content. Empty contents are not written.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Appends a number in groups of seven bits, lowest first.
inline void append_number(std::string& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        to.push_back(static_cast<char>((value & 0x7fU) | 0x80U));
    }
    to.push_back(static_cast<char>(value));
}

class field_writer {
  public:
    explicit field_writer(const id& origin) : out_(saga_progress_mark) {
        out_.push_back(saga_progress_format);
        const auto raw = origin.bytes();
        out_.append(raw.begin(), raw.end());
    }

    template <class Field>
    void bytes(Field field, std::string_view content) {
        if (!content.empty()) {
            append_number(out_, static_cast<std::uint64_t>(field));
            append_number(out_, content.size());
            out_ += content;
        }
    }
    template <class Field>
    void number(Field field, std::uint64_t value) {
        std::string content;
        append_number(content, value);
        bytes(field, value == 0 ? std::string_view{} : std::string_view(content));
    }
    template <class Field>
    void time(Field field, time_point value) {
        number(field, static_cast<std::uint64_t>(value.time_since_epoch().count()));
    }
    template <class Field>
    void identity(Field field, const id& value) {
        const auto raw = value.bytes();
        bytes(field, value.is_nil() ? std::string_view{} : std::string_view(std::string(raw.begin(), raw.end())));
    }

    [[nodiscard]] std::string finish() && {
        const auto sum = checksum(out_);
        for (int shift = 0; shift < 32; shift += 8) {
            out_.push_back(static_cast<char>((sum >> shift) & 0xffU));
        }
        return std::move(out_);
    }

  private:
    std::string out_;
};

/// The fields between origin and checksum of a progress that has a `saga_origin`.
[[nodiscard]] inline std::string_view progress_fields(std::string_view bytes) noexcept {
    constexpr std::size_t head = saga_progress_mark.size() + 1 + 16;
    return bytes.substr(head, bytes.size() - head - checksum_size);
}

/// Reads fields, or the content of one. Once something is missing, `ok` stays false.
class field_reader {
  public:
    explicit field_reader(std::string_view from) noexcept : rest_(from) {}

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

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/progress.hpp
// The progress of a saga, as each checkpoint stores it in the saga's entry: a plain value and its bytes.
//
// A reader passes over fields it does not know, so an older runner can read what a newer one of the same format wrote.
// All other bytes that `encode_progress` did not write are rejected by `decode_progress`.
//
// Invariants of a decoded progress: `at` is at most the number of steps that have begun, and `definition` is not empty.

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

// ---- vouch/saga/step_results.hpp
// The results of the steps so far, for a step's condition and for its action. A step_results is a view of the saga's
// progress: do not keep it, or the views it returns, beyond the call that receives it.

namespace vouch {
inline namespace v0 {

class step_results {
  public:
    /// Made by the engine.
    explicit step_results(const saga_progress& p) noexcept : progress_(p) {}

    /// The result of a step; nothing unless that step is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> of(std::string_view step) const noexcept {
        const auto* const record = find(step);
        return record != nullptr && record->state == step_state::done ? std::optional<std::string_view>(record->result)
                                                                      : std::nullopt;
    }
    /// The same, decoded. Throws `reject("undecodable_result")` if the codec throws anything but a `failure`.
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
    /// Whether the step was skipped because its condition was false.
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

// ---- vouch/saga/step_call.hpp
// The argument of a step's action: the saga's context, the idempotency key of the action, the results of the earlier
// steps and, for a compensation, the result of the forward action it undoes.
//
// A step_call is valid during one call of one action and is used by one thread.

namespace vouch {
inline namespace v0 {

class step_call {
  public:
    /// Made by the engine. All arguments outlive the call.
    step_call(const delivery& d, const saga_progress& p, std::size_t step, std::string_view result) noexcept
        : delivery_(d), progress_(p), step_(step), result_(result) {}
    step_call(const step_call&) = delete;
    step_call& operator=(const step_call&) = delete;

    /// The saga's id: that of its first entry. A resume does not change it.
    [[nodiscard]] const id& saga() const noexcept { return progress_.origin; }
    /// The step's name.
    [[nodiscard]] const std::string& step() const noexcept { return progress_.steps[step_].name; }
    /// Whether this call undoes the step.
    [[nodiscard]] bool is_compensation() const noexcept { return progress_.direction == saga_direction::back; }
    /// The idempotency key to pass on to the service the action calls. It is the same for every attempt of this action
    /// of this saga, also after a resume.
    [[nodiscard]] id key() const noexcept { return saga_key(saga(), step(), is_compensation()); }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return delivery_.attempt(); } ///< counted from 1
    /// When the engine was called for this claim.
    [[nodiscard]] time_point now() const noexcept { return delivery_.now(); }
    /// A stop is requested when the worker stops or the claim is lost, as for `delivery::stop`.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return delivery_.stop(); }
    /// The saga's payload, decoded.
    template <decodable T>
    [[nodiscard]] T as() const {
        return delivery_.as<T>();
    }
    /// The saga's payload.
    [[nodiscard]] const std::string& payload() const noexcept { return delivery_.payload(); }

    /// Why the saga compensates: an error code. Empty on the way forward.
    [[nodiscard]] const std::string& reason() const noexcept { return progress_.reason; }
    /// For a compensation: whether the forward action is known to have succeeded. If not, there is no result, and there
    /// may be nothing to undo.
    [[nodiscard]] bool is_known() const noexcept { return progress_.steps[step_].state == step_state::done; }
    /// The result of the forward action that this call undoes. Empty on the way forward, and if it is not known.
    [[nodiscard]] std::string_view result() const noexcept { return result_; }
    /// `result()`, decoded. Throws `reject("undecodable_result")` if the codec throws anything but a `failure`.
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
    /// The result of another step; nothing unless that step is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> result_of(std::string_view step) const noexcept {
        return results().of(step);
    }
    /// The results of all steps so far.
    [[nodiscard]] step_results results() const noexcept { return step_results(progress_); }

  private:
    const delivery& delivery_;
    const saga_progress& progress_;
    std::size_t step_;
    std::string_view result_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/saga/definition.hpp
// The definition of a saga: named steps, each with a forward action and a compensation, in this process or at a remote
// participant; retries and timeouts; the topics emitted at the end. A definition is a plain value, usually made by
// `define_saga` (`builder.hpp`). Any number of threads may use a definition, if its actions allow that.
//
// Give a definition another version whenever you change its steps or their conditions: a saga continues with the
// version it began with, or not at all.

namespace vouch {
inline namespace v0 {

/// An action: does its work and returns its result as bytes. It throws `reject` if it has done nothing and never will;
/// after any other exception it is called again by policy.
using step_action = std::function<std::string(step_call&)>;

/// Decides whether a step runs. It must be a pure function: the same context and results give the same answer. It is
/// called when the step is next. Its answer is stored before anything follows from it, and then it is not called again.
/// If it throws, the step fails without an effect.
using step_condition = std::function<bool(const delivery&, const step_results&)>;

/// Options of a step in this process.
struct step_options {
    std::optional<retry_policy> retry{}; ///< unset: the saga's
    duration timeout{};                  ///< for the step with all its retries; 0: none
};

/// Options of a step at a remote participant. Commands are entries in the participant's queue in the same store, and the
/// end of a command is its reply.
struct command_options {
    std::string queue{}; ///< of the participant; required
    std::string topic{}; ///< of the forward command; required
    std::string undo{};  ///< topic of the compensating command; empty: there is none
    /// `attempts_max` applies to each command; the whole policy applies to sending the compensating command again.
    std::optional<retry_policy> retry{};
    duration timeout = std::chrono::hours{1}; ///< how long to wait for the reply, from the sending of the command
};

/// One step, as the builder makes it.
struct saga_step {
    std::string name{};
    step_action forward{};    ///< in this process: the action; for a command: makes its payload
    step_action undo{};       ///< likewise for the compensation; empty: there is none
    std::string queue{};      ///< of the participant; empty: the step runs in this process
    std::string topic{};      ///< of the forward command
    std::string undo_topic{}; ///< of the compensating command
    std::optional<retry_policy> retry{};
    duration timeout{};
    bool carries_compensation = false; ///< the payload of the compensating command is a `compensation`
    step_condition condition{};        ///< empty: the step always runs
    bool is_otherwise = false;         ///< the step runs exactly if the one before it is skipped

    [[nodiscard]] bool is_remote() const noexcept { return !queue.empty(); }
    [[nodiscard]] bool has_undo() const noexcept { return static_cast<bool>(undo); }
};

struct saga_options {
    std::uint32_t version = 1; ///< counts from 1
    std::string completed{};   ///< topic to emit when all steps are done; empty: none
    std::string compensated{}; ///< topic to emit when everything is undone; empty: none
    std::string queue{};       ///< the queue of these two; empty: every queue bound to the topic
    retry_policy retry{};      ///< of steps without their own
};

/// Prefix of the groups that sagas share with their commands.
inline constexpr std::string_view saga_group_prefix = "saga:";

struct saga_definition {
    std::string name{}; ///< also the topic of its entries
    saga_options options{};
    std::vector<saga_step> steps{};
    std::function<void(const delivery&)> check{}; ///< throws `reject` if the payload cannot be decoded

    [[nodiscard]] const retry_policy& retry_of(const saga_step& s) const { return s.retry ? *s.retry : options.retry; }

    [[nodiscard]] bool has_commands() const noexcept {
        return std::any_of(steps.begin(), steps.end(), [](const saga_step& s) { return s.is_remote(); });
    }

    /// The emission that starts this saga, as `outbox.start(saga, queue, context)` emits it. `how` names the queue, and
    /// whatever else an emission may say; topic, payload and progress come from here.
    ///
    /// A saga that sends commands gets a group of its own, which its commands share: that keeps a purge from removing a
    /// reply before the saga has read it. The group's name begins with `saga_group_prefix`, and its completion is
    /// reported like that of any other group. If `how` names another group, or the store has no groups, keep the
    /// participants' ended entries for longer than a saga takes: a reply that is gone counts as unknown.
    [[nodiscard]] emission begin(const emitter& from, emission how, std::string payload) const {
        how.topic = name;
        how.payload = std::move(payload);
        how.progress = encode_progress({.definition = name, .version = options.version});
        if (how.group.empty() && has_commands()) {
            how.group = std::string(saga_group_prefix) + to_string(from.fresh_id());
        }
        return how;
    }
    template <encodable Context>
    [[nodiscard]] emission begin(const emitter& from, emission how, const Context& context) const {
        return begin(from, std::move(how), encode(context));
    }
};

/// Throws `invalid_argument` for a definition that cannot run.
inline void validate(const saga_definition& d) {
    const auto name_max = limits{}.name_max;
    detail::check_required_name({"saga", "name"}, d.name, name_max);
    detail::check_name({"saga", "completed"}, d.options.completed, name_max);
    detail::check_name({"saga", "compensated"}, d.options.compensated, name_max);
    detail::check_name({"saga", "queue"}, d.options.queue, name_max);
    if (d.options.version == 0) {
        detail::refuse({"saga", "version"}, "is 0; versions count from 1");
    }
    if (d.steps.empty()) {
        detail::refuse({"saga", "steps"}, "are none; a saga needs at least one");
    }
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        detail::check_required_name({"saga step", "name", i}, s.name, name_max);
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            if (d.steps[earlier].name == s.name) {
                detail::refuse({"saga step", "name", i}, "is also the name of step " + std::to_string(earlier));
            }
        }
        if (!s.forward) {
            detail::refuse({"saga step", "forward action", i}, "is missing");
        }
        if (s.is_otherwise && (i == 0 || !d.steps[i - 1].condition)) {
            detail::refuse({"saga step", "otherwise", i}, "needs a step with a condition before it");
        }
        if (s.timeout < duration::zero()) {
            detail::refuse({"saga step", "timeout", i}, "is negative");
        }
        if (s.is_remote()) {
            detail::check_required_name({"saga step", "queue", i}, s.queue, name_max);
            detail::check_required_name({"saga step", "topic", i}, s.topic, name_max);
            detail::check_name({"saga step", "undo topic", i}, s.undo_topic, name_max);
            if (s.timeout == duration::zero()) {
                detail::refuse({"saga step", "timeout", i}, "is 0; a command needs one");
            }
        }
    }
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/action.hpp
// The forms in which a definition accepts actions and conditions, and their conversion to `step_action` and
// `step_condition`.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class F, class Context>
concept action_of = std::invocable<F&, const Context&, step_call&> || std::invocable<F&, const Context&> ||
    std::invocable<F&, step_call&> || std::invocable<F&>;

template <class F, class Context>
concept condition_of = std::predicate<F&, const Context&, const step_results&> || std::predicate<F&, const Context&> ||
    std::predicate<F&, const step_results&>;

/// Wraps a condition of any accepted form.
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
[[nodiscard]] decltype(auto) call_action(F& f, step_call& call) {
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

/// Wraps an action of any accepted form, and encodes its result.
template <class Context, class F>
[[nodiscard]] step_action make_action(F&& given) {
    static_assert(action_of<std::decay_t<F>, Context>,
                  "vouch: an action takes `const Context&`, then `step_call&`; either may be left out");
    return [f = std::forward<F>(given)](step_call& call) mutable -> std::string {
        using returned = std::remove_cvref_t<decltype(call_action<Context>(f, call))>;
        if constexpr (std::is_void_v<returned>) {
            call_action<Context>(f, call);
            return {};
        } else if constexpr (std::convertible_to<returned, std::string_view>) {
            return std::string(std::string_view(call_action<Context>(f, call)));
        } else {
            static_assert(encodable<returned>, "vouch: an action returns nothing, a string, or a value with a codec");
            return encode(call_action<Context>(f, call));
        }
    };
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/builder.hpp
// Builds the definition of a saga, step by step:
//
//   const auto order_saga = vouch::define_saga<order>("order", {.completed = "order.confirmed"})
//       .step("payment", charge, refund)                                                   // in this process
//       .step("gift wrap", wrap).when([](const order& o) { return o.is_gift; })            // may be skipped
//       .command("shipping", {.queue = "shipping", .topic = "schedule", .undo = "cancel"}) // at a participant
//       .build();

namespace vouch {
inline namespace v0 {

/// Builds a definition. `Context` is the type of the saga's payload.
///
/// An action is callable with `const Context&` and `step_call&`, in this order; either may be left out. It returns
/// nothing, a string, or a value with a codec.
template <decodable Context>
class saga_builder {
  public:
    /// Use `define_saga`.
    saga_builder(std::string name, saga_options options) {
        made_.name = std::move(name);
        made_.options = std::move(options);
        made_.check = [](const delivery& d) { static_cast<void>(d.as<Context>()); };
    }

    /// Adds a step in this process, without or with a compensation.
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

    /// Adds a step at a participant. The payload of the forward command is the saga's payload; the payload of the
    /// compensating command is a `compensation`: the saga's payload and the forward command's reply. If both together
    /// exceed the store's limit for a payload, the step fails and the saga compensates.
    saga_builder& command(std::string name, command_options how) {
        return command(std::move(name), std::move(how), [](step_call& call) { return call.payload(); });
    }
    /// The same with payloads made by these actions.
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

    /// Makes the last step conditional: it is skipped unless `condition` returns true. The condition is a pure function
    /// of `const Context&` and `const step_results&`, in this order; either may be left out. See `step_condition`.
    template <class Condition>
    saga_builder& when(Condition&& condition) {
        last("when").condition = detail::make_condition<Context>(std::forward<Condition>(condition));
        return *this;
    }
    /// Makes the last step the alternative to the conditional step before it: exactly one of the two runs.
    saga_builder& otherwise() {
        auto& step = last("otherwise");
        step.is_otherwise = true;
        const auto before = made_.steps.size() > 1 ? made_.steps[made_.steps.size() - 2].name : std::string{};
        step.condition = [before](const delivery&, const step_results& results) { return results.is_skipped(before); };
        return *this;
    }

    /// Returns the definition. Throws `invalid_argument` if it cannot run.
    [[nodiscard]] saga_definition build() const {
        validate(made_);
        return made_;
    }

  private:
    [[nodiscard]] saga_step& last(const char* wanted_by) {
        if (made_.steps.empty()) {
            detail::refuse({"saga step", wanted_by, 0}, "has no step before it");
        }
        if (made_.steps.back().condition) {
            detail::refuse({"saga step", wanted_by, made_.steps.size() - 1}, "is a second condition");
        }
        return made_.steps.back();
    }

    saga_definition made_;
};

/// Begins a definition. Entries of the saga have `name` as their topic.
template <decodable Context>
[[nodiscard]] saga_builder<Context> define_saga(std::string name, saga_options options = {}) {
    return {std::move(name), std::move(options)};
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/command.hpp
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

// ---- vouch/saga/inspect.hpp
// The status of a saga, read from its entry. The saga's definition is not needed.

namespace vouch {
inline namespace v0 {

struct saga_status {
    vouch::id id{};
    vouch::id origin{}; ///< the saga's first entry, before any resume; nil before the first checkpoint
    std::string definition{};
    std::uint32_t version = 0;
    vouch::state state = vouch::state::pending; ///< of the entry
    saga_direction direction = saga_direction::forward;
    std::size_t at = 0;                      ///< index of the current step
    std::vector<step_record> steps{};        ///< the steps that have begun, with their results
    std::string reason{};                    ///< why the saga compensates; empty on the way forward
    std::string last_error{};                ///< of the entry; says why a dead saga is stuck
    std::uint32_t attempts = 0;              ///< of the current step, since the last checkpoint
    std::uint32_t tries = 0;                 ///< failed attempts of the current compensation before the last checkpoint
    vouch::id waits_for{};                   ///< the command whose reply the saga waits for; nil: none
    std::optional<time_point> waits_until{}; ///< that command's timeout
    std::string waits_in{}; ///< that command's queue, topic and state; only set by `inspect(reader, id)`

    [[nodiscard]] bool is_completed() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::forward;
    }
    [[nodiscard]] bool is_compensated() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::back;
    }
    /// Dead: an operator must remove the cause and `resume` it.
    [[nodiscard]] bool is_stuck() const noexcept { return state == vouch::state::dead; }
    /// The current step's name; empty if all steps are done or the saga has not begun.
    [[nodiscard]] std::string_view step() const noexcept {
        return at < steps.size() ? std::string_view(steps[at].name) : std::string_view{};
    }
};

/// The status of a saga; nothing if the entry is not a saga or its progress cannot be read.
[[nodiscard]] inline std::optional<saga_status> inspect(const entry& e) {
    // A saga that has succeeded keeps its final progress as its result.
    const bool has_succeeded = e.state == state::succeeded && e.result && is_saga_progress(*e.result);
    auto p = is_saga(e) ? decode_progress(has_succeeded ? *e.result : e.progress) : std::nullopt;
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

/// The same by id, including the state of the command the saga waits for. `Reader` is a store or a transaction.
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

/// The status as one line, without payloads and results. Times are in milliseconds since `start`.
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
// Starts a dead saga again from its first step. Usually `resume` is what is wanted: it continues a dead saga under the
// keys that its participants know, and repeats nothing.

namespace vouch {
inline namespace v0 {

/// Gives a dead saga a successor that is another saga with the same payload: it starts at the first step, under keys of
/// its own, and repeats what the dead one has done and not undone. `resume` is usually what is wanted. Returns
/// inserted; duplicate of the successor it already has; or refused, if the entry is absent, not dead, not a saga, or
/// its progress cannot be read.
template <class Writer>
[[nodiscard]] receipt requeue_saga(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    const auto progress = found ? decode_progress(found->progress) : std::nullopt;
    if (!progress) {
        return {};
    }
    return detail::replace_dead(tx, found, r,
                                encode_progress({.definition = progress->definition,
                                                 .version = progress->version,
                                                 .origin = r.successor,
                                                 .owner = r.successor}));
}

} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/outcome.hpp
// The result of one claim of a saga: the outcome to settle, and what must hold when it is settled.

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_outcome {
    vouch::outcome outcome{};
    bool completes = false; ///< the settle fails if a cancellation of the saga has been requested
    id origin{};            ///< the saga's first entry

    operator vouch::outcome() const { return outcome; } // NOLINT: implicit, because a handler returns it
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/claim_state.hpp
// The state of one claim of one saga, and the ways in which a claim ends. The forward pass, the compensation pass and
// the command channel all work on it.
//
// A claim is handled by one thread.

namespace vouch {
inline namespace v0 {
namespace detail {

/// How long a saga that cannot continue now, or that waits for a command that does not wake it, waits before it is
/// claimed again.
inline constexpr duration saga_recheck_interval = std::chrono::minutes{1};

template <class Store>
class claim_state {
  public:
    claim_state(Store& in, const saga_definition& what, saga_progress at, vouch::delivery& d)
        : store(in), definition(what), delivery(d), now(d.now()), progress(std::move(at)) {
        if (progress.owner != entry().id) {
            take_over();
        }
        if (progress.steps.empty()) {
            begin_step(0);
        }
    }
    claim_state(const claim_state&) = delete;
    claim_state& operator=(const claim_state&) = delete;

    Store& store;
    const saga_definition& definition;
    vouch::delivery& delivery;
    time_point now;
    saga_progress progress;
    bool is_changed = false; ///< what has been learned since the last checkpoint must be kept before an action runs
    bool is_resumed = false; ///< this entry resumes a dead one and has written no checkpoint yet
    bool is_unsaved = false; ///< this entry is the saga's first and has written no checkpoint yet

    [[nodiscard]] const vouch::entry& entry() const noexcept { return delivery.entry(); }
    [[nodiscard]] const saga_step& step() const { return definition.steps[progress.at]; }
    [[nodiscard]] step_record& record() { return progress.steps[progress.at]; }
    [[nodiscard]] const retry_policy& policy() const { return definition.retry_of(step()); }

    /// Makes `next` the current step.
    void begin_step(std::size_t next) {
        progress.at = next;
        progress.since = now;
        if (next < definition.steps.size() && progress.steps.size() == next) {
            const auto& begun = definition.steps[next];
            progress.steps.push_back(
                {.name = begun.name, .state = begun.condition ? step_state::undecided : step_state::begun});
        }
    }

    /// Whether no earlier claim can have called the current action. A checkpoint sets attempts and lapses to 0; since
    /// then every claim but this one was released unhandled, because any other end leaves a trace in one of the two.
    /// What the entries before a resume did is not known.
    [[nodiscard]] bool is_first_attempt() const noexcept {
        return !is_resumed && entry().attempts == 1 && entry().lapses == 0;
    }
    [[nodiscard]] bool is_expired(time_point at) const noexcept {
        return entry().expires_at && at >= *entry().expires_at;
    }
    /// Whether the progress is too large to continue forward. Some room is reserved, so that compensating always fits.
    [[nodiscard]] bool is_too_large() const {
        constexpr std::size_t room = 512;
        return encode_progress(progress).size() + room > store.capabilities().limits.progress_max;
    }

    /// The exception being handled. Call it inside a catch clause.
    [[nodiscard]] caught_exception current_exception() {
        auto why = caught_exception::current();
        delivery.explain(why.text);
        return why;
    }

    // Ways to end a claim.

    [[nodiscard]] saga_outcome checkpoint(time_point due_at) {
        return {advance{.progress = encode_progress(progress), .at = due_at}};
    }

    [[nodiscard]] saga_outcome wait_until(time_point at) {
        return is_changed ? checkpoint(at) : saga_outcome{release{.at = at}};
    }

    /// Retries the current action if the step's policy allows it; otherwise calls `give_up(code)`.
    template <class GiveUp>
    [[nodiscard]] saga_outcome retry_or(const caught_exception& why, GiveUp&& give_up) {
        if (why.is_permanent) {
            return give_up(why.code);
        }
        const auto attempts = entry().attempts + progress.tries;
        const auto delay = delay_after(policy(), entry().id, attempts);
        if (attempts >= attempts_max_of(entry(), policy()) || !delay) {
            return give_up(why.code);
        }
        const auto at = later(delivery.time(), *delay);
        if (progress.direction == saga_direction::back && now < at && is_expired(at) && !is_expired(now)) {
            // Compensation continues after the expiry; the runner would turn a retry at that time into `expired`.
            progress.tries = attempts;
            return checkpoint(at);
        }
        return {retry{.error = why.code, .at = at}};
    }

    /// Ends the saga with the tag `how`, and emits `topic` unless it is empty.
    [[nodiscard]] saga_outcome finish(const std::string& how, const std::string& topic) {
        if (!topic.empty()) {
            header_list headers{{std::string(saga_header), to_string(progress.origin)}};
            if (!progress.reason.empty()) {
                headers.emplace_back("saga-reason", progress.reason);
            }
            delivery.emit({.queue = definition.options.queue,
                           .topic = topic,
                           .payload = delivery.payload(),
                           .headers = std::move(headers)});
            try {
                validate(delivery.emitted(), store.capabilities());
            } catch (const error& e) { // the steps' work is done, so the saga waits until the topic is bound
                delivery.tag(e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission");
                return {release{.at = later(now, saga_recheck_interval)}};
            }
        }
        delivery.tag(how);
        return {succeed{.result = final_progress()}, false, progress.origin};
    }

  private:
    void take_over() {
        progress.origin = progress.origin.is_nil() ? first_entry_of(store, entry()) : progress.origin;
        is_resumed = !progress.owner.is_nil() || progress.origin != entry().id;
        progress.owner = entry().id;
        progress.tries = 0;
        progress.since = now;
        is_unsaved = !is_resumed; // a checkpoint would hide that the saga was resumed
    }

    /// The progress at the end, without the steps' results if it is larger than a result may be.
    [[nodiscard]] std::string final_progress() {
        auto bytes = encode_progress(progress);
        if (bytes.size() > store.capabilities().limits.result_max) {
            for (auto& s : progress.steps) {
                s.result.clear();
            }
            bytes = encode_progress(progress);
        }
        return bytes;
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/command_channel.hpp
// The commands of a claimed saga to its remote participants: sends a command, finds it again, cancels it. A command
// that has ended never changes, so whatever is read of it then is final.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class command_channel {
  public:
    explicit command_channel(claim_state<Store>& claim) noexcept : claim_(claim) {}

    /// The command the saga waits for, if it is stored.
    [[nodiscard]] std::optional<vouch::entry> find() const {
        auto found = claim_.store.find(progress().command);
        // An entry with another parent was not sent by this saga, although it has the same id.
        return found && found->parent == progress().sender ? found : std::nullopt;
    }

    /// Cancels the command, unless it has ended or is claimed. Returns the command as it is afterwards, which is final
    /// unless it is live.
    [[nodiscard]] std::optional<vouch::entry> cancel(const std::string& code) {
        auto found = find();
        if (found && is_live(found->state)) {
            static_cast<void>(
                transact(claim_.store, [&](auto& tx) { return tx.cancel(progress().command, code, claim_.now); }));
            found = find();
        }
        return found;
    }

    /// Sends a command to the current step's participant. Returns false, and sends nothing, if the store would refuse
    /// the command.
    [[nodiscard]] bool send(const std::string& topic, std::string payload, const id& key) {
        const auto& to = claim_.step();
        auto headers = headers_of({.key = key,
                                   .saga = progress().origin,
                                   .step = to.name,
                                   .number = progress().at + 1,
                                   .is_compensation = progress().direction == saga_direction::back});
        const auto& saga = claim_.entry();
        try {
            validate(draft{.id = saga.id, .queue = to.queue, .topic = topic, .payload = payload, .headers = headers},
                     claim_.store.capabilities());
        } catch (const error&) {
            return false;
        }
        progress().command = claim_.delivery.emit({.queue = to.queue,
                                                   .topic = topic,
                                                   .payload = std::move(payload),
                                                   .group = group(),
                                                   .lane = lane(),
                                                   .parent = saga.id,
                                                   .attempts_max = claim_.policy().attempts_max,
                                                   .headers = std::move(headers)});
        progress().sender = saga.id;
        progress().deadline = later(claim_.now, to.timeout);
        return true;
    }

    void forget() {
        progress().command = {};
        progress().sender = {};
        progress().deadline.reset();
        claim_.is_changed = true;
    }

    /// Whether the store takes the current step's compensating command with this reply. A payload that the definition
    /// makes itself is checked when it is made.
    [[nodiscard]] bool undo_fits(const std::optional<std::string>& reply) const {
        return !claim_.step().carries_compensation || encode(compensation{claim_.delivery.payload(), reply}).size() <=
                                                          claim_.store.capabilities().limits.payload_max;
    }

    /// When to read a live command again, at the latest at `at`. A command wakes only the entry that sent it, so one
    /// that was sent before a resume is read at intervals.
    [[nodiscard]] time_point recheck_at(const vouch::entry& command, time_point at) const {
        return command.parent == claim_.entry().id ? at : std::min(at, later(claim_.now, saga_recheck_interval));
    }

  private:
    /// A lane derived from the saga's, so that each participant handles the commands of one order in order. Commands do
    /// not share the saga's own lane: there a command would wait for sagas that may be waiting for it.
    [[nodiscard]] std::string lane() const {
        const auto& of_saga = claim_.entry().lane;
        return of_saga.empty() ? std::string{} : "saga:" + to_string(derive(id{}, of_saga));
    }

    /// The saga's group, if it is the saga's own: nothing of it is purged while the saga is live. In a group of the
    /// application, a dead command would keep the group from ever completing.
    [[nodiscard]] std::string group() const {
        const auto& of_saga = claim_.entry().group;
        return of_saga.starts_with(saga_group_prefix) ? of_saga : std::string{};
    }

    [[nodiscard]] saga_progress& progress() const noexcept { return claim_.progress; }

    claim_state<Store>& claim_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/compensation_pass.hpp
// A claimed saga that compensates: every step that succeeded, or may have, is undone in reverse order, by an action in
// this process or by a compensating command, until nothing is left to undo or a compensation is stuck.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class compensation_pass {
  public:
    compensation_pass(claim_state<Store>& claim, command_channel<Store>& commands) noexcept
        : claim_(claim), commands_(commands) {}

    /// Ends the way forward for this reason, and begins to compensate.
    [[nodiscard]] saga_outcome start(const std::string& reason) {
        auto& p = claim_.progress;
        p.direction = saga_direction::back;
        p.reason = error_code(reason);
        p.tries = 0;
        if (p.at < p.steps.size() && !p.is_waiting()) {
            auto& state = claim_.record().state;
            if (state == step_state::undecided) {
                state = step_state::failed;
            } else if (state == step_state::begun) {
                const bool may_have_run = !claim_.step().is_remote();
                state = may_have_run ? Rules::state_after_interruption(claim_.is_first_attempt()) : step_state::failed;
            }
        }
        claim_.is_changed = true;
        return run();
    }

    [[nodiscard]] saga_outcome run() {
        auto& p = claim_.progress;
        if (p.is_waiting()) {
            const bool is_forward = claim_.record().state == step_state::begun;
            if (auto unresolved = is_forward ? resolve_forward_command() : resolve_undo_command()) {
                return std::move(*unresolved);
            }
        }
        auto next = Rules::next_to_undo(p);
        while (next && !claim_.definition.steps[*next].has_undo()) {
            p.steps[*next].state = step_state::kept;
            next = Rules::next_to_undo(p);
        }
        if (!next) {
            // Emitting may have to wait until the topic is bound, so what has been learned is checkpointed first.
            const auto& topic = claim_.definition.options.compensated;
            const bool must_save = claim_.is_changed && !topic.empty();
            return must_save ? claim_.checkpoint(claim_.now) : claim_.finish("compensated", topic);
        }
        if (p.at != *next) {
            p.at = *next;
            p.tries = 0;
            claim_.is_changed = true;
        }
        if (claim_.step().is_remote()) {
            return send_undo();
        }
        return claim_.is_changed ? claim_.checkpoint(claim_.now) : run_undo();
    }

    /// Whether the current claim would call a compensation in this process.
    [[nodiscard]] bool is_at_local_undo() const {
        const auto& p = claim_.progress;
        return !p.is_waiting() && p.at < claim_.definition.steps.size() && !claim_.step().is_remote();
    }

  private:
    /// The forward command that was live when compensation began: cancels it, or waits for it if it is claimed. Returns
    /// nothing once the step's state is known.
    [[nodiscard]] std::optional<saga_outcome> resolve_forward_command() {
        const auto command = commands_.cancel(claim_.progress.reason);
        if (command && Rules::must_wait_for(*command)) {
            return claim_.wait_until(commands_.recheck_at(*command, command->lease_until.value_or(claim_.now)));
        }
        auto& record = claim_.record();
        record.state = Rules::state_from_late_reply(command ? &*command : nullptr);
        if (record.state == step_state::done) {
            record.result = command->result.value_or(std::string{});
            if (claim_.is_too_large() || !commands_.undo_fits(record.result)) {
                record.result.clear();
                record.state = step_state::unknown;
            }
        }
        commands_.forget();
        return std::nullopt;
    }

    /// Returns nothing once the compensating command has succeeded, or must be sent again at once.
    [[nodiscard]] std::optional<saga_outcome> resolve_undo_command() {
        auto& p = claim_.progress;
        auto command = commands_.find();
        if (command && is_live(command->state) && claim_.now < *p.deadline) {
            return claim_.wait_until(commands_.recheck_at(*command, *p.deadline));
        }
        command = commands_.cancel("timed_out");
        if (command && is_live(command->state)) {
            return claim_.wait_until(commands_.recheck_at(*command, command->lease_until.value_or(claim_.now)));
        }
        if (command && command->state == state::succeeded) {
            claim_.record().state = step_state::undone;
            commands_.forget();
            return std::nullopt;
        }
        if (claim_.is_resumed) { // the attempts of the dead entry do not count
            p.tries = 0;
            commands_.forget();
            return std::nullopt;
        }
        const auto code = !command ? std::string("reply_lost") : command->last_error;
        const bool has_rejected = command && command->result;
        p.tries += 1;
        const auto delay = delay_after(claim_.policy(), claim_.entry().id, p.tries);
        if (has_rejected || !delay || Rules::gives_up(p.tries, attempts_max_of(claim_.entry(), claim_.policy()))) {
            return saga_outcome{bury{.error = code}};
        }
        commands_.forget();
        return claim_.checkpoint(later(claim_.now, *delay));
    }

    /// If the command cannot be sent, what has been learned is checkpointed first, so that a dead saga shows where it
    /// is stuck.
    [[nodiscard]] saga_outcome send_undo() {
        const auto& p = claim_.progress;
        try {
            step_call call(claim_.delivery, p, p.at, Rules::result_for_undo(p, p.at));
            if (!commands_.send(claim_.step().undo_topic, claim_.step().undo(call), Rules::command_key(p))) {
                return claim_.is_changed ? claim_.checkpoint(claim_.now) : stuck("invalid_command");
            }
        } catch (...) {
            const auto why = claim_.current_exception();
            return claim_.is_changed ? claim_.checkpoint(claim_.now) : claim_.retry_or(why, stuck);
        }
        return claim_.checkpoint(*p.deadline);
    }

    [[nodiscard]] saga_outcome run_undo() {
        const auto& p = claim_.progress;
        if (claim_.entry().attempts + p.tries > attempts_max_of(claim_.entry(), claim_.policy())) {
            return stuck("attempts_exhausted");
        }
        try {
            step_call call(claim_.delivery, p, p.at, Rules::result_for_undo(p, p.at));
            static_cast<void>(claim_.step().undo(call));
        } catch (...) {
            return claim_.retry_or(claim_.current_exception(), stuck);
        }
        claim_.record().state = step_state::undone;
        return claim_.checkpoint(claim_.now);
    }

    [[nodiscard]] static saga_outcome stuck(const std::string& code) { return {bury{.error = code}}; }

    claim_state<Store>& claim_;
    command_channel<Store>& commands_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/forward_pass.hpp
// A claimed saga on its way forward: asks the current step's condition, runs its action or sends its command, reads the
// reply, and goes to the next step. A step that fails for good ends the way forward: the saga compensates.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class forward_pass {
  public:
    forward_pass(claim_state<Store>& claim, command_channel<Store>& commands,
                 compensation_pass<Store, Rules>& back) noexcept
        : claim_(claim), commands_(commands), back_(back) {}

    [[nodiscard]] saga_outcome run() {
        if (claim_.progress.at == claim_.definition.steps.size()) {
            return complete();
        }
        if (claim_.progress.is_waiting()) {
            return read_reply();
        }
        if (claim_.record().state == step_state::undecided) {
            return decide();
        }
        return claim_.step().is_remote() ? send() : run_action();
    }

  private:
    /// Asks the step's condition. A step that has one on record and none in the definition runs.
    [[nodiscard]] saga_outcome decide() {
        const auto& step = claim_.step();
        bool answer = true;
        try {
            answer = !step.condition || step.condition(claim_.delivery, step_results(claim_.progress));
        } catch (...) {
            return retry_or_fail();
        }
        if (Rules::runs_step(answer)) {
            claim_.record().state = step_state::begun;
        } else {
            claim_.record().state = step_state::skipped;
            claim_.delivery.tag("skipped " + step.name);
            claim_.begin_step(Rules::next_step(claim_.progress.at));
            if (claim_.is_too_large()) {
                step_back();
                return back_.start("progress_too_large");
            }
        }
        return Rules::records_answers() ? claim_.checkpoint(claim_.now) : run();
    }

    [[nodiscard]] saga_outcome run_action() {
        if (claim_.is_unsaved && claim_.step().timeout > duration::zero()) {
            return claim_.checkpoint(claim_.now); // otherwise every claim would restart the timeout
        }
        if (claim_.entry().attempts > attempts_max_of(claim_.entry(), claim_.policy())) {
            return fail_step(Rules::state_after_failure(), "attempts_exhausted");
        }
        if (is_too_late(claim_.now) && !claim_.is_first_attempt()) {
            return fail_step(Rules::state_after_failure(), "timed_out");
        }
        try {
            step_call call(claim_.delivery, claim_.progress, claim_.progress.at, {});
            claim_.record().result = claim_.step().forward(call);
        } catch (...) {
            return after_exception();
        }
        claim_.record().state = step_state::done;
        claim_.begin_step(Rules::next_step(claim_.progress.at));
        return claim_.is_too_large() ? drop_result() : claim_.checkpoint(claim_.now);
    }

    /// Call inside a catch clause.
    [[nodiscard]] saga_outcome after_exception() {
        const auto why = claim_.current_exception();
        if (why.is_permanent) {
            return fail_step(Rules::state_after_reject(claim_.is_first_attempt()), why.code);
        }
        auto next = after_failure(claim_.entry(), why.code, claim_.policy(), claim_.delivery.time());
        const auto* const again = std::get_if<retry>(&next);
        if (again == nullptr) {
            return fail_step(Rules::state_after_failure(), why.code);
        }
        if (claim_.is_expired(again->at)) { // the entry expires before the retry
            return fail_step(Rules::state_after_failure(), "expired");
        }
        return is_too_late(again->at) ? fail_step(Rules::state_after_failure(), "timed_out")
                                      : saga_outcome{std::move(next)};
    }

    [[nodiscard]] saga_outcome send() {
        const auto& p = claim_.progress;
        try {
            step_call call(claim_.delivery, p, p.at, {});
            if (!commands_.undo_fits(std::nullopt) ||
                !commands_.send(claim_.step().topic, claim_.step().forward(call), Rules::command_key(p))) {
                return fail_step(step_state::failed, "invalid_command");
            }
        } catch (...) {
            return retry_or_fail();
        }
        return claim_.checkpoint(*p.deadline);
    }

    [[nodiscard]] saga_outcome read_reply() {
        const auto command = commands_.find();
        if (command && is_live(command->state)) {
            const auto deadline = *claim_.progress.deadline;
            return claim_.now < deadline ? saga_outcome{release{.at = commands_.recheck_at(*command, deadline)}}
                                         : back_.start("timed_out");
        }
        const auto learned = Rules::state_from_reply(command ? &*command : nullptr);
        commands_.forget();
        if (learned != step_state::done) {
            return fail_step(learned, !command ? "reply_lost" : command->last_error);
        }
        claim_.record().state = learned;
        claim_.record().result = command->result.value_or(std::string{});
        if (!commands_.undo_fits(claim_.record().result)) {
            claim_.record().result.clear();
            return fail_step(step_state::unknown, "result_too_large");
        }
        claim_.begin_step(Rules::next_step(claim_.progress.at));
        if (claim_.is_too_large()) {
            return drop_result();
        }
        const bool runs_action = claim_.progress.at < claim_.definition.steps.size() && !claim_.step().is_remote() &&
                                 claim_.record().state == step_state::begun;
        return runs_action ? claim_.checkpoint(claim_.now) : run();
    }

    [[nodiscard]] saga_outcome complete() {
        auto out = claim_.finish("completed", claim_.definition.options.completed);
        out.completes = std::holds_alternative<succeed>(out.outcome) && Rules::honours_cancel();
        return out;
    }

    [[nodiscard]] saga_outcome fail_step(step_state learned, const std::string& code) {
        claim_.record().state = learned;
        return back_.start(code);
    }

    /// For a step of which nothing has been started. Call inside a catch clause.
    [[nodiscard]] saga_outcome retry_or_fail() {
        return claim_.retry_or(claim_.current_exception(),
                               [&](const std::string& code) { return fail_step(step_state::failed, code); });
    }

    /// A result that is too large to be kept cannot be given to the compensation: the step's state is unknown.
    [[nodiscard]] saga_outcome drop_result() {
        step_back();
        claim_.record().result.clear();
        return fail_step(step_state::unknown, "progress_too_large");
    }

    /// Returns from a step that has just begun, and of which nothing has run, to the one before it.
    void step_back() {
        claim_.progress.steps.resize(claim_.progress.at);
        claim_.progress.at -= 1;
    }

    [[nodiscard]] bool is_too_late(time_point at) const {
        const auto timeout = claim_.step().timeout;
        return timeout > duration::zero() && at >= later(claim_.progress.since, timeout);
    }

    claim_state<Store>& claim_;
    command_channel<Store>& commands_;
    compensation_pass<Store, Rules>& back_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/claim.hpp
// One claim of one saga: the entry's progress says where the saga is, the claim takes it one action further, and the
// outcome says what is next. Decisions are in `rules.hpp`.
//
// A decision that runs no action can be made again, so it shares a claim with what follows. A checkpoint follows every
// action, and every answer of a condition, because the engine cannot make those again. A command that has ended never
// changes, and a command that ends later wakes the saga even while it is claimed. So nothing that is read outside the
// settling transaction can be missed.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class saga_claim {
  public:
    saga_claim(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : claim_(store, what, std::move(at), d) {}
    saga_claim(const saga_claim&) = delete;
    saga_claim& operator=(const saga_claim&) = delete;

    [[nodiscard]] saga_outcome run() {
        if (claim_.progress.direction == saga_direction::back) {
            return back_.run();
        }
        if (Rules::honours_cancel() && claim_.store.find(cancel_mark_of(claim_.progress.origin))) {
            return back_.start("cancelled");
        }
        return forward_.run();
    }

    /// The entry as a whole has expired or used up its attempts.
    [[nodiscard]] saga_outcome end(ending why) {
        const std::string code = why == ending::expired ? "expired" : "attempts_exhausted";
        if (!Rules::compensates_at_end()) {
            return {bury{.error = code}};
        }
        if (claim_.progress.direction == saga_direction::forward) {
            return back_.start(code);
        }
        if (why == ending::exhausted && back_.is_at_local_undo()) {
            return {bury{.error = code}};
        }
        return back_.run();
    }

  private:
    claim_state<Store> claim_;
    command_channel<Store> commands_{claim_};
    compensation_pass<Store, Rules> back_{claim_, commands_};
    forward_pass<Store, Rules> forward_{claim_, commands_, back_};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/rules.hpp
// The decisions of the saga engine, each a pure function: what a command that has ended says about its step, which step
// is undone next, when to give up. The rest of `detail/` carries them out. They are a template parameter of the engine,
// so that a test can plant a wrong decision and see the verifier catch it.

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_rules {
    /// The state of a step whose forward command has ended. Null: the command is gone, and nothing is known of it.
    ///
    /// A rejection says that this attempt did nothing. It says nothing about earlier attempts, so it is a known failure
    /// only if the command was claimed once. `epoch` counts every claim; the other counters do not: in a dead entry, a
    /// claim that lapsed cannot be told from one that was released. A participant in another service counts its claims
    /// itself, and its reply carries a result only if it rejects in its first attempt.
    [[nodiscard]] static step_state state_from_reply(const entry* command) noexcept {
        if (command == nullptr) {
            return step_state::unknown;
        }
        if (command->state == state::succeeded) {
            return step_state::done;
        }
        const bool was_tried_once = command->epoch == 1 || is_relayed(*command);
        const bool was_rejected_at_once = command->result.has_value() && was_tried_once;
        const bool was_never_claimed = command->epoch == 0;
        return was_rejected_at_once || was_never_claimed ? step_state::failed : step_state::unknown;
    }

    /// The same for a command that was still live when the saga began to compensate.
    [[nodiscard]] static step_state state_from_late_reply(const entry* command) noexcept {
        return state_from_reply(command);
    }

    /// The state of a step whose action in this process has used up its attempts or its time.
    [[nodiscard]] static step_state state_after_failure() noexcept { return step_state::unknown; }

    /// The state of a step whose action in this process rejects. As for a command, a rejection says nothing about
    /// earlier attempts.
    [[nodiscard]] static step_state state_after_reject(bool is_first_attempt) noexcept {
        return is_first_attempt ? step_state::failed : step_state::unknown;
    }

    /// The state of a step in this process when the saga begins to compensate before this claim calls its action.
    [[nodiscard]] static step_state state_after_interruption(bool is_first_attempt) noexcept {
        return is_first_attempt ? step_state::failed : step_state::unknown;
    }

    /// Whether a step runs, given its condition's answer; otherwise it is skipped.
    [[nodiscard]] static bool runs_step(bool answer) noexcept { return answer; }

    /// Whether a condition's answer is stored before anything follows from it. If it were not, a condition whose answer
    /// changes could skip a step that ran, or run one that was skipped.
    [[nodiscard]] static bool records_answers() noexcept { return true; }

    /// The step after one that is done or skipped.
    [[nodiscard]] static std::size_t next_step(std::size_t step) noexcept { return step + 1; }

    /// Whether the command may still have an effect, so that no earlier step may be undone yet.
    [[nodiscard]] static bool must_wait_for(const entry& command) noexcept { return is_live(command.state); }

    /// The last step that had an effect, or may have had one; none if everything is undone.
    [[nodiscard]] static std::optional<std::size_t> next_to_undo(const saga_progress& p) noexcept {
        for (std::size_t i = p.steps.size(); i-- > 0;) {
            if (p.steps[i].state == step_state::done || p.steps[i].state == step_state::unknown) {
                return i;
            }
        }
        return std::nullopt;
    }

    /// The forward result that a compensation receives.
    [[nodiscard]] static std::string_view result_for_undo(const saga_progress& p, std::size_t step) noexcept {
        return p.steps[step].result;
    }

    /// The idempotency key of a command for the current step.
    [[nodiscard]] static id command_key(const saga_progress& p) noexcept {
        return saga_key(p.origin, p.steps[p.at].name, p.direction == saga_direction::back);
    }

    /// Whether the saga stops sending a compensating command that has failed this often.
    [[nodiscard]] static bool gives_up(std::uint32_t tries, std::uint32_t tries_max) noexcept {
        return tries >= tries_max;
    }

    /// Whether a saga on its way forward obeys a request to cancel.
    [[nodiscard]] static bool honours_cancel() noexcept { return true; }

    /// Whether a saga compensates when its entry expires or uses up its attempts; otherwise the entry is buried.
    [[nodiscard]] static bool compensates_at_end() noexcept { return true; }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/detail/engine.hpp
// The saga engine: a handler that runs one step per claim and settles it with `advance`. So a saga has the leases,
// fences, retries and dead letters of any other entry. A saga ends succeeded, tagged `completed` or `compensated`, or
// dead where a compensation is stuck; `resume` continues it from there.
//
// Any number of threads may run the engine at once, if the definitions' actions allow that.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The handler of all versions of one saga.
template <class Store, class Rules = saga_rules>
class saga_engine {
  public:
    using transaction = typename Store::transaction;

    /// The store must outlive the engine. Throws `invalid_argument` for definitions that cannot be run, that have
    /// different names, or that have the same version.
    saga_engine(Store& store, std::vector<saga_definition> versions) : store_(store), versions_(std::move(versions)) {
        if (versions_.empty()) {
            refuse({"saga", "definitions"}, "are empty; give at least one");
        }
        for (std::size_t i = 0; i < versions_.size(); ++i) {
            validate(versions_[i]);
            for (std::size_t earlier = 0; earlier < i; ++earlier) {
                if (versions_[i].name != versions_[earlier].name) {
                    refuse({"saga", "definitions"}, "have different names; all must be versions of one saga");
                }
                if (versions_[i].options.version == versions_[earlier].options.version) {
                    refuse({"saga", "version"}, "is given twice");
                }
            }
        }
    }

    static constexpr bool runs_sagas = true; ///< only this handler is given sagas that have begun

    [[nodiscard]] const std::string& topic() const noexcept { return versions_.front().name; }

    [[nodiscard]] saga_outcome work(delivery& d) const {
        return with_claim(d, [](auto& claim) { return claim.run(); });
    }

    /// Sees a request to cancel that was made while the last step ran.
    void record(transaction& tx, const saga_outcome& result) const {
        if (result.completes && tx.find(cancel_mark_of(result.origin))) {
            throw failure("cancelled");
        }
    }

    [[nodiscard]] outcome ended(delivery& d, ending why) const {
        return with_claim(d, [&](auto& claim) { return claim.end(why); });
    }

  private:
    template <class Use>
    [[nodiscard]] saga_outcome with_claim(delivery& d, Use&& use) const {
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
            saga_claim<Store, Rules> claim(store_, *definition, std::move(progress), d);
            return use(claim);
        } catch (const error& e) { // the store failed, not the step: that costs no attempt
            return look_again(d, std::string(name_of(e.kind())));
        }
    }

    [[nodiscard]] static saga_outcome look_again(delivery& d, std::string tag) {
        d.tag(std::move(tag));
        return {release{.at = later(d.now(), saga_recheck_interval)}};
    }

    /// Steps that were changed without changing the version count as another version.
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

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/saga/route.hpp
// Sagas as routes: `router.on(order_saga)` gives the entries of a saga to the saga engine. A router of the saga's queue
// needs it; a saga that has begun is never given to any other handler.

namespace vouch {
inline namespace v0 {

namespace detail {

template <class Rules, class Store>
void add_saga(router<Store>& to, std::vector<saga_definition> versions) {
    saga_engine<Store, Rules> engine(to.outbox().store(), std::move(versions));
    auto topic = engine.topic();
    if (to.has_route(topic)) {
        refuse({"saga", "name"}, "has a route already; give all versions of a saga in one call, as a std::vector");
    }
    // Steps have policies of their own; this one is for failures between them.
    to.on(std::move(topic), std::move(engine),
          retry_policy{.backoff = exponential{.base = std::chrono::seconds{1}, .max = saga_recheck_interval},
                       .attempts_max = std::numeric_limits<std::uint32_t>::max()});
}

} // namespace detail

/// Makes `router.on(definition)` work; call that.
template <class Store>
void add_route(router<Store>& to, const saga_definition& only) {
    detail::add_saga<detail::saga_rules>(to, {only});
}
/// All versions of one saga that may still be running. Throws `invalid_argument` if they are not versions of one saga.
template <class Store>
void add_route(router<Store>& to, std::vector<saga_definition> versions) {
    detail::add_saga<detail::saga_rules>(to, std::move(versions));
}

} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_SAGA
