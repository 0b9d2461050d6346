// SPDX-License-Identifier: MIT
// Everything of vouch that needs no database: the contract, the policies, the outbox, the runner, and the memory store.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER
#define VOUCH_SINGLE_HEADER

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

// ---- vouch/version.hpp
// The library's version, written here once (CMake and Meson read it from this file), and what the library needs of a
// compiler. Every other header includes this one, so a compiler that lacks something says so in one sentence.


#define VOUCH_VERSION_MAJOR 0
#define VOUCH_VERSION_MINOR 1
#define VOUCH_VERSION_PATCH 0

// After an #error a compiler goes on, and the sentence drowns in what follows from it. After a missing file it stops.
#if __cplusplus < 202002L
#error "vouch needs C++20: compile with -std=c++20 or later, with GCC 12 or Clang 14 or later"
#include <vouch/see_the_error_above>
#endif

#ifndef __cpp_exceptions
#error "vouch needs exceptions: compile without -fno-exceptions"
#include <vouch/see_the_error_above>
#endif

#include <version>
#ifndef __cpp_lib_jthread
#error "vouch needs std::stop_token: use libstdc++, libc++ 20 or later, or libc++ 18 with -fexperimental-library"
#include <vouch/see_the_error_above>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// ---- vouch/contract/detail/mix.hpp
// One step of scrambling for hashes, derived ids and jitter: cheap, the same on every machine, and not a secret.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The finaliser of SplitMix64: every input bit affects every output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31;
    return x;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/text_stream.hpp
// Printing for tests and logs. Ids, states, verdicts, receipts and entries can be written to any output stream with
// `<<`, so Catch2, GoogleTest, doctest and RapidCheck print them in a failing test. The operators are templates over
// the stream: no header of vouch includes <iostream>.

namespace vouch {
inline namespace v0 {

/// An output stream of characters, such as `std::ostream`.
template <class Stream>
concept text_stream = requires(Stream& out, const char* text) {
    out.write(text, std::ptrdiff_t{});
};

namespace detail {

template <class Stream>
Stream& write_text(Stream& out, std::string_view text) {
    out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
    return out;
}

} // namespace detail

/// Writes the name of a state, verdict, verb or any other enumeration of vouch that has a `name_of`.
template <text_stream Stream, class Enum>
    requires requires(Enum e) {
        { name_of(e) } -> std::same_as<std::string_view>;
    }
Stream& operator<<(Stream& out, Enum e) { return detail::write_text(out, name_of(e)); }

} // namespace v0
} // namespace vouch

// ---- vouch/contract/id.hpp
// A 128-bit identifier with the text form of a UUID. Callers make ids (`policy/id_source.hpp`); a store never makes
// one. The id of an entry is the idempotency key that its handler passes on to other systems.
//
// Ids sort like their bytes and like their text, so time-ordered ids (UUIDv7) stay in order in any index.

namespace vouch {
inline namespace v0 {

struct id {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    /// The nil id means "none" in optional fields. Where an id is required it is refused.
    [[nodiscard]] constexpr bool is_nil() const noexcept { return high == 0 && low == 0; }
    [[nodiscard]] friend constexpr auto operator<=>(const id&, const id&) noexcept = default;

    /// Sixteen bytes, most significant first.
    [[nodiscard]] constexpr std::array<std::uint8_t, 16> bytes() const noexcept {
        std::array<std::uint8_t, 16> out{};
        for (std::size_t i = 0; i < 8; ++i) {
            out[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
            out[i + 8] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
        }
        return out;
    }

    /// The inverse of `bytes`.
    [[nodiscard]] static constexpr id from_bytes(const std::array<std::uint8_t, 16>& bytes) noexcept {
        id out;
        for (std::size_t i = 0; i < 8; ++i) {
            out.high = (out.high << 8) | bytes[i];
            out.low = (out.low << 8) | bytes[i + 8];
        }
        return out;
    }

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in upper or lower case. Any other text gives nothing.
    [[nodiscard]] static constexpr std::optional<id> parse(std::string_view text) noexcept;
};

namespace detail {

[[nodiscard]] constexpr bool is_uuid_dash(std::size_t position) noexcept {
    return position == 8 || position == 13 || position == 18 || position == 23;
}

[[nodiscard]] constexpr int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

} // namespace detail

constexpr std::optional<id> id::parse(std::string_view text) noexcept {
    if (text.size() != 36) {
        return std::nullopt;
    }
    id out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (detail::is_uuid_dash(i)) {
            if (text[i] != '-') {
                return std::nullopt;
            }
            continue;
        }
        const int digit = detail::hex_value(text[i]);
        if (digit < 0) {
            return std::nullopt;
        }
        auto& half = i < 18 ? out.high : out.low;
        half = (half << 4) | static_cast<std::uint64_t>(digit);
    }
    return out;
}

/// The text form, in lower case. `id::parse` reads it back.
[[nodiscard]] inline std::string to_string(const id& value) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(36);
    for (const auto byte : value.bytes()) {
        if (detail::is_uuid_dash(out.size())) {
            out.push_back('-');
        }
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15U]);
    }
    return out;
}

/// Writes the text form.
template <text_stream Stream>
Stream& operator<<(Stream& out, const id& value) {
    return detail::write_text(out, to_string(value));
}

/// The id that belongs to `base` under `label`. The same pair always gives the same id, so that work that is repeated
/// names the same entries. The leading 48 bits (UUIDv7's time) are kept, so derived ids stay time-ordered.
[[nodiscard]] constexpr id derive(const id& base, std::string_view label) noexcept {
    std::uint64_t a = detail::mix(base.high ^ 0x9e3779b97f4a7c15U);
    std::uint64_t b = detail::mix(base.low + a);
    for (const char c : label) {
        a = detail::mix(a ^ static_cast<unsigned char>(c));
        b = detail::mix(b + a);
    }
    constexpr std::uint64_t time_bits = 0xffffffffffff0000U;
    constexpr std::uint64_t version_8 = 0x8000U;
    constexpr std::uint64_t variant = 0x8000000000000000U;
    return {.high = (base.high & time_bits) | version_8 | (a & 0x0fffU), .low = variant | (b >> 2)};
}

} // namespace v0
} // namespace vouch

template <>
struct std::hash<vouch::id> {
    [[nodiscard]] std::size_t operator()(const vouch::id& value) const noexcept {
        return static_cast<std::size_t>(vouch::detail::mix(value.high ^ vouch::detail::mix(value.low)));
    }
};

// ---- vouch/contract/time.hpp
// Time in the contract: microseconds of UTC, always an argument. No store reads a clock, so the same calls give the
// same results, and tests control the time.

namespace vouch {
inline namespace v0 {

/// A length of time.
using duration = std::chrono::microseconds;
/// A point in time, UTC.
using time_point = std::chrono::time_point<std::chrono::system_clock, duration>;

/// `at + by`, or the last (first) representable time if the sum would overflow.
[[nodiscard]] constexpr time_point later(time_point at, duration by) noexcept {
    if (by > duration::zero() && at > time_point::max() - by) {
        return time_point::max();
    }
    if (by < duration::zero() && at < time_point::min() - by) {
        return time_point::min();
    }
    return at + by;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/attempt.hpp
// One attempt at an entry and how it ended, for an application that keeps a history. A claim whose lease expires has no
// line, and neither has one that is handed back in the transaction of the claim; the epochs of the lines then have a gap.

namespace vouch {
inline namespace v0 {

struct attempt_line {
    /// The outcome that was settled.
    enum class kind : std::uint8_t {
        succeeded,
        retrying, ///< it failed, and there will be another attempt
        dead,
        released, ///< the claim was given back
        advanced, ///< a checkpoint: a saga finished a step
    };
    vouch::id id{};          ///< the entry
    std::uint64_t epoch = 0; ///< the number of the claim; (id, epoch) is unique
    attempt_line::kind what{};
    time_point at{}; ///< when the outcome was settled
    time_point claimed_at{};
    std::uint32_t attempt = 0; ///< the entry's attempts, this one included
    std::string worker{};
    std::string error{}; ///< a code, never a message; empty unless retrying or dead

    [[nodiscard]] friend bool operator==(const attempt_line&, const attempt_line&) = default;
};

/// Every kind, in the order of the enumeration.
inline constexpr std::array<attempt_line::kind, 5> all_attempt_kinds{
    attempt_line::kind::succeeded, attempt_line::kind::retrying, attempt_line::kind::dead, attempt_line::kind::released,
    attempt_line::kind::advanced};

[[nodiscard]] constexpr std::string_view name_of(attempt_line::kind kind) noexcept {
    switch (kind) {
    case attempt_line::kind::succeeded: return "succeeded";
    case attempt_line::kind::retrying: return "retrying";
    case attempt_line::kind::dead: return "dead";
    case attempt_line::kind::released: return "released";
    case attempt_line::kind::advanced: return "advanced";
    }
    return "?";
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/error.hpp
// The one exception type of the contract, for faults of a store and for misuse. Facts of the domain, such as a stale
// ticket or a duplicate, are not errors: they are return values (`verdict.hpp`).
//
// A message names fields, limits and sizes. It never contains a payload or the text of another exception.

namespace vouch {
inline namespace v0 {

/// What went wrong.
enum class error_kind : std::uint8_t {
    invalid_argument, ///< an argument breaks a rule; nothing was written and an open transaction stays open
    unsupported,      ///< the store does not declare the capability that is needed
    unrouted,         ///< an emission names no queue and no binding matches its topic
    conflict,  ///< another transaction won and this one is rolled back; repeat it from `begin`, as `transact` does
    busy,      ///< the store did not become available in time; the caller decides whether to wait longer
    full,      ///< no room: disk, quota or memory
    read_only, ///< the store can be read but not written
    corrupt,   ///< the stored data is damaged
    io,        ///< the disk or the connection failed
    misuse,    ///< a call that the contract forbids, such as using a closed transaction
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(error_kind kind) noexcept {
    switch (kind) {
    case error_kind::invalid_argument: return "invalid_argument";
    case error_kind::unsupported: return "unsupported";
    case error_kind::unrouted: return "unrouted";
    case error_kind::conflict: return "conflict";
    case error_kind::busy: return "busy";
    case error_kind::full: return "full";
    case error_kind::read_only: return "read_only";
    case error_kind::corrupt: return "corrupt";
    case error_kind::io: return "io";
    case error_kind::misuse: return "misuse";
    }
    return "?";
}

/// Thrown by stores, and by vouch itself.
class error : public std::runtime_error {
  public:
    error(error_kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    /// What is known besides the kind.
    struct details {
        bool in_doubt = false;        ///< see `is_in_doubt`
        int code = 0;                 ///< see `code`
        std::string_view text_code{}; ///< see `text_code`; longer ones are cut
    };
    error(error_kind kind, const std::string& message, const details& more)
        : std::runtime_error(message), kind_(kind), is_in_doubt_(more.in_doubt), code_(more.code) {
        more.text_code.copy(text_code_.data(), text_code_max);
    }

    [[nodiscard]] error_kind kind() const noexcept { return kind_; }

    /// Whether the same call may succeed later without a change to the program or the data.
    [[nodiscard]] bool is_transient() const noexcept {
        return kind_ == error_kind::conflict || kind_ == error_kind::busy || kind_ == error_kind::full ||
               kind_ == error_kind::io;
    }

    /// Whether the commit that threw may have taken effect. The caller must forget the claims of that transaction, and
    /// repeat its settles and enqueues as a whole, with the same tickets and ids.
    [[nodiscard]] bool is_in_doubt() const noexcept { return is_in_doubt_; }

    /// The backend's own result code; 0 if it has none.
    [[nodiscard]] int code() const noexcept { return code_; }

    /// The backend's own code if that is a text, such as an SQLSTATE; empty if it has none.
    [[nodiscard]] std::string_view text_code() const noexcept { return text_code_.data(); }
    static constexpr std::size_t text_code_max = 15; ///< in bytes

  private:
    error_kind kind_;
    bool is_in_doubt_ = false;
    int code_ = 0;
    std::array<char, text_code_max + 1> text_code_{}; // not a std::string: copying an exception must not throw
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/byte_stream.hpp
// Values as bytes that are the same on every machine. Numbers are written in groups of seven bits, lowest first. Texts
// and lists follow their length. An optional value follows a 1; a 0 stands for none.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The number that opens an entry's bytes. It changes with the fields of `entry`.
inline constexpr std::uint64_t entry_format = 1;

/// Appends values to `out`.
struct byte_writer {
    std::string out{};

    void number(std::uint64_t n) {
        for (; n >= 0x80; n >>= 7) {
            out.push_back(static_cast<char>(n | 0x80));
        }
        out.push_back(static_cast<char>(n));
    }
    template <class T>
    void pass(const T& value) {
        if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
            number(static_cast<std::uint64_t>(value));
        } else if constexpr (std::is_same_v<T, time_point>) {
            number(static_cast<std::uint64_t>(value.time_since_epoch().count()));
        } else if constexpr (std::is_same_v<T, id>) {
            const auto bytes = value.bytes();
            out.append(bytes.begin(), bytes.end());
        } else if constexpr (std::is_same_v<T, std::string>) {
            number(value.size());
            out.append(value);
        } else if constexpr (requires { value.first; }) {
            pass(value.first);
            pass(value.second);
        } else if constexpr (requires { value.has_value(); }) {
            number(value.has_value() ? 1 : 0);
            if (value) {
                pass(*value);
            }
        } else {
            number(value.size());
            for (const auto& item : value) {
                pass(item);
            }
        }
    }
};

/// Reads values from the front of `left`. Throws `corrupt` if the bytes are not what a `byte_writer` writes.
struct byte_reader {
    std::string_view left;

    static void check(bool is_sound) {
        if (!is_sound) {
            throw error(error_kind::corrupt,
                        "these bytes are not an entry in a format that this version of vouch reads");
        }
    }
    std::string_view take(std::uint64_t size) {
        check(size <= left.size());
        const auto taken = left.substr(0, size);
        left.remove_prefix(size);
        return taken;
    }
    std::uint64_t number() {
        std::uint64_t n = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto group = static_cast<unsigned char>(take(1).front());
            check(shift < 63 || (shift == 63 && group <= 1));
            n |= std::uint64_t{group & 0x7fU} << shift;
            if (group < 0x80) {
                return n;
            }
        }
    }
    template <class T>
    void pass(T& value) {
        if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
            const auto n = number();
            value = static_cast<T>(n);
            check(static_cast<std::uint64_t>(value) == n);
        } else if constexpr (std::is_same_v<T, time_point>) {
            value = time_point(duration(static_cast<std::int64_t>(number())));
        } else if constexpr (std::is_same_v<T, id>) {
            std::array<std::uint8_t, 16> bytes{};
            take(bytes.size()).copy(reinterpret_cast<char*>(bytes.data()), bytes.size());
            value = id::from_bytes(bytes);
        } else if constexpr (std::is_same_v<T, std::string>) {
            value = take(number());
        } else if constexpr (requires { value.first; }) {
            pass(value.first);
            pass(value.second);
        } else if constexpr (requires { value.has_value(); }) {
            const auto is_set = number();
            check(is_set <= 1);
            if (is_set == 1) {
                pass(value.emplace());
            }
        } else {
            auto size = number();
            check(size <= left.size()); // an item takes a byte at least, so a wrong size cannot ask for endless memory
            value.resize(size);
            for (auto& item : value) {
                pass(item);
            }
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/utc.hpp
// A time as text, for logs and for the output of failing tests.

namespace vouch {
inline namespace v0 {

/// `2026-11-16T16:13:34.123456Z`, for any year.
[[nodiscard]] inline std::string to_utc(time_point at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date{day};
    const auto since = (at - std::chrono::time_point_cast<duration>(day)).count();
    const auto second = static_cast<int>(since / 1'000'000);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                  second / 60 % 60, second % 60, static_cast<int>(since % 1'000'000));
    return text.data();
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/field_text.hpp
// A draft or an entry as one line for a person: `{id=..., queue="mail", state=pending}`. Fields that have their default
// value are left out.

namespace vouch {
inline namespace v0 {
namespace detail {

/// In quotes; bytes that do not print as `\x00`; cut after 80 bytes.
[[nodiscard]] inline std::string quoted_text(std::string_view text) {
    constexpr std::size_t size_max = 80;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text.substr(0, size_max)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += digits[byte >> 4U];
            out += digits[byte & 0xfU];
        } else {
            out += c;
        }
    }
    out += '"';
    if (text.size() > size_max) {
        out += "... (" + std::to_string(text.size()) + " bytes)";
    }
    return out;
}

template <class T>
[[nodiscard]] std::string field_text(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
        return std::to_string(value);
    } else if constexpr (std::is_enum_v<T>) {
        return std::string(name_of(value));
    } else if constexpr (std::is_same_v<T, time_point>) {
        return to_utc(value);
    } else if constexpr (std::is_same_v<T, id>) {
        return to_string(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return quoted_text(value);
    } else if constexpr (requires { value.first; }) {
        return field_text(value.first) + ": " + field_text(value.second);
    } else if constexpr (requires { value.has_value(); }) {
        return value ? field_text(*value) : "none";
    } else {
        std::string out = "[";
        for (const auto& item : value) {
            out += (out.size() == 1 ? "" : ", ") + field_text(item);
        }
        return out + "]";
    }
}

/// Every field of `value` that has not its default value; the id always.
template <class T>
[[nodiscard]] std::string all_fields_text(const T& value) {
    const T unset{};
    std::string out = "{";
    for_each_field(
        [&](std::string_view name, const auto& given, const auto& by_default) {
            if (name == "id" || name == "state" || given != by_default) {
                out += out.size() == 1 ? "" : ", ";
                out += name;
                out += '=';
                out += field_text(given);
            }
        },
        value, unset);
    return out + "}";
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/draft.hpp
// What a producer wants to have stored. A draft is a plain value: set `id`, `queue` and `topic`; every other field has
// a useful default.

namespace vouch {
inline namespace v0 {

/// Names and values that travel with an entry, in the order given. Names may repeat.
using header_list = std::vector<std::pair<std::string, std::string>>;
/// Ids, in the order given.
using id_list = std::vector<vouch::id>;

/// Work to be stored. `limits` bounds the size of every field.
struct draft {
    vouch::id id{};          ///< required; the idempotency key of the work
    std::string queue{};     ///< required; workers claim by queue
    std::string topic{};     ///< required; what the work is, as words joined by dots; selects the handler
    std::string payload{};   ///< bytes that the store does not interpret
    std::string key{};       ///< dedup key, unique among the stored entries of the queue; empty: none
    std::string group{};     ///< names a set of entries, across queues, whose completion is reported; empty: none
    std::string lane{};      ///< ordering key: entries of a lane are claimed one at a time, in order; empty: none
    vouch::id parent{};      ///< the entry to nudge when this one ends; nil: none
    vouch::id predecessor{}; ///< the dead entry to replace, whose key, group and lane are taken over; nil: none
    std::optional<time_point> due_at{};     ///< the earliest time to run; unset: now
    std::optional<time_point> expires_at{}; ///< when trying ends, even if attempts are left; unset: never
    std::uint32_t attempts_max = 0;         ///< how many attempts are allowed; 0: as the handler's policy says
    id_list trail{};                        ///< the emissions that led to this draft, oldest first, its own last
    header_list headers{};                  ///< passed on to the handler unchanged
    std::string progress{};                 ///< the first checkpoint of work in several steps
    /// Set: the entry is stored as succeeded at once. Then group, lane, parent and predecessor are refused.
    std::optional<std::string> result{};

    [[nodiscard]] friend bool operator==(const draft&, const draft&) = default;
};

/// Calls `f(name, value...)` for every field, with the values of all the drafts given.
template <class F, class... Drafts>
    requires(std::same_as<std::remove_const_t<Drafts>, draft>&&...)
void for_each_field(F&& f, Drafts&... d) {
    f("id", d.id...);
    f("queue", d.queue...);
    f("topic", d.topic...);
    f("payload", d.payload...);
    f("key", d.key...);
    f("group", d.group...);
    f("lane", d.lane...);
    f("parent", d.parent...);
    f("predecessor", d.predecessor...);
    f("due_at", d.due_at...);
    f("expires_at", d.expires_at...);
    f("attempts_max", d.attempts_max...);
    f("trail", d.trail...);
    f("headers", d.headers...);
    f("progress", d.progress...);
    f("result", d.result...);
}

/// Writes the id and every field that is set: `{id=..., queue="mail", topic="user.created"}`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const draft& d) {
    return detail::write_text(out, detail::all_fields_text(d));
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/state.hpp
// The five states of an entry. `transitions.hpp` lists every change from one state to another.

namespace vouch {
inline namespace v0 {

/// Where an entry is in its life.
enum class state : std::uint8_t {
    pending,   ///< waits for its first attempt, or for the next step after a checkpoint
    retrying,  ///< waits for another attempt after one that failed or was released
    claimed,   ///< held by a runner under a lease
    succeeded, ///< terminal: done
    dead,      ///< terminal: given up; kept for an operator
};

/// Every state, in the order of the enumeration.
inline constexpr std::array<state, 5> all_states{state::pending, state::retrying, state::claimed, state::succeeded,
                                                 state::dead};

/// A terminal entry is frozen: no field changes again, and only a purge removes it.
[[nodiscard]] constexpr bool is_terminal(state s) noexcept { return s == state::succeeded || s == state::dead; }
/// Not terminal.
[[nodiscard]] constexpr bool is_live(state s) noexcept { return !is_terminal(s); }

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(state s) noexcept {
    switch (s) {
    case state::pending: return "pending";
    case state::retrying: return "retrying";
    case state::claimed: return "claimed";
    case state::succeeded: return "succeeded";
    case state::dead: return "dead";
    }
    return "?";
}

/// How many entries of a queue are in each state. Every state has a count, which may be 0.
struct state_counts {
    std::array<std::size_t, all_states.size()> by_state{};

    [[nodiscard]] constexpr std::size_t& operator[](state s) noexcept { return by_state[static_cast<std::size_t>(s)]; }
    [[nodiscard]] constexpr std::size_t operator[](state s) const noexcept {
        return by_state[static_cast<std::size_t>(s)];
    }
    [[nodiscard]] constexpr std::size_t live() const noexcept {
        return (*this)[state::pending] + (*this)[state::retrying] + (*this)[state::claimed];
    }
    [[nodiscard]] constexpr std::size_t total() const noexcept {
        return live() + (*this)[state::succeeded] + (*this)[state::dead];
    }
    [[nodiscard]] friend constexpr bool operator==(const state_counts&, const state_counts&) noexcept = default;
};

/// Writes every count: `1 pending, 0 retrying, 0 claimed, 0 succeeded, 0 dead`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const state_counts& counts) {
    for (const auto s : all_states) {
        detail::write_text(out, s == all_states.front() ? "" : ", ");
        detail::write_text(out, std::to_string(counts[s]) + ' ');
        detail::write_text(out, name_of(s));
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/ticket.hpp
// Proof of one claim, also called a fencing token. A ticket is valid once the claiming transaction has committed. The
// settle that is applied uses it up. It becomes stale when another claim takes over or the entry is cancelled.

namespace vouch {
inline namespace v0 {

/// Names one claim of one entry.
struct ticket {
    vouch::id id{};
    std::uint64_t epoch = 0; ///< the entry's `epoch` after the claim

    [[nodiscard]] friend constexpr auto operator<=>(const ticket&, const ticket&) noexcept = default;
};

/// Writes the id and the epoch: `00000000-0000-0000-0000-000000000001, epoch 2`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const ticket& t) {
    return detail::write_text(out, to_string(t.id) + ", epoch " + std::to_string(t.epoch));
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/entry.hpp
// A stored draft and its life. The fields that come from the draft never change. The fields of `life` change, by the
// verbs of `lifecycle.hpp` only.

namespace vouch {
inline namespace v0 {

/// The part of an entry that verbs change.
struct life {
    vouch::state state = vouch::state::pending;
    std::uint32_t attempts = 0;              ///< claims that count; a release takes one off, an advance resets it to 0
    std::uint32_t lapses = 0;                ///< leases in a row that expired without an outcome
    std::uint32_t failures = 0;              ///< settles that were a retry or a bury
    std::uint64_t epoch = 0;                 ///< number of claims ever; grows only
    time_point due_at{};                     ///< the earliest time to run; a claim does not change it
    std::optional<time_point> lease_until{}; ///< claimed only: the time from which another claim may take over
    bool woken = false;                      ///< claimed only: nudged since the claim, so due when the claim ends
    std::string last_error{};                ///< code of the last failure; kept after a success
    std::optional<std::string> result{};     ///< from succeed or bury
    std::string progress{};                  ///< the last checkpoint
    std::string worker{};                    ///< the worker that claimed it last
    time_point updated_at{};                 ///< the `now` of the last change
    std::optional<time_point> last_attempt_at{}; ///< the `now` of the last claim

    [[nodiscard]] friend bool operator==(const life&, const life&) = default;
};

/// A stored draft. See `draft` for the fields that are not explained here.
struct entry : life {
    vouch::id id{};
    std::string queue{};
    std::string topic{};
    std::string payload{};
    std::string key{};
    std::string group{};
    std::string lane{};
    vouch::id parent{};
    vouch::id predecessor{};
    std::optional<time_point> expires_at{};
    std::uint32_t attempts_max = 0;
    id_list trail{};
    header_list headers{};
    std::uint64_t sequence = 0;   ///< orders the entries of a lane by commit; never reused, may have gaps
    std::uint32_t generation = 1; ///< 1, or one more than the predecessor's
    time_point created_at{};      ///< the `now` of the enqueue

    [[nodiscard]] friend bool operator==(const entry&, const entry&) = default;
};

/// The ticket of the entry's current claim.
[[nodiscard]] inline ticket ticket_of(const entry& e) noexcept { return {.id = e.id, .epoch = e.epoch}; }

/// Calls `f(name, value...)` for every field, with the values of all the entries given. Tests use it to name the field
/// that a store forgets.
template <class F, class... Entries>
    requires(std::same_as<std::remove_const_t<Entries>, entry>&&...)
void for_each_field(F&& f, Entries&... e) {
    f("id", e.id...);
    f("queue", e.queue...);
    f("topic", e.topic...);
    f("payload", e.payload...);
    f("key", e.key...);
    f("group", e.group...);
    f("lane", e.lane...);
    f("parent", e.parent...);
    f("predecessor", e.predecessor...);
    f("expires_at", e.expires_at...);
    f("attempts_max", e.attempts_max...);
    f("trail", e.trail...);
    f("headers", e.headers...);
    f("sequence", e.sequence...);
    f("generation", e.generation...);
    f("created_at", e.created_at...);
    f("state", e.state...);
    f("attempts", e.attempts...);
    f("lapses", e.lapses...);
    f("failures", e.failures...);
    f("epoch", e.epoch...);
    f("due_at", e.due_at...);
    f("lease_until", e.lease_until...);
    f("woken", e.woken...);
    f("last_error", e.last_error...);
    f("result", e.result...);
    f("progress", e.progress...);
    f("worker", e.worker...);
    f("updated_at", e.updated_at...);
    f("last_attempt_at", e.last_attempt_at...);
}

/// Writes the id, the state and every field that is set: `{id=..., queue="mail", state=pending, attempts=1}`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const entry& e) {
    return detail::write_text(out, detail::all_fields_text(e));
}

/// The entry that a draft becomes at `now`: pending, or succeeded if the draft carries a result. The store sets the
/// sequence and, for a successor, the generation, key, group and lane.
[[nodiscard]] inline entry born(draft d, time_point now) {
    entry e;
    e.id = d.id;
    e.queue = std::move(d.queue);
    e.topic = std::move(d.topic);
    e.payload = std::move(d.payload);
    e.key = std::move(d.key);
    e.group = std::move(d.group);
    e.lane = std::move(d.lane);
    e.parent = d.parent;
    e.predecessor = d.predecessor;
    e.expires_at = d.expires_at;
    e.attempts_max = d.attempts_max;
    e.trail = std::move(d.trail);
    e.headers = std::move(d.headers);
    e.created_at = now;
    e.state = d.result ? state::succeeded : state::pending;
    e.due_at = d.due_at.value_or(now);
    e.result = std::move(d.result);
    e.progress = std::move(d.progress);
    e.updated_at = now;
    return e;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/bytes.hpp
// An entry as bytes and back, for stores that keep values instead of columns: a log, a file, a key-value database.
//
// The bytes are the same on every machine. They carry their own length, so entries can be written one after the other:
// first a number for the format, then every field in the order of `for_each_field`.

namespace vouch {
inline namespace v0 {

/// The entry as bytes. A template, so that only programs that use it compile it.
template <std::same_as<entry> Entry>
[[nodiscard]] std::string to_bytes(const Entry& e) {
    detail::byte_writer out;
    out.number(detail::entry_format);
    for_each_field([&](auto, const auto& field) { out.pass(field); }, e);
    return std::move(out.out);
}

/// Reads the entry at the front of `bytes` and removes it from there; what follows it stays. Throws `corrupt` if the
/// bytes do not begin with an entry; then `bytes` is unchanged.
template <std::same_as<entry> Entry = entry>
[[nodiscard]] Entry take_entry(std::string_view& bytes) {
    detail::byte_reader in{bytes};
    detail::byte_reader::check(in.number() == detail::entry_format);
    Entry e;
    for_each_field([&](auto, auto& field) { in.pass(field); }, e);
    detail::byte_reader::check(e.state <= state::dead);
    bytes = in.left;
    return e;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/limits.hpp
// Every bound of the contract, by name. A store may raise `payload_max`, `result_max` and `progress_max` in its
// capabilities; it must not lower any. A call that exceeds a bound throws `invalid_argument`.

namespace vouch {
inline namespace v0 {

/// The defaults are the bounds that every store accepts.
struct limits {
    std::size_t name_max = 255;             ///< bytes of a queue, topic, key, group, lane, worker or header name
    std::size_t error_max = 100;            ///< bytes of an error code
    std::size_t payload_max = 1024 * 1024;  ///< bytes of a payload
    std::size_t result_max = 1024 * 1024;   ///< bytes of a result
    std::size_t progress_max = 1024 * 1024; ///< bytes of a checkpoint
    std::size_t trail_max = 32;             ///< ids in a trail
    std::size_t headers_max = 64;           ///< headers in a draft
    std::size_t header_value_max = 4096;    ///< bytes of a header's value
    std::size_t batch_max = 10'000;         ///< items in one call, and the largest `limit` of a claim, list or purge
    duration lease_min{1};                  ///< the shortest lease
    duration lease_max = std::chrono::hours{24 * 366}; ///< the longest lease

    [[nodiscard]] friend constexpr bool operator==(const limits&, const limits&) noexcept = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/capability.hpp
// What a store can do beyond the base contract. A store refuses what it does not declare: a draft that needs a missing
// capability throws `unsupported`, and nothing is written.

namespace vouch {
inline namespace v0 {

/// The level of the contract that these headers describe. A store declares the level for which it was written.
inline constexpr int contract_level = 1;

/// What a store declares through `capabilities()`. The answer never changes during the life of a store.
struct capabilities {
    bool groups = false;     ///< accepts `draft::group`; the settle that completes a group says so
    bool lanes = false;      ///< accepts `draft::lane`; a lane has one claimed entry at a time, in sequence
    bool wakes = false;      ///< models `waking_store`: a worker can wait for new work
    bool durable = false;    ///< committed work survives a crash of the process, and of the machine if so configured
    bool shared = false;     ///< several handles or processes may use the same stored work
    bool committing = false; ///< its transactions model `committing_transaction`; declared exactly if they do
    vouch::limits limits{};  ///< at least the defaults

    [[nodiscard]] friend constexpr bool operator==(const capabilities&, const capabilities&) noexcept = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/outcome.hpp
// How a claim ends: one of five outcomes. A settle pairs an outcome with the ticket of the claim.

namespace vouch {
inline namespace v0 {

/// The work is done. The entry becomes `succeeded`.
struct succeed {
    std::string result{};
    [[nodiscard]] friend bool operator==(const succeed&, const succeed&) = default;
};

/// The attempt failed; the entry is due again at `at`.
struct retry {
    std::string error{};
    time_point at{};
    [[nodiscard]] friend bool operator==(const retry&, const retry&) = default;
};

/// The work failed for good. The entry becomes `dead`. A saga's participant can leave its reply in `result`.
struct bury {
    std::string error{};
    std::optional<std::string> result{};
    [[nodiscard]] friend bool operator==(const bury&, const bury&) = default;
};

/// The claim is given back. It costs no attempt, and leaves `lapses` as it is. With `at` the entry is due then;
/// without, its due time stays.
struct release {
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const release&, const release&) = default;
};

/// A checkpoint: one step is done and the next is due at `at` (unset: now). Replaces the progress and resets the
/// attempts to 0. Use it only when the progress has changed; if there is nothing to do yet, release with `at`.
struct advance {
    std::string progress{};
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const advance&, const advance&) = default;
};

/// Any of the five.
using outcome = std::variant<succeed, retry, bury, release, advance>;

/// `std::visit` for an outcome. It compiles much faster.
template <class F>
decltype(auto) visit_outcome(const F& f, const outcome& o) {
    switch (o.index()) {
    case 0: return f(*std::get_if<0>(&o));
    case 1: return f(*std::get_if<1>(&o));
    case 2: return f(*std::get_if<2>(&o));
    case 3: return f(*std::get_if<3>(&o));
    default: return f(*std::get_if<4>(&o));
    }
}

/// Ends the claim that `ticket` names.
struct settle {
    vouch::ticket ticket{};
    vouch::outcome outcome{};
    [[nodiscard]] friend bool operator==(const settle&, const settle&) = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/query.hpp
// Reading several entries. A query names one path, which a store can usually serve from an index, then filters, then a
// page of ascending sequences:
//
//   auto page = vouch::query::dead("mail");
//   for (auto found = store.list(page); !found.empty(); found = store.list(page)) {
//       show(found);
//       page.after = found.back().sequence;
//   }
//
// The pages contain every entry that was committed before the first page was read. They are no way to follow new
// entries: in a store with several writers an entry may be committed after others with a greater sequence.

namespace vouch {
inline namespace v0 {

/// What to read. The static functions make a query for each path; set the filters afterwards.
struct query {
    /// Which entries, before any filter. The fields that the path does not use must be empty.
    enum class path : std::uint8_t {
        group,  ///< entries of `group`, across queues
        parent, ///< entries whose parent is `parent`
        key,    ///< every generation of (`queue`, `key`)
        dead,   ///< dead entries of `queue`
        live,   ///< entries of `queue` that are not terminal
        all,    ///< entries of `queue`
    };
    query::path by = path::all;
    std::string queue{};
    std::string key{};
    std::string group{};
    vouch::id parent{};

    std::optional<vouch::state> state{}; ///< unset: any
    std::string topic{};                 ///< exactly this topic, no pattern; empty: any
    std::uint64_t after = 0;             ///< only entries with a greater sequence
    std::size_t limit = 100;             ///< at most this many; 0 finds nothing
    bool payloads = false;               ///< whether to read payloads; if not, they are empty

    [[nodiscard]] static query members(std::string group) { return {.by = path::group, .group = std::move(group)}; }
    [[nodiscard]] static query children(const vouch::id& parent) { return {.by = path::parent, .parent = parent}; }
    [[nodiscard]] static query keyed(std::string queue, std::string key) {
        return {.by = path::key, .queue = std::move(queue), .key = std::move(key)};
    }
    [[nodiscard]] static query dead(std::string queue) { return {.by = path::dead, .queue = std::move(queue)}; }
    [[nodiscard]] static query live(std::string queue) { return {.by = path::live, .queue = std::move(queue)}; }
    [[nodiscard]] static query all(std::string queue) { return {.by = path::all, .queue = std::move(queue)}; }
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/request.hpp
// The arguments of `claim` and `purge`.

namespace vouch {
inline namespace v0 {

/// Claims at most `limit` entries of `queue` whose gate is at or before `now`, the first by (gate, sequence).
struct claim_request {
    std::string queue{};
    std::size_t limit = 1; ///< 0 claims nothing
    time_point now{};
    duration lease = std::chrono::minutes{5}; ///< how long the claims are held unless extended
    std::string worker{};                     ///< the name of the worker; may be empty
    vouch::id only{}; ///< nil: any entry; else only this one, if it is in the queue and its gate is open
};

/// Removes at most `limit` terminal entries of `queue` that ended before `before`, oldest first (by end, then by
/// sequence). An entry is kept while it is the parent of a live entry or in the group of one.
///
/// An entry and its successors are treated as one family. `before`, `state` and the order look at the newest member.
/// The family is removed from the eldest member on, so a purge that reaches its limit in the middle leaves the newest.
/// If a live entry needs one member, the whole family is kept and does not count against the limit. The members left
/// after such a cut have no predecessor, even if another entry is stored later under the predecessor's id.
///
/// A purge may stop after reading a bounded number of ended entries: at least the oldest 1,000, and `limit` others that
/// earlier purges have not read. So a purge that removes fewer than `limit` entries may leave some behind. Call it
/// again: each such call gets at least `limit` entries further, and starts again from the oldest when it has read them
/// all.
struct purge_request {
    std::string queue{};
    time_point before{};
    std::size_t limit = 1000;
    std::optional<vouch::state> state{}; ///< unset: succeeded and dead entries; else only this state
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/verdict.hpp
// What a store answers to a write. Every write is conditional and returns a verdict: a verdict on a stored entry, a
// receipt for a draft.

namespace vouch {
inline namespace v0 {

/// The answer to a write that names a stored entry. Only `applied` changes anything.
enum class verdict : std::uint8_t {
    applied,  ///< the change was made
    repeated, ///< there is nothing left to do: the ticket is used up, or the entry is already due, marked or dead
    stale,    ///< not allowed: another claim has taken over, or the entry's state forbids it
    unknown,  ///< no such entry
};

/// Every verdict, in the order of the enumeration.
inline constexpr std::array<verdict, 4> all_verdicts{verdict::applied, verdict::repeated, verdict::stale,
                                                     verdict::unknown};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(verdict v) noexcept {
    switch (v) {
    case verdict::applied: return "applied";
    case verdict::repeated: return "repeated";
    case verdict::stale: return "stale";
    case verdict::unknown: return "unknown";
    }
    return "?";
}

/// The answer to one settle.
struct settlement {
    vouch::verdict verdict = vouch::verdict::unknown;
    bool group_completed = false; ///< with this settle the last open member of the group succeeded
    [[nodiscard]] friend constexpr bool operator==(const settlement&, const settlement&) noexcept = default;
};

/// Whether every verdict is `applied`.
[[nodiscard]] constexpr bool all_applied(std::span<const settlement> settlements) noexcept {
    for (const auto& s : settlements) {
        if (s.verdict != verdict::applied) {
            return false;
        }
    }
    return true;
}

/// Writes `applied`, or `applied, group completed`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const settlement& s) {
    detail::write_text(out, name_of(s.verdict));
    return s.group_completed ? detail::write_text(out, ", group completed") : out;
}

/// The answer to one draft.
struct receipt {
    enum class kind : std::uint8_t {
        inserted,  ///< stored
        duplicate, ///< not stored: `id` has the same id or key, or is the predecessor's successor already
        refused,   ///< not stored: the predecessor is absent, not dead, or in another queue
    };
    receipt::kind what = kind::refused;
    vouch::id id{}; ///< inserted: the draft's id; duplicate: the stored entry's id; refused: nil

    [[nodiscard]] friend constexpr bool operator==(const receipt&, const receipt&) noexcept = default;
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(receipt::kind k) noexcept {
    switch (k) {
    case receipt::kind::inserted: return "inserted";
    case receipt::kind::duplicate: return "duplicate";
    case receipt::kind::refused: return "refused";
    }
    return "?";
}

/// Writes the kind and the id: `duplicate 00000000-0000-0000-0000-000000000001`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const receipt& r) {
    detail::write_text(out, name_of(r.what));
    return r.id.is_nil() ? out : detail::write_text(out, ' ' + to_string(r.id));
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/store.hpp
// The contract between vouch and a store, as four concepts: `reader`, `writer`, `transaction` and `store`. Three
// more, `waking_store`, `enqueuing_store` and `committing_transaction`, are optional. The smallest example is `examples/log_store`; the store with
// every capability is that for PostgreSQL. If a type misses an operation, `explain.hpp` says which; the conformance suite
// checks the rules that a concept cannot express.
//
// Rules for all operations:
//  1. Time and ids are arguments. A store never reads a clock and never makes an id.
//  2. Every write is conditional and returns a verdict. What a verdict rests on, `repeated` included, is protected until
//     the transaction ends: a store with several writers locks the row that it reads, or finds out at commit that the
//     row has changed and throws `conflict`. To repeat the condition in the write is not enough, because a nudge changes
//     neither epoch nor state, and `repeated` writes nothing.
//  3. A batch returns one answer per item, in order. If one item is invalid, the whole batch throws before anything is
//     written.
//  4. Facts of the domain are return values. Faults throw `vouch::error`.
//  5. After any error except `invalid_argument` the transaction is closed, as it is after `commit` and when it has been
//     moved from. Using a closed transaction throws `misuse`.
//  6. Any operation of a transaction may throw `conflict`. The transaction is then rolled back and its verdicts are
//     void; the caller repeats it from `begin` (`transact` does). One of the conflicting transactions always succeeds.
//  7. Only `commit`, and an operation that includes it, throws an error that `is_in_doubt`: the commit may or may not have
//     taken effect. The caller then
//     - forgets the claims of the transaction: it does not run, settle, extend or release them, because another worker
//       may hold an equal ticket; the lease expires and the entries are claimed again;
//     - repeats its settles, all of them, with the same tickets: `repeated` or `unknown` means that the first commit
//       took effect, `stale` that another claim has taken over;
//     - repeats its enqueues, all of them, with the same ids: a duplicate of the same id means that it is stored.
//  8. Transactions are serializable in what they answer about stored entries that they name. Everything else is true at
//     the moment of the call, and other transactions may commit before this one does: that an entry, a key or an id is
//     absent (`unknown`, `refused`, `inserted`), which entries a purge leaves, lists, counts and `next_due`. A store may
//     be stricter.
//  9. An open transaction touches the entries that it names and those that its verbs reach: the parent and the next
//     entry of the lane of an entry that ends, and the entry of which a draft is a duplicate. If it ends with `conflict`,
//     it may have touched everything in the queue of its claim or purge.
// 10. Names (queue, topic, key, group, lane, worker, error code, header name) are valid UTF-8 without control
//     characters, and two names are equal only if their bytes are. Payload, progress, result and header values are bytes.
//
// Not required: priorities, fairness between lanes, sequences without gaps, transactions across stores.

namespace vouch {
inline namespace v0 {

/// Reads entries and changes nothing.
///  1. `find` returns the entry with its payload, or nothing.
///  2. `list` returns the entries that the query selects, by ascending sequence.
///  3. `counts` returns the number of entries of the queue in every state. It may read every row of the queue; vouch
///     never calls it while it emits, claims or settles.
///  4. `next_due` returns the smallest gate of the queue, which may be in the past, or nothing. The gate of an entry is
///     the time from which a claim may take it: the end of its lease if it is claimed, else its due time. An entry that
///     is terminal, or blocked in its lane, has no gate.
template <class R>
concept reader = requires(const R& r, const id& an_id, const query& q, std::string_view queue) {
    { r.find(an_id) } -> std::same_as<std::optional<entry>>;
    { r.list(q) } -> std::same_as<std::vector<entry>>;
    { r.counts(queue) } -> std::same_as<state_counts>;
    { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
};

/// Reads and writes within a transaction. Reads see the writes of the same transaction.
///  1. `enqueue` stores each draft once. A draft whose id is stored is a duplicate of that entry. A draft whose queue
///     and key are stored, in any generation, is a duplicate of the newest. A dead entry gets at most one successor.
///     Within a batch, later drafts see earlier ones.
///  2. `claim` takes the entries whose gate is at or before `now`, the first `limit` by (gate, sequence). It returns
///     them by (due_at, sequence), as they are after the claim. It may pass over an entry that another open transaction
///     touches, and over no other. A claim is an attempt, unless it takes over after the first lapse in a row. Its
///     cost must not grow with the number of future, blocked, claimed or terminal entries.
///  3. `settle` is decided by the ticket alone, never by the time. When an entry becomes terminal, by any verb, the
///     same transaction nudges its parent and gives the next entry of its lane a gate.
///  4. `extend` sets `lease_until` to the later of `lease_until` and `now + lease`.
///  5. `nudge` and `cancel` do what `lifecycle.hpp` says.
///  6. `purge` removes terminal entries that no live entry needs, as `purge_request` says, and returns their number. It
///     may read a bounded number of entries; the next call continues from there.
template <class W>
concept writer = reader<W> &&
    requires(W& tx, std::span<const draft> drafts, const claim_request& claim, std::span<const settle> settles,
             std::span<const ticket> tickets, const id& an_id, std::string_view error, const purge_request& purge,
             time_point now, duration lease) {
    { tx.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
    { tx.claim(claim) } -> std::same_as<std::vector<entry>>;
    { tx.settle(settles, now) } -> std::same_as<std::vector<settlement>>;
    { tx.extend(tickets, now, lease) } -> std::same_as<std::vector<verdict>>;
    { tx.nudge(an_id, now) } -> std::same_as<verdict>;
    { tx.cancel(an_id, error, now) } -> std::same_as<verdict>;
    { tx.purge(purge) } -> std::same_as<std::size_t>;
};

/// A writer that can be committed. Before `commit` no other reader sees any of its writes; after `commit` all readers
/// see all of them. If it is destroyed without `commit`, nothing of it remains, not even a dedup key. A transaction may
/// move between threads, but only one thread may use it at a time.
template <class T>
concept transaction = writer<T> && std::movable<T> && requires(T& tx) {
    { tx.commit() } -> std::same_as<void>;
};

/// What `settle_claim_and_commit` returns.
struct settled_and_claimed {
    std::vector<settlement> settlements{};       ///< what `settle` returns
    std::optional<std::vector<entry>> claimed{}; ///< what `claim_and_commit` returns; nothing if a settle was refused
    [[nodiscard]] friend bool operator==(const settled_and_claimed&, const settled_and_claimed&) = default;
};

/// A transaction whose last operations can travel with its commit. Optional: it saves a store behind a network round
/// trips. A store declares the capability `committing` exactly if its transactions model it. `vouch::enqueue`,
/// `vouch::claim`, runners and workers use it if there is one, and otherwise call the operations and then `commit`. After
/// each of the three the transaction is closed, whatever it returns or throws, except for `invalid_argument`. If it
/// throws, nothing of the transaction remains, unless the error `is_in_doubt`.
///  1. `enqueue_and_commit` does and returns what `enqueue` does, and commits.
///  2. `claim_and_commit` does and returns what `claim` does, and commits. Or it claims nothing, commits and returns
///     nothing; the caller then claims in another transaction. It must do so if an entry that it would claim would have
///     `lapses` above 0, now or from an earlier claim: the caller may have to hand such an entry back in the transaction
///     that claims it.
///  3. `settle_claim_and_commit` does what `settle` does and then, if every verdict is `applied`, what `claim_and_commit`
///     does; so it can claim what the settles have made due. If a verdict is not `applied`, it rolls back: nothing of the
///     transaction remains, earlier writes included, and nothing is claimed.
template <class T>
concept committing_transaction = transaction<T> &&
    requires(T& tx, std::span<const draft> drafts, std::span<const settle> settles, time_point now,
             const claim_request& claim) {
    { tx.enqueue_and_commit(drafts, now) } -> std::same_as<std::vector<receipt>>;
    { tx.claim_and_commit(claim) } -> std::same_as<std::optional<std::vector<entry>>>;
    { tx.settle_claim_and_commit(settles, now, claim) } -> std::same_as<settled_and_claimed>;
};

/// Holds the entries. Any number of threads may call `begin` and read at the same time. Reads on the store see
/// committed entries and never wait for a writer. `begin` may wait until another transaction ends.
template <class S>
concept store = reader<S> && transaction<typename S::transaction> && requires(S& s, const S& looked_at) {
    { s.begin() } -> std::same_as<typename S::transaction>;
    { looked_at.capabilities() } -> std::same_as<capabilities>;
    { S::contract_level } -> std::convertible_to<int>;
};

/// A store with the capability `wakes`. Each queue has a number that changes with every commit that may have made work
/// due sooner, at the commit or a moment later.
///  1. `wakes` returns the number.
///  2. `wait` returns it as soon as it differs from `seen`, after `at_most`, or when `stop` is requested.
/// A wake-up is only a hint: a store that drops every one loses no work, because workers poll as well.
template <class S>
concept waking_store = store<S> &&
    requires(S& s, std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
    { s.wakes(queue) } -> std::same_as<std::uint64_t>;
    { s.wait(queue, seen, at_most, stop) } -> std::same_as<std::uint64_t>;
};

/// A store that can enqueue without `begin`. Optional: it lets a store commit the drafts of several threads together, each
/// of which gets its own receipts or its own error. `vouch::enqueue` uses it if there is one.
///  1. `enqueue` does and returns what `begin`, `enqueue` and `commit` do in a transaction of its own, and throws what
///     they throw.
template <class S>
concept enqueuing_store = store<S> && requires(S& s, std::span<const draft> drafts, time_point now) {
    { s.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/explain.hpp
// Compile-time messages for authors of stores: one plain sentence for each operation that a type lacks. The templates
// of vouch that take a store check `static_assert(explain_store<S>())` first; a store's own test can do the same.

namespace vouch {
inline namespace v0 {

namespace detail {

template <class R>
consteval bool explain_reader() {
    static_assert(
        requires(const R& r, const id& i) {
            { r.find(i) } -> std::same_as<std::optional<entry>>;
        },
        "vouch: a reader needs `std::optional<entry> find(const id&) const`");
    static_assert(
        requires(const R& r, const query& q) {
            { r.list(q) } -> std::same_as<std::vector<entry>>;
        },
        "vouch: a reader needs `std::vector<entry> list(const query&) const`");
    static_assert(
        requires(const R& r, std::string_view queue) {
            { r.counts(queue) } -> std::same_as<state_counts>;
        },
        "vouch: a reader needs `state_counts counts(std::string_view queue) const`");
    static_assert(
        requires(const R& r, std::string_view queue) {
            { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
        },
        "vouch: a reader needs `std::optional<time_point> next_due(std::string_view queue) const`");
    return true;
}

template <class W>
consteval bool explain_upkeep() {
    static_assert(
        requires(W & w, const id& i, time_point now) {
            { w.nudge(i, now) } -> std::same_as<verdict>;
        },
        "vouch: a writer needs `verdict nudge(const id&, time_point now)`");
    static_assert(
        requires(W & w, const id& i, std::string_view error, time_point now) {
            { w.cancel(i, error, now) } -> std::same_as<verdict>;
        },
        "vouch: a writer needs `verdict cancel(const id&, std::string_view error, time_point now)`");
    static_assert(
        requires(W & w, const purge_request& request) {
            { w.purge(request) } -> std::same_as<std::size_t>;
        },
        "vouch: a writer needs `std::size_t purge(const purge_request&)`");
    return true;
}

} // namespace detail

/// True if `W` models `writer`. Otherwise the compiler prints a sentence for each operation that is missing.
template <class W>
consteval bool explain_writer() {
    detail::explain_reader<W>();
    static_assert(
        requires(W & w, std::span<const draft> drafts, time_point now) {
            { w.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
        },
        "vouch: a writer needs `std::vector<receipt> enqueue(std::span<const draft>, time_point now)`");
    static_assert(
        requires(W & w, const claim_request& request) {
            { w.claim(request) } -> std::same_as<std::vector<entry>>;
        },
        "vouch: a writer needs `std::vector<entry> claim(const claim_request&)`");
    static_assert(
        requires(W & w, std::span<const settle> settles, time_point now) {
            { w.settle(settles, now) } -> std::same_as<std::vector<settlement>>;
        },
        "vouch: a writer needs `std::vector<settlement> settle(std::span<const settle>, time_point now)`");
    static_assert(
        requires(W & w, std::span<const ticket> tickets, time_point now, duration lease) {
            { w.extend(tickets, now, lease) } -> std::same_as<std::vector<verdict>>;
        },
        "vouch: a writer needs `std::vector<verdict> extend(std::span<const ticket>, time_point now, duration lease)`");
    return detail::explain_upkeep<W>();
}

/// True if `S` models `store`. Otherwise the compiler prints a sentence for each operation that is missing.
template <class S>
consteval bool explain_store() {
    detail::explain_reader<S>();
    static_assert(
        requires { typename S::transaction; }, "vouch: a store needs a member type `transaction`");
    static_assert(
        requires(S & s) {
            { s.begin() } -> std::same_as<typename S::transaction>;
        },
        "vouch: a store needs `transaction begin()`");
    static_assert(
        requires(const S& s) {
            { s.capabilities() } -> std::same_as<capabilities>;
        },
        "vouch: a store needs `vouch::capabilities capabilities() const`");
    static_assert(
        requires {
            { S::contract_level } -> std::convertible_to<int>;
        },
        "vouch: a store needs `static constexpr int contract_level`");
    if constexpr (requires { typename S::transaction; }) {
        using transaction = typename S::transaction;
        explain_writer<transaction>();
        static_assert(std::movable<transaction>, "vouch: a transaction must be movable");
        static_assert(
            requires(transaction & tx) {
                { tx.commit() } -> std::same_as<void>;
            },
            "vouch: a transaction needs `void commit()`");
    }
    return true;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/is_saga.hpp
// Recognises the entries of sagas, for code that must treat them differently but knows nothing else about sagas. A saga
// may have done work that has to be undone, so it is never buried, cancelled or started again like other entries. It
// reads the start of the progress (mark, format, origin) and checks the checksum at its end; it decodes nothing else.

namespace vouch {
inline namespace v0 {

/// The first bytes of every saga's progress. The number of the format follows, then 16 bytes of origin.
inline constexpr std::string_view saga_progress_mark = "saga";
/// A control character, so that a handler's own text that begins with the mark is not taken for a saga's progress.
inline constexpr char saga_progress_format = 1;

/// Whether these bytes are the progress of a saga, in this format or another.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    constexpr auto size = saga_progress_mark.size();
    return bytes.size() > size && bytes.substr(0, size) == saga_progress_mark && bytes[size] > '\0' &&
           bytes[size] < ' ';
}

/// Whether an entry is a saga: it was started by `outbox::start`, or has passed its first checkpoint.
[[nodiscard]] inline bool is_saga(const entry& e) noexcept { return is_saga_progress(e.progress); }

namespace detail {

inline constexpr std::size_t checksum_size = 4;

[[nodiscard]] constexpr std::uint32_t checksum(std::string_view bytes) noexcept { // FNV-1a
    std::uint32_t sum = 2166136261U;
    for (const char c : bytes) {
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    return sum;
}

/// Whether the bytes end with their checksum.
[[nodiscard]] constexpr bool is_intact(std::string_view bytes) noexcept {
    if (bytes.size() < checksum_size) {
        return false;
    }
    const auto end = bytes.substr(bytes.size() - checksum_size);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < checksum_size; ++i) {
        sum |= static_cast<std::uint32_t>(static_cast<unsigned char>(end[i])) << (8 * i);
    }
    bytes.remove_suffix(checksum_size);
    return sum == checksum(bytes);
}

} // namespace detail

/// The origin that a saga's progress names: the id of the saga's first entry, or nil before the first checkpoint. Returns
/// nothing if the progress has another format or is damaged.
[[nodiscard]] inline std::optional<id> saga_origin(std::string_view progress) noexcept {
    constexpr auto head = saga_progress_mark.size() + 1;
    std::array<std::uint8_t, 16> raw{};
    if (!is_saga_progress(progress) || progress[head - 1] != saga_progress_format ||
        progress.size() < head + raw.size() + detail::checksum_size || !detail::is_intact(progress)) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < raw.size(); ++i) {
        raw[i] = static_cast<std::uint8_t>(progress[head + i]);
    }
    return id::from_bytes(raw);
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/transitions.hpp
// The lifecycle of an entry, as one table. Each row is one state change: the state before, the verb, the state after,
// and the condition under which the row applies. A change that has no row cannot happen.
//
// `apply` (lifecycle.hpp) takes every new state from this table, and the compiler checks the table against the verdicts
// that a store returns. README.md in this folder shows both tables, with the fields that each verb changes.

namespace vouch {
inline namespace v0 {

/// What can be done to a stored entry. The verbs from `succeed` to `advance` are the outcomes of a settle.
enum class verb : std::uint8_t { claim, succeed, retry, bury, release, advance, extend, nudge, cancel };

/// Every verb, in the order of the enumeration.
inline constexpr std::array<verb, 9> all_verbs{verb::claim,   verb::succeed, verb::retry, verb::bury,  verb::release,
                                               verb::advance, verb::extend,  verb::nudge, verb::cancel};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(verb v) noexcept {
    switch (v) {
    case verb::claim: return "claim";
    case verb::succeed: return "succeed";
    case verb::retry: return "retry";
    case verb::bury: return "bury";
    case verb::release: return "release";
    case verb::advance: return "advance";
    case verb::extend: return "extend";
    case verb::nudge: return "nudge";
    case verb::cancel: return "cancel";
    }
    return "?";
}

/// When a row of the table applies.
enum class condition : std::uint8_t {
    always,
    lease_over,    ///< the claim's lease has expired
    first_attempt, ///< the released claim was the first attempt: the count is 0 again
    later_attempt, ///< the released claim was a later attempt
};

/// One row of the table.
struct transition {
    state from;
    vouch::verb verb;
    state to;
    condition when = condition::always;

    [[nodiscard]] friend constexpr bool operator==(const transition&, const transition&) noexcept = default;
};

/// Every state change there is. Terminal states have no row: a succeeded or dead entry never changes.
inline constexpr std::array transitions{
    transition{state::pending, verb::claim, state::claimed},
    transition{state::retrying, verb::claim, state::claimed},
    transition{state::claimed, verb::claim, state::claimed, condition::lease_over},
    transition{state::claimed, verb::succeed, state::succeeded},
    transition{state::claimed, verb::retry, state::retrying},
    transition{state::claimed, verb::bury, state::dead},
    transition{state::claimed, verb::release, state::pending, condition::first_attempt},
    transition{state::claimed, verb::release, state::retrying, condition::later_attempt},
    transition{state::claimed, verb::advance, state::pending},
    transition{state::claimed, verb::extend, state::claimed},
    transition{state::pending, verb::nudge, state::pending},
    transition{state::retrying, verb::nudge, state::retrying},
    transition{state::claimed, verb::nudge, state::claimed},
    transition{state::pending, verb::cancel, state::dead},
    transition{state::retrying, verb::cancel, state::dead},
    transition{state::claimed, verb::cancel, state::dead, condition::lease_over},
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/next_state.hpp
// The new state of an entry, looked up in the table of transitions. The lookup is done by the compiler: at run time it
// is a constant, or one load where the state before is not known until then.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Whether the table has a row for `v` in the state `from`.
[[nodiscard]] constexpr bool has_transition(state from, verb v) noexcept {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v) {
            return true;
        }
    }
    return false;
}
[[nodiscard]] constexpr bool has_transition(state from, verb v, condition when) noexcept {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v && t.when == when) {
            return true;
        }
    }
    return false;
}

/// The state that the row (`from`, `v`, `when`) leads to. Without such a row there is none, and no program.
[[nodiscard]] consteval state state_after(state from, verb v, condition when = condition::always) {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v && t.when == when) {
            return t.to;
        }
    }
    throw "vouch: the table of transitions has no such row";
}

/// The state that each state leads to by the verb `V`. A state without a row stays what it is.
template <verb V>
inline constexpr std::array<state, all_states.size()> states_after = [] {
    auto out = all_states;
    for (const auto& t : transitions) {
        if (t.verb == V) {
            auto& to = out[static_cast<std::size_t>(t.from)];
            if (to != t.from && to != t.to) {
                throw "vouch: this verb has several rows for one state; name the condition";
            }
            to = t.to;
        }
    }
    return out;
}();

template <verb V>
[[nodiscard]] constexpr state state_after(state from) noexcept {
    return states_after<V>[static_cast<std::size_t>(from)];
}

/// Each (from, verb, condition) has one row, and no row leads out of a terminal state.
[[nodiscard]] consteval bool transitions_are_sound() {
    for (std::size_t i = 0; i < transitions.size(); ++i) {
        const auto& a = transitions[i];
        if (is_terminal(a.from)) {
            return false;
        }
        for (std::size_t j = i + 1; j < transitions.size(); ++j) {
            const auto& b = transitions[j];
            if (a.from == b.from && a.verb == b.verb &&
                (a.when == b.when || a.when == condition::always || b.when == condition::always)) {
                return false;
            }
        }
    }
    return true;
}
static_assert(transitions_are_sound(), "vouch: two transitions contradict each other, or one leaves a terminal state");

/// `gate_of` agrees with the table: a state has a gate exactly if it can be claimed, and the gate is the end of the
/// lease exactly if that is the condition of the claim.
[[nodiscard]] consteval bool gates_agree_with_transitions() {
    for (const auto s : all_states) {
        if (has_transition(s, verb::claim) != is_live(s) ||
            has_transition(s, verb::claim, condition::lease_over) != (s == state::claimed)) {
            return false;
        }
    }
    return true;
}
static_assert(gates_agree_with_transitions(), "vouch: only live states, and all of them, can be claimed");

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/settle_on.hpp
// The change that each outcome makes to a claimed entry.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Sets the next due time. A nudge during the claim makes the entry due now at the latest.
inline void set_due(life& l, time_point due, time_point now) { l.due_at = l.woken ? std::min(due, now) : due; }

/// The fields that each outcome changes. What all outcomes have in common is in `apply`.
struct settle_on {
    life& l;
    time_point now;

    void operator()(const succeed& o) const {
        l.state = state_after(state::claimed, verb::succeed);
        l.lapses = 0;
        l.result = o.result;
    }
    void operator()(const retry& o) const {
        l.state = state_after(state::claimed, verb::retry);
        set_due(l, o.at, now);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
    }
    void operator()(const bury& o) const {
        l.state = state_after(state::claimed, verb::bury);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
        l.result = o.result;
    }
    void operator()(const release& o) const {
        l.attempts -= 1;
        l.state = l.attempts == 0 ? state_after(state::claimed, verb::release, condition::first_attempt)
                                  : state_after(state::claimed, verb::release, condition::later_attempt);
        set_due(l, o.at.value_or(l.due_at), now);
    }
    void operator()(const advance& o) const {
        l.state = state_after(state::claimed, verb::advance);
        l.attempts = 0;
        l.lapses = 0;
        l.progress = o.progress;
        set_due(l, o.at.value_or(now), now);
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/verdict_table.hpp
// The verdict on every call that names a stored entry, as one table: the call in rows, the entry in columns. The
// compiler checks it against the table of transitions: a verb is `applied` exactly where the lifecycle has a row for
// it.
//
// A claim has no row here. It names no entry; it takes those whose gate is open.

namespace vouch {
inline namespace v0 {
namespace detail {

/// A call, as far as its verdict depends on it.
enum class verdict_row : std::uint8_t {
    settle,             ///< settle or extend, with the entry's current epoch
    settle_other_epoch, ///< settle or extend, with any other epoch
    nudge,
    nudge_again, ///< the entry is due or marked already
    cancel,
};

/// An entry, as far as the verdict depends on it.
enum class verdict_column : std::uint8_t {
    waiting, ///< pending or retrying
    held,    ///< claimed, the lease runs
    lapsed,  ///< claimed, the lease is over
    succeeded,
    dead,
    absent, ///< not stored
};

[[nodiscard]] constexpr verdict_column column_of(const life& l, time_point now) noexcept {
    switch (l.state) {
    case state::pending:
    case state::retrying: return verdict_column::waiting;
    case state::claimed: return l.lease_until && *l.lease_until <= now ? verdict_column::lapsed : verdict_column::held;
    case state::succeeded: return verdict_column::succeeded;
    case state::dead: break;
    }
    return verdict_column::dead;
}

using verdict_table = std::array<std::array<verdict, 6>, 5>;

// clang-format off
inline constexpr verdict_table verdict_cells = [] {
    using enum verdict;
    return verdict_table{{
        //                       waiting   held      lapsed    succeeded dead      absent
        /* settle             */ {repeated, applied,  applied,  repeated, repeated, unknown},
        /* settle_other_epoch */ {stale,    stale,    stale,    stale,    stale,    unknown},
        /* nudge              */ {applied,  applied,  applied,  stale,    stale,    unknown},
        /* nudge_again        */ {repeated, repeated, repeated, stale,    stale,    unknown},
        /* cancel             */ {applied,  stale,    applied,  stale,    repeated, unknown},
    }};
}();
// clang-format on

[[nodiscard]] constexpr verdict verdict_on(verdict_row row, verdict_column column) noexcept {
    return verdict_cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
}

/// The verdict on a settle or an extend with this epoch.
[[nodiscard]] inline verdict verdict_on_ticket(const life& l, std::uint64_t epoch, time_point now) noexcept {
    return verdict_on(epoch == l.epoch ? verdict_row::settle : verdict_row::settle_other_epoch, column_of(l, now));
}

/// The row of a verb that is not refused for its ticket and not a repetition.
[[nodiscard]] constexpr verdict_row row_of(verb v) noexcept {
    switch (v) {
    case verb::nudge: return verdict_row::nudge;
    case verb::cancel: return verdict_row::cancel;
    default: return verdict_row::settle;
    }
}

/// Whether a transition leads from `s` by `v` while the lease runs, or when it is over.
[[nodiscard]] constexpr bool can_happen(state s, verb v, bool is_lease_over) noexcept {
    for (const auto& t : transitions) {
        if (t.from == s && t.verb == v && (t.when != condition::lease_over || is_lease_over)) {
            return true;
        }
    }
    return false;
}

[[nodiscard]] consteval bool verdicts_agree_with_transitions() {
    struct situation {
        vouch::state state;
        verdict_column column;
    };
    constexpr std::array situations{
        situation{state::pending, verdict_column::waiting},     situation{state::retrying, verdict_column::waiting},
        situation{state::claimed, verdict_column::held},        situation{state::claimed, verdict_column::lapsed},
        situation{state::succeeded, verdict_column::succeeded}, situation{state::dead, verdict_column::dead},
    };
    for (const auto v : all_verbs) {
        for (const auto& [s, column] : situations) {
            const bool is_allowed = can_happen(s, v, column == verdict_column::lapsed);
            const bool is_applied = v == verb::claim
                                        ? column == verdict_column::waiting || column == verdict_column::lapsed
                                        : verdict_on(row_of(v), column) == verdict::applied;
            if (is_allowed != is_applied) {
                return false;
            }
        }
    }
    for (const auto v : verdict_cells[static_cast<std::size_t>(verdict_row::settle_other_epoch)]) {
        if (v == verdict::applied) {
            return false;
        }
    }
    return true;
}
static_assert(verdicts_agree_with_transitions(),
              "vouch: a verb must be `applied` exactly where the table of transitions has a row for it");

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/lifecycle.hpp
// The verbs as pure functions: `apply` changes one entry as the table of transitions says (transitions.hpp) and returns
// the verdict. A simple store reads an entry, applies the verb, and writes the entry back under its fence.
//
// Only `applied` changes anything; with any other verdict every field stays as it is. The functions know nothing about
// lanes: a store must not let a claim reach an entry that is blocked in its lane. They are safe to call from any thread
// as long as no two threads use the same entry.

namespace vouch {
inline namespace v0 {

/// The time from which a claim may take the entry, if its lane does not block it: the end of the lease if it is
/// claimed, else `due_at`. A terminal entry has none.
[[nodiscard]] constexpr std::optional<time_point> gate_of(const life& l) noexcept {
    if (is_terminal(l.state)) {
        return std::nullopt;
    }
    return l.state == state::claimed ? l.lease_until : l.due_at;
}

/// Claims the entry. Requires that its gate is at or before `request.now`.
///
/// A claim counts as an attempt, except the claim that takes over after a first lapse: the process that held the entry
/// may have died of another entry, so the first lapse costs no attempt. Every further lapse in a row costs one. A
/// runner handles an entry that has lapsed alone, so an entry that kills its process every time runs out of attempts.
inline void apply(life& l, const claim_request& request) {
    const bool is_takeover = l.state == state::claimed;
    l.attempts += is_takeover && l.lapses == 0 ? 0U : 1U;
    l.lapses += is_takeover ? 1U : 0U;
    l.state = detail::state_after<verb::claim>(l.state);
    l.epoch += 1;
    l.lease_until = request.now + request.lease;
    l.woken = false;
    l.worker = request.worker;
    l.last_attempt_at = request.now;
    l.updated_at = request.now;
}

/// Settles a claim. Only the ticket decides, never the time: if the lease is over and no other claim has taken over,
/// the settle is applied.
[[nodiscard]] inline verdict apply(life& l, const settle& s, time_point now) {
    const auto v = detail::verdict_on_ticket(l, s.ticket.epoch, now);
    if (v == verdict::applied) {
        visit_outcome(detail::settle_on{l, now}, s.outcome);
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

/// Extends a claim's lease to `now + lease`. A lease never gets shorter.
struct extend {
    vouch::ticket ticket{};
    duration lease{};
};

[[nodiscard]] inline verdict apply(life& l, const extend& x, time_point now) {
    const auto v = detail::verdict_on_ticket(l, x.ticket.epoch, now);
    if (v == verdict::applied) {
        l.state = detail::state_after(state::claimed, verb::extend);
        l.lease_until = std::max(*l.lease_until, now + x.lease);
        l.updated_at = now;
    }
    return v;
}

/// Makes an entry due now. A claimed entry is marked instead (`life::woken`) and becomes due when its claim ends.
struct nudge {};

[[nodiscard]] inline verdict apply(life& l, nudge, time_point now) {
    using detail::verdict_row;
    const bool is_claimed = l.state == state::claimed;
    const bool is_again = is_claimed ? l.woken : l.due_at <= now;
    const auto row = is_again ? verdict_row::nudge_again : verdict_row::nudge;
    const auto v = detail::verdict_on(row, detail::column_of(l, now));
    if (v == verdict::applied) {
        l.state = detail::state_after<verb::nudge>(l.state);
        if (is_claimed) {
            l.woken = true;
        } else {
            l.due_at = now;
        }
        l.updated_at = now;
    }
    return v;
}

/// Ends an entry that is not held under a running lease. If it was claimed its epoch grows, so that the lapsed ticket
/// becomes stale.
struct cancel {
    std::string_view error{};
};

[[nodiscard]] inline verdict apply(life& l, const cancel& c, time_point now) {
    const auto v = detail::verdict_on(detail::verdict_row::cancel, detail::column_of(l, now));
    if (v == verdict::applied) {
        l.epoch += l.state == state::claimed ? 1U : 0U;
        l.state = detail::state_after<verb::cancel>(l.state);
        l.last_error = c.error;
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/matches.hpp
// A query as a pure function, for stores that look at entries one by one.

namespace vouch {
inline namespace v0 {

/// Whether an entry is on the query's path, passes its filters and comes after `after`. The store itself applies
/// `limit`, the order and `payloads`. Requires that `validate` accepts the query.
[[nodiscard]] inline bool matches(const entry& e, const query& q) noexcept {
    return (q.queue.empty() || q.queue == e.queue) && (q.key.empty() || q.key == e.key) &&
           (q.group.empty() || q.group == e.group) && (q.parent.is_nil() || q.parent == e.parent) &&
           (q.by != query::path::dead || e.state == state::dead) && (q.by != query::path::live || is_live(e.state)) &&
           (!q.state || *q.state == e.state) && (q.topic.empty() || q.topic == e.topic) && q.after < e.sequence;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/requeue.hpp
// How a dead entry gets another chance: a successor takes its place. The dead entry itself never changes.

namespace vouch {
inline namespace v0 {

struct requeue_request {
    id dead{};      ///< the entry to replace
    id successor{}; ///< the id of its successor: a fresh one
    time_point now{};
};

namespace detail {

/// An entry with a parent is a saga's command. The saga has already acted on its end, so the saga is what can be
/// continued, not the command.
template <class Writer>
receipt replace_dead(Writer& tx, const std::optional<entry>& found, const requeue_request& r, std::string progress) {
    if (!found || found->state != state::dead || !found->parent.is_nil()) {
        return {};
    }
    const std::array drafts{draft{.id = r.successor,
                                  .queue = found->queue,
                                  .topic = found->topic,
                                  .payload = found->payload,
                                  .predecessor = found->id,
                                  .attempts_max = found->attempts_max,
                                  .trail = found->trail,
                                  .headers = found->headers,
                                  .progress = std::move(progress)}};
    return tx.enqueue(drafts, r.now).front();
}

} // namespace detail

/// Gives a dead entry a successor that starts from the beginning: attempts 0, due now, no expiry. Returns inserted;
/// duplicate of the successor it already has; or refused, if the entry is absent, not dead, has a parent, or is a saga:
/// starting a saga again would repeat its work under other keys. `resume` continues a saga.
template <class Writer>
[[nodiscard]] receipt requeue(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    return found && is_saga(*found) ? receipt{} : detail::replace_dead(tx, found, r, {});
}

/// Gives a dead entry a successor that continues from the last checkpoint. Returns the same as `requeue`, but does not
/// refuse sagas.
template <class Writer>
[[nodiscard]] receipt resume(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    return detail::replace_dead(tx, found, r, found ? found->progress : std::string{});
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/saga_origin.hpp
// The identity of a saga: the id of its first entry. Keys, commands and requests to cancel are derived from it, so it
// must not change when a dead saga is resumed under another entry.

namespace vouch {
inline namespace v0 {

/// The idempotency key of a step's action, or of its compensation. It is the same for every attempt, for every command
/// that is sent again, and after a resume. `saga` is the saga's first entry.
[[nodiscard]] constexpr id saga_key(const id& saga, std::string_view step, bool is_compensation) noexcept {
    return derive(derive(saga, step), is_compensation ? "undo" : "forward");
}

/// The first entry of the saga that `e` continues, for a saga whose progress names no origin yet because it has not
/// reached a checkpoint. A resume copies the progress, so predecessors with the same progress belong to the same saga.
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

// ---- vouch/contract/store_adaptor.hpp
// A base for stores that decorate another store: that log, count, inject faults, rename. It forwards every operation, so
// a decorator contains only what it changes.
//
// To intercept all operations, pass a function object. It receives the operation and the call to make:
//
//   vouch::store_adaptor store(vouch::memory::store{}, [](vouch::store_operation what, const auto& call) {
//       std::puts(name_of(what).data());
//       return call();
//   });
//
// To change some operations, derive and declare them again; `inner()` is the decorated store or transaction:
//
//   struct patient_transaction : vouch::transaction_adaptor<vouch::memory::transaction> {
//       using transaction_adaptor::transaction_adaptor;
//       auto claim(vouch::claim_request request) { request.lease *= 2; return inner().claim(request); }
//   };
//   struct patient_store : vouch::store_adaptor<vouch::memory::store> {
//       using store_adaptor::store_adaptor;
//       using transaction = patient_transaction;
//       transaction begin() { return transaction(inner().begin()); }
//   };
//
// An adaptor is as thread-safe as the store it decorates, provided that its interceptor is.

namespace vouch {
inline namespace v0 {

/// The operations of a store and of its transactions that read or change entries.
enum class store_operation : std::uint8_t {
    find,
    list,
    counts,
    next_due,
    begin,
    enqueue,
    claim,
    settle,
    extend,
    nudge,
    cancel,
    purge,
    commit,
};

/// The operation's name, as it is written in code. The text ends with a NUL.
[[nodiscard]] constexpr std::string_view name_of(store_operation what) noexcept {
    switch (what) {
    case store_operation::find: return "find";
    case store_operation::list: return "list";
    case store_operation::counts: return "counts";
    case store_operation::next_due: return "next_due";
    case store_operation::begin: return "begin";
    case store_operation::enqueue: return "enqueue";
    case store_operation::claim: return "claim";
    case store_operation::settle: return "settle";
    case store_operation::extend: return "extend";
    case store_operation::nudge: return "nudge";
    case store_operation::cancel: return "cancel";
    case store_operation::purge: return "purge";
    case store_operation::commit: return "commit";
    }
    return "?";
}

/// The default interceptor: makes the call. Every interceptor has this form:
///  1. It is called as const, by any thread that uses the store. The store and its transactions share one interceptor.
///  2. It returns what `call()` returned. Every call returns a value; a commit's value is a `std::monostate`.
///  3. It may throw instead of calling, or after the call. The transaction is then closed, and rolled back unless it has
///     committed. After `invalid_argument` it stays open, as the contract requires.
struct pass_through {
    template <class Call>
    auto operator()(store_operation, const Call& call) const {
        return call();
    }
};

/// Forwards a transaction's operations to `Inner`, through `Interceptor`. Models `transaction`.
template <class Inner, class Interceptor = pass_through>
class transaction_adaptor {
  public:
    explicit transaction_adaptor(Inner inner) requires std::same_as<Interceptor, pass_through>
        : inner_(std::move(inner)) {}
    transaction_adaptor(Inner inner, std::shared_ptr<const Interceptor> interceptor)
        : inner_(std::move(inner)), interceptor_(std::move(interceptor)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return intercept(store_operation::find, [&](const Inner& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return intercept(store_operation::list, [&](const Inner& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return intercept(store_operation::counts, [&](const Inner& tx) { return tx.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return intercept(store_operation::next_due, [&](const Inner& tx) { return tx.next_due(queue); });
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return intercept(store_operation::enqueue, [&](Inner& tx) { return tx.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return intercept(store_operation::claim, [&](Inner& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return intercept(store_operation::settle, [&](Inner& tx) { return tx.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return intercept(store_operation::extend, [&](Inner& tx) { return tx.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return intercept(store_operation::nudge, [&](Inner& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return intercept(store_operation::cancel, [&](Inner& tx) { return tx.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        return intercept(store_operation::purge, [&](Inner& tx) { return tx.purge(request); });
    }
    void commit() {
        intercept(store_operation::commit, [](Inner& tx) {
            tx.commit();
            return std::monostate{};
        });
    }

  protected:
    /// The decorated transaction. Throws `misuse` after `close`. Not const, because even a read that fails closes.
    [[nodiscard]] Inner& inner() const {
        if (!inner_ || (!std::same_as<Interceptor, pass_through> && !interceptor_)) {
            throw error(error_kind::misuse, "transaction: it is closed; begin another one");
        }
        return *inner_;
    }

    /// Rolls back. Further calls throw `misuse`. A derived class calls it before it throws an error of its own.
    void close() const noexcept { inner_.reset(); }

  private:
    template <class Call>
    auto intercept(store_operation what, const Call& call) const {
        auto& tx = inner();
        if constexpr (std::same_as<Interceptor, pass_through>) {
            return call(tx);
        } else {
            try {
                return (*interceptor_)(what, [&] { return call(tx); });
            } catch (const error& e) {
                if (e.kind() != error_kind::invalid_argument) {
                    close();
                }
                throw;
            } catch (...) {
                close();
                throw;
            }
        }
    }

    mutable std::optional<Inner> inner_;               ///< empty: closed
    std::shared_ptr<const Interceptor> interceptor_{}; ///< null after a move
};

/// Forwards a store's operations to `Inner`, through `Interceptor`. Models `store`, and `waking_store` if `Inner` does.
/// A derived class with a transaction type of its own declares `transaction` and `begin` again.
template <class Inner, class Interceptor = pass_through>
class store_adaptor {
    static_assert(explain_store<Inner>());

  public:
    using transaction = transaction_adaptor<typename Inner::transaction, Interceptor>;
    static constexpr int contract_level = Inner::contract_level;

    store_adaptor() requires std::default_initializable<Inner> && std::default_initializable<Interceptor>
        : store_adaptor(Inner()) {}
    explicit store_adaptor(Inner inner, Interceptor interceptor = Interceptor())
        : inner_(std::move(inner)), interceptor_(std::make_shared<const Interceptor>(std::move(interceptor))) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return (*interceptor_)(store_operation::find, [&] { return inner_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return (*interceptor_)(store_operation::list, [&] { return inner_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return (*interceptor_)(store_operation::counts, [&] { return inner_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return (*interceptor_)(store_operation::next_due, [&] { return inner_.next_due(queue); });
    }
    [[nodiscard]] transaction begin() {
        return (*interceptor_)(store_operation::begin, [&] { return transaction(inner_.begin(), interceptor_); });
    }

    // What follows is not intercepted: it neither reads nor changes entries.

    /// Those of the decorated store without `committing`: an interceptor sees a commit as a call of its own. A derived
    /// class whose transactions commit with their last operation declares `capabilities` again.
    [[nodiscard]] vouch::capabilities capabilities() const {
        auto can = inner_.capabilities();
        can.committing = false;
        return can;
    }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Inner> {
        return inner_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Inner> {
        return inner_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The decorated store.
    [[nodiscard]] Inner& inner() noexcept { return inner_; }
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

  protected:
    [[nodiscard]] const Interceptor& interceptor() const noexcept { return *interceptor_; }

  private:
    Inner inner_;
    std::shared_ptr<const Interceptor> interceptor_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/transact.hpp
// Helpers over a store: `transact`, the bounded loop that repeats a transaction on `conflict`; and `enqueue` and `claim` in
// a transaction of their own.

namespace vouch {
inline namespace v0 {

inline constexpr int transact_tries = 16;

namespace detail {

/// Returns what `whole()` returns, which is a whole transaction. It is repeated on `conflict`.
template <class Whole>
auto repeat_on_conflict(const Whole& whole) {
    for (int left = transact_tries - 1;; --left) {
        try {
            return whole();
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 0) {
                throw;
            }
        }
    }
}

/// Runs `work(tx)`, which commits, and returns what it returns. On `conflict` it is repeated from `begin`.
template <class Store, class Work>
auto repeat_on_conflict(Store& store, const Work& work) {
    static_assert(explain_store<Store>());
    return repeat_on_conflict([&] {
        typename Store::transaction tx = store.begin();
        return work(tx);
    });
}

} // namespace detail

/// Runs `work(tx)` in a transaction of its own, commits, and returns what `work` returned. On `conflict` everything is
/// repeated from `begin`, at most `transact_tries` times in all; any other error goes through, and so does an exception
/// of `work`, which leaves nothing behind. Because of the repeats `work` should touch nothing but the transaction.
template <class Store, class Work>
auto transact(Store& store, Work&& work) {
    return detail::repeat_on_conflict(store, [&](auto& tx) {
        if constexpr (std::is_void_v<std::invoke_result_t<Work&, decltype(tx)>>) {
            work(tx);
            tx.commit();
        } else {
            auto result = work(tx);
            tx.commit();
            return result;
        }
    });
}

namespace detail {

/// Calls `whole()`, which is a whole transaction, and which can be repeated after a commit in doubt because it uses the
/// same ids again. Returns its result and whether an earlier commit was in doubt. If a repeat fails, its error is in doubt.
template <class Whole>
auto repeat_in_doubt(const Whole& whole) {
    bool in_doubt = false;
    for (int left = transact_tries - 1;; --left) {
        try {
            auto result = repeat_on_conflict(whole);
            return std::pair(std::move(result), in_doubt);
        } catch (const error& e) {
            if (in_doubt && !e.is_in_doubt()) {
                // The repeat says nothing about the commit that it was to resolve.
                throw error(e.kind(), e.what(), {.in_doubt = true, .code = e.code(), .text_code = e.text_code()});
            }
            if (!e.is_in_doubt() || left == 0) {
                throw;
            }
            in_doubt = true;
        }
    }
}

/// The same for `work(tx)` that does not commit.
template <class Store, class Work>
auto transact_in_doubt(Store& store, const Work& work) {
    static_assert(explain_store<Store>());
    return repeat_in_doubt([&] {
        typename Store::transaction tx = store.begin();
        auto result = work(tx);
        tx.commit();
        return result;
    });
}

/// The last operation of a transaction, and its commit.
template <class Transaction>
[[nodiscard]] std::vector<receipt> enqueue_and_commit(Transaction& tx, std::span<const draft> drafts, time_point now) {
    if constexpr (committing_transaction<Transaction>) {
        return tx.enqueue_and_commit(drafts, now);
    } else {
        auto receipts = tx.enqueue(drafts, now);
        tx.commit();
        return receipts;
    }
}

/// In a transaction of its own, in as few steps as the store can.
template <class Store>
[[nodiscard]] std::vector<receipt> enqueue_alone(Store& store, std::span<const draft> drafts, time_point now) {
    if constexpr (enqueuing_store<Store>) {
        return store.enqueue(drafts, now);
    } else {
        typename Store::transaction tx = store.begin();
        return detail::enqueue_and_commit(tx, drafts, now);
    }
}

/// Claims in a transaction of its own and in one step, if the store can. Nothing: it cannot, and nothing was claimed.
template <class Store>
[[nodiscard]] std::optional<std::vector<entry>> claim_at_once(Store& store, const claim_request& request) {
    if constexpr (committing_transaction<typename Store::transaction>) {
        return repeat_on_conflict(store, [&](auto& tx) { return tx.claim_and_commit(request); });
    } else {
        return std::nullopt;
    }
}

/// The receipt of a repeated insert: a duplicate of the very id that was to be inserted means that it was inserted.
[[nodiscard]] inline receipt resolved(receipt r, const id& inserted) noexcept {
    r.what = r.id == inserted ? receipt::kind::inserted : r.what;
    return r;
}

} // namespace detail

/// Enqueues in a transaction of its own. A commit in doubt is repeated with the same ids, so the drafts are stored
/// once; a draft that turns out to be stored by then counts as inserted. If the repeat fails, its error is in doubt.
template <class Store>
std::vector<receipt> enqueue(Store& store, std::span<const draft> drafts, time_point now) {
    static_assert(explain_store<Store>());
    auto [receipts, in_doubt] = detail::repeat_in_doubt([&] { return detail::enqueue_alone(store, drafts, now); });
    for (std::size_t i = 0; in_doubt && i < receipts.size(); ++i) {
        receipts[i] = detail::resolved(receipts[i], drafts[i].id);
    }
    return receipts;
}

template <class Store>
std::vector<entry> claim(Store& store, const claim_request& request) {
    if (auto claimed = detail::claim_at_once(store, request)) {
        return std::move(*claimed);
    }
    return transact(store, [&](auto& tx) { return tx.claim(request); });
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/utf8.hpp
// Reads UTF-8 beyond ASCII. Names must be valid UTF-8, because databases and brokers keep nothing else as text.

namespace vouch {
inline namespace v0 {
namespace detail {

/// A character outside ASCII.
struct utf8_character {
    std::uint32_t point = 0;
    std::size_t length = 0; ///< in bytes; 0: the text does not begin with such a character

    /// U+0080 to U+009F. Terminals obey some of them.
    [[nodiscard]] constexpr bool is_control() const noexcept { return length > 0 && point < 0xa0; }
};

/// The character outside ASCII with which the text begins. Overlong forms, surrogates and values above U+10FFFF are not
/// valid.
[[nodiscard]] constexpr utf8_character utf8_character_of(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
    const auto first = byte(0);
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (length == 0 || first > 0xf4) {
        return {};
    }
    std::uint32_t point = first & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80U) {
            return {};
        }
        point = (point << 6U) | (byte(i) & 0x3fU);
    }
    const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    return point >= least && point <= 0x10ffff && !surrogate ? utf8_character{point, length} : utf8_character{};
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/field_checks.hpp
// Checks of single fields. A check that fails throws `invalid_argument` and names the field, the limit and the size
// given, never the content.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Names a field of an argument, for the message of a refusal. The text is made only when something is refused.
struct field {
    std::string_view of;   // "draft", "settle", "claim" ...
    std::string_view name; // "queue", "error" ...
    std::optional<std::size_t> index{};

    [[nodiscard]] std::string str() const {
        std::string out(of);
        if (index) {
            out += ' ';
            out += std::to_string(*index);
        }
        out += ": ";
        out += name;
        return out;
    }
};

[[noreturn]] inline void refuse(const field& f, std::string_view what) {
    throw error(error_kind::invalid_argument, f.str() + ' ' + std::string(what));
}

[[noreturn]] inline void refuse_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    const auto sizes = "has " + std::to_string(given) + ' ' + std::string(unit);
    refuse(f, sizes + ", the limit is " + std::to_string(limit));
}

[[noreturn]] inline void refuse_control_character(const field& f, std::size_t at) {
    refuse(f, "has a control character at byte " + std::to_string(at));
}

/// Checks the character outside ASCII that begins at byte `at`. Returns its length.
inline std::size_t check_beyond_ascii(const field& f, std::string_view name, std::size_t at) {
    const auto c = utf8_character_of(name.substr(at));
    if (c.length == 0) {
        refuse(f, "is not valid UTF-8 at byte " + std::to_string(at));
    }
    if (c.is_control()) {
        refuse_control_character(f, at);
    }
    return c.length;
}

// The messages are made outside the checks: each draft passes a dozen checks, so these must stay small enough to
// inline.

inline void check_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    if (given > limit) {
        refuse_size(f, given, limit, unit);
    }
}

inline void check_name(const field& f, std::string_view name, std::size_t limit) {
    check_size(f, name.size(), limit, "bytes");
    for (std::size_t i = 0; i < name.size();) {
        const auto c = static_cast<unsigned char>(name[i]);
        if (c < 0x20 || c == 0x7f) {
            refuse_control_character(f, i);
        }
        i += c < 0x80 ? 1 : check_beyond_ascii(f, name, i);
    }
}

inline void check_required_name(const field& f, std::string_view name, std::size_t limit) {
    if (name.empty()) {
        refuse(f, "is empty");
    }
    check_name(f, name, limit);
}

inline void check_empty(const field& f, bool empty, std::string_view because) {
    if (!empty) {
        refuse(f, because);
    }
}

inline void check_lease(const field& f, duration lease, const limits& limit) {
    if (lease < limit.lease_min || lease > limit.lease_max) {
        refuse(f, "is " + std::to_string(lease.count()) + " us, it must be from " +
                      std::to_string(limit.lease_min.count()) + " us to " + std::to_string(limit.lease_max.count()) +
                      " us");
    }
}

/// Checks that `now + lease` can be represented.
inline void check_room(const field& f, time_point now, duration lease) {
    if (now > time_point::max() - lease) {
        refuse(f, "is too late, the lease would end after the last time that can be stored");
    }
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/argument_checks.hpp
// The checks of arguments that have parts: the headers and the combination of fields of a draft, and each outcome.

namespace vouch {
inline namespace v0 {
namespace detail {

inline void check_headers(const draft& d, std::size_t index, const limits& limit) {
    check_size({"draft", "headers", index}, d.headers.size(), limit.headers_max, "headers");
    for (const auto& [name, value] : d.headers) {
        check_required_name({"draft", "header name", index}, name, limit.name_max);
        check_size({"draft", "header value", index}, value.size(), limit.header_value_max, "bytes");
    }
}

inline void check_combination(const draft& d, std::size_t index) {
    if (!d.predecessor.is_nil()) {
        constexpr std::string_view because = "must be empty: a successor takes it over from its predecessor";
        check_empty({"draft", "key", index}, d.key.empty(), because);
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
    }
    if (d.result) {
        constexpr std::string_view because = "must be empty: the draft carries a result, so it is stored as succeeded";
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
        check_empty({"draft", "parent", index}, d.parent.is_nil(), because);
        check_empty({"draft", "predecessor", index}, d.predecessor.is_nil(), because);
    }
}

inline void check_capable(const draft& d, std::size_t index, const capabilities& can) {
    const auto unsupported = [&](std::string_view name) {
        throw error(error_kind::unsupported,
                    field{"draft", name, index}.str() + " is not supported by this store (see its capabilities)");
    };
    if (!d.group.empty() && !can.groups) {
        unsupported("group");
    }
    if (!d.lane.empty() && !can.lanes) {
        unsupported("lane");
    }
}

struct check_outcome {
    std::size_t index;
    const limits& limit;

    void check_error(std::string_view error) const { check_name({"settle", "error", index}, error, limit.error_max); }
    void operator()(const succeed& o) const {
        check_size({"settle", "result", index}, o.result.size(), limit.result_max, "bytes");
    }
    void operator()(const retry& o) const { check_error(o.error); }
    void operator()(const bury& o) const {
        check_error(o.error);
        check_size({"settle", "result", index}, o.result ? o.result->size() : 0, limit.result_max, "bytes");
    }
    void operator()(const release&) const {}
    void operator()(const advance& o) const {
        check_size({"settle", "progress", index}, o.progress.size(), limit.progress_max, "bytes");
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/validate.hpp
// Validation of every argument of the contract, in one place. A store calls it before it writes anything.
//
// An argument that breaks a rule throws `invalid_argument`; a draft that needs a capability the store lacks throws
// `unsupported`. The message names the field, the limit and the size given, never the content.

namespace vouch {
inline namespace v0 {

/// One draft. `index` is its place in the batch, for the message.
inline void validate(const draft& d, const capabilities& can, std::size_t index = 0) {
    const auto& limit = can.limits;
    if (d.id.is_nil()) {
        detail::refuse({"draft", "id", index}, "is nil");
    }
    detail::check_required_name({"draft", "queue", index}, d.queue, limit.name_max);
    detail::check_required_name({"draft", "topic", index}, d.topic, limit.name_max);
    detail::check_name({"draft", "key", index}, d.key, limit.name_max);
    detail::check_name({"draft", "group", index}, d.group, limit.name_max);
    detail::check_name({"draft", "lane", index}, d.lane, limit.name_max);
    detail::check_size({"draft", "payload", index}, d.payload.size(), limit.payload_max, "bytes");
    detail::check_size({"draft", "progress", index}, d.progress.size(), limit.progress_max, "bytes");
    detail::check_size({"draft", "result", index}, d.result ? d.result->size() : 0, limit.result_max, "bytes");
    detail::check_size({"draft", "trail", index}, d.trail.size(), limit.trail_max, "ids");
    detail::check_headers(d, index, limit);
    detail::check_combination(d, index);
    detail::check_capable(d, index, can);
}

/// For `enqueue`.
inline void validate(std::span<const draft> drafts, const capabilities& can) {
    detail::check_size({"enqueue", "drafts"}, drafts.size(), can.limits.batch_max, "items");
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        validate(drafts[i], can, i);
    }
}

/// For `claim`.
inline void validate(const claim_request& r, const limits& limit) {
    detail::check_required_name({"claim", "queue"}, r.queue, limit.name_max);
    detail::check_name({"claim", "worker"}, r.worker, limit.name_max);
    detail::check_size({"claim", "limit"}, r.limit, limit.batch_max, "items");
    detail::check_lease({"claim", "lease"}, r.lease, limit);
    detail::check_room({"claim", "now"}, r.now, r.lease);
}

/// For `settle`.
inline void validate(std::span<const settle> settles, const limits& limit) {
    detail::check_size({"settle", "settles"}, settles.size(), limit.batch_max, "items");
    for (std::size_t i = 0; i < settles.size(); ++i) {
        visit_outcome(detail::check_outcome{i, limit}, settles[i].outcome);
    }
}

/// For `extend`.
inline void validate(std::span<const ticket> tickets, time_point now, duration lease, const limits& limit) {
    detail::check_size({"extend", "tickets"}, tickets.size(), limit.batch_max, "items");
    detail::check_lease({"extend", "lease"}, lease, limit);
    detail::check_room({"extend", "now"}, now, lease);
}

/// For `cancel`.
inline void validate_error_code(std::string_view error, const limits& limit) {
    detail::check_name({"cancel", "error"}, error, limit.error_max);
}

/// For `counts` and `next_due`.
inline void validate_queue(std::string_view queue, const limits& limit) {
    detail::check_required_name({"read", "queue"}, queue, limit.name_max);
}

/// For `purge`.
inline void validate(const purge_request& r, const limits& limit) {
    detail::check_required_name({"purge", "queue"}, r.queue, limit.name_max);
    detail::check_size({"purge", "limit"}, r.limit, limit.batch_max, "items");
    if (r.state && !is_terminal(*r.state)) {
        detail::refuse({"purge", "state"},
                       "is " + std::string(name_of(*r.state)) + ", only succeeded and dead entries can be purged");
    }
}

/// For `list`.
inline void validate(const query& q, const limits& limit) {
    constexpr std::string_view foreign = "must be empty: it is not part of this query's path";
    const auto part = [&](std::string_view name, const std::string& value, bool wanted) {
        if (wanted) {
            detail::check_required_name({"query", name}, value, limit.name_max);
        } else {
            detail::check_empty({"query", name}, value.empty(), foreign);
        }
    };
    using path = query::path;
    part("group", q.group, q.by == path::group);
    part("key", q.key, q.by == path::key);
    part("queue", q.queue, q.by != path::group && q.by != path::parent);
    if (q.by == path::parent ? q.parent.is_nil() : !q.parent.is_nil()) {
        detail::refuse({"query", "parent"}, q.by == path::parent ? "is nil" : foreign);
    }
    detail::check_name({"query", "topic"}, q.topic, limit.name_max);
    detail::check_size({"query", "limit"}, q.limit, limit.batch_max, "items");
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/validated_reader.hpp
// A base class for stores: the operations of `reader`, with their arguments checked before the store sees them. A
// store derives from it, and so can anything else that reads entries. Writers derive from `validated_writer`, which
// includes this class.
//
//   class my_store : public vouch::validated_reader<my_store> {
//       friend class vouch::validated_reader<my_store>;
//       const vouch::capabilities& expect_open() const { return my_capabilities; }
//       template <class Operation>
//       auto read(const Operation& operation) const { return operation(my_unchecked_reader()); }
//   };
//
// `Self` provides two members, which may be private if `Self` befriends this class:
//  1. `const capabilities& expect_open() const` returns the capabilities that validation uses. Throw here if `Self`
//     cannot be used now, for instance because its file has failed.
//  2. `read(operation) const` calls `operation(r)` and returns its result. `r` has the operations of `reader` and
//     receives valid arguments only.
//
// Adds no state, no virtual function and no synchronization: it is as safe for threads as `Self` is.

namespace vouch {
inline namespace v0 {

template <class Self>
class validated_reader {
  public:
    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return self().guard(
            [&](const capabilities&) { return self().read([&](auto&& unchecked) { return unchecked.find(wanted); }); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return self().guard([&](const capabilities& can) {
            validate(q, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.list(q); });
        });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return self().guard([&](const capabilities& can) {
            validate_queue(queue, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.counts(queue); });
        });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return self().guard([&](const capabilities& can) {
            validate_queue(queue, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.next_due(queue); });
        });
    }

  protected:
    validated_reader() = default;

    /// A reader has nothing to close after an error. `validated_writer` hides this function.
    template <class Operation>
    auto guard(const Operation& operation) const {
        return operation(self().expect_open());
    }

  private:
    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/validated_writer.hpp
// A base class for transactions: the operations of `writer`, with everything around them that is the same in every
// store. A store's transaction derives from it and implements only the unchecked operations.
//
//   class my_transaction : public vouch::validated_writer<my_transaction> {
//       ...
//       void commit();
//   };
//
// The base guarantees, for every operation:
//  1. A closed transaction throws `misuse`, whatever the arguments are.
//  2. Arguments are validated before anything is read or written: `invalid_argument`, or `unsupported` for a
//     capability that the store does not have.
//  3. After any error but `invalid_argument` the transaction is closed.
//
// `Self` provides four members, which may be private if `Self` befriends this class and `validated_reader<Self>`:
//  1. `const capabilities& expect_open() const` throws `misuse` if the transaction is closed or moved from. Otherwise
//     it returns the store's capabilities.
//  2. `void close() const noexcept` rolls back and closes. It is called after an error and does nothing if the
//     transaction is closed already. It is const because a read that fails closes the transaction, too.
//  3. `read(operation) const` calls `operation(r)` and returns its result. `r` has the operations of `reader`.
//  4. `write(operation)` calls `operation(w)` and returns its result. `w` has the operations of `writer` that
//     `reader` does not have.
// `r` and `w` receive valid arguments only. They may throw anything; `invalid_argument` only before they have written
// anything, because it leaves the transaction open.
//
// Moving, the destructor (which rolls back) and `commit` remain with `Self`: `commit` calls `expect_open` first and
// closes the transaction, whether it succeeds or not. A transaction is used by one thread at a time.

namespace vouch {
inline namespace v0 {

template <class Self>
class validated_writer : public validated_reader<Self> {
  public:
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return guard([&](const capabilities& can) {
            validate(drafts, can);
            return self().write([&](auto&& unchecked) { return unchecked.enqueue(drafts, now); });
        });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return guard([&](const capabilities& can) {
            validate(request, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.claim(request); });
        });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return guard([&](const capabilities& can) {
            validate(settles, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.settle(settles, now); });
        });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return guard([&](const capabilities& can) {
            validate(tickets, now, lease, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.extend(tickets, now, lease); });
        });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return guard([&](const capabilities&) {
            return self().write([&](auto&& unchecked) { return unchecked.nudge(wanted, now); });
        });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return guard([&](const capabilities& can) {
            validate_error_code(error, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.cancel(wanted, error, now); });
        });
    }
    std::size_t purge(const purge_request& request) {
        return guard([&](const capabilities& can) {
            validate(request, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.purge(request); });
        });
    }

  protected:
    validated_writer() = default;

  private:
    friend class validated_reader<Self>;

    [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

    template <class Operation>
    auto guard(const Operation& operation) const {
        const capabilities& can = self().expect_open();
        try {
            return operation(can);
        } catch (const error& e) {
            if (e.kind() != error_kind::invalid_argument) {
                self().close();
            }
            throw;
        } catch (...) {
            self().close();
            throw;
        }
    }
};

} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/sequence_list.hpp
// Items ordered by sequence: the members of a queue, a group or a lane, or the children of a parent. New items are
// appended, because sequences only grow. `erase` leaves a gap, which `restore` fills again without allocating. `tidy`
// closes the gaps; call it when no erased item can be restored any more.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Item>
class sequence_list {
  public:
    struct place {
        std::uint64_t sequence;
        Item* item; // null: a gap
    };

    [[nodiscard]] std::size_t size() const noexcept { return places_.size() - gaps_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    void append(std::uint64_t sequence, Item& item) { places_.push_back({sequence, &item}); }

    /// Appends a gap for `restore` to fill.
    void append_gap(std::uint64_t sequence) {
        places_.push_back({sequence, nullptr});
        ++gaps_;
    }

    /// Not an error if the item is not in the list.
    void erase(std::uint64_t sequence) noexcept {
        const auto at = at_or_after(sequence);
        if (at == places_.end() || at->sequence != sequence || at->item == nullptr) {
            return;
        }
        at->item = nullptr;
        ++gaps_;
    }

    /// Fills a gap made since the last `tidy`.
    void restore(std::uint64_t sequence, Item& item) noexcept {
        const auto at = at_or_after(sequence);
        at->item = &item;
        --gaps_;
        first_ = std::min(first_, static_cast<std::size_t>(at - places_.begin()));
    }

    [[nodiscard]] Item* first() noexcept {
        while (first_ < places_.size() && places_[first_].item == nullptr) {
            ++first_;
        }
        return first_ < places_.size() ? places_[first_].item : nullptr;
    }

    /// Calls `f(item)` for each item after `sequence`, in order, until it returns false.
    template <class F>
    void for_each_after(std::uint64_t sequence, F&& f) const {
        auto at = std::upper_bound(places_.begin(), places_.end(), sequence,
                                   [](std::uint64_t s, const place& p) { return s < p.sequence; });
        for (; at != places_.end(); ++at) {
            if (at->item != nullptr && !f(*at->item)) {
                return;
            }
        }
    }

    void tidy() noexcept {
        if (2 * gaps_ > places_.size()) {
            std::erase_if(places_, [](const place& p) { return p.item == nullptr; });
            gaps_ = 0;
            first_ = 0;
        }
    }

  private:
    [[nodiscard]] auto at_or_after(std::uint64_t sequence) noexcept {
        return std::lower_bound(places_.begin(), places_.end(), sequence,
                                [](const place& p, std::uint64_t s) { return p.sequence < s; });
    }

    std::vector<place> places_;
    std::size_t gaps_ = 0;
    std::size_t first_ = 0; // everything before it is a gap
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/heap.hpp
// An eight-way heap ordered by (time, sequence). Each item stores its position, so that any item can be erased in
// O(log n). `make_room` reserves memory; after that, no function allocates or throws, except `walk`.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

inline constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

struct moment {
    time_point at{};
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const moment&, const moment&) noexcept = default;
};

/// `Item` has a public `place` with a `moment when`, its order, and an index `in_heap`, which is `nowhere` while the
/// item is in no heap.
template <class Item>
class heap {
  public:
    struct node {
        moment when; // a copy, so that a comparison does not touch the item
        Item* item;

        [[nodiscard]] friend bool operator<(const node& a, const node& b) noexcept { return a.when < b.when; }
    };

    void make_room(std::size_t items) {
        if (items > nodes_.capacity()) {
            nodes_.reserve(std::max(items, 2 * nodes_.capacity()));
        }
    }

    [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
    [[nodiscard]] const node& top() const noexcept { return nodes_.front(); }

    void push(Item& item) noexcept {
        nodes_.push_back({item.place.when, &item});
        rise(nodes_.size() - 1);
    }

    void erase(Item& item) noexcept {
        const auto hole = std::exchange(item.place.in_heap, nowhere);
        const auto last = nodes_.back();
        nodes_.pop_back();
        if (hole < nodes_.size()) {
            put(hole, last);
            settle(hole);
        }
    }

    /// Visits items in order, without moving them, until `visit(item)` returns false. O(k log k) for k visits.
    template <class Visit>
    void walk(Visit&& visit) const {
        std::vector<std::size_t> edge;
        const auto further = [this](std::size_t a, std::size_t b) { return nodes_[b] < nodes_[a]; };
        const auto reach = [&](std::size_t place) {
            if (place < nodes_.size()) {
                edge.push_back(place);
                std::push_heap(edge.begin(), edge.end(), further);
            }
        };
        reach(0);
        while (!edge.empty()) {
            std::pop_heap(edge.begin(), edge.end(), further);
            const auto place = edge.back();
            edge.pop_back();
            if (!visit(*nodes_[place].item)) {
                return;
            }
            for (std::size_t child = place * ways + 1; child <= place * ways + ways; ++child) {
                reach(child);
            }
        }
    }

  private:
    static constexpr std::size_t ways = 8;

    void put(std::size_t place, const node& n) noexcept {
        nodes_[place] = n;
        n.item->place.in_heap = place;
    }

    void settle(std::size_t place) noexcept {
        if (place > 0 && nodes_[place] < nodes_[(place - 1) / ways]) {
            rise(place);
        } else {
            sink(place);
        }
    }

    void rise(std::size_t place) noexcept {
        const auto rising = nodes_[place];
        while (place > 0) {
            const auto above = (place - 1) / ways;
            if (!(rising < nodes_[above])) {
                break;
            }
            put(place, nodes_[above]);
            place = above;
        }
        put(place, rising);
    }

    void sink(std::size_t place) noexcept {
        const auto sinking = nodes_[place];
        for (;;) {
            const auto first = place * ways + 1;
            if (first >= nodes_.size()) {
                break;
            }
            const auto last = std::min(first + ways, nodes_.size());
            auto least = first;
            for (auto child = first + 1; child < last; ++child) {
                least = nodes_[child] < nodes_[least] ? child : least;
            }
            if (!(nodes_[least] < sinking)) {
                break;
            }
            put(place, nodes_[least]);
            place = least;
        }
        put(place, sinking);
    }

    std::vector<node> nodes_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/timeline.hpp
// Items ordered by (time, sequence), with fast access to the earliest. Times are mostly added in order: new entries are
// due now, leases end in the order they were taken, retries wait equally long. So an item is first inserted near the
// end of one of a few sorted lists, in O(1). If it fits into none of them, it goes into a heap, in O(log n).
//
// `make_room` reserves memory; after that, no function allocates or throws, except `walk`.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// `Item` has a public `timeline_place<Item> place` and is in one timeline at a time.
template <class Item>
struct timeline_place {
    moment when{};
    Item* before = nullptr; ///< the neighbours in its list
    Item* after = nullptr;
    std::size_t in_heap = nowhere; ///< `nowhere`: it is in a list, or in no timeline
};

template <class Item>
class timeline {
  public:
    void make_room(std::size_t items) { heap_.make_room(items); }

    /// The earliest, or null.
    [[nodiscard]] Item* first() const noexcept {
        auto* first = heap_.empty() ? nullptr : heap_.top().item;
        for (const auto& l : lists_) {
            first = is_before(l.first, first) ? l.first : first;
        }
        return first;
    }

    void push(Item& item, const moment& when) noexcept {
        item.place.when = when;
        for (auto& l : lists_) {
            if (l.take(item)) {
                return;
            }
        }
        heap_.push(item);
    }

    void erase(Item& item) noexcept {
        if (item.place.in_heap != nowhere) {
            heap_.erase(item);
            return;
        }
        for (auto& l : lists_) {
            l.first = l.first == &item ? item.place.after : l.first;
            l.last = l.last == &item ? item.place.before : l.last;
        }
        if (item.place.before != nullptr) {
            item.place.before->place.after = item.place.after;
        }
        if (item.place.after != nullptr) {
            item.place.after->place.before = item.place.before;
        }
        item.place.before = item.place.after = nullptr;
    }

    /// Visits items in order, without moving them, until `visit(item)` returns false.
    template <class Visit>
    void walk(Visit&& visit) const {
        std::array<Item*, lists> next{};
        std::transform(lists_.begin(), lists_.end(), next.begin(), [](const list& l) { return l.first; });
        bool more = true;
        const auto visit_listed = [&](Item* until) { // null: all
            while (more) {
                auto& least =
                    *std::min_element(next.begin(), next.end(), [](Item* a, Item* b) { return is_before(a, b); });
                if (!is_before(least, until)) {
                    return;
                }
                more = visit(*std::exchange(least, least->place.after));
            }
        };
        heap_.walk([&](Item& item) {
            visit_listed(&item);
            return more = more && visit(item);
        });
        visit_listed(nullptr);
    }

  private:
    static constexpr std::size_t lists = 3; // for entries due now, leases and retries
    static constexpr int steps_max = 8;     // from the end of a list

    /// Null is after every item.
    [[nodiscard]] static bool is_before(const Item* a, const Item* b) noexcept {
        return a != nullptr && (b == nullptr || a->place.when < b->place.when);
    }

    struct list {
        Item* first = nullptr;
        Item* last = nullptr;

        [[nodiscard]] bool take(Item& item) noexcept {
            auto* before = last;
            for (int step = 0; before != nullptr && item.place.when < before->place.when; ++step) {
                if (step == steps_max) {
                    return false;
                }
                before = before->place.before;
            }
            auto*& link = before == nullptr ? first : before->place.after;
            auto*& back = link == nullptr ? last : link->place.before;
            item.place.before = before;
            item.place.after = link;
            link = back = &item;
            return true;
        }
    };

    std::array<list, lists> lists_{};
    heap<Item> heap_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/layout.hpp
// The rows of a memory store and the index structures that hold them.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// Allows lookup by `std::string_view` without making a string.
struct name_hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept {
        return std::hash<std::string_view>{}(name);
    }
};
template <class T>
using by_name = std::unordered_map<std::string, T, name_hash, std::equal_to<>>;

/// The types for a store with this seam. They are members of a template so that a program that includes the store
/// without using it does not compile them.
template <class Seam>
struct layout {
    struct queue_index;
    struct lane_index;
    struct group_index;
    struct family_index;

    struct row {
        row() = default;
        /// Makes the entry in place: it is large, so a move would cost time.
        template <class Make>
        explicit row(const Make& make) : entry(make()) {}

        vouch::entry entry;

        queue_index* queue = nullptr;
        lane_index* lane = nullptr;     ///< null: none, or the row was terminal before this transaction
        group_index* group = nullptr;   ///< null: none
        family_index* family = nullptr; ///< null: no parent
        row* successor = nullptr;
        timeline_place<row> place;         ///< in the queue's `gates` while live, in `ended_in` while terminal
        timeline<row>* ended_in = nullptr; ///< one of the queue's `ended`
        bool entered = false;              ///< it is in the counts and timelines

        // In relation to the open transaction.
        std::size_t record = nowhere; ///< in the journal, if the transaction touched the row
        bool fresh = false;           ///< the transaction inserted the row: readers do not see it
        bool purged = false;          ///< the transaction purged the row: only readers see it

        row* next_free = nullptr;
    };

    /// Live entries of one (queue, lane). The first, the head, has a gate; the others are blocked and have none.
    struct lane_index {
        sequence_list<row> live;
        row* head = nullptr;  ///< the first row; its gate is in the queue's `gates`
        std::size_t rows = 0; ///< the number of rows that point here
    };

    /// Members of one group, across queues.
    struct group_index {
        sequence_list<row> members;
        std::size_t live = 0;
        /// Members that have not succeeded. A dead member with a successor does not count; its successor does.
        std::size_t unfinished = 0;
    };

    /// The children of one parent.
    struct family_index {
        sequence_list<row> children;
        std::size_t live = 0;
    };

    /// Terminal entries of one state, by (updated_at, sequence). Purges look at them in rounds: an entry that is still
    /// needed is looked at again only after all others.
    struct ended_index {
        [[nodiscard]] timeline<row>& waiting() noexcept { return lines[round]; }    ///< not yet looked at in this round
        [[nodiscard]] timeline<row>& passed() noexcept { return lines[1 - round]; } ///< looked at and still needed

        std::array<timeline<row>, 2> lines;
        std::size_t round = 0;
    };

    struct queue_index {
        sequence_list<row> all;
        timeline<row> gates; ///< what a claim reads: live entries that are not blocked, by (gate, sequence)
        ended_index succeeded;
        ended_index dead;
        by_name<lane_index> lanes;
        state_counts counts;
        std::uint64_t wakes = 0; ///< grows with every commit that may have made work due sooner

        [[nodiscard]] ended_index& ended(state as) noexcept { return as == state::dead ? dead : succeeded; }

        [[nodiscard]] std::optional<time_point> next_due() const noexcept {
            const auto* const first = gates.first();
            return first == nullptr ? std::nullopt : std::optional{first->place.when.at};
        }

        /// The first row that a claim may take, or null.
        [[nodiscard]] row* first_open(time_point now) const noexcept {
            auto* const first = gates.first();
            return first != nullptr && first->place.when.at <= now ? first : nullptr;
        }

        /// The committed values, for readers, while a transaction that touched the queue is open.
        struct snapshot {
            state_counts counts;
            std::optional<time_point> next_due;
        };
        std::optional<snapshot> committed;
        bool is_woken = false; ///< that transaction may have made work due sooner
    };
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/hash_index.hpp
// A flat hash multi-index of items: open addressing, linear probing, no allocation per item. `erase` moves later cells
// back instead of leaving a tombstone, so it neither allocates nor throws.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Item>
class hash_index {
  public:
    void insert(std::size_t hash, Item& item) {
        if ((size_ + 1) * 8 > cells_.size() * 5) {
            grow();
        }
        place(cells_, {hash, &item});
        ++size_;
    }

    /// Not an error if the item is not in the index.
    void erase(std::size_t hash, const Item& item) noexcept {
        if (cells_.empty()) {
            return;
        }
        auto hole = home(cells_, hash);
        while (cells_[hole].item != &item) {
            if (cells_[hole].item == nullptr) {
                return;
            }
            hole = next(cells_, hole);
        }
        close(hole);
        --size_;
    }

    /// The first item with this hash for which `wanted(item)` holds, or null.
    template <class Wanted>
    [[nodiscard]] Item* find(std::size_t hash, Wanted&& wanted) const {
        if (cells_.empty()) {
            return nullptr;
        }
        for (auto at = home(cells_, hash); cells_[at].item != nullptr; at = next(cells_, at)) {
            if (cells_[at].hash == hash && wanted(*cells_[at].item)) {
                return cells_[at].item;
            }
        }
        return nullptr;
    }

  private:
    struct cell {
        std::size_t hash = 0;
        Item* item = nullptr;
    };
    using cell_list = std::vector<cell>;

    [[nodiscard]] static std::size_t home(const cell_list& cells, std::size_t hash) noexcept {
        return hash & (cells.size() - 1);
    }
    [[nodiscard]] static std::size_t next(const cell_list& cells, std::size_t at) noexcept {
        return (at + 1) & (cells.size() - 1);
    }

    static void place(cell_list& cells, const cell& c) noexcept {
        auto at = home(cells, c.hash);
        while (cells[at].item != nullptr) {
            at = next(cells, at);
        }
        cells[at] = c;
    }

    void grow() {
        cell_list larger(cells_.empty() ? 16 : cells_.size() * 2);
        for (const auto& c : cells_) {
            if (c.item != nullptr) {
                place(larger, c);
            }
        }
        cells_ = std::move(larger);
    }

    /// Fills the hole with later cells of the same run, but never moves a cell to a position before its home.
    void close(std::size_t hole) noexcept {
        const auto mask = cells_.size() - 1;
        for (auto at = next(cells_, hole); cells_[at].item != nullptr; at = next(cells_, at)) {
            const auto from_home = (at - home(cells_, cells_[at].hash)) & mask;
            const auto from_hole = (at - hole) & mask;
            if (from_home >= from_hole) {
                cells_[hole] = cells_[at];
                hole = at;
            }
        }
        cells_[hole] = {};
    }

    cell_list cells_;
    std::size_t size_ = 0;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/indexes.hpp
// All indexes of a memory store, and the two steps that put a row into them. `link` adds a row to the indexes on what
// never changes: id, key, queue, group, parent, lane. `enter` adds it to those that depend on its state: gates, ended
// entries, counts, the head of its lane. `unlink` and `leave` undo them.
//
// Takes no lock and knows nothing of transactions.
//
// Invariants: 1. A row is in `gates` exactly if it is live and not blocked, and in one of `ended` exactly if it is
//                terminal.
//             2. Only `link` and `queue` allocate or throw. What a `link` that throws leaves, `unlink` removes.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class indexes {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;
    using lane_index = typename layout<Seam>::lane_index;
    using group_index = typename layout<Seam>::group_index;
    using family_index = typename layout<Seam>::family_index;

    /// The row with this id for which `wanted(row)` holds, or null.
    template <class Wanted>
    [[nodiscard]] row* find(const id& which, const Wanted& wanted) const {
        return by_id_.find(std::hash<id>{}(which), [&](const row& r) { return r.entry.id == which && wanted(r); });
    }

    /// The row with this queue and key for which `wanted(row)` holds, or null.
    template <class Wanted>
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, const Wanted& wanted) const {
        return by_key_.find(key_hash(queue, key),
                            [&](const row& r) { return r.queue == &queue && r.entry.key == key && wanted(r); });
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return find_in(queues_, name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return find_in(groups_, name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return find_in(families_, parent); }

    /// The queue of this name, created if there is none.
    [[nodiscard]] queue_index& queue(std::string_view name) {
        if (last_queue_ == nullptr || last_queue_->first != name) {
            last_queue_ = &*queues_.try_emplace(std::string(name)).first;
        }
        return last_queue_->second;
    }

    [[nodiscard]] std::vector<std::string> queue_names() const {
        std::vector<std::string> names;
        for (const auto& [name, queue] : queues_) {
            names.push_back(name);
        }
        return names;
    }

    /// Requires that the row has its entry, queue and sequence.
    void link(row& r) {
        const auto& e = r.entry;
        by_id_.insert(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.insert(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.append(e.sequence, r);
        r.queue->gates.make_room(r.queue->all.size());
        r.queue->succeeded.waiting().make_room(r.queue->all.size());
        r.queue->dead.waiting().make_room(r.queue->all.size());
        if (!e.group.empty()) {
            r.group = &groups_[e.group];
            r.group->members.append(e.sequence, r);
        }
        if (!e.parent.is_nil()) {
            r.family = &families_[e.parent];
            r.family->children.append(e.sequence, r);
        }
        if (!e.lane.empty()) {
            r.lane = &r.queue->lanes[e.lane];
            r.lane->rows += 1;
            r.lane->live.append_gap(e.sequence);
        }
    }

    /// Not an error if `link` threw before it was done.
    void unlink(row& r) noexcept {
        const auto& e = r.entry;
        by_id_.erase(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.erase(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.erase(e.sequence);
        if (r.group != nullptr && take_out(r.group->members, e.sequence)) {
            groups_.erase(e.group);
        }
        if (r.family != nullptr && take_out(r.family->children, e.sequence)) {
            families_.erase(e.parent);
        }
        leave_lane(r);
    }

    /// Removes the row from its lane for good. Not an error if it has none.
    void leave_lane(row& r) noexcept {
        if (auto* const lane = std::exchange(r.lane, nullptr)) {
            lane->rows -= 1;
            if (lane->rows == 0) {
                r.queue->lanes.erase(r.entry.lane);
            } else {
                lane->live.tidy();
            }
        }
    }

    void enter(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = true;
        r.queue->counts[r.entry.state] += 1;
        if (r.group != nullptr) {
            r.group->live += live ? 1U : 0U;
            r.group->unfinished += unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live += live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in = &r.queue->ended(r.entry.state).waiting();
            r.ended_in->push(r, {r.entry.updated_at, r.entry.sequence});
        } else if (r.lane == nullptr) {
            open_gate(r);
        } else {
            r.lane->live.restore(r.entry.sequence, r);
            find_head(*r.lane);
        }
    }

    void leave(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = false;
        r.queue->counts[r.entry.state] -= 1;
        if (r.group != nullptr) {
            r.group->live -= live ? 1U : 0U;
            r.group->unfinished -= unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live -= live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in->erase(r);
        } else if (r.lane == nullptr) {
            r.queue->gates.erase(r);
        } else {
            r.lane->live.erase(r.entry.sequence);
            find_head(*r.lane);
        }
    }

    void set_successor(row& predecessor, row* successor) noexcept {
        const bool entered = predecessor.entered;
        if (entered) {
            leave(predecessor);
        }
        predecessor.successor = successor;
        if (entered) {
            enter(predecessor);
        }
    }

  private:
    template <class Map, class Key>
    [[nodiscard]] static auto find_in(Map& map, const Key& key) -> typename Map::mapped_type* {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }

    [[nodiscard]] static std::size_t key_hash(const queue_index& queue, std::string_view key) noexcept {
        return vouch::detail::mix(std::hash<std::string_view>{}(key) ^ std::hash<const void*>{}(&queue));
    }

    /// Returns whether the list is empty now.
    static bool take_out(sequence_list<row>& list, std::uint64_t sequence) noexcept {
        list.erase(sequence);
        list.tidy();
        return list.empty();
    }

    [[nodiscard]] static std::size_t unfinished(const row& r) noexcept {
        return r.entry.state == state::succeeded || (r.entry.state == state::dead && r.successor != nullptr) ? 0U : 1U;
    }

    void open_gate(row& r) noexcept {
        r.queue->gates.push(r, {*gate_of(r.entry), r.entry.sequence});
        r.queue->is_woken |= r.entry.state != state::claimed;
    }

    /// Moves the lane's gate to its first live row.
    void find_head(lane_index& lane) noexcept {
        auto* const first = lane.live.first();
        if (first == lane.head) {
            return;
        }
        if (lane.head != nullptr) {
            lane.head->queue->gates.erase(*lane.head);
        }
        lane.head = first;
        if (first != nullptr) {
            open_gate(*first);
        }
    }

    hash_index<row> by_id_;
    hash_index<row> by_key_;
    by_name<queue_index> queues_;                                     // queues are never removed
    typename by_name<queue_index>::value_type* last_queue_ = nullptr; // a batch is usually for one queue
    by_name<group_index> groups_;
    std::unordered_map<id, family_index> families_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/row_pool.hpp
// Memory for rows. A row never moves, so pointers to it stay valid until it is freed; freed rows are used again.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// `Row` is constructed from nothing or from a function that makes its entry, and has a public `entry` and
/// `Row* next_free`.
template <class Row>
class row_pool {
  public:
    /// A row with the entry that `make()` returns. If `make` throws, the pool is unchanged.
    template <class Make>
    Row& allocate(const Make& make) {
        if (auto* const r = free_) {
            r->entry = make();
            free_ = std::exchange(r->next_free, nullptr);
            return *r;
        }
        if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
            blocks_.emplace_back().reserve(rows_per_block);
        }
        return blocks_.back().emplace_back(make);
    }

    void free(Row& r) noexcept {
        r = Row();
        r.next_free = free_;
        free_ = &r;
    }

  private:
    static constexpr std::size_t rows_per_block = 64;
    std::vector<std::vector<Row>> blocks_; // all but the last are full; none grows beyond its reserved size
    Row* free_ = nullptr;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/seam.hpp
// A seam is a function object that a test passes to the memory store. The store calls it after each row that it
// inserts, changes or removes; the seam may throw. If it has a member `looked()`, the store calls that for every row
// that a purge looks at. If a seam has a static `begin_limit`, `begin` waits at most that long. Called under the
// store's lock.

namespace vouch {
inline namespace v0 {
namespace memory {

/// The default: does nothing and costs nothing.
struct no_seam {
    void operator()(std::string_view) const noexcept {}
};

} // namespace memory
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/ledger.hpp
// All rows of a memory store and the journal of the open transaction. Three functions change rows: `insert`, `change`
// and `remove`. `commit` forgets the journal, `roll_back` undoes it. The ledger knows nothing of verbs and takes no
// lock.
//
// Rows change in place. While a transaction is open, readers of the committed state see the journal's copy of every row
// that the transaction has touched.
//
// Invariants: 1. Whatever may throw happens before the first index changes, or leaves what `roll_back` can undo.
//             2. `commit` and `roll_back` neither throw nor allocate.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// Whose view of the rows.
enum class view : bool {
    committed, ///< without the changes of the open transaction
    own,       ///< with them
};

template <class Seam>
class ledger {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;
    using group_index = typename layout<Seam>::group_index;
    using family_index = typename layout<Seam>::family_index;

    explicit ledger(Seam seam = {}) : seam_(std::move(seam)) {}

    // Reading.

    /// The life of a row in this view; null if the row does not exist in it.
    [[nodiscard]] const life* seen(const row& r, view v) const noexcept {
        if (v == view::own) {
            return r.purged ? nullptr : &r.entry;
        }
        if (r.fresh) {
            return nullptr;
        }
        const auto before = r.record == nowhere ? nowhere : journal_[r.record].before;
        return before == nowhere ? &r.entry : &lives_[before];
    }

    [[nodiscard]] row* find(const id& wanted, view v) const {
        return indexes_.find(wanted, [&](const row& r) { return seen(r, v) != nullptr; });
    }

    /// The newest generation of (queue, key).
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, view v) const {
        return indexes_.find(queue, key, [&](const row& r) { return seen(r, v) != nullptr && !has_successor(r, v); });
    }

    [[nodiscard]] bool has_successor(const row& r, view v) const noexcept {
        return r.successor != nullptr && seen(*r.successor, v) != nullptr;
    }

    /// The dead row that this one replaced. Null if there was none, if it is purged, or if its id belongs to another
    /// row now.
    [[nodiscard]] row* predecessor_of(const row& r, view v) const {
        auto* const found = r.entry.predecessor.is_nil() ? nullptr : find(r.entry.predecessor, v);
        return found != nullptr && found->successor == &r ? found : nullptr;
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return indexes_.find_queue(name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return indexes_.find_group(name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return indexes_.find_family(parent); }
    [[nodiscard]] queue_index& queue(std::string_view name) { return indexes_.queue(name); }
    [[nodiscard]] std::vector<std::string> queue_names() const { return indexes_.queue_names(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const auto* const found = find_queue(queue);
        return found == nullptr ? 0 : found->wakes;
    }

    // Changing.

    /// Stores the entry that `make()` returns, an entry of this queue, with the next sequence. `predecessor` is the
    /// dead row that it replaces, or null.
    template <class Make>
    void insert(std::string_view queue_name, const Make& make, row* predecessor) {
        auto& in = queue(queue_name);
        touch(in);
        row& r = rows_.allocate(make);
        try {
            remember(r);
        } catch (...) {
            rows_.free(r);
            throw;
        }
        r.fresh = true;
        r.queue = &in;
        r.entry.sequence = ++last_sequence_;
        indexes_.link(r);
        indexes_.enter(r);
        if (predecessor != nullptr) {
            remember(*predecessor);
            indexes_.set_successor(*predecessor, &r);
        }
        seam_("inserted");
    }

    /// Lets `verb(life&) -> verdict` change a row and updates the indexes. If the verb throws, the transaction must be
    /// rolled back.
    template <class Verb>
    verdict change(row& r, Verb&& verb) {
        touch(*r.queue);
        auto& remembered = remember(r);
        if (!r.fresh && remembered.before == nowhere) {
            lives_.push_back(r.entry);
            remembered.before = lives_.size() - 1;
        }
        indexes_.leave(r);
        const verdict answer = verb(static_cast<life&>(r.entry));
        indexes_.enter(r);
        seam_("changed");
        return answer;
    }

    /// Requires that the row is terminal.
    void remove(row& r) {
        touch(*r.queue);
        remember(r);
        indexes_.leave(r);
        r.purged = true;
        seam_("removed");
    }

    /// Notes that a purge has looked at these terminal rows of this queue and state, and kept them.
    void pass(queue_index& in, state as, const std::vector<row*>& looked_at) {
        auto& to = in.ended(as).passed();
        to.make_room(in.all.size());
        for (auto* const r : looked_at) {
            r->ended_in->erase(*r);
            r->ended_in = &to;
            to.push(*r, r->place.when);
        }
    }

    /// Starts the next round: the next purge begins with the oldest row again.
    void begin_round(queue_index& in, state as) {
        in.ended(as).passed().make_room(in.all.size());
        in.ended(as).round = 1 - in.ended(as).round;
    }

    /// For tests that count the rows a purge looks at.
    void looked_at(const row&) {
        if constexpr (requires { seam_.looked(); }) {
            seam_.looked();
        }
    }

    // Ending the transaction.

    void commit() noexcept {
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            r.fresh = false;
            if (r.purged) {
                indexes_.unlink(r);
                rows_.free(r);
            } else if (is_terminal(r.entry.state)) {
                indexes_.leave_lane(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->wakes += q->is_woken ? 1U : 0U;
            q->all.tidy();
        }
        forget();
    }

    void roll_back() noexcept {
        for (auto at = journal_.rbegin(); at != journal_.rend(); ++at) {
            restore(*at);
        }
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            if (r.fresh) {
                indexes_.unlink(r);
                rows_.free(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->all.tidy();
        }
        forget();
    }

    /// Whether the open transaction may have made work due sooner in any queue.
    [[nodiscard]] bool has_wakes() const noexcept {
        for (const auto* q : touched_queues_) {
            if (q->is_woken) {
                return true;
            }
        }
        return false;
    }

  private:
    struct record {
        row* target = nullptr;
        std::size_t before = nowhere; ///< in `lives_`: the committed life, if the transaction may have changed it
    };

    void touch(queue_index& queue) {
        if (!queue.committed) {
            touched_queues_.push_back(&queue);
            queue.committed = {queue.counts, queue.next_due()};
        }
    }

    record& remember(row& r) {
        if (r.record == nowhere) {
            journal_.push_back({.target = &r});
            r.record = journal_.size() - 1;
        }
        return journal_[r.record];
    }

    void restore(record& what) noexcept {
        auto& r = *what.target;
        if (r.entered) {
            indexes_.leave(r);
        }
        if (r.fresh) {
            if (auto* const predecessor = predecessor_of(r, view::committed)) {
                indexes_.set_successor(*predecessor, nullptr);
            }
            return; // unlinked after every other row is restored
        }
        r.purged = false;
        if (what.before != nowhere) {
            std::swap(static_cast<life&>(r.entry), lives_[what.before]);
        }
        indexes_.enter(r);
    }

    void forget() noexcept {
        for (auto* q : touched_queues_) {
            q->committed.reset();
            q->is_woken = false;
        }
        touched_queues_.clear();
        journal_.clear();
        lives_.clear();
    }

    row_pool<row> rows_;
    indexes<Seam> indexes_;
    std::uint64_t last_sequence_ = 0;

    std::vector<record> journal_;
    std::vector<life> lives_;
    std::vector<queue_index*> touched_queues_;
    Seam seam_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/entry_reader.hpp
// The operations of `reader` on one view of the ledger. Requires valid arguments and the store's lock.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class entry_reader {
  public:
    using row = typename layout<Seam>::row;

    entry_reader(ledger<Seam>& in, view as) noexcept : ledger_(in), view_(as) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        const auto* const r = ledger_.find(wanted, view_);
        return r == nullptr ? std::nullopt : std::optional{copy(*r, true)};
    }

    [[nodiscard]] std::vector<entry> list(const query& q) const {
        std::vector<entry> found;
        const auto take = [&](const row& r) {
            if (found.size() == q.limit) {
                return false;
            }
            if (matches(r, q)) {
                found.push_back(copy(r, q.payloads));
            }
            return true;
        };
        if (q.by == query::path::key) {
            generations(q, take);
        } else if (const auto* const rows = path(q)) {
            rows->for_each_after(q.after, take);
        }
        return found;
    }

    [[nodiscard]] state_counts counts(std::string_view queue) const {
        const auto* const q = ledger_.find_queue(queue);
        if (q == nullptr) {
            return {};
        }
        return view_ == view::committed && q->committed ? q->committed->counts : q->counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        const auto* const q = ledger_.find_queue(queue);
        if (q == nullptr) {
            return std::nullopt;
        }
        return view_ == view::committed && q->committed ? q->committed->next_due : q->next_due();
    }

  private:
    [[nodiscard]] entry copy(const row& r, bool with_payload) const {
        entry out;
        for_each_field(
            [&](std::string_view name, auto& to, const auto& from) {
                if (with_payload || name != "payload") {
                    to = from;
                }
            },
            out, std::as_const(r.entry));
        if (const auto* const l = ledger_.seen(r, view_); l != &r.entry) {
            static_cast<life&>(out) = *l;
        }
        return out;
    }

    [[nodiscard]] bool matches(const row& r, const query& q) const {
        const auto* const l = ledger_.seen(r, view_);
        if (l == nullptr || r.entry.sequence <= q.after) {
            return false;
        }
        const bool on_path =
            (q.by != query::path::dead || l->state == state::dead) && (q.by != query::path::live || is_live(l->state));
        return on_path && (!q.state || l->state == *q.state) && (q.topic.empty() || r.entry.topic == q.topic);
    }

    /// The rows of any path but `key`, in the order of their sequences.
    [[nodiscard]] const sequence_list<row>* path(const query& q) const {
        if (q.by == query::path::group) {
            const auto* const group = ledger_.find_group(q.group);
            return group == nullptr ? nullptr : &group->members;
        }
        if (q.by == query::path::parent) {
            const auto* const family = ledger_.find_family(q.parent);
            return family == nullptr ? nullptr : &family->children;
        }
        const auto* const queue = ledger_.find_queue(q.queue);
        return queue == nullptr ? nullptr : &queue->all;
    }

    /// Every stored generation of (queue, key), oldest first.
    template <class Take>
    void generations(const query& q, const Take& take) const {
        const auto* const queue = ledger_.find_queue(q.queue);
        std::vector<const row*> rows;
        for (const auto* r = queue == nullptr ? nullptr : ledger_.find(*queue, q.key, view_); r != nullptr;
             r = ledger_.predecessor_of(*r, view_)) {
            rows.push_back(r);
        }
        std::reverse(rows.begin(), rows.end());
        for (const auto* const r : rows) {
            if (!take(*r)) {
                return;
            }
        }
    }

    ledger<Seam>& ledger_;
    view view_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/contract/detail/purge_looks.hpp
// How much of a queue one purge of our stores reads, so that a purge costs no more than its limit allows even if most
// ended entries are still needed.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The number of ended entries that a purge with this limit reads in each of its two parts: among the oldest, and among
/// those that earlier purges have not read.
[[nodiscard]] constexpr std::size_t purge_looks(std::size_t limit) noexcept { return 1000 + 2 * limit; }

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/purger.hpp
// Removes ended entries, oldest first. Generations of one entry go together: the newest decides, and none is removed if
// a live entry still needs one of them.
//
// A purge looks at a bounded number of rows: first the oldest, then those that no purge has looked at in this round. So
// its cost depends on its limit, however many rows are still needed, and every row is looked at eventually.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class purger {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;

    purger(ledger<Seam>& in, const purge_request& what) : ledger_(in), request_(what) {}

    [[nodiscard]] std::size_t purge() {
        auto* const queue = ledger_.find_queue(request_.queue);
        if (queue == nullptr || request_.limit == 0) {
            return 0;
        }
        std::vector<row*> front;
        for (const auto as : states()) {
            auto& ended = queue->ended(as);
            add_oldest(ended.waiting(), front);
            add_oldest(ended.passed(), front);
        }
        const bool is_all = front.size() <= looks_;
        cut(front);
        std::size_t gone = remove_of(front, request_.limit).gone;
        for (const auto as : states()) {
            if (!is_all && gone < request_.limit) {
                gone += continue_round(*queue, as, request_.limit - gone);
            }
        }
        return gone;
    }

  private:
    struct looked {
        std::size_t at = 0;
        std::size_t gone = 0;
    };

    [[nodiscard]] std::vector<state> states() const {
        return request_.state ? std::vector{*request_.state} : std::vector{state::succeeded, state::dead};
    }

    /// Looks at the next rows of this round. Marks those that are still needed as passed.
    std::size_t continue_round(queue_index& queue, state as, std::size_t limit) {
        std::vector<row*> rows;
        add_oldest(queue.ended(as).waiting(), rows);
        const bool is_rest = rows.size() <= looks_;
        cut(rows);
        const auto done = remove_of(rows, limit);
        rows.resize(done.at);
        std::erase_if(rows, [](const row* r) { return r->purged; });
        ledger_.pass(queue, as, rows);
        if (is_rest && done.gone < limit) {
            ledger_.begin_round(queue, as);
        }
        return done.gone;
    }

    /// Adds up to one row more than may be looked at, so that the caller knows whether these are all.
    void add_oldest(const timeline<row>& of, std::vector<row*>& to) const {
        std::size_t added = 0;
        of.walk([&](row& r) {
            if (r.entry.updated_at >= request_.before || added > looks_) {
                return false;
            }
            to.push_back(&r);
            ++added;
            return true;
        });
    }

    /// Keeps the oldest rows, in order, as many as may be looked at.
    void cut(std::vector<row*>& rows) const {
        std::sort(rows.begin(), rows.end(), [](const row* a, const row* b) { return a->place.when < b->place.when; });
        rows.resize(std::min(rows.size(), looks_));
    }

    /// Removes the newest generations among `rows` with their predecessors, at most `limit` rows.
    looked remove_of(const std::vector<row*>& rows, std::size_t limit) {
        std::vector<row*> going;
        std::size_t at = 0;
        for (; at < rows.size() && going.size() < limit; ++at) {
            ledger_.looked_at(*rows[at]);
            if (rows[at]->successor == nullptr) {
                add_generations(*rows[at], going);
            }
        }
        going.resize(std::min(going.size(), limit)); // older generations go first
        for (auto* const r : going) {
            ledger_.remove(*r);
        }
        return {at, going.size()};
    }

    /// Whether a live entry still needs this terminal one.
    [[nodiscard]] bool is_needed(const row& r) const {
        const auto* const children = ledger_.find_family(r.entry.id);
        return (r.group != nullptr && r.group->live > 0) || (children != nullptr && children->live > 0);
    }

    /// Adds the newest generation with its predecessors, oldest first; none of them if one is still needed.
    void add_generations(row& newest, std::vector<row*>& going) const {
        const auto first = going.size();
        for (auto* r = &newest; r != nullptr; r = ledger_.predecessor_of(*r, view::own)) {
            going.push_back(r);
            if (is_needed(*r)) {
                going.resize(first);
                return;
            }
        }
        std::reverse(going.begin() + static_cast<std::ptrdiff_t>(first), going.end());
    }

    ledger<Seam>& ledger_;
    const purge_request& request_;
    std::size_t looks_ = vouch::detail::purge_looks(request_.limit);
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/entry_writer.hpp
// The operations of `writer` on the ledger, as the contract defines them. Requires valid arguments and the store's
// lock.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class entry_writer {
  public:
    using row = typename layout<Seam>::row;

    explicit entry_writer(ledger<Seam>& in) noexcept : ledger_(in) {}

    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return answers(drafts, [&](const draft& d) { return enqueue(d, now); });
    }

    [[nodiscard]] receipt enqueue(const draft& d, time_point now) {
        if (const auto* const stored = find(d.id)) {
            return {receipt::kind::duplicate, stored->entry.id};
        }
        row* predecessor = nullptr;
        if (!d.predecessor.is_nil()) {
            predecessor = find(d.predecessor);
            if (predecessor == nullptr || predecessor->entry.state != state::dead ||
                predecessor->entry.queue != d.queue) {
                return {receipt::kind::refused, {}};
            }
            if (predecessor->successor != nullptr) {
                return {receipt::kind::duplicate, predecessor->successor->entry.id};
            }
        } else if (!d.key.empty()) {
            if (const auto* const stored = ledger_.find(ledger_.queue(d.queue), d.key, view::own)) {
                return {receipt::kind::duplicate, stored->entry.id};
            }
        }
        const auto make = [&] {
            auto fresh = born(d, now);
            if (predecessor != nullptr) {
                fresh.key = predecessor->entry.key;
                fresh.group = predecessor->entry.group;
                fresh.lane = predecessor->entry.lane;
                fresh.generation = predecessor->entry.generation + 1;
            }
            return fresh;
        };
        ledger_.insert(d.queue, make, predecessor);
        return {receipt::kind::inserted, d.id};
    }

    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        std::vector<row*> taken;
        const auto take = [&](row& r) {
            taken.push_back(&r);
            std::ignore = ledger_.change(r, [&](life& l) {
                apply(l, request);
                return verdict::applied;
            });
        };
        auto* const queue = ledger_.find_queue(request.queue);
        if (queue == nullptr) {
            return {};
        }
        if (request.only.is_nil()) {
            taken.reserve(std::min(request.limit, queue->counts.live()));
            while (taken.size() < request.limit) {
                auto* const r = queue->first_open(request.now);
                if (r == nullptr) {
                    break;
                }
                take(*r);
            }
        } else if (auto* const r = find(request.only);
                   r != nullptr && request.limit > 0 && r->queue == queue && is_open(*r, request.now)) {
            take(*r);
        }
        return copies_by_due(std::move(taken));
    }

    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return answers(settles, [&](const vouch::settle& s) { return settle(s, now); });
    }

    [[nodiscard]] settlement settle(const vouch::settle& s, time_point now) {
        auto* const r = find(s.ticket.id);
        if (r == nullptr) {
            return {verdict::unknown, false};
        }
        const auto answer = ledger_.change(*r, [&](life& l) { return apply(l, s, now); });
        if (answer != verdict::applied) {
            return {answer, false};
        }
        wake_parent(*r, now);
        const bool completed = r->entry.state == state::succeeded && r->group != nullptr && r->group->unfinished == 0;
        return {answer, completed};
    }

    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return answers(tickets, [&](const ticket& t) {
            return change(t.id, [&](life& l) { return apply(l, vouch::extend{t, lease}, now); });
        });
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return change(wanted, [&](life& l) { return apply(l, vouch::nudge{}, now); });
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        const auto answer = change(wanted, [&](life& l) { return apply(l, vouch::cancel{error}, now); });
        if (answer == verdict::applied) {
            wake_parent(*find(wanted), now);
        }
        return answer;
    }

    [[nodiscard]] std::size_t purge(const purge_request& request) { return purger(ledger_, request).purge(); }

  private:
    /// `answer(item)` for each item, in order.
    template <class Item, class Answer>
    [[nodiscard]] static auto answers(std::span<const Item> items, const Answer& answer) {
        std::vector<decltype(answer(items.front()))> out;
        out.reserve(items.size());
        for (const auto& item : items) {
            out.push_back(answer(item));
        }
        return out;
    }

    [[nodiscard]] row* find(const id& wanted) const { return ledger_.find(wanted, view::own); }

    /// Whether a claim may take the row: it has a gate, and the gate is not after `now`.
    [[nodiscard]] static bool is_open(const row& r, time_point now) noexcept {
        const bool is_blocked = r.lane != nullptr && r.lane->head != &r;
        return is_live(r.entry.state) && !is_blocked && *gate_of(r.entry) <= now;
    }

    /// Sorts pointers, because entries are large, and then copies.
    [[nodiscard]] static std::vector<entry> copies_by_due(std::vector<row*> rows) {
        std::sort(rows.begin(), rows.end(), [](const row* a, const row* b) {
            return std::tie(a->entry.due_at, a->entry.sequence) < std::tie(b->entry.due_at, b->entry.sequence);
        });
        std::vector<entry> copies;
        copies.reserve(rows.size());
        for (const auto* const r : rows) {
            copies.push_back(r->entry);
        }
        return copies;
    }

    template <class Verb>
    verdict change(const id& wanted, Verb&& verb) {
        auto* const r = find(wanted);
        return r == nullptr ? verdict::unknown : ledger_.change(*r, verb);
    }

    void wake_parent(const row& ended, time_point now) {
        if (is_terminal(ended.entry.state) && !ended.entry.parent.is_nil()) {
            std::ignore = nudge(ended.entry.parent, now); // absent or terminal: no effect
        }
    }

    ledger<Seam>& ledger_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/detail/shared_state.hpp
// The state that all handles and transactions of one memory store share.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

inline constexpr capabilities supported{.groups = true, .lanes = true, .wakes = true, .shared = true};

/// How long `begin` waits. A minute is longer than any transaction that ends by itself. A seam may set another limit.
template <class Seam>
[[nodiscard]] constexpr std::chrono::milliseconds begin_limit() noexcept {
    if constexpr (requires { Seam::begin_limit; }) {
        return Seam::begin_limit;
    } else {
        return std::chrono::minutes{1};
    }
}

template <class Seam>
struct shared_state {
    explicit shared_state(Seam seam) : ledger(std::move(seam)) {}

    std::mutex mutex; ///< guards everything below
    detail::ledger<Seam> ledger;
    bool writing = false;              ///< a transaction is open
    std::thread::id writer;            ///< the thread that used it last; none after a move
    std::condition_variable idle;      ///< signalled when no transaction is open any more
    std::condition_variable_any woken; ///< signalled when the `wakes` of some queue has grown

    /// Made in advance, because copying it allocates nothing.
    const error out_of_memory{error_kind::full, "memory: out of memory"};

    void end(bool committed) noexcept {
        const bool wakes = committed && ledger.has_wakes();
        committed ? ledger.commit() : ledger.roll_back();
        writing = false;
        idle.notify_one();
        if (wakes) {
            woken.notify_all();
        }
    }
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/store.hpp
// The memory store and its transaction.
//
// A store is a handle: copies share the same entries, so a second handle is a copy. One transaction is open at a time;
// `begin` waits for it to end. Each operation holds a lock only while it runs, so reads on the store see the committed
// state at any time and never wait for a transaction. Safe for any number of threads; a transaction is used by one
// thread at a time.

namespace vouch {
inline namespace v0 {
namespace memory {

template <class Seam>
class basic_store;

/// A transaction, made by `basic_store::begin`. The operations are those of the concept `transaction`.
template <class Seam = no_seam>
class basic_transaction : public validated_writer<basic_transaction<Seam>> {
  public:
    basic_transaction(basic_transaction&& other) noexcept : shared_(std::move(other.shared_)) { forget_thread(); }
    basic_transaction& operator=(basic_transaction&& other) noexcept {
        if (this != &other) {
            close();
            shared_ = std::move(other.shared_);
            forget_thread();
        }
        return *this;
    }
    ~basic_transaction() { close(); }

    void commit() {
        static_cast<void>(expect_open());
        end(true);
    }

  private:
    using shared_state = detail::shared_state<Seam>;

    friend class basic_store<Seam>;
    friend class validated_reader<basic_transaction>;
    friend class validated_writer<basic_transaction>;

    explicit basic_transaction(std::shared_ptr<shared_state> shared) noexcept : shared_(std::move(shared)) {}

    [[nodiscard]] const vouch::capabilities& expect_open() const {
        if (!shared_) {
            throw error(error_kind::misuse, "memory: the transaction is closed; call begin() for a new one");
        }
        return detail::supported;
    }

    void close() const noexcept {
        if (shared_) {
            end(false);
        }
    }

    void end(bool committed) const noexcept {
        const auto ended = std::exchange(shared_, nullptr);
        const std::lock_guard lock(ended->mutex);
        ended->end(committed);
    }

    template <class Operation>
    auto read(const Operation& operation) const {
        return use([&](auto& ledger) { return operation(detail::entry_reader(ledger, detail::view::own)); });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        return use([&](auto& ledger) { return operation(detail::entry_writer(ledger)); });
    }

    template <class Use>
    auto use(const Use& use) const {
        const std::lock_guard lock(shared_->mutex);
        shared_->writer = std::this_thread::get_id();
        try {
            return use(shared_->ledger);
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    /// After a move, the thread that uses the transaction next is its thread.
    void forget_thread() const noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->writer = {};
        }
    }

    mutable std::shared_ptr<shared_state> shared_; // null: closed; a read that fails closes, too
};

/// The store. `Seam` is for tests (`seam.hpp`); everything else uses `memory::store`.
template <class Seam = no_seam>
class basic_store : public validated_reader<basic_store<Seam>> {
  public:
    using transaction = basic_transaction<Seam>;
    static constexpr int contract_level = vouch::contract_level;

    explicit basic_store(Seam seam = {}) : shared_(std::make_shared<shared_state>(std::move(seam))) {}
    // Moving copies, so that a handle always has a store.
    basic_store(const basic_store&) = default;
    basic_store& operator=(const basic_store&) = default;
    ~basic_store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::supported; }

    /// Waits until no transaction is open. Throws `misuse` if the open transaction was last used by this thread and
    /// not moved since, because it would wait for itself; `busy` after a minute.
    [[nodiscard]] transaction begin() {
        std::unique_lock lock(shared_->mutex);
        const auto me = std::this_thread::get_id();
        if (shared_->writing && shared_->writer == me) {
            throw error(error_kind::misuse, "memory: begin: this thread has a transaction open and would wait for "
                                            "itself; end that transaction first, or write through it");
        }
        if (!shared_->idle.wait_for(lock, detail::begin_limit<Seam>(), [&] { return !shared_->writing; })) {
            throw error(error_kind::busy, "memory: begin: the open transaction did not end in time; if it belongs to "
                                          "this thread, or waits for it, it never will");
        }
        shared_->writing = true;
        shared_->writer = me;
        return transaction(shared_);
    }

    /// Every queue that has ever held an entry, in no particular order. Not part of the contract.
    [[nodiscard]] std::vector<std::string> queues() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.queue_names();
    }

    /// A number that grows with every commit that may have made work in this queue due sooner.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::supported.limits);
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.wakes(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::supported.limits);
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::supported.limits.lease_max);
        std::unique_lock lock(shared_->mutex);
        auto& ledger = shared_->ledger;
        shared_->woken.wait_for(lock, stop, at_most, [&] { return ledger.wakes(queue) != seen; });
        return ledger.wakes(queue);
    }

  private:
    using shared_state = detail::shared_state<Seam>;

    friend class validated_reader<basic_store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return detail::supported; }

    template <class Operation>
    auto read(const Operation& operation) const {
        const std::lock_guard lock(shared_->mutex);
        try {
            return operation(detail::entry_reader(shared_->ledger, detail::view::committed));
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    std::shared_ptr<shared_state> shared_;
};

using store = basic_store<>;
using transaction = basic_transaction<>;

} // namespace memory
} // namespace v0
} // namespace vouch

// ---- vouch/memory.hpp
// The memory store: the whole contract in one process, with nothing on disk. Use it in unit tests, and for work that
// may be lost when the process ends.

// ---- vouch/observe/observer.hpp
// Events for observers that log, count or record what happens. An event is reported after the fact, so an observer can
// watch but not interfere, and its `on` must not throw. Events carry names, ids and codes, never payloads. They carry
// the text of an exception only if the runner or worker has `exception_text` set.

namespace vouch {
inline namespace v0 {

/// What happened.
enum class event_kind : std::uint8_t {
    enqueued, ///< and committed, by a handler (then `worker` is set) or by an outbox with observers
    claimed,
    started, ///< the handler is called
    succeeded,
    advanced,
    retried,
    dead,
    released,
    stale,       ///< the outcome was refused: another claim had taken over
    unsettled,   ///< the outcome could not be stored; the entry stays claimed until its lease ends
    hook_failed, ///< an audit sink or a group callback threw; the outcome is kept and settled later
    group_completed,
    lease_lost,  ///< another worker has taken the claim over; the handler's stop token is set, or (tag
                 ///< `unstarted`) the handler is never called
    purged,      ///< `count` terminal entries were removed
    store_error, ///< the store failed; the worker tries again, or stops if that cannot help
    polled,      ///< the worker asked the store for work and claimed `count` entries
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(event_kind kind) noexcept {
    switch (kind) {
    case event_kind::enqueued: return "enqueued";
    case event_kind::claimed: return "claimed";
    case event_kind::started: return "started";
    case event_kind::succeeded: return "succeeded";
    case event_kind::advanced: return "advanced";
    case event_kind::retried: return "retried";
    case event_kind::dead: return "dead";
    case event_kind::released: return "released";
    case event_kind::stale: return "stale";
    case event_kind::unsettled: return "unsettled";
    case event_kind::hook_failed: return "hook_failed";
    case event_kind::group_completed: return "group_completed";
    case event_kind::lease_lost: return "lease_lost";
    case event_kind::purged: return "purged";
    case event_kind::store_error: return "store_error";
    case event_kind::polled: return "polled";
    }
    return "?";
}

/// Why an entry is dead.
enum class death : std::uint8_t {
    none,       ///< the entry is not dead
    rejected,   ///< the handler threw `reject`
    buried,     ///< the handler returned `bury`
    exhausted,  ///< the attempts are used up
    expired,    ///< `expires_at` has passed
    no_handler, ///< no route matches the topic
    invalid,    ///< the store would refuse the outcome or an emission
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(death why) noexcept {
    switch (why) {
    case death::none: return "none";
    case death::rejected: return "rejected";
    case death::buried: return "buried";
    case death::exhausted: return "exhausted";
    case death::expired: return "expired";
    case death::no_handler: return "no_handler";
    case death::invalid: return "invalid";
    }
    return "?";
}

/// One event. The views are valid during the call only. Fields that do not apply to the event are empty.
struct event {
    event_kind what{};
    time_point at{};
    std::string_view queue{};
    std::string_view topic{};
    std::string_view worker{};
    std::string_view group{};
    std::string_view error{}; ///< a code, never a message
    std::string_view tag{};   ///< a word from the handler about its outcome, such as `compensated`
    std::string_view text{};  ///< of the exception, only with `exception_text`: it may contain personal data
    vouch::id id{};
    std::uint32_t attempt = 0;
    std::size_t count = 1;
    death reason{};       ///< dead: why
    bool is_saga = false; ///< claimed, and every end of a claim: the entry is a saga
    duration age{};       ///< claimed, and every end of a claim: time since the entry was enqueued
    duration late{};      ///< claimed: time since it was due
    duration delay{};     ///< retried: time until the next attempt
    /// Every end of a claim: how long the handler ran, none if it was not called. Polled, purged: how long the store
    /// took.
    std::optional<duration> took{};
};

/// Receives events. Workers call `on` from several threads at the same time.
template <class O>
concept observer = requires(O& o, const event& e) {
    { o.on(e) }
    noexcept;
};

/// An observer that buffers events and writes them when `flush` is called. A worker that stops calls `flush`, while other
/// threads may call `on`.
template <class O>
concept flushing_observer = observer<O> && requires(O& o) {
    { o.flush() }
    noexcept;
};

/// An observer that writes a log. A worker that has one writes no log of its own.
template <class O>
concept logging_observer = observer<O> && requires {
    requires O::writes_log;
};

/// Several observers as one. Each must outlive the list. `add` must not be called while events are reported.
class observer_list {
  public:
    template <observer O>
    void add(O& o) {
        auto& added = observers_.emplace_back();
        added.self = &o;
        added.call = [](void* self, const event& e) noexcept { static_cast<O*>(self)->on(e); };
        if constexpr (flushing_observer<O>) {
            added.flush = [](void* self) noexcept { static_cast<O*>(self)->flush(); };
        }
        if constexpr (logging_observer<O>) {
            has_log_ = true;
        } else if constexpr (std::same_as<O, observer_list>) {
            has_log_ = has_log_ || o.has_log();
        }
    }

    /// Whether one of the observers writes a log.
    [[nodiscard]] bool has_log() const noexcept { return has_log_; }

    [[nodiscard]] bool empty() const noexcept { return observers_.empty(); }

    void on(const event& e) const noexcept {
        for (const auto& o : observers_) {
            o.call(o.self, e);
        }
    }

    void flush() const noexcept {
        for (const auto& o : observers_) {
            if (o.flush != nullptr) {
                o.flush(o.self);
            }
        }
    }

  private:
    struct bound {
        void* self = nullptr;
        void (*call)(void*, const event&) noexcept = nullptr;
        void (*flush)(void*) noexcept = nullptr;
    };
    std::vector<bound> observers_;
    bool has_log_ = false;
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/topic.hpp
// Topics are words joined by dots. In a pattern `*` stands for exactly one word and `#` for zero or more words. The rules
// are RabbitMQ's. Matching allocates nothing.

namespace vouch {
inline namespace v0 {

namespace detail {

/// Iterates over the words of a topic; `a..b` has an empty word in the middle.
class word_cursor {
  public:
    constexpr explicit word_cursor(std::string_view text) noexcept : rest_(text) {}

    [[nodiscard]] constexpr bool done() const noexcept { return done_; }
    [[nodiscard]] constexpr std::string_view word() const noexcept { return rest_.substr(0, rest_.find('.')); }
    constexpr void next() noexcept {
        const auto dot = rest_.find('.');
        done_ = dot == std::string_view::npos;
        rest_.remove_prefix(done_ ? rest_.size() : dot + 1);
    }

  private:
    std::string_view rest_;
    bool done_ = false;
};

} // namespace detail

/// Whether the topic fits the pattern. Neither is validated; `topic_pattern` validates patterns.
[[nodiscard]] constexpr bool topic_matches(std::string_view pattern, std::string_view topic) noexcept {
    detail::word_cursor p(pattern);
    detail::word_cursor t(topic);
    // If the words after the last `#` do not fit, match again with that `#` taking one word more. Only the last `#` needs
    // this: an earlier one could only take what the last one can take.
    bool has_hash = false;
    auto after_hash = p;
    auto swallowed = t;
    while (!t.done()) {
        if (!p.done() && p.word() == "#") {
            p.next();
            has_hash = true;
            after_hash = p;
            swallowed = t;
        } else if (!p.done() && (p.word() == "*" || p.word() == t.word())) {
            p.next();
            t.next();
        } else if (has_hash) {
            swallowed.next();
            t = swallowed;
            p = after_hash;
        } else {
            return false;
        }
    }
    while (!p.done() && p.word() == "#") {
        p.next();
    }
    return p.done();
}

/// How specific a pattern is. The more specific pattern compares less: fewer `#`, then fewer `*`, then more literal
/// words.
struct specificity {
    std::size_t hashes = 0;
    std::size_t stars = 0;
    std::size_t spelled = 0;

    [[nodiscard]] friend constexpr std::strong_ordering operator<=>(const specificity& a,
                                                                    const specificity& b) noexcept {
        if (const auto order = a.hashes <=> b.hashes; order != 0) {
            return order;
        }
        if (const auto order = a.stars <=> b.stars; order != 0) {
            return order;
        }
        return b.spelled <=> a.spelled;
    }
    [[nodiscard]] friend constexpr bool operator==(const specificity&, const specificity&) noexcept = default;
};

/// A validated pattern: not empty, within the length limit of a name, without control characters or empty words, and with
/// wildcards only as whole words (`a*` is an error). The constructor throws `invalid_argument` otherwise.
class topic_pattern {
  public:
    explicit topic_pattern(std::string text) : text_(std::move(text)) {
        detail::check_required_name({"topic", "pattern"}, text_, limits{}.name_max);
        for (detail::word_cursor at(text_); !at.done(); at.next()) {
            const auto word = at.word();
            if (word.empty()) {
                detail::refuse({"topic", "pattern"}, "has an empty word");
            }
            if (word.size() > 1 && word.find_first_of("*#") != std::string_view::npos) {
                detail::refuse({"topic", "pattern"}, "has a wildcard inside a word; a wildcard must be a whole word");
            }
            (word == "#" ? specificity_.hashes : word == "*" ? specificity_.stars : specificity_.spelled) += 1;
        }
    }

    [[nodiscard]] bool matches(std::string_view topic) const noexcept { return topic_matches(text_, topic); }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] const vouch::specificity& specificity() const noexcept { return specificity_; }

  private:
    std::string text_;
    vouch::specificity specificity_{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/bindings.hpp
// Which queues receive a copy of an emission that names no queue: one event, many listeners. Each copy is an entry with
// its own retries and its own dead letter.

namespace vouch {
inline namespace v0 {

class bindings {
  public:
    /// Adds `queue` to the queues that receive emissions whose topic fits `pattern`. Throws `invalid_argument` for an
    /// invalid pattern or name.
    bindings& bind(std::string pattern, std::string queue) {
        detail::check_required_name({"binding", "queue"}, queue, limits{}.name_max);
        bound_.push_back({topic_pattern(std::move(pattern)), std::move(queue)});
        return *this;
    }

    [[nodiscard]] bool empty() const noexcept { return bound_.empty(); }

    /// The queues bound to the topic, each once, in the order of their first binding.
    [[nodiscard]] std::vector<std::string> queues_for(std::string_view topic) const {
        std::vector<std::string> queues;
        for (const auto& [pattern, queue] : bound_) {
            if (pattern.matches(topic) && std::find(queues.begin(), queues.end(), queue) == queues.end()) {
                queues.push_back(queue);
            }
        }
        return queues;
    }

  private:
    struct binding {
        topic_pattern pattern;
        std::string queue{};
    };
    std::vector<binding> bound_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/cancel.hpp
// Cancelling a saga. A saga is never killed with work done: cancelling it is a request, stored as a mark whose id is
// derived from the saga's, together with a nudge so that the saga sees it soon. The saga then undoes what it has done
// and ends compensated.
//
// Marks are entries of the queue `saga_marks_queue`, which no worker serves, so a purge of the saga's queue cannot
// remove a mark before the saga has seen it. One small entry stays per request: purge that queue by age, with a limit
// longer than any saga takes.

namespace vouch {
inline namespace v0 {

inline constexpr std::string_view saga_marks_queue = "saga.marks";

/// The id of the mark that asks a saga to compensate. `origin` is the saga's first entry, so a resume keeps the request.
[[nodiscard]] constexpr id cancel_mark_of(const id& origin) noexcept { return derive(origin, "saga.cancel"); }

/// Asks a saga to undo what it has done, within the caller's transaction. Returns applied, or repeated if the saga was
/// due anyway or had been asked before: it sees the mark before it completes. A saga that is already being undone is
/// undone as before. Returns stale if the saga has ended, and unknown if there is no such entry or it is not a saga
/// (`is_saga`); then nothing is written. Throws `unsupported` if this version cannot read the saga's progress.
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
    const auto stored = saga_origin(found->progress);
    if (!stored) {
        throw error(error_kind::unsupported, "saga: this version cannot read the progress of " + to_string(saga) +
                                                 "; use the version that wrote it");
    }
    const auto answer = tx.nudge(saga, now);
    if (answer == verdict::applied || answer == verdict::repeated) {
        const auto origin = stored->is_nil() ? first_entry_of(tx, *found) : *stored;
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

// ---- vouch/outbox/codec.hpp
// Converts typed values to payload bytes and back. Specialise `codec<T>` for your own types, with any serialisation
// library. Strings and vectors of bytes are built in.
//
//   template <> struct vouch::codec<user> {
//       static std::string encode(const user&);
//       static user decode(std::string_view);   // throws if the bytes are not a user
//   };

namespace vouch {
inline namespace v0 {

template <class T>
struct codec;

template <>
struct codec<std::string> {
    [[nodiscard]] static std::string encode(const std::string& value) { return value; }
    [[nodiscard]] static std::string decode(std::string_view bytes) { return std::string(bytes); }
};

template <std::same_as<std::byte> Byte> // a template, so that unused it costs nothing
struct codec<std::vector<Byte>> {
    [[nodiscard]] static std::string encode(const std::vector<Byte>& value) {
        return value.empty() ? std::string{} : std::string(reinterpret_cast<const char*>(value.data()), value.size());
    }
    [[nodiscard]] static std::vector<Byte> decode(std::string_view bytes) {
        const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
        return {first, first + bytes.size()};
    }
};

template <class T>
concept encodable = requires(const T& value) {
    { codec<T>::encode(value) } -> std::convertible_to<std::string>;
};
template <class T>
concept decodable = requires(std::string_view bytes) {
    { codec<T>::decode(bytes) } -> std::convertible_to<T>;
};

template <encodable T>
[[nodiscard]] std::string encode(const T& value) {
    return codec<T>::encode(value);
}

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/emission.hpp
// What a producer wants done: a draft without the parts that the emitter fills in (id, times, trail).

namespace vouch {
inline namespace v0 {

struct emission {
    std::string queue{};                    ///< empty: every queue bound to the topic
    std::string topic{};                    ///< required
    std::string payload{};                  ///< `encode(value)` for typed ones
    std::string key{};                      ///< dedup key, unique in its queue; empty: none
    std::string group{};                    ///< entries that complete together; empty: none
    std::string lane{};                     ///< entries of one lane run one at a time, in order; empty: none
    vouch::id parent{};                     ///< the entry to wake when this one ends
    std::optional<time_point> due_at{};     ///< not before this time
    std::optional<duration> due_in{};       ///< not before this long from now; not together with `due_at`
    std::optional<time_point> expires_at{}; ///< no attempt from this time on; must be later than the due time
    std::optional<duration> expires_in{};   ///< the same, counted from the due time; not together with `expires_at`
    std::uint32_t attempts_max = 0;         ///< 0: the route's limit
    header_list headers{};
    std::string progress{}; ///< the first checkpoint of a handler that advances
    /// The trail to continue. Empty: that of the delivery in `delivery::emit`, else that of the `tracking` scope, if any.
    id_list trail{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/trail.hpp
// A trail records what led to an entry: the ids of the emissions, from the first cause to the entry's own.

namespace vouch {
inline namespace v0 {

/// The trail `above`, extended by one emission. A trail that grows too long keeps its first id and its last 31.
[[nodiscard]] inline id_list trail_below(const id_list& above, const id& emission) {
    const auto most = limits{}.trail_max;
    id_list out;
    out.reserve(above.size() + 1);
    out.assign(above.begin(), above.end());
    out.push_back(emission);
    if (out.size() > most) {
        const auto surplus = static_cast<std::ptrdiff_t>(out.size() - most);
        out.erase(out.begin() + 1, out.begin() + 1 + surplus);
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/tracking.hpp
// A scope around an entry point of the application: everything that is emitted inside it continues one trail, without
// passing the trail to each `emit`.
//
//   const vouch::tracking scope(outbox);
//   outbox.emit(tx, {.topic = "user.created"}); // continues the trail of the scope
//
// A scope belongs to the thread that opens it and must end on that thread. A thread started inside it has no scope; give
// it one with the same trail: `vouch::tracking again(scope.trail())`. A coroutine that another thread resumes leaves its
// scope behind. Scopes nest: an inner scope continues the trail of the outer one. `emission::trail` takes precedence over
// the scope. A handler runs in a scope with the trail of its delivery.

namespace vouch {
inline namespace v0 {

class emitter;

namespace detail {

/// The trail of this thread's innermost scope; null if there is none.
inline thread_local const id_list* trail_here = nullptr;

/// A scope with a trail that outlives it.
class trail_scope {
  public:
    explicit trail_scope(const id_list& trail) noexcept : outer_(std::exchange(trail_here, &trail)) {}
    trail_scope(const trail_scope&) = delete;
    trail_scope& operator=(const trail_scope&) = delete;
    ~trail_scope() { trail_here = outer_; }

  private:
    const id_list* outer_;
};

} // namespace detail

class tracking {
  public:
    /// Opens a trail with a fresh id, which continues the trail of the enclosing scope.
    explicit tracking(const emitter& from);

    /// Continues this trail instead of that of the enclosing scope.
    explicit tracking(id_list trail) : trail_(std::move(trail)) {}

    tracking(const tracking&) = delete;
    tracking& operator=(const tracking&) = delete;
    ~tracking() = default;

    [[nodiscard]] const id_list& trail() const noexcept { return trail_; }

    /// The trail of this thread's innermost scope; empty if there is none.
    [[nodiscard]] static id_list current() { return detail::trail_here == nullptr ? id_list{} : *detail::trail_here; }

  private:
    id_list trail_;
    detail::trail_scope scope_{trail_};
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/clock.hpp
// Where `now` comes from. A clock is any callable that returns a time. Runners, workers and outboxes have one; stores
// do not.

namespace vouch {
inline namespace v0 {

/// Must be callable from several threads if its user is.
using clock = std::function<time_point()>;

/// The machine's UTC time, in whole microseconds.
[[nodiscard]] inline time_point system_now() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

/// A clock for tests, which moves only when the test says so. Copies share one time. Thread-safe.
class manual_clock {
  public:
    explicit manual_clock(time_point start = time_point{std::chrono::hours{24 * 365 * 50}})
        : now_(std::make_shared<std::atomic<duration::rep>>(start.time_since_epoch().count())) {}

    [[nodiscard]] time_point operator()() const noexcept { return time_point{duration{now_->load()}}; }
    /// Sets the time, forwards or backwards.
    void set(time_point now) const noexcept { now_->store(now.time_since_epoch().count()); }
    /// Moves the time by `by`.
    void pass(duration by) const noexcept {
        auto seen = now_->load();
        while (!now_->compare_exchange_weak(seen, later(time_point{duration{seen}}, by).time_since_epoch().count())) {
        }
    }

  private:
    std::shared_ptr<std::atomic<duration::rep>> now_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/id_source.hpp
// Where new ids come from. An id source is any callable that returns a new id. Runners and outboxes have one; stores do
// not.

// <random> takes long to compile, so it is not used where the system call exists.
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#include <unistd.h>
#else
#include <random>
#endif

namespace vouch {
inline namespace v0 {

/// Must be callable from several threads if its user is.
using id_source = std::function<id()>;

namespace detail {

/// 64 random bits from the operating system.
[[nodiscard]] inline std::uint64_t system_seed() {
#if __has_include(<sys/random.h>)
    std::uint64_t seed = 0;
    if (getentropy(&seed, sizeof seed) != 0) {
        throw error(error_kind::io, "id_source: the operating system returned no random bits (getentropy failed)");
    }
    return seed;
#else
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
#endif
}

/// Differs between a process and its forked child; 0 where that cannot be known.
[[nodiscard]] inline std::int64_t process_id() noexcept {
#if __has_include(<sys/random.h>)
    return getpid();
#else
    return 0;
#endif
}

} // namespace detail

/// UUIDv7: 48 bits of milliseconds, a 12-bit count within the millisecond, and 62 random bits. Each id of a source is
/// greater than the one before, even if the clock stands still or runs backwards. Copies share one state. Thread-safe.
class uuid7_source {
  public:
    /// Random bits come from the operating system. A forked child gets bits of its own.
    explicit uuid7_source(clock now = system_now)
        : shared_(std::make_shared<shared>(std::move(now), detail::system_seed(), detail::process_id())) {}
    /// Repeatable: the same clock and seed give the same ids.
    uuid7_source(clock now, std::uint64_t seed)
        : shared_(std::make_shared<shared>(std::move(now), seed, std::int64_t{0})) {}

    [[nodiscard]] id operator()() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->next();
    }

  private:
    struct shared {
        shared(clock c, std::uint64_t seed, std::int64_t p) : now(std::move(c)), state(seed), process(p) {}

        [[nodiscard]] id next() {
            const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch()).count();
            // A count that overflows runs into the milliseconds. The order is kept, and the time catches up.
            const auto tick = static_cast<std::uint64_t>(since > 0 ? since : 0) << 12;
            last = tick > last ? tick : last + 1;
            return {.high = ((last >> 12) << 16) | 0x7000U | (last & 0x0fffU),
                    .low = 0x8000000000000000U | (random() >> 2)};
        }

        /// SplitMix64. Ids must differ; they need not be secret.
        [[nodiscard]] std::uint64_t random() {
            if (process != 0 && process != detail::process_id()) {
                process = detail::process_id();
                state = detail::system_seed();
            }
            return detail::mix(state += 0x9e3779b97f4a7c15U);
        }

        std::mutex mutex;
        clock now;
        std::uint64_t state;
        std::int64_t process; ///< 0: the caller gave the seed
        std::uint64_t last = 0;
    };

    std::shared_ptr<shared> shared_;
};

/// Ids for tests: 1, 2, 3 and so on. Copies share one count. Thread-safe.
class counting_ids {
  public:
    explicit counting_ids(std::uint64_t first = 1)
        : next_(std::make_shared<std::atomic<std::int64_t>>(static_cast<std::int64_t>(first))) {}
    [[nodiscard]] id operator()() const noexcept {
        return {.high = 0, .low = static_cast<std::uint64_t>(next_->fetch_add(1))};
    }

  private:
    std::shared_ptr<std::atomic<std::int64_t>> next_; // as in manual_clock: a second type takes longer to compile
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/emitter.hpp
// The producer's side without a store: turns emissions into drafts, fills in id, time and trail, and enqueues them
// through any writer. Use it where the process has a connection of its own and no store; `outbox` is an emitter that
// is bound to a store.
//
// An emitter never commits: what it enqueues commits or rolls back with the caller's transaction.
//
// Register all observers before the first use. After that any number of threads may use the emitter, if its clock, its
// id source and its observers allow that.

namespace vouch {
inline namespace v0 {

struct emitter_options {
    vouch::clock clock = system_now;
    id_source ids{};                      ///< empty: UUIDv7 from the clock
    vouch::bindings bindings{};           ///< which queues receive an emission that names none
    std::optional<duration> expires_in{}; ///< for emissions without an expiry; counted from the due time
};

namespace detail {

/// The event that reports a stored draft, or the entry it has become.
template <class Stored>
[[nodiscard]] event enqueued_event(const Stored& stored, time_point at, std::string_view worker = {}) noexcept {
    return {.what = event_kind::enqueued,
            .at = at,
            .queue = stored.queue,
            .topic = stored.topic,
            .worker = worker,
            .group = stored.group,
            .id = stored.id};
}

} // namespace detail

class emitter {
  public:
    explicit emitter(emitter_options options = {}) : options_(std::move(options)) {
        if (!options_.ids) {
            options_.ids = uuid7_source(options_.clock);
        }
    }

    [[nodiscard]] const vouch::clock& clock() const noexcept { return options_.clock; }
    [[nodiscard]] time_point now() const { return options_.clock(); }
    [[nodiscard]] id fresh_id() const { return options_.ids(); }

    /// A new trail, for `emission::trail`: everything emitted with it can be traced back to one entry point of the
    /// application. `tracking` does the same for a scope.
    [[nodiscard]] id_list open_trail() const { return {fresh_id()}; }

    /// Reports every event to `o`, which must outlive every use of the emitter and of what is built from it. Runners and
    /// workers report to the observers of their outbox too, so one call covers producers and consumers: do not add the
    /// same observer to them again.
    template <observer O>
    void observe(O& o) {
        observers_.add(o);
    }
    [[nodiscard]] const observer_list& observers() const noexcept { return observers_; }

    /// Enqueues an emission in the writer's transaction: one entry in the named queue, or one per bound queue. Returns
    /// one receipt per entry. Throws `unrouted` if the emission names no queue and no binding fits its topic, and
    /// `invalid_argument` if it expires before it is due; then nothing is written.
    template <class Writer>
    std::vector<receipt> emit(Writer& tx, const emission& e) const {
        return emit(tx, std::span(&e, 1));
    }
    template <class Writer>
    std::vector<receipt> emit(Writer& tx, std::initializer_list<emission> emissions) const {
        return emit(tx, std::span(emissions.begin(), emissions.size()));
    }
    template <class Writer>
    std::vector<receipt> emit(Writer& tx, std::span<const emission> emissions) const {
        static_assert(explain_writer<Writer>());
        const auto at = now();
        return tx.enqueue(drafts_of(emissions, at), at);
    }

    /// Starts a saga in the writer's transaction and returns its id. `how` names its queue, and whatever else an
    /// emission may say (a key, a lane, an expiry); topic, payload and progress come from the saga.
    template <class Writer, class Saga, class Context>
    id start(Writer& tx, const Saga& saga, emission how, const Context& context) const {
        return emit(tx, saga.begin(*this, std::move(how), context)).front().id;
    }
    template <class Writer, class Saga, std::convertible_to<std::string> Queue, class Context>
    id start(Writer& tx, const Saga& saga, Queue&& queue, const Context& context) const {
        return start(tx, saga, emission{.queue = std::forward<Queue>(queue)}, context);
    }

    /// Gives a dead entry a successor, as the functions of `requeue.hpp` do.
    template <class Writer>
    receipt requeue(Writer& tx, const id& dead) const {
        return vouch::requeue(tx, {.dead = dead, .successor = fresh_id(), .now = now()});
    }
    template <class Writer>
    receipt resume(Writer& tx, const id& dead) const {
        return vouch::resume(tx, {.dead = dead, .successor = fresh_id(), .now = now()});
    }

    /// Reports what was enqueued through a writer of the caller's. Call it after that transaction has committed: only
    /// the caller knows when. Observers see the entries that were inserted and are stored; duplicates and entries that
    /// were rolled back are left out. Throws the reader's faults.
    template <class Reader>
    void report_committed(const Reader& from, std::span<const receipt> receipts) const {
        for (const auto& r : receipts) {
            if (r.what != receipt::kind::inserted) {
                continue;
            }
            if (const auto stored = from.find(r.id)) {
                observers_.on(detail::enqueued_event(*stored, stored->created_at));
            }
        }
    }

    /// The drafts of some emissions, for callers that may have to enqueue exactly the same ones again after a commit in
    /// doubt.
    [[nodiscard]] std::vector<draft> drafts_of(std::span<const emission> emissions, time_point at) const {
        const id_list none;
        const auto& trail = detail::trail_here == nullptr ? none : *detail::trail_here;
        std::vector<draft> out;
        for (const auto& e : emissions) {
            append_drafts(out, e, {.emission = fresh_id(), .at = at}, trail);
        }
        return out;
    }
    /// The same for one emission, whose payload is not copied.
    [[nodiscard]] std::vector<draft> drafts_of(emission&& e, time_point at) const {
        const id_list none;
        const auto& trail = detail::trail_here == nullptr ? none : *detail::trail_here;
        std::vector<draft> out;
        append_drafts(out, std::move(e), {.emission = fresh_id(), .at = at}, trail);
        return out;
    }

  protected:
    friend class delivery;

    /// What an emission gets at the moment it is made.
    struct stamp {
        id emission{};
        time_point at{};
    };

    /// An emission that goes to one queue gives its id to the entry. If it goes to several, each entry's id is derived
    /// from it and the queue's name.
    void append_drafts(std::vector<draft>& out, emission e, const stamp& s, const id_list& trail) const {
        const auto queues = e.queue.empty() ? options_.bindings.queues_for(e.topic) : std::vector{e.queue};
        auto own_trail = trail_below(e.trail.empty() ? trail : e.trail, s.emission);
        auto d = draft_of(std::move(e), s.at);
        if (queues.empty()) {
            throw error(error_kind::unrouted, "emission: it names no queue and no binding fits its topic");
        }
        d.trail = std::move(own_trail);
        for (std::size_t i = 0; i < queues.size(); ++i) {
            d.id = queues.size() == 1 ? s.emission : derive(s.emission, queues[i]);
            d.queue = queues[i];
            out.push_back(i + 1 < queues.size() ? d : std::move(d));
        }
    }

  private:
    [[nodiscard]] draft draft_of(emission e, time_point at) const {
        const auto due = either("due", e.due_at, e.due_in, at);
        const auto expires = expiry(e, std::max(due.value_or(at), at));
        return {.topic = std::move(e.topic),
                .payload = std::move(e.payload),
                .key = std::move(e.key),
                .group = std::move(e.group),
                .lane = std::move(e.lane),
                .parent = e.parent,
                .due_at = due,
                .expires_at = expires,
                .attempts_max = e.attempts_max,
                .headers = std::move(e.headers),
                .progress = std::move(e.progress)};
    }

    /// An entry that expires before its first attempt could only die, so such an emission is refused.
    [[nodiscard]] std::optional<time_point> expiry(const emission& e, time_point due) const {
        const auto expires_in = e.expires_in || e.expires_at ? e.expires_in : options_.expires_in;
        const auto expires = either("expires", e.expires_at, expires_in, due);
        if (expires && *expires <= due) {
            detail::refuse({"emission", "expires_at"}, "is " + std::to_string((due - *expires).count()) +
                                                           " us before the due time; it must be later than that");
        }
        return expires;
    }

    [[nodiscard]] static std::optional<time_point> either(std::string_view what, std::optional<time_point> at,
                                                          std::optional<duration> in, time_point from) {
        if (at && in) {
            detail::refuse({"emission", what}, "is given both as a time and as a duration; give one of them");
        }
        return in ? std::optional{later(from, *in)} : at;
    }

    emitter_options options_;
    observer_list observers_{};
};

inline tracking::tracking(const emitter& from) : trail_(trail_below(current(), from.fresh_id())) {}

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/inbox.hpp
// Processes each message once: a table of the messages that a consumer has processed, stored as entries that are born
// succeeded. A message that arrives again, from another store or from a broker that delivers at least once, runs
// nothing and gets the stored result.
//
//   vouch::transact(store, [&](auto& tx) {
//       vouch::inbox::once(tx, {.consumer = "billing", .message = message_id, .now = now}, [&] { return charge(tx); });
//   });
//
// A saga's participant uses the command's key, not its id, because a compensating command that is sent again has another
// id: `.message = vouch::command_of(d.entry())->key`.
//
// Everything happens in the caller's transaction: the work's writes, the mark and the result are one commit, so a crash
// leaves nothing half done. If two transactions process the same message, one commits; the other gets `conflict`, is
// repeated by `transact` or the runner, and finds the result. The dedup window is as long as the marks are stored: purge
// the consumer's queue by age.

namespace vouch {
inline namespace v0 {
namespace inbox {

/// The queue of a consumer's marks. No worker serves it.
[[nodiscard]] inline std::string queue_of(std::string_view consumer) { return "inbox." + std::string(consumer); }

struct request {
    std::string_view consumer{}; ///< required; each consumer processes a message once
    id message{};                ///< identifies the message, for this consumer
    time_point now{};
};

/// Runs `work()`, which returns nothing or a string, unless this consumer has processed this message. Returns what the
/// work returned, now or the first time. If the work throws, the exception passes through, and the caller must roll its
/// transaction back. Throws `invalid_argument` if the consumer is empty.
template <class Writer, class Work>
std::string once(Writer& tx, const request& r, Work&& work) {
    static_assert(explain_writer<Writer>());
    if (r.consumer.empty()) {
        detail::refuse({"inbox", "consumer"}, "is empty");
    }
    const auto mark = derive(r.message, queue_of(r.consumer));
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
    const std::array drafts{draft{.id = mark, .queue = queue_of(r.consumer), .topic = "processed", .result = result}};
    if (tx.enqueue(drafts, r.now).front().what != receipt::kind::inserted) {
        throw error(error_kind::conflict, "inbox: another transaction has processed the message meanwhile");
    }
    return result;
}

} // namespace inbox
} // namespace v0
} // namespace vouch

// ---- vouch/outbox/outbox.hpp
// The application's handle on a store: a store together with the clock, ids, bindings and observers that everything
// else uses. Producers emit through it; routers, runners and workers are built from it; operators requeue and cancel
// with it.
//
//   vouch::memory::store store;
//   vouch::outbox outbox(store);
//   outbox.emit({.queue = "mail", .topic = "user.created", .payload = "ada"}); // commits by itself
//   vouch::transact(store, [&](auto& tx) {
//       outbox.emit(tx, {.queue = "mail", .topic = "user.created", .payload = "ada"}); // commits with the transaction
//   });
//
// Register all observers before the first use. After that any number of threads may use the outbox, if its clock, its
// id source and its observers allow that.

namespace vouch {
inline namespace v0 {

template <class Store>
class outbox : public emitter {
    static_assert(explain_store<Store>());

  public:
    /// The store must outlive the outbox.
    explicit outbox(Store& store, emitter_options options = {}) : emitter(std::move(options)), store_(store) {}
    outbox(const outbox&) = delete;
    outbox& operator=(const outbox&) = delete;

    [[nodiscard]] Store& store() const noexcept { return store_; }

    // Through a writer: ours, or one that has joined the application's transaction.

    using emitter::emit;
    using emitter::report_committed;
    using emitter::requeue;
    using emitter::resume;
    using emitter::start;

    // In a transaction of its own. What inserts entries (emit, start, requeue, resume) resolves a commit in doubt by
    // repeating it with the same ids, so each entry is stored once. Observers see what was inserted.

    std::vector<receipt> emit(const emission& e) const { return emit(std::span(&e, 1)); }
    std::vector<receipt> emit(std::initializer_list<emission> emissions) const {
        return emit(std::span(emissions.begin(), emissions.size()));
    }
    std::vector<receipt> emit(std::span<const emission> emissions) const {
        const auto at = now();
        const auto drafts = drafts_of(emissions, at);
        auto receipts = enqueue(store_, drafts, at);
        for (std::size_t i = 0; i < receipts.size(); ++i) {
            if (receipts[i].what == receipt::kind::inserted) {
                observers().on(detail::enqueued_event(drafts[i], at));
            }
        }
        return receipts;
    }

    /// Starts a saga and returns its id, as `emitter::start` does.
    template <class Saga, class Context>
    id start(const Saga& saga, emission how, const Context& context) const {
        return emit(saga.begin(*this, std::move(how), context)).front().id;
    }
    template <class Saga, std::convertible_to<std::string> Queue, class Context>
    id start(const Saga& saga, Queue&& queue, const Context& context) const {
        return start(saga, emission{.queue = std::forward<Queue>(queue)}, context);
    }

    /// Gives a dead entry a successor that starts from the beginning. Inserted; duplicate of the successor it already
    /// has; or refused if it is absent, not dead, a saga's command, or a saga: use `resume` for sagas.
    receipt requeue(const id& dead) const {
        return replace(dead, [](auto& tx, const requeue_request& r) { return vouch::requeue(tx, r); });
    }
    /// Gives a dead entry a successor that continues from the last checkpoint.
    receipt resume(const id& dead) const {
        return replace(dead, [](auto& tx, const requeue_request& r) { return vouch::resume(tx, r); });
    }

    /// Ends an entry that no worker holds; it becomes dead with this error. A saga is not ended: it is asked to undo
    /// what it has done (see `request_cancel`). Applied or repeated: the entry is dead, or the saga will see the
    /// request. Stale: a worker holds the entry, or it has ended. Unknown: there is no such entry. After an error in
    /// doubt, call it again.
    verdict cancel(const id& which, std::string_view error = "cancelled") const {
        return transact(store_, [&](auto& tx) {
            const auto found = tx.find(which);
            return found && is_saga(*found) ? request_cancel(tx, which, now()) : tx.cancel(which, error, now());
        });
    }

    /// As `emitter::report_committed`, with this outbox's store as the reader.
    void report_committed(std::span<const receipt> receipts) const { report_committed(store_, receipts); }

  private:
    template <class Replace>
    receipt replace(const id& dead, const Replace& with) const {
        const requeue_request r{.dead = dead, .successor = fresh_id(), .now = now()};
        auto [got, in_doubt] = detail::transact_in_doubt(store_, [&](auto& tx) { return with(tx, r); });
        got = in_doubt ? detail::resolved(got, r.successor) : got;
        if (!observers().empty()) {
            try {
                report_committed(std::span(&got, 1));
            } catch (const error&) { // NOLINT(bugprone-empty-catch): it is committed; only the event is lost
            }
        }
        return got;
    }

    Store& store_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/backoff.hpp
// How long to wait between attempts. The functions are pure: the same entry and attempt always give the same delay,
// jitter included, so a run can be replayed and a test can expect an exact time. No attempt number overflows.

namespace vouch {
inline namespace v0 {

/// `base` after the first attempt, then twice as long after each one, up to `max`.
struct exponential {
    duration base = std::chrono::seconds{30};
    duration max = std::chrono::hours{1};
    double jitter = 0; ///< 0 to 1: up to this share of the delay is taken off
};

/// The delays in order. After the last one the entry is not tried again; an empty list allows one attempt.
struct schedule {
    std::vector<duration> delays{};
    double jitter = 0; ///< as in `exponential`

    schedule() = default;
    schedule(std::initializer_list<duration> list, double with_jitter = 0) : delays(list), jitter(with_jitter) {}
    explicit schedule(std::vector<duration> list, double with_jitter = 0)
        : delays(std::move(list)), jitter(with_jitter) {}
};

/// The same delay after every attempt.
struct fixed {
    duration delay{};
    double jitter = 0; ///< as in `exponential`
};

/// Any of the three. A default one is a default `exponential`.
class backoff {
  public:
    backoff() = default;
    backoff(const exponential& e) : doubling_(e) {}                                             // NOLINT: implicit
    backoff(const fixed& f) : doubling_{.base = f.delay, .max = f.delay, .jitter = f.jitter} {} // NOLINT: implicit
    backoff(schedule s)
        : doubling_{.jitter = s.jitter}, delays_(std::move(s.delays)), listed_(true) {} // NOLINT: implicit

    /// The number of attempts that a schedule allows, which is one more than its delays; nothing if there is no end.
    [[nodiscard]] std::optional<std::uint32_t> attempts() const noexcept {
        return listed_ ? std::optional{static_cast<std::uint32_t>(delays_.size() + 1)} : std::nullopt;
    }

    friend std::optional<duration> delay_after(const backoff& how, const id& entry, std::uint32_t attempt);

  private:
    [[nodiscard]] duration doubled(std::uint32_t attempt) const noexcept {
        auto delay = std::min(doubling_.base, doubling_.max);
        for (std::uint32_t n = 1; n < attempt && delay < doubling_.max && delay > duration::zero(); ++n) {
            delay = delay > doubling_.max / 2 ? doubling_.max : delay * 2;
        }
        return delay;
    }

    /// Takes up to `jitter` of the delay off. How much depends on the entry and the attempt only.
    [[nodiscard]] duration jittered(duration delay, const id& entry, std::uint32_t attempt) const noexcept {
        const auto share = std::clamp(doubling_.jitter, 0.0, 1.0);
        if (!(share > 0) || delay <= duration::zero()) {
            return std::max(delay, duration::zero());
        }
        const auto bits = detail::mix(entry.high ^ detail::mix(entry.low ^ detail::mix(attempt)));
        const auto unit = static_cast<double>(bits >> 11) * 0x1.0p-53;
        const auto off = static_cast<double>(delay.count()) * share * unit;
        return delay - std::min(delay, duration{static_cast<duration::rep>(off)});
    }

    exponential doubling_{};
    std::vector<duration> delays_{};
    bool listed_ = false; ///< uses `delays_`, else `doubling_`
};

/// The delay after attempt number `attempt`, counted from 1; nothing if the entry is not to be tried again. Throws
/// `invalid_argument` if `attempt` is 0.
[[nodiscard]] inline std::optional<duration> delay_after(const backoff& how, const id& entry, std::uint32_t attempt) {
    if (attempt == 0) {
        throw error(error_kind::invalid_argument, "backoff: attempt is 0, attempts count from 1");
    }
    if (how.listed_ && attempt > how.delays_.size()) {
        return std::nullopt;
    }
    return how.jittered(how.listed_ ? how.delays_[attempt - 1] : how.doubled(attempt), entry, attempt);
}

} // namespace v0
} // namespace vouch

// ---- vouch/policy/retention.hpp
// How long terminal entries are kept. Retention is also the dedup window: when an entry is purged, its key is free
// again. The default is to keep everything.

namespace vouch {
inline namespace v0 {

/// When an entry is old enough to be purged. Its age counts from its end.
class purge_rule {
  public:
    [[nodiscard]] static constexpr purge_rule immediately() noexcept { return purge_rule{duration::zero()}; }
    [[nodiscard]] static constexpr purge_rule never() noexcept { return purge_rule{std::nullopt}; }
    [[nodiscard]] static constexpr purge_rule after(duration age) noexcept { return purge_rule{age}; }

    /// The `purge_request::before` of a purge at `now`; nothing if the rule is `never`.
    [[nodiscard]] constexpr std::optional<time_point> before(time_point now) const noexcept {
        if (!age_) {
            return std::nullopt;
        }
        // A purge keeps an entry that ended exactly at `before`; one tick more removes it when it reaches its age.
        return later(later(now, -*age_), duration{1});
    }

  private:
    constexpr explicit purge_rule(std::optional<duration> age) noexcept : age_(age) {}
    std::optional<duration> age_;
};

/// Rules for the two terminal states.
struct retention {
    purge_rule succeeded = purge_rule::never();
    purge_rule dead = purge_rule::never();
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/retry.hpp
// Whether a failed attempt is tried again, and when. The runner applies the policy; a store has none. The entry's own
// limit comes first, then the policy of its route, then that of the runner, then the defaults.

namespace vouch {
inline namespace v0 {

/// The number of attempts where neither the entry nor a policy sets one.
inline constexpr std::uint32_t default_attempts_max = 8;

/// When and how often to retry. A route takes the fields it leaves unset from its runner, a runner from the defaults.
struct retry_policy {
    std::optional<vouch::backoff> backoff{}; ///< default: exponential, from 30 s to 1 h
    std::uint32_t attempts_max = 0;          ///< default: what a schedule allows, else `default_attempts_max`

    // Presets by kind of work.

    /// For calls of other systems, over hours: 30 s, doubling up to 1 h, 8 attempts. These are the defaults.
    [[nodiscard]] static retry_policy external_call() {
        return {.backoff = exponential{.base = std::chrono::seconds{30}, .max = std::chrono::hours{1}},
                .attempts_max = default_attempts_max};
    }
    /// For listeners to events, over minutes: after 1, 10, 60 and 300 s, 5 attempts.
    [[nodiscard]] static retry_policy listener() {
        using std::chrono::seconds;
        return {.backoff = schedule{seconds{1}, seconds{10}, seconds{60}, seconds{300}}};
    }
    /// For deliveries to subscribers: `base`, doubling without a limit, `attempts_max` attempts.
    [[nodiscard]] static retry_policy webhook(duration base, std::uint32_t attempts_max) {
        return {.backoff = exponential{.base = base, .max = duration::max()}, .attempts_max = attempts_max};
    }
    /// For the compensations of a saga: 1 s, doubling up to 1 min, 6 attempts; then the saga is dead.
    [[nodiscard]] static retry_policy compensation() {
        return {.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                .attempts_max = 6};
    }
    /// One attempt. An entry that fails is dead at once.
    [[nodiscard]] static retry_policy none() { return {.backoff = schedule{}}; }
};

/// `own`, with the fields it leaves unset taken from `fallback`. If `own` has a schedule, that sets the number of
/// attempts.
[[nodiscard]] inline retry_policy with_fallback(retry_policy own, const retry_policy& fallback) {
    const bool is_counted = own.backoff && own.backoff->attempts();
    if (!own.backoff && fallback.backoff) {
        own.backoff.emplace(*fallback.backoff);
    }
    if (own.attempts_max == 0 && !is_counted) {
        own.attempts_max = fallback.attempts_max;
    }
    return own;
}

/// The delay after attempt number `attempt`, counted from 1; nothing if the entry is not to be tried again.
[[nodiscard]] inline std::optional<duration> delay_after(const retry_policy& policy, const id& entry,
                                                         std::uint32_t attempt) {
    return policy.backoff ? delay_after(*policy.backoff, entry, attempt) : delay_after(backoff{}, entry, attempt);
}

/// How many attempts this entry has before it is dead. A checkpoint sets its count back to 0.
[[nodiscard]] inline std::uint32_t attempts_max_of(const entry& e, const retry_policy& policy) noexcept {
    if (e.attempts_max != 0) {
        return e.attempts_max;
    }
    if (policy.attempts_max != 0) {
        return policy.attempts_max;
    }
    return policy.backoff ? policy.backoff->attempts().value_or(default_attempts_max) : default_attempts_max;
}

/// The outcome of a failed attempt of a claimed entry: a retry, or a bury if its attempts or its schedule are used up.
[[nodiscard]] inline outcome after_failure(const entry& e, std::string error, const retry_policy& policy,
                                           time_point now) {
    if (e.attempts >= attempts_max_of(e, policy)) {
        return bury{.error = std::move(error)};
    }
    const auto delay = delay_after(policy, e.id, e.attempts);
    if (!delay) {
        return bury{.error = std::move(error)};
    }
    return retry{.error = std::move(error), .at = later(now, *delay)};
}

} // namespace v0
} // namespace vouch

// ---- vouch/run/audit.hpp
// The audit trail: one line per terminal outcome and per completed group, appended inside the settling transaction. So
// an outcome and its line are committed together or not at all. Failed attempts that will be retried are not audited;
// the entry's `last_error` shows the last one.

namespace vouch {
inline namespace v0 {

struct audit_line {
    enum class kind : std::uint8_t { succeeded, dead, group_completed };
    audit_line::kind what{};
    time_point at{};
    vouch::id id{}; ///< the entry; for a group the entry that completed it
    std::string queue{};
    std::string topic{};
    std::string group{};
    std::string worker{};
    std::string error{}; ///< a code, never a message
    std::uint32_t attempts = 0;
};

[[nodiscard]] constexpr std::string_view name_of(audit_line::kind kind) noexcept {
    switch (kind) {
    case audit_line::kind::succeeded: return "succeeded";
    case audit_line::kind::dead: return "dead";
    case audit_line::kind::group_completed: return "group_completed";
    }
    return "?";
}

/// Appends a line through the settling transaction. If it throws, the outcome is not stored: the runner keeps it and
/// settles it again later. If the process dies before that, the entry is claimed again when its lease ends.
template <class Transaction>
using audit_sink = std::function<void(Transaction&, const audit_line&)>;

} // namespace v0
} // namespace vouch

// ---- vouch/run/batch_options.hpp
// How many entries a batch handler gets in one call, and how long a worker waits for them.

namespace vouch {
inline namespace v0 {

struct batch_options {
    /// The most entries in one call. A claim may hold fewer: its limit is the `batch_size` of the runner or the queue.
    std::size_t size_max = 100;
    /// How long a claimed entry may wait in a worker until `size_max` entries of its route are claimed, counted from the time
    /// it was due. If the worker does not extend leases, it waits for at most a third of the lease. A runner never waits.
    duration wait{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/failure.hpp
// The exceptions with which a handler reports failure, and what is stored of any exception: a code that the handler
// chose, or the name of the exception's class. Messages are never stored, because they may contain personal data.

#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
#include <typeinfo>
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
#include <cstdlib>

#include <cxxabi.h>
#endif
#endif
#endif

namespace vouch {
inline namespace v0 {

/// Throw this from a handler to fail the attempt with a code. The entry is retried by policy.
class failure : public std::exception {
  public:
    explicit failure(std::string code) : code_(std::move(code)) {}
    [[nodiscard]] const std::string& code() const noexcept { return code_; }
    [[nodiscard]] const char* what() const noexcept override { return code_.c_str(); }

  private:
    std::string code_;
};

/// Throw this from a handler to fail for good: the entry is dead and not retried. A saga whose command is rejected on its
/// first attempt knows that nothing was done.
class reject : public failure {
  public:
    explicit reject(std::string code = "rejected") : failure(std::move(code)) {}
};

/// Makes a text fit to be stored as an error code: within the limit and not cut inside a character. Control characters
/// and bytes that are not valid UTF-8 become `?`.
[[nodiscard]] inline std::string error_code(std::string_view text) {
    std::string code;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto beyond = detail::utf8_character_of(text.substr(i));
        const bool is_kept = beyond.length > 0 ? !beyond.is_control() : byte >= 0x20 && byte < 0x7f;
        const auto length = beyond.length > 0 ? beyond.length : 1;
        const auto part = is_kept ? text.substr(i, length) : std::string_view("?");
        if (code.size() + part.size() > limits{}.error_max) {
            break;
        }
        code += part;
        i += length;
    }
    return code;
}

/// The name of an exception's class, demangled if the platform can do that.
[[nodiscard]] inline std::string class_of([[maybe_unused]] const std::exception& e) {
#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
    const char* const raw = typeid(e).name();
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
    int status = 0;
    const struct freed { // std::unique_ptr with a deleter of its own takes longer to compile
        char* text;
        ~freed() { std::free(text); }
    } plain{abi::__cxa_demangle(raw, nullptr, nullptr, &status)};
    if (status == 0 && plain.text != nullptr) {
        return error_code(plain.text);
    }
#endif
#endif
    return error_code(raw);
#else
    return "exception";
#endif
}

} // namespace v0
} // namespace vouch

// ---- vouch/run/delivery.hpp
// The argument of a handler: the claimed entry, and a way to emit follow-ups. Follow-ups are enqueued in the transaction
// that settles the entry, so an outcome and its follow-ups are committed together or not at all.
//
// A delivery belongs to one call of one handler and is used by one thread.

namespace vouch {
inline namespace v0 {

class delivery {
  public:
    /// Entry and emitter must outlive the delivery.
    delivery(const vouch::entry& claimed, const emitter& from, time_point now, std::stop_token stop = {})
        : entry_(claimed), emitter_(from), now_(now), stop_(std::move(stop)) {}

    delivery(const delivery&) = delete; // an emission on a copy would be lost
    delivery& operator=(const delivery&) = delete;

    [[nodiscard]] const vouch::entry& entry() const noexcept { return entry_; }
    /// Use this as the idempotency key in other systems; for a saga's command use the header `saga-key`.
    [[nodiscard]] const vouch::id& id() const noexcept { return entry_.id; }
    [[nodiscard]] const std::string& queue() const noexcept { return entry_.queue; }
    [[nodiscard]] const std::string& topic() const noexcept { return entry_.topic; }
    [[nodiscard]] const std::string& payload() const noexcept { return entry_.payload; }
    [[nodiscard]] const id_list& trail() const noexcept { return entry_.trail; }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return entry_.attempts; } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return now_; }                   ///< when the handler was called
    [[nodiscard]] time_point time() const { return emitter_.now(); }                 ///< the present time

    /// A stop is requested when the worker stops or the claim is lost: return early if possible. Handlers are never
    /// killed.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (const auto& [key, value] : entry_.headers) {
            if (key == name) {
                return value;
            }
        }
        return std::nullopt;
    }

    /// The payload as a value. An entry whose bytes the codec rejects is dead, with the error `undecodable`.
    template <decodable T>
    [[nodiscard]] T as() const {
        try {
            return codec<T>::decode(entry_.payload);
        } catch (const failure&) {
            throw; // the codec chose its own code
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the bytes
        } catch (...) {
            throw reject("undecodable");
        }
    }

    /// Emits a follow-up if the outcome is succeed or advance. It continues this delivery's trail. Returns the
    /// emission's id. An entry whose follow-up is invalid is dead, with the error `invalid_emission` or `unrouted`.
    vouch::id emit(emission e) {
        emissions_.push_back({std::move(e), {.emission = emitter_.fresh_id(), .at = emitter_.now()}});
        return emissions_.back().stamp.emission;
    }

    /// A word about the outcome, for the event that reports it. It is not stored.
    void tag(std::string word) { tag_ = std::move(word); }
    [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

    /// The text of an exception that the handler has converted into an outcome itself. Only observers see it, and only
    /// with the option `exception_text`.
    void explain(std::string text) { text_ = std::move(text); }
    [[nodiscard]] const std::string& explanation() const noexcept { return text_; }

    /// The drafts of everything emitted so far.
    [[nodiscard]] std::vector<draft> emitted() const {
        std::vector<draft> out;
        for (const auto& e : emissions_) {
            emitter_.append_drafts(out, e.what, e.stamp, entry_.trail);
        }
        return out;
    }

  private:
    struct emitted_one {
        emission what{};
        emitter::stamp stamp{}; ///< its due time and its expiry count from the call of `emit`
    };

    const vouch::entry& entry_;
    const emitter& emitter_;
    time_point now_;
    std::stop_token stop_;
    std::vector<emitted_one> emissions_;
    std::string tag_;
    std::string text_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/delivery_batch.hpp
// The argument of a batch handler: one delivery for each claimed entry, in the order of the claim. Each delivery keeps
// its own follow-ups, tag and explanation.
//
//   router.on_batch("mail.#", [](vouch::delivery_batch& batch) {
//       std::vector<vouch::outcome> outcomes(batch.size()); // all succeed, unless this is changed
//       for (std::size_t i = 0; i < batch.size(); ++i) {
//           if (!accepts(batch[i].payload())) {
//               outcomes[i] = vouch::retry{"refused"}; // without a time: when the policy says
//           }
//       }
//       return outcomes;
//   });
//
// An exception is the outcome of every entry of the call. That includes the rejection by `delivery::as` of a payload that
// cannot be decoded: catch it, if it must not bury the other entries.
//
// A batch belongs to one call of one handler and is used by one thread.

namespace vouch {
inline namespace v0 {

class delivery_batch {
  public:
    class iterator {
      public:
        using value_type = delivery;
        using reference = delivery&;
        using pointer = delivery*;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;

        iterator() = default;
        [[nodiscard]] delivery& operator*() const noexcept { return **at_; }
        [[nodiscard]] delivery* operator->() const noexcept { return *at_; }
        iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        iterator operator++(int) noexcept {
            auto before = *this;
            ++at_;
            return before;
        }
        [[nodiscard]] friend bool operator==(const iterator&, const iterator&) = default;

      private:
        friend class delivery_batch;
        explicit iterator(delivery* const* at) noexcept : at_(at) {}
        delivery* const* at_ = nullptr;
    };

    /// A batch of `count` deliveries, which must outlive it, as must the array of pointers to them.
    delivery_batch(delivery* const* first, std::size_t count, std::stop_token stop) noexcept
        : first_(first), count_(count), stop_(std::move(stop)) {}

    delivery_batch(const delivery_batch&) = delete; // it ends with the call
    delivery_batch& operator=(const delivery_batch&) = delete;

    /// At least 1.
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// Requires `i < size()`.
    [[nodiscard]] delivery& operator[](std::size_t i) const noexcept { return *first_[i]; }
    [[nodiscard]] iterator begin() const noexcept { return iterator(first_); }
    [[nodiscard]] iterator end() const noexcept { return iterator(first_ + count_); }

    /// A stop is requested when the worker stops or every claim of the batch is lost. A single lost claim requests a
    /// stop of its own delivery only.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

  private:
    delivery* const* first_;
    std::size_t count_;
    std::stop_token stop_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/handler.hpp
// The forms a handler may have:
//
//   [](delivery&) { ... }                          succeeds when it returns; the parameter may be left out
//   [](delivery&) { return value; }                succeeds with a result: a string, or a value with a codec
//   [](delivery&) -> outcome { ... }               decides the outcome: succeed, retry, bury, release or advance
//   [](const user&, delivery&) { ... }             typed payload, with `on<user>(pattern, handler)`; the delivery may be
//                                                  left out
//   struct { R work(delivery&);                    any of the above as a member, called outside any transaction
//            void record(transaction&, const R&);  called in the settling transaction: short, no I/O but the store's
//            outcome ended(delivery&, ending); }   called instead of burying, when time or attempts have run out
//
// The forms of a batch handler, for `on_batch`; with `ended`, but without `record`:
//
//   [](delivery_batch&) { ... }                    every entry of the call succeeds when it returns
//   [](delivery_batch&) -> std::vector<outcome>    decides the outcome of each entry, in order; a `retry` without a time
//                                                  is due when the policy says, as after an exception
//   struct { R work(delivery_batch&);              either of the above as a member
//            outcome ended(delivery&, ending); }   called for one entry at a time
//
// An exception of a batch handler is the outcome of every entry of the call: `reject` buries them all, any other fails an
// attempt of each. If there are more or fewer outcomes than entries, each has failed with `wrong_outcome_count`.
//
// `record` and `ended` may be left out, overloaded or templates. A member of one of these names that cannot be called
// is a compile error. An expired entry is given to `ended` only, never to `work`. If `ended` buries without a code, the
// entry has the code of the failure that ended it. `record` is called again if its transaction was rolled back.

namespace vouch {
inline namespace v0 {

/// Why an entry is about to be buried although its handler did not reject it.
enum class ending : std::uint8_t {
    expired,   ///< its time is over
    exhausted, ///< its attempts are used up
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/report.hpp
// The result of a runner's pass, in numbers and line by line. The same store, clock, ids and handlers give the same
// report, byte for byte.

namespace vouch {
inline namespace v0 {

/// How one claim ended.
struct trace_line {
    vouch::id id{};
    std::string topic{};
    std::uint32_t attempt = 0;
    event_kind what{};
    std::string error{}; ///< a code, never a message

    [[nodiscard]] friend bool operator==(const trace_line&, const trace_line&) = default;
};

[[nodiscard]] inline std::string to_string(const trace_line& line) {
    auto out = to_string(line.id) + ' ' + line.topic + " attempt " + std::to_string(line.attempt) + ": ";
    out += name_of(line.what);
    if (!line.error.empty()) {
        out += " (" + line.error + ')';
    }
    return out;
}

struct report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another worker had taken over the claim
    std::size_t unsettled = 0; ///< outcomes that could not be stored; the entries stay claimed until their leases end
    std::size_t held_up = 0;   ///< outcomes kept because an audit sink or a group callback threw; settled again later
    std::vector<trace_line> trace{};

    report& operator+=(const report& other) {
        claimed += other.claimed;
        succeeded += other.succeeded;
        advanced += other.advanced;
        retried += other.retried;
        dead += other.dead;
        released += other.released;
        stale += other.stale;
        unsettled += other.unsettled;
        held_up += other.held_up;
        for (const auto& line : other.trace) {
            trace.push_back(line);
        }
        return *this;
    }

    [[nodiscard]] friend bool operator==(const report&, const report&) = default;
};

/// One line per entry.
[[nodiscard]] inline std::string to_string(const report& r) {
    std::string out;
    for (const auto& line : r.trace) {
        out += to_string(line) + '\n';
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/handler.hpp
// Brings every form of a handler to the one that a router keeps.

namespace vouch {
inline namespace v0 {

class delivery_batch;

namespace detail {

/// The outcome of a handler's work, and what to record with it in the settling transaction.
template <class Transaction>
struct work_result {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};
};

template <class Transaction>
struct handler {
    std::function<work_result<Transaction>(delivery&)> work;
    std::function<outcome(delivery&, ending)> ended; ///< empty: bury
    /// Decides instead of every burial, for handlers that owe an answer even for a dead entry; empty: bury.
    std::function<outcome(delivery&, const bury&)> buried;
    bool runs_sagas = false; ///< its entries have a saga's progress
    /// Set for batch handlers only; their `work` is a batch of one.
    std::function<std::vector<outcome>(delivery_batch&)> work_together;
    batch_options batch{};
};

template <class R>
concept returnable = std::constructible_from<outcome, R> || std::convertible_to<R, std::string_view> ||
    encodable<std::remove_cvref_t<R>>;

template <class R>
[[nodiscard]] outcome outcome_of(R&& returned) {
    if constexpr (std::constructible_from<outcome, R>) {
        return outcome(std::forward<R>(returned));
    } else if constexpr (std::convertible_to<R, std::string_view>) {
        return succeed{.result = std::string(std::string_view(returned))};
    } else if constexpr (encodable<std::remove_cvref_t<R>>) {
        return succeed{.result = encode(returned)};
    } else {
        return succeed{};
    }
}

/// Calls `f` with the arguments it takes: the payload (unless `T` is void) and the delivery.
template <class T, class F, class Body>
decltype(auto) call(F& f, const Body& body, delivery& d) {
    if constexpr (std::is_void_v<T>) {
        static_assert(
            std::invocable<F&, delivery&> || std::invocable<F&>,
            "vouch: a handler takes `delivery&` or nothing; with on<T>() it takes `const T&`, then `delivery&`");
        if constexpr (std::invocable<F&, delivery&>) {
            return f(d);
        } else {
            return f();
        }
    } else {
        static_assert(std::invocable<F&, const T&, delivery&> || std::invocable<F&, const T&>,
                      "vouch: a handler of on<T>() takes `const T&`, or `const T&` and then `delivery&`");
        if constexpr (std::invocable<F&, const T&, delivery&>) {
            return f(body, d);
        } else {
            return f(body);
        }
    }
}

struct no_body {};

/// The decoded payload. It outlives the call, because the handler's result may refer to it.
template <class T>
[[nodiscard]] auto body_of(const delivery& d) {
    if constexpr (std::is_void_v<T>) {
        return no_body{};
    } else {
        return d.as<T>();
    }
}

template <class Transaction, class T, class F>
[[nodiscard]] work_result<Transaction> run_work(F& f, delivery& d) {
    const auto body = body_of<T>(d);
    using returned = decltype(call<T>(f, body, d));
    if constexpr (std::is_void_v<returned>) {
        call<T>(f, body, d);
        return {.outcome = succeed{}};
    } else {
        static_assert(returnable<returned>,
                      "vouch: a handler returns nothing, an outcome, a string, or a value with a vouch::codec");
        return {.outcome = outcome_of(call<T>(f, body, d))};
    }
}

/// Keeps what `work` returns for `record`.
template <class Transaction, class T, class H, class F>
[[nodiscard]] work_result<Transaction> run_work_and_record(const std::shared_ptr<H>& h, F& work, delivery& d) {
    const auto body = body_of<T>(d);
    using returned = decltype(call<T>(work, body, d));
    if constexpr (std::is_void_v<returned>) {
        call<T>(work, body, d);
        static_assert(
            requires(Transaction & tx) { h->record(tx); },
            "vouch: the `record` of a `work` that returns nothing must be public and take `transaction&`");
        return {.outcome = succeed{}, .record = [h](Transaction& tx) { h->record(tx); }};
    } else {
        using kept = std::remove_cvref_t<returned>;
        const auto value = std::make_shared<const kept>(call<T>(work, body, d));
        if constexpr (requires(Transaction & tx) { h->record(tx, *value); }) {
            return {.outcome = outcome_of(*value), .record = [h, value](Transaction& tx) { h->record(tx, *value); }};
        } else {
            static_assert(
                requires(Transaction & tx) { h->record(tx); },
                "vouch: `record` must be public and take `transaction&`, "
                "optionally followed by the result of `work` as `const R&`");
            return {.outcome = outcome_of(*value), .record = [h](Transaction& tx) { h->record(tx); }};
        }
    }
}

// Whether a handler has a member of a given name, even if it is a template, overloaded or private: such a member makes
// the name ambiguous in a class that inherits it twice. (Final classes cannot be inherited from: there `&H::name` must
// find the member.)
struct names {
    int work;
    int record;
    int ended;
};
template <class H>
struct with_names : H, names {};
template <class H>
concept inheritable = std::is_class_v<H> && !std::is_final_v<H>;

template <class H>
concept has_work = (inheritable<H> && !requires { &with_names<H>::work; }) || requires {
    &H::work;
};
template <class H>
concept has_record = (inheritable<H> && !requires { &with_names<H>::record; }) || requires {
    &H::record;
};
template <class H>
concept has_ended = (inheritable<H> && !requires { &with_names<H>::ended; }) || requires {
    &H::ended;
};

template <class Transaction, class H>
void add_ended(handler<Transaction>& to, const std::shared_ptr<H>& h) {
    if constexpr (has_ended<H>) {
        static_assert(
            requires(delivery & d) {
                { h->ended(d, ending::expired) } -> std::convertible_to<outcome>;
            },
            "vouch: `ended` must be a public `outcome ended(delivery&, ending)`");
        to.ended = [h](delivery& d, ending why) -> outcome { return h->ended(d, why); };
    }
}

/// Brings any form of a handler to the one a router keeps. `T` is the payload's type, void for none.
template <class Transaction, class T = void, class H>
[[nodiscard]] handler<Transaction> make_handler(H&& given) {
    using type = std::decay_t<H>;
    auto h = std::make_shared<type>(std::forward<H>(given));
    handler<Transaction> out;
    if constexpr (has_work<type>) {
        auto work = [h](auto&&... args) -> decltype(h->work(std::forward<decltype(args)>(args)...)) {
            return h->work(std::forward<decltype(args)>(args)...);
        };
        if constexpr (has_record<type>) {
            out.work = [h, work](delivery& d) { return run_work_and_record<Transaction, T>(h, work, d); };
        } else {
            out.work = [work](delivery& d) { return run_work<Transaction, T>(work, d); };
        }
    } else {
        static_assert(!has_record<type>, "vouch: a handler with `record` must have `work` too");
        out.work = [h](delivery& d) { return run_work<Transaction, T>(*h, d); };
    }
    add_ended(out, h);
    if constexpr (requires { type::answers_burials; }) {
        out.buried = [h](delivery& d, const bury& dead) -> outcome { return h->buried(d, dead); };
    }
    if constexpr (requires { type::runs_sagas; }) {
        out.runs_sagas = type::runs_sagas;
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/batch_handler.hpp
// Brings every form of a batch handler to the one that a router keeps. A single entry of a batch route is a batch of one.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The error of entries whose handler returned more or fewer outcomes than it got entries.
inline constexpr std::string_view wrong_outcome_count = "wrong_outcome_count";

/// The retry of a batch handler that leaves its time to the policy, as an exception of a single handler does.
[[nodiscard]] inline const retry* retry_by_policy(const outcome& o) noexcept {
    const auto* const again = std::get_if<retry>(&o);
    return again != nullptr && again->at == time_point{} ? again : nullptr;
}

/// Throws `invalid_argument` for options that no batch can have. `wait_max` is the store's longest lease.
inline void check_batch_options(const batch_options& how, duration wait_max) {
    if (how.size_max == 0) {
        refuse({"on_batch", "size_max"}, "is 0; it must be at least 1");
    }
    if (how.wait < duration::zero() || how.wait > wait_max) {
        refuse({"on_batch", "wait"}, "is " + std::to_string(how.wait.count()) + " us; it must be between 0 and " +
                                         std::to_string(wait_max.count()) + " us, the longest lease");
    }
}

template <class F>
[[nodiscard]] std::vector<outcome> run_batch(F& f, delivery_batch& all) {
    static_assert(std::invocable<F&, delivery_batch&>, "vouch: a batch handler takes `delivery_batch&`");
    using returned = decltype(f(all));
    if constexpr (std::is_void_v<returned>) {
        f(all);
        return std::vector<outcome>(all.size());
    } else {
        static_assert(std::convertible_to<returned, std::vector<outcome>>,
                      "vouch: a batch handler returns nothing or a `std::vector<vouch::outcome>`");
        return f(all);
    }
}

/// Calls `work` for one entry. What differs from a single handler becomes an exception, as a single handler throws it.
template <class Work>
[[nodiscard]] outcome run_batch_of_one(Work& work, delivery& d) {
    delivery* const only = &d;
    delivery_batch one(&only, 1, d.stop());
    const id_list no_trail;
    const trail_scope scope(no_trail);
    auto outcomes = work(one);
    if (outcomes.size() != 1) {
        throw failure(std::string(wrong_outcome_count));
    }
    if (const auto* const again = retry_by_policy(outcomes.front())) {
        throw failure(again->error);
    }
    return std::move(outcomes.front());
}

template <class Transaction, class H>
[[nodiscard]] handler<Transaction> make_batch_handler(H&& given, const batch_options& how) {
    using type = std::decay_t<H>;
    static_assert(!has_record<type>,
                  "vouch: a batch handler has no `record`; register a handler with `record` by on()");
    auto h = std::make_shared<type>(std::forward<H>(given));
    const auto work = [h](delivery_batch& all) {
        if constexpr (has_work<type>) {
            auto member = [&](delivery_batch& of) -> decltype(h->work(of)) { return h->work(of); };
            return run_batch(member, all);
        } else {
            return run_batch(*h, all);
        }
    };
    handler<Transaction> out;
    out.batch = how;
    out.work_together = work;
    out.work = [work](delivery& d) -> work_result<Transaction> { return {.outcome = run_batch_of_one(work, d)}; };
    add_ended(out, h);
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/router.hpp
// Which handler runs an entry, by its topic, within one queue. The most specific pattern that fits wins: fewest `#`,
// then fewest `*`, then most literal words. Of equally specific patterns the one registered first wins.
//
//   vouch::router router(outbox);
//   router.on("user.created", greet, {.backoff = vouch::fixed{1s}});
//   router.on(order_saga);
//   router.on_batch("mail.#", send_together, {.size_max = 100});
//
// Register all routes before the first use. After that any number of threads may read the router.

namespace vouch {
inline namespace v0 {

namespace detail {

template <class Store>
class dispatcher;
template <class Store>
class phases;

} // namespace detail

template <class Store>
class router {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    /// The outbox, which gives the router its type, must outlive it. Sagas use the outbox's store. A runner may share a
    /// router with another outbox only if both are bound to the same stored work.
    explicit router(const vouch::outbox<Store>& from) noexcept : outbox_(&from) {}
    explicit router(const vouch::outbox<Store>&&) = delete; // the router would outlive its outbox

    /// Gives entries whose topic fits `pattern` to `handler`, which has one of the forms in `handler.hpp`. The runner's
    /// policy decides what `retry` leaves unset.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        return add(std::move(pattern), detail::make_handler<transaction>(std::forward<Handler>(handler)),
                   std::move(retry));
    }

    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        static_assert(decodable<T>, "vouch: specialise vouch::codec for the payload's type");
        return add(std::move(pattern), detail::make_handler<transaction, T>(std::forward<Handler>(handler)),
                   std::move(retry));
    }

    /// Gives entries whose topic fits `pattern` to `handler` in batches; `handler.hpp` lists its forms. Throws
    /// `invalid_argument` if `how.size_max` is 0 or `how.wait` is negative or longer than the store's longest lease.
    template <class Handler>
    router& on_batch(std::string pattern, Handler&& handler, batch_options how = {}, retry_policy retry = {}) {
        detail::check_batch_options(how, outbox_->store().capabilities().limits.lease_max);
        add(std::move(pattern), detail::make_batch_handler<transaction>(std::forward<Handler>(handler), how),
            std::move(retry));
        largest_batch_ = std::max(largest_batch_, how.size_max);
        return *this;
    }

    /// Adds something that brings its own topic and policy: a saga definition, several versions of one as a
    /// `std::vector`, or a `webhook`.
    template <class Routable>
        requires requires(router& self, Routable&& what) { add_route(self, std::forward<Routable>(what)); }
    router& on(Routable&& what) {
        add_route(*this, std::forward<Routable>(what));
        return *this;
    }

    /// Whether there is a route with exactly this pattern.
    [[nodiscard]] bool has_route(std::string_view pattern) const noexcept {
        return std::any_of(routes_.begin(), routes_.end(), [&](const route& r) { return r.pattern.text() == pattern; });
    }

    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return *outbox_; }

  private:
    friend class detail::dispatcher<Store>;
    friend class detail::phases<Store>;

    struct route {
        topic_pattern pattern;
        detail::handler<transaction> handler;
        retry_policy retry; ///< what it leaves unset is the runner's to decide
    };

    [[nodiscard]] const route* find(std::string_view topic) const noexcept {
        for (const auto& r : routes_) {
            if (r.pattern.matches(topic)) {
                return &r;
            }
        }
        return nullptr;
    }

    router& add(std::string pattern, detail::handler<transaction> handler, retry_policy retry) {
        route added{topic_pattern(std::move(pattern)), std::move(handler), std::move(retry)};
        const auto before = std::upper_bound(routes_.begin(), routes_.end(), added, [](const route& a, const route& b) {
            return a.pattern.specificity() < b.pattern.specificity();
        });
        routes_.insert(before, std::move(added));
        return *this;
    }

    const vouch::outbox<Store>* outbox_;
    std::vector<route> routes_;     // most specific first, equals as registered
    std::size_t largest_batch_ = 1; // entries
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/isolation.hpp
// Entries that may kill the process that handles them are handled alone.
//
// A claim that ends with its lease, without an outcome, usually belonged to a process that has died. Any of the entries
// it held may be the cause. So an entry with a lapse (`entry::lapses`) is handled while its process holds no other
// claim: if the process dies again, no other entry is affected. A claim finds such entries like any others, and hands
// them back in the same transaction if they cannot be handled alone at once.

namespace vouch {
inline namespace v0 {
namespace detail {

[[nodiscard]] inline bool has_lapsed(const entry& e) noexcept { return e.lapses > 0; }

/// How much to claim, and what to do with entries that have a lapse.
struct claim_plan {
    enum class lapsed : std::uint8_t {
        alone,       ///< the caller holds no other claim: keep the first such entry, and nothing with it
        handed_back, ///< the caller holds other claims, or may get some
    };
    std::size_t limit = 0;
    claim_plan::lapsed rule = lapsed::alone;
    std::optional<time_point> until{}; ///< handed back: not due before this time
};

struct claims {
    std::vector<entry> entries{};
    bool hands_back = false; ///< entries with a lapse were found and handed back
};

/// Splits off the entries that are not to be kept. If those with a lapse are handed back, all others are kept. If each of
/// them runs alone, the entries before the first one are kept, or that one if there are none. The order is kept, so no entry
/// with a lapse waits for ever behind others.
[[nodiscard]] inline std::vector<entry> split_lapsed(std::vector<entry>& claimed, claim_plan::lapsed rule) {
    const auto first = std::find_if(claimed.begin(), claimed.end(), has_lapsed);
    if (first == claimed.end()) {
        return {};
    }
    const auto before = static_cast<std::size_t>(first - claimed.begin());
    const auto kept_alone = before == 0 ? 1 : before;
    std::vector<entry> kept;
    std::vector<entry> rest;
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        const bool is_kept = rule == claim_plan::lapsed::handed_back ? !has_lapsed(claimed[i]) : i < kept_alone;
        (is_kept ? kept : rest).push_back(std::move(claimed[i]));
    }
    claimed = std::move(kept);
    return rest;
}

/// Claims, and in the same transaction hands back the entries that must not be held together with the rest.
template <class Writer>
[[nodiscard]] claims claim_apart(Writer& tx, const claim_request& request, const claim_plan& plan) {
    claims out{.entries = tx.claim(request)};
    const auto rest = split_lapsed(out.entries, plan.rule);
    if (rest.empty()) {
        return out;
    }
    std::vector<settle> releases(rest.size());
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const auto& e = rest[i];
        out.hands_back = out.hands_back || has_lapsed(e);
        releases[i].ticket = ticket_of(e);
        releases[i].outcome = release{.at = has_lapsed(e) ? plan.until : std::nullopt};
    }
    for (const auto& s : tx.settle(releases, request.now)) {
        if (s.verdict != verdict::applied) {
            throw error(error_kind::corrupt, "runner: the store refuses a ticket that it has just issued");
        }
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/caught_exception.hpp
// What is kept of an exception: its code, and whether another attempt makes sense. Its text is only for observers that
// asked for it; it is never stored, because messages carry other people's data.

namespace vouch {
inline namespace v0 {
namespace detail {

struct caught_exception {
    std::string code;
    bool is_permanent = false;
    std::string text{};

    static constexpr std::size_t text_max = 1000;

    [[nodiscard]] static std::string text_of(const std::exception& e) {
        const char* const text = e.what();
        return text == nullptr ? std::string{} : std::string(std::string_view(text).substr(0, text_max));
    }

    /// Call this inside a catch clause.
    [[nodiscard]] static caught_exception current() {
        try {
            throw;
        } catch (const reject& e) {
            return {error_code(e.code()), true};
        } catch (const failure& e) {
            return {error_code(e.code())};
        } catch (const error& e) {
            return {std::string(name_of(e.kind())), false, text_of(e)};
        } catch (const std::exception& e) {
            return {class_of(e), false, text_of(e)};
        } catch (...) {
            return {"unknown_exception"};
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/completion.hpp
// A claim whose handler has finished: the entry, its outcome, and everything that has to be committed with it. It is
// kept until the store has accepted or refused the outcome, so no handler runs twice because a settle failed.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The store's final answer to an outcome.
struct settle_result {
    enum class kind : std::uint8_t {
        applied,
        stale,     ///< another worker had taken over the claim
        unsettled, ///< the store refuses the outcome; the entry stays claimed until its lease ends
    };
    settle_result::kind what = kind::applied;
    bool group_completed = false;
    std::string error{};      ///< unsettled: the code of what was thrown
    bool is_reported = false; ///< to the observers
};

template <class Store>
struct completion {
    vouch::entry entry{};
    vouch::outcome outcome{};
    std::vector<draft> emissions{};
    std::string tag{};  ///< the handler's word about the outcome
    death reason{};     ///< set if the outcome is `bury`
    std::string text{}; ///< of the exception behind the outcome, for observers that asked for it; never stored
    std::function<void(typename Store::transaction&)> record{};
    std::optional<duration> took{}; ///< from the handler's call to its end; unset if the handler was not called

    // State of the settle, so that a batch can be settled again after a fault of the store or of a hook.
    std::optional<settle_result> result{};            ///< unset: not settled yet
    std::string held_up{};                            ///< the code of what an audit sink or a group callback threw
    std::string held_up_text{};                       ///< its text, for observers that asked for it
    bool is_untried = false;                          ///< held up because hooks of other entries kept failing
    std::optional<caught_exception> record_failure{}; ///< `record` threw, and no outcome follows from that yet
    bool is_reported = false;                         ///< to the observers: that it is held up
    std::vector<receipt> receipts{};                  ///< of the emissions, from the last try
    bool completes_group = false;                     ///< according to the last try
    bool in_doubt = false;                            ///< an earlier commit may have succeeded
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/unhandled.hpp
// What a runner does with an entry whose topic fits none of its routes.

namespace vouch {
inline namespace v0 {

enum class unhandled : std::uint8_t {
    bury,       ///< the entry is dead at once, with the error `no_handler`; an operator sees it and requeues it
    look_again, ///< the entry is handed back and due again after `look_again_in`: for workers deployed after producers
};

/// How long an entry waits that this runner has no handler for, but another runner may have.
inline constexpr duration look_again_in = std::chrono::minutes{1};

} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/dispatcher.hpp
// Turns a claimed entry into an outcome that the store will accept: finds the handler, calls it, converts whatever
// happens, and validates the result. Every mistake a handler can make is converted here and nowhere else.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Replaces an outcome that exceeds the store's limits by one that the store accepts.
inline void make_valid(outcome& o, const limits& limit) {
    const auto too_large = [&](const std::string& result) { return result.size() > limit.result_max; };
    if (const auto* const done = std::get_if<succeed>(&o)) {
        if (too_large(done->result)) {
            o = bury{.error = "result_too_large"};
        }
    } else if (auto* const again = std::get_if<retry>(&o)) {
        again->error = error_code(again->error);
    } else if (auto* const dead = std::get_if<bury>(&o)) {
        if (dead->result && too_large(*dead->result)) {
            o = bury{.error = "result_too_large"};
        } else {
            dead->error = error_code(dead->error);
        }
    } else if (const auto* const further = std::get_if<advance>(&o)) {
        if (further->progress.size() > limit.progress_max) {
            o = bury{.error = "progress_too_large"};
        }
    }
}

[[nodiscard]] inline bool continues(const outcome& o) noexcept {
    return std::holds_alternative<succeed>(o) || std::holds_alternative<advance>(o);
}

struct dispatch_options {
    retry_policy retry{}; ///< for routes and entries that have none of their own
    vouch::unhandled unhandled = unhandled::bury;
};

template <class Store>
class batch_dispatcher;

template <class Store>
class dispatcher {
  public:
    /// All arguments must outlive the dispatcher.
    dispatcher(const router<Store>& routes, const emitter& from, const dispatch_options& options,
               const capabilities& can)
        : router_(routes), emitter_(from), options_(options), can_(can) {}

    /// Calls the handler and returns its outcome. `started` is called right before the handler.
    template <class Started>
    [[nodiscard]] completion<Store> operator()(entry claimed, std::stop_token stop, Started&& started) const {
        completion<Store> h{.entry = std::move(claimed)};
        const auto* const route = route_of(h.entry);
        if (route == nullptr || !fits(*route, h.entry)) {
            leave(h);
            return h;
        }
        delivery d(h.entry, emitter_, emitter_.now(), stop);
        auto spent = spent_before(h.entry, *route, d.now());
        if (!spent) {
            started(h.entry);
            spent = work(h, *route, d);
        }
        if (spent) {
            keep_text(h, d);
            end(h, *route, *spent, std::move(stop));
        } else {
            finish(h, *route, d);
        }
        return h;
    }

    /// Converts a failed `record` into a failed attempt.
    void fail_recording(completion<Store>& h, const caught_exception& why) const {
        h.record_failure.reset();
        h.emissions.clear();
        h.receipts.clear();
        h.tag.clear();
        h.record = nullptr;
        const auto* const route = route_of(h.entry);
        if (const auto spent = fail(h, *route, why)) {
            end(h, *route, *spent, {});
        } else {
            answer_burial(h, *route);
        }
    }

    /// The batch of the entry's route, which is the same object for all entries of the route. Null if the entry is
    /// handled by itself: its route is no batch route, or it has a lapse and may kill the process that handles it.
    [[nodiscard]] const batch_options* batch_of(const entry& e) const noexcept {
        if (router_.largest_batch_ == 1 || has_lapsed(e)) {
            return nullptr;
        }
        const auto* const route = route_of(e);
        return route != nullptr && route->handler.work_together && fits(*route, e) ? &route->handler.batch : nullptr;
    }

  private:
    friend class batch_dispatcher<Store>;

    using delivery_type = delivery; ///< a name that depends on the store, for the same reason as `claimed_entry`
    using route_type = typename router<Store>::route;

    [[nodiscard]] const route_type* route_of(const entry& e) const noexcept { return router_.find(e.topic); }

    /// Why an entry has no attempt left, and the error it is buried with.
    struct spending {
        ending why;
        std::string code;
    };

    /// Only a saga handler may run a saga that has begun: any other would end it with its steps not undone.
    [[nodiscard]] static bool fits(const route_type& route, const entry& e) noexcept {
        return route.handler.runs_sagas || !is_saga_progress(e.progress);
    }

    /// No route of this router can handle the entry.
    void leave(completion<Store>& h) const {
        const bool is_saga = is_saga_progress(h.entry.progress);
        const auto now = emitter_.now();
        if (!is_saga && h.entry.expires_at && *h.entry.expires_at <= now) {
            h.outcome = bury{.error = "expired"};
            h.reason = death::expired;
            return;
        }
        if (!is_saga && options_.unhandled == unhandled::bury) {
            h.outcome = bury{.error = "no_handler"};
            h.reason = death::no_handler;
            return;
        }
        h.outcome = release{.at = later(now, look_again_in)};
        h.tag = is_saga ? "no_saga_handler" : "no_handler";
    }

    /// The route's policy, completed by the runner's.
    [[nodiscard]] retry_policy policy_of(const route_type& route) const {
        return with_fallback(route.retry, options_.retry);
    }

    [[nodiscard]] std::uint32_t attempts_max(const entry& e, const route_type& route) const {
        return e.attempts_max != 0 ? e.attempts_max : attempts_max_of(e, policy_of(route));
    }

    [[nodiscard]] std::optional<spending> spent_before(const entry& e, const route_type& route, time_point now) const {
        if (e.expires_at && *e.expires_at <= now) {
            return spending{ending::expired, "expired"};
        }
        if (e.attempts > attempts_max(e, route)) {
            return spending{ending::exhausted, "attempts_exhausted"};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<spending> work(completion<Store>& h, const route_type& route, delivery& d) const {
        const trail_scope scope(d.trail()); // for what the handler emits through an outbox
        try {
            auto worked = route.handler.work(d);
            h.outcome = std::move(worked.outcome);
            h.record = std::move(worked.record);
        } catch (...) {
            return fail(h, route, caught_exception::current());
        }
        return spent_after(h, route);
    }

    /// The delay before the next attempt counts from here.
    [[nodiscard]] std::optional<spending> fail(completion<Store>& h, const route_type& route,
                                               const caught_exception& why) const {
        h.text = why.text;
        if (why.is_permanent) {
            h.reason = death::rejected;
            // An entry with a parent is a saga's command. The (empty) result tells the saga that it was rejected.
            h.outcome = bury{.error = why.code, .result = reply_of_rejecting(h.entry)};
            return std::nullopt;
        }
        h.outcome = after_failure(h.entry, why.code, policy_of(route), emitter_.now());
        if (std::holds_alternative<bury>(h.outcome)) {
            return spending{ending::exhausted, why.code};
        }
        return spent_after(h, route);
    }

    [[nodiscard]] static std::optional<std::string> reply_of_rejecting(const entry& e) {
        return e.parent.is_nil() ? std::nullopt : std::optional<std::string>(std::in_place);
    }

    /// A retry beyond the attempts or the expiry would never run.
    [[nodiscard]] std::optional<spending> spent_after(const completion<Store>& h, const route_type& route) const {
        const auto* const again = std::get_if<retry>(&h.outcome);
        if (again == nullptr) {
            return std::nullopt;
        }
        if (h.entry.attempts >= attempts_max(h.entry, route)) {
            return spending{ending::exhausted, again->error};
        }
        if (h.entry.expires_at && again->at >= *h.entry.expires_at) {
            return spending{ending::expired, "expired"};
        }
        return std::nullopt;
    }

    /// Buries the entry, unless the handler has an `ended`, which decides. `ended` gets a delivery of its own, so nothing
    /// of the failed attempt remains. If it buries without a code, the entry has the code of the failure that ended it.
    /// Beyond twice attempts_max no `ended` is called.
    void end(completion<Store>& h, const route_type& route, const spending& spent, std::stop_token stop) const {
        h.record = nullptr;
        h.reason = spent.why == ending::expired ? death::expired : death::exhausted;
        const std::uint64_t most = attempts_max(h.entry, route);
        const std::uint64_t claims = h.entry.attempts;
        if (!route.handler.ended || claims > 2 * most) {
            h.outcome = bury{.error = error_code(spent.code)};
            answer_burial(h, route);
            return;
        }
        delivery d(h.entry, emitter_, emitter_.now(), std::move(stop));
        const trail_scope scope(d.trail());
        try {
            h.outcome = route.handler.ended(d, spent.why);
            if (auto* const dead = std::get_if<bury>(&h.outcome); dead != nullptr && dead->error.empty()) {
                dead->error = spent.code;
            }
        } catch (...) {
            const auto error = caught_exception::current();
            h.text = error.text;
            h.reason = error.is_permanent ? death::rejected : death::exhausted;
            const auto again = claims < most ? claims : claims - most + 1; // `ended` has delays of its own
            const auto delay = delay_after(policy_of(route), h.entry.id, static_cast<std::uint32_t>(again));
            if (error.is_permanent || claims == 2 * most || !delay) {
                h.outcome = bury{.error = error.code};
            } else {
                h.outcome = retry{.error = error.code, .at = later(emitter_.now(), *delay)};
            }
        }
        finish(h, route, d);
    }

    /// An explanation of the handler's tells more than the text of the exception that it leads to.
    static void keep_text(completion<Store>& h, const delivery& d) {
        h.text = d.explanation().empty() ? std::move(h.text) : d.explanation();
    }

    void finish(completion<Store>& h, const route_type& route, const delivery& d) const {
        make_acceptable(h, d);
        answer_burial(h, route);
    }

    /// Lets a handler that owes an answer give it instead of the burial, with a delivery of its own, so nothing of the
    /// failed attempt remains. An answer that the store would refuse leaves the burial as it is. If the handler throws,
    /// the entry is handled again later.
    void answer_burial(completion<Store>& h, const route_type& route) const {
        const auto* const dead = std::get_if<bury>(&h.outcome);
        if (dead == nullptr || !route.handler.buried) {
            return;
        }
        const auto burial = *dead;
        const auto reason = h.reason;
        delivery d(h.entry, emitter_, emitter_.now());
        try {
            h.outcome = route.handler.buried(d, burial);
        } catch (...) {
            h.outcome = release{.at = later(emitter_.now(), look_again_in)};
            h.tag = "unanswered";
            return;
        }
        make_acceptable(h, d);
        if (std::holds_alternative<bury>(h.outcome)) {
            h.outcome = burial;
            h.reason = reason;
        }
    }

    /// Emissions and records belong to succeed and advance only. Replaces whatever the store would refuse.
    void make_acceptable(completion<Store>& h, const delivery& d) const {
        const auto meant = h.outcome.index();
        make_valid(h.outcome, can_.limits);
        keep_text(h, d);
        const bool is_as_meant = h.outcome.index() == meant;
        h.tag = is_as_meant ? d.tag() : std::string{};
        h.reason = !is_as_meant ? death::invalid : h.reason == death::none ? death::buried : h.reason;
        if (continues(h.outcome)) {
            try {
                h.emissions = d.emitted();
                validate(h.emissions, can_);
                return;
            } catch (const error& e) {
                h.tag.clear();
                h.reason = death::invalid;
                h.outcome = bury{.error = e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission"};
            }
        }
        h.emissions.clear();
        h.record = nullptr;
    }

    const router<Store>& router_;
    const emitter& emitter_;
    const dispatch_options& options_;
    const capabilities& can_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/batch_dispatcher.hpp
// Calls a batch handler once for several claimed entries and turns the call into one outcome per entry, by the rules of
// the dispatcher. Entries that are expired or exhausted do not reach the handler. The order of one call is: `started` of
// each entry, the handler, then the end of each entry, `ended` included; each in the order of the entries.

namespace vouch {
inline namespace v0 {
namespace detail {

/// An entry of a batch, with the stop that is requested when its claim is lost. A template, because a header that names a
/// vector of it would otherwise instantiate that vector in every program.
template <class Store>
struct claimed_entry {
    vouch::entry entry{};
    std::stop_token stop{};
};

template <class Store>
class batch_dispatcher {
  public:
    /// `rules` must outlive this.
    explicit batch_dispatcher(const dispatcher<Store>& rules) : rules_(rules) {}

    /// All entries have the same batch route, and there is at least one. `started` is called with the completion of each
    /// entry that reaches the handler, right before the handler.
    template <class Started>
    [[nodiscard]] std::vector<completion<Store>> operator()(std::vector<claimed_entry<Store>> claimed,
                                                            const std::stop_token& stop, Started&& started) const {
        const auto& route = *rules_.route_of(claimed.front().entry);
        const auto now = rules_.emitter_.now();
        std::vector<completion<Store>> done(claimed.size()); // never resized: deliveries refer to its entries
        std::vector<part> parts(claimed.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            done[i].entry = std::move(claimed[i].entry);
            parts[i].with = std::make_unique<delivery_type>(done[i].entry, rules_.emitter_, now, claimed[i].stop);
            parts[i].spent = rules_.spent_before(done[i].entry, route, now);
            parts[i].is_called = !parts[i].spent;
        }
        work(done, parts, route, stop, started);
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            if (parts[i].spent) {
                rules_.keep_text(done[i], *parts[i].with);
                rules_.end(done[i], route, *parts[i].spent, std::move(claimed[i].stop));
            } else {
                rules_.finish(done[i], route, *parts[i].with);
            }
        }
        return done;
    }

  private:
    using delivery_type = typename dispatcher<Store>::delivery_type;
    using route_type = typename dispatcher<Store>::route_type;
    using spending = typename dispatcher<Store>::spending;

    struct part {
        std::unique_ptr<delivery_type> with{};
        std::optional<spending> spent{};
        bool is_called = false;
    };

    /// Calls the handler, and sets the outcome of each entry that reaches it.
    template <class Started>
    void work(std::vector<completion<Store>>& done, std::vector<part>& parts, const route_type& route,
              const std::stop_token& stop, Started&& started) const {
        std::vector<delivery_type*> called;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].is_called) {
                called.push_back(parts[i].with.get());
                started(done[i]);
            }
        }
        if (called.empty()) {
            return;
        }
        std::vector<outcome> outcomes;
        const auto failed = call(outcomes, called, route, stop);
        std::size_t next = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].is_called) {
                parts[i].spent =
                    failed ? rules_.fail(done[i], route, *failed) : take(done[i], route, std::move(outcomes[next++]));
            }
        }
    }

    /// Returns how the whole call has failed, if it has.
    [[nodiscard]] static std::optional<caught_exception> call(std::vector<outcome>& outcomes,
                                                              const std::vector<delivery_type*>& called,
                                                              const route_type& route, const std::stop_token& stop) {
        delivery_batch all(called.data(), called.size(), stop);
        const id_list no_trail;
        const trail_scope scope(no_trail); // what the handler emits through an outbox continues no entry's trail
        try {
            outcomes = route.handler.work_together(all);
        } catch (...) {
            return caught_exception::current();
        }
        if (outcomes.size() == called.size()) {
            return std::nullopt;
        }
        return caught_exception{.code = std::string(wrong_outcome_count),
                                .text = std::to_string(outcomes.size()) + " outcomes for " +
                                        std::to_string(called.size()) + " entries"};
    }

    [[nodiscard]] std::optional<spending> take(completion<Store>& h, const route_type& route, outcome o) const {
        if (const auto* const again = retry_by_policy(o)) {
            return rules_.fail(h, route, {.code = error_code(again->error)});
        }
        h.outcome = std::move(o);
        return rules_.spent_after(h, route);
    }

    const dispatcher<Store>& rules_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/batch_plan.hpp
// Which of several claimed entries share a call of their handler, and in which order the calls are made.

namespace vouch {
inline namespace v0 {
namespace detail {

inline constexpr auto no_entry = static_cast<std::size_t>(-1);

/// An entry's place in the plan: the entries of one call are linked from the first to the last. A template for the same
/// reason as `claimed_entry`.
template <class Entries>
struct planned_entry {
    std::size_t size = 0; ///< the entries of the call that starts here; 0: the entry belongs to an earlier call
    std::size_t next = no_entry;
};

/// The calls for these entries. `batch_of` returns the same object for all entries that may share a call, and null for
/// an entry that is handled by itself. A call is full with `size_max` entries; the next entry starts another one.
template <class Entries, class BatchOf>
[[nodiscard]] std::vector<planned_entry<Entries>> plan_calls(const Entries& entries, const BatchOf& batch_of) {
    struct open_call {
        const batch_options* batch;
        std::size_t first;
        std::size_t last;
    };
    std::vector<planned_entry<Entries>> out(entries.size());
    std::vector<open_call> open; // one per batch
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const batch_options* const batch = batch_of(entries[i]);
        auto at = open.begin();
        while (at != open.end() && at->batch != batch) {
            ++at;
        }
        if (batch != nullptr && at != open.end() && out[at->first].size < batch->size_max) {
            out[at->first].size += 1;
            out[at->last].next = i;
            at->last = i;
            continue;
        }
        out[i].size = 1;
        if (batch != nullptr && at != open.end()) {
            *at = {batch, i, i};
        } else if (batch != nullptr) {
            open.push_back({batch, i, i});
        }
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/history.hpp
// The history of attempts: one line per settled outcome, retries and releases included, appended inside the settling
// transaction. So an outcome and its line are committed together or not at all. Without a sink it costs nothing.

namespace vouch {
inline namespace v0 {

/// Appends a line through the settling transaction. If it throws, the outcome is kept and settled again later, as with an
/// `audit_sink`.
template <class Transaction>
using history_sink = std::function<void(Transaction&, const attempt_line&)>;

/// The line of an outcome for a claimed entry.
[[nodiscard]] inline attempt_line attempt_line_of(const entry& claimed, const outcome& result, time_point now) {
    using kind = attempt_line::kind;
    constexpr kind kinds[]{kind::succeeded, kind::retrying, kind::dead, kind::released, kind::advanced};
    attempt_line out{.id = claimed.id,
                     .epoch = claimed.epoch,
                     .what = kinds[result.index()],
                     .at = now,
                     .claimed_at = claimed.last_attempt_at.value_or(now),
                     .attempt = claimed.attempts,
                     .worker = claimed.worker};
    if (const auto* const failed = std::get_if<retry>(&result)) {
        out.error = failed->error;
    } else if (const auto* const dead = std::get_if<bury>(&result)) {
        out.error = dead->error;
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/batch_settler.hpp
// Settles a batch of completions in one transaction, in a fixed order: records, emissions, history and
// audit, settles, group callbacks, the next claim, commit. Every verdict must be `applied`. If one is not, or anything throws, the transaction
// is rolled back, the entry at fault is set apart, and the others are settled together again. No handler is called
// again. A `record` is called again exactly if its transaction was rolled back.

namespace vouch {
inline namespace v0 {

namespace detail {

/// What runs inside the settling transaction. If a hook throws, the outcome is kept and settled again later.
template <class Transaction>
struct settle_hooks {
    audit_sink<Transaction> audit{};
    history_sink<Transaction> history{};
    std::function<void(Transaction&, const std::string& group, const entry& last)> group_complete{};
};

/// The claim that is committed together with a settle.
struct next_claim {
    claim_request request{};
    claim_plan plan{};
};

template <class Store>
class batch_settler {
  public:
    using transaction = typename Store::transaction;

    /// All arguments must outlive the settler. With `calls_handlers` a failed `record` is converted at once, which may
    /// call the handler's `ended`. Otherwise the completion keeps its `record_failure`, and the caller has another
    /// thread convert it.
    batch_settler(Store& store, const clock& now, const dispatcher<Store>& dispatch,
                  const settle_hooks<transaction>& hooks, bool calls_handlers = true)
        : store_(store), clock_(now), dispatcher_(dispatch), hooks_(hooks), calls_handlers_(calls_handlers) {}

    /// Settles every completion of the batch that has no result yet. Afterwards each has a result, is `held_up` by a
    /// hook, or has a `record_failure`. If `next` is given and every completion gets a result, claims in the same commit
    /// and returns the claims; otherwise returns nothing and claims nothing. Throws the store's faults; then the same
    /// batch may be settled again.
    [[nodiscard]] std::optional<claims> operator()(std::span<completion<Store>> batch, const next_claim* next) {
        waiting unsettled;
        for (auto& h : batch) {
            if (!h.result) {
                h.held_up.clear();
                h.is_untried = false;
                h.record_failure.reset();
                unsettled.push_back(&h);
            }
        }
        return settle_together(std::move(unsettled), next);
    }

  private:
    using waiting = std::vector<completion<Store>*>;

    /// After this many entries at fault, the others are no longer tried together.
    static constexpr int culprits_max = 3;

    /// What runs for one entry. A fault of the store inside a `record` counts as a hook's: it costs no attempt.
    enum class part : std::uint8_t { record, emission, hook };

    /// Thrown through the transaction: a part of one entry has failed.
    struct culprit {
        std::size_t index;
        part what;
        caught_exception why;
    };

    struct attempt {
        std::vector<std::size_t> refused{}; ///< entries whose verdict was not `applied`; if any, all is rolled back
        std::optional<claims> claimed{};
    };

    /// Whether the store itself has failed, rather than refused the request.
    [[nodiscard]] static bool is_fault(const error& e) noexcept {
        return e.is_in_doubt() || e.kind() == error_kind::busy || e.kind() == error_kind::full ||
               e.kind() == error_kind::io || e.kind() == error_kind::read_only || e.kind() == error_kind::corrupt ||
               e.kind() == error_kind::conflict;
    }

    std::optional<claims> settle_together(waiting unsettled, const next_claim* next) {
        int culprits = 0;
        for (int doubts = 0;;) {
            resolve_doubts(unsettled);
            if (unsettled.empty()) {
                return std::nullopt;
            }
            try {
                auto tried = try_once(unsettled, next);
                if (tried.refused.empty()) {
                    return std::move(tried.claimed);
                }
                mark_stale(unsettled, tried.refused);
            } catch (const culprit& c) {
                if (!set_apart(unsettled, c)) {
                    next = nullptr;
                }
                if (++culprits == culprits_max) {
                    return settle_rest(std::move(unsettled));
                }
            } catch (const error& e) {
                if (e.is_in_doubt() && ++doubts < transact_tries) {
                    // Its claims are dropped: the ticket of a rolled-back claim may equal that of the next claim.
                    std::for_each(unsettled.begin(), unsettled.end(), [](auto* h) { h->in_doubt = true; });
                } else if (e.kind() == error_kind::conflict && !e.is_in_doubt()) {
                    return settle_conflicting(std::move(unsettled));
                } else if (is_fault(e)) {
                    std::for_each(unsettled.begin(), unsettled.end(), [&](auto* h) { h->in_doubt |= e.is_in_doubt(); });
                    throw;
                } else if (unsettled.size() > 1) {
                    return settle_rest(std::move(unsettled));
                } else {
                    refuse(*unsettled.front(), e);
                    unsettled.clear();
                }
            }
        }
    }

    /// Too many entries are at fault to settle them together, so they are settled one by one. Hooks that keep failing
    /// are likely to fail for the rest too: the rest is then held up untried, and tried first the next time.
    std::optional<claims> settle_rest(waiting unsettled) {
        int held_up = 0; // in a row
        for (auto* const h : unsettled) {
            if (held_up == culprits_max) {
                h->held_up = "hook_failed";
                h->is_untried = true;
                continue;
            }
            std::ignore = settle_together({h}, nullptr);
            held_up = h->held_up.empty() ? 0 : held_up + 1;
        }
        return std::nullopt;
    }

    /// A part of one entry may cause a conflict that never ends. Only that entry is then held up.
    std::optional<claims> settle_conflicting(waiting unsettled) {
        if (unsettled.size() > 1) {
            return settle_rest(std::move(unsettled));
        }
        unsettled.front()->held_up = name_of(error_kind::conflict);
        return std::nullopt;
    }

    /// Returns whether the entry can still be settled with the others.
    bool set_apart(waiting& unsettled, const culprit& c) {
        auto& h = *unsettled[c.index];
        if (c.what == part::record && calls_handlers_) {
            dispatcher_.fail_recording(h, c.why);
            return true;
        }
        if (c.what == part::record) {
            h.record_failure = c.why;
        } else if (c.what == part::hook) {
            h.held_up = c.why.code;
            h.held_up_text = c.why.text;
        } else {
            h.result = settle_result{.what = settle_result::kind::unsettled, .error = c.why.code};
        }
        unsettled.erase(unsettled.begin() + static_cast<std::ptrdiff_t>(c.index));
        return false;
    }

    /// The store refuses the request. A `record` that continues after an error of the store can cause that.
    void refuse(completion<Store>& h, const error& e) {
        const caught_exception why{std::string(name_of(e.kind()))};
        if (h.record) {
            waiting alone{&h};
            std::ignore = set_apart(alone, {0, part::record, why});
            if (!alone.empty()) {
                std::ignore = settle_together(std::move(alone), nullptr);
            }
        } else {
            h.result = settle_result{.what = settle_result::kind::unsettled, .error = why.code};
        }
    }

    static void mark_stale(waiting& unsettled, const std::vector<std::size_t>& refused) {
        for (const auto i : refused) {
            unsettled[i]->result = settle_result{.what = settle_result::kind::stale};
        }
        std::erase_if(unsettled, [](const auto* h) { return h->result.has_value(); });
    }

    /// Finds out which completions of a commit in doubt were applied: settles them again in a transaction that is rolled
    /// back, and reads the verdicts. Changes nothing.
    void resolve_doubts(waiting& unsettled) {
        waiting doubted;
        std::vector<settle> again;
        for (auto* const h : unsettled) {
            if (h->in_doubt) {
                doubted.push_back(h);
                again.push_back({ticket_of(h->entry), h->outcome});
            }
        }
        if (doubted.empty()) {
            return;
        }
        const auto answers = ask(again);
        for (std::size_t i = 0; i < doubted.size(); ++i) {
            auto& h = *doubted[i];
            if (answers[i].verdict == verdict::repeated || answers[i].verdict == verdict::unknown) {
                h.result = settle_result{.group_completed = h.completes_group};
            } else if (answers[i].verdict == verdict::stale) {
                h.result = settle_result{.what = settle_result::kind::stale};
            }
            h.in_doubt = h.in_doubt && h.result.has_value(); // otherwise it was not applied, and is settled again
        }
        std::erase_if(unsettled, [](const auto* h) { return h->result.has_value(); });
    }

    [[nodiscard]] std::vector<settlement> ask(const std::vector<settle>& again) {
        for (int left = transact_tries;; --left) {
            try {
                transaction tx = store_.begin();
                return tx.settle(again, clock_());
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt try_once(const waiting& unsettled, const next_claim* next) {
        for (int left = transact_tries;; --left) {
            try {
                return in_transaction(unsettled, next);
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt in_transaction(const waiting& unsettled, const next_claim* next) {
        const auto now = clock_();
        transaction tx = store_.begin();
        for_each(unsettled, part::record, [&](auto& h) {
            const trail_scope scope(h.entry.trail);
            h.record ? h.record(tx) : void();
        });
        for_each(unsettled, part::emission, [&](auto& h) {
            if (!h.emissions.empty()) {
                h.receipts = tx.enqueue(h.emissions, now);
            }
        });
        if (hooks_.history) {
            for_each(unsettled, part::hook,
                     [&](auto& h) { hooks_.history(tx, attempt_line_of(h.entry, h.outcome, now)); });
        }
        for_each(unsettled, part::hook, [&](auto& h) { audit_outcome(tx, h, now); });
        std::vector<settle> settles(unsettled.size());
        for (std::size_t i = 0; i < settles.size(); ++i) {
            settles[i] = {ticket_of(unsettled[i]->entry), unsettled[i]->outcome};
        }
        attempt out;
        if (settle_at_once(tx, unsettled, settles, next, now, out)) {
            return out;
        }
        note_settlements(unsettled, tx.settle(settles, now), out);
        if (!out.refused.empty()) {
            return out; // rolls back
        }
        for_each(unsettled, part::hook,
                 [&](auto& h) { h.completes_group ? complete_group(tx, h.entry, now) : void(); });
        out.claimed = claim_and_commit(tx, next, now);
        note_committed(unsettled);
        return out;
    }

    static void note_settlements(const waiting& unsettled, const std::vector<settlement>& settlements, attempt& out) {
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            unsettled[i]->completes_group = settlements[i].group_completed;
            if (settlements[i].verdict != verdict::applied) {
                out.refused.push_back(i);
            }
        }
    }

    static void note_committed(const waiting& unsettled) {
        for (auto* const h : unsettled) {
            h->result = settle_result{.group_completed = h->completes_group};
        }
    }

    [[nodiscard]] static std::optional<claims> as_claims(std::optional<std::vector<entry>> claimed) {
        return claimed ? std::optional(claims{.entries = std::move(*claimed)}) : std::nullopt;
    }

    /// Settles, claims and commits in one operation, if the store has it and nothing happens between them: whether a group
    /// is complete must be known before the commit.
    [[nodiscard]] static bool settle_at_once(transaction& tx, const waiting& unsettled,
                                             const std::vector<settle>& settles, const next_claim* next, time_point now,
                                             attempt& out) {
        if constexpr (committing_transaction<transaction>) {
            if (next == nullptr || std::any_of(unsettled.begin(), unsettled.end(),
                                               [](const auto* h) { return !h->entry.group.empty(); })) {
                return false;
            }
            auto done = tx.settle_claim_and_commit(settles, now, request_at(*next, now));
            note_settlements(unsettled, done.settlements, out);
            if (out.refused.empty()) {
                out.claimed = as_claims(std::move(done.claimed));
                note_committed(unsettled);
            }
            return true;
        }
        return false;
    }

    /// At the time of the settle, so that what the transaction makes due can be claimed by it.
    [[nodiscard]] static claim_request request_at(const next_claim& next, time_point now) {
        auto request = next.request;
        request.now = now;
        return request;
    }

    /// Nothing if nothing was to be claimed, or if the store leaves the claim to another transaction.
    [[nodiscard]] static std::optional<claims> claim_and_commit(transaction& tx, const next_claim* next,
                                                                time_point now) {
        if (next == nullptr) {
            tx.commit();
            return std::nullopt;
        }
        const auto request = request_at(*next, now);
        if constexpr (committing_transaction<transaction>) {
            return as_claims(tx.claim_and_commit(request));
        } else {
            auto claimed = claim_apart(tx, request, next->plan);
            tx.commit();
            return claimed;
        }
    }

    /// A part that throws identifies the entry at fault, so the others can be settled without it. A failed store shows
    /// itself when they are.
    template <class Part>
    static void for_each(const waiting& unsettled, part what, Part&& run) {
        for (std::size_t i = 0; i < unsettled.size(); ++i) {
            try {
                run(*unsettled[i]);
            } catch (const error& e) {
                if (e.kind() == error_kind::conflict || (what == part::emission && is_fault(e))) {
                    throw;
                }
                throw culprit{i, is_fault(e) ? part::hook : what, caught_exception::current()};
            } catch (...) {
                throw culprit{i, what, caught_exception::current()};
            }
        }
    }

    void audit_outcome(transaction& tx, const completion<Store>& h, time_point now) const {
        if (!hooks_.audit) {
            return;
        }
        if (std::holds_alternative<succeed>(h.outcome)) {
            hooks_.audit(tx, line(audit_line::kind::succeeded, h.entry, now));
        } else if (const auto* const dead = std::get_if<bury>(&h.outcome)) {
            auto l = line(audit_line::kind::dead, h.entry, now);
            l.error = dead->error;
            hooks_.audit(tx, l);
        }
    }

    void complete_group(transaction& tx, const entry& last, time_point now) const {
        if (hooks_.audit) {
            hooks_.audit(tx, line(audit_line::kind::group_completed, last, now));
        }
        if (hooks_.group_complete) {
            hooks_.group_complete(tx, last.group, last);
        }
    }

    [[nodiscard]] static audit_line line(audit_line::kind what, const entry& e, time_point now) {
        return {.what = what,
                .at = now,
                .id = e.id,
                .queue = e.queue,
                .topic = e.topic,
                .group = e.group,
                .worker = e.worker,
                .attempts = e.attempts};
    }

    Store& store_;
    const clock& clock_;
    const dispatcher<Store>& dispatcher_;
    const settle_hooks<transaction>& hooks_;
    bool calls_handlers_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/event_reporter.hpp
// Reports what a runner or a worker does: to the observers of the outbox, to those of the runner itself, and into the
// report of a pass.

namespace vouch {
inline namespace v0 {
namespace detail {

/// The trace line that names an outcome.
struct outcome_line {
    trace_line& line;
    void operator()(const succeed&) const { line.what = event_kind::succeeded; }
    void operator()(const retry& o) const { failed(event_kind::retried, o.error); }
    void operator()(const bury& o) const { failed(event_kind::dead, o.error); }
    void operator()(const release&) const { line.what = event_kind::released; }
    void operator()(const advance&) const { line.what = event_kind::advanced; }
    void failed(event_kind what, const std::string& error) const {
        line.what = what;
        line.error = error;
    }
};

class event_reporter {
  public:
    /// `outer` must outlive the reporter.
    event_reporter(const observer_list& outer, std::string worker, bool exception_text)
        : outer_(outer), worker_(std::move(worker)), exception_text_(exception_text) {}

    template <observer O>
    void add(O& o) {
        own_.add(o);
    }

    void on(const event& e) const noexcept {
        outer_.on(e);
        own_.on(e);
    }

    void claimed(const entry& e) const {
        auto seen = event_of(event_kind::claimed, e, *e.last_attempt_at);
        seen.late = std::max(seen.at - std::max(e.due_at, e.created_at), duration::zero());
        on(seen);
    }
    void started(const entry& e, time_point at) const { on(event_of(event_kind::started, e, at)); }

    /// Reports what is new about a completion: its result, or that a hook holds it up.
    template <class Store>
    void settled(report& out, completion<Store>& h, time_point now) const {
        if (!h.result && !h.held_up.empty()) {
            out.held_up += 1;
            out.trace.push_back(line_of(h.entry, event_kind::hook_failed, h.held_up));
            if (!std::exchange(h.is_reported, true)) {
                auto seen = event_of(event_kind::hook_failed, h.entry, now);
                seen.error = h.held_up;
                seen.text = exception_text_ ? std::string_view(h.held_up_text) : std::string_view{};
                on(seen);
            }
        } else if (h.result && !std::exchange(h.result->is_reported, true)) {
            add_result(out, h, now);
        }
    }

  private:
    template <class Store>
    void add_result(report& out, const completion<Store>& h, time_point now) const {
        const auto& result = *h.result;
        const bool is_applied = result.what == settle_result::kind::applied;
        auto line = line_of(h.entry, event_kind::unsettled, result.error);
        if (is_applied) {
            visit_outcome(outcome_line{line}, h.outcome);
        } else if (result.what == settle_result::kind::stale) {
            line.what = event_kind::stale;
        }
        count(out, line.what) += 1;
        on(settled_event(h, line, is_applied, now));
        for (std::size_t i = 0; is_applied && i < h.receipts.size(); ++i) {
            if (h.receipts[i].what == receipt::kind::inserted) {
                on(enqueued_event(h.emissions[i], now, worker_));
            }
        }
        if (is_applied && result.group_completed) {
            on(event_of(event_kind::group_completed, h.entry, now));
        }
        out.trace.push_back(std::move(line));
    }

    template <class Store>
    [[nodiscard]] event settled_event(const completion<Store>& h, const trace_line& line, bool is_applied,
                                      time_point now) const {
        auto seen = event_of(line.what, h.entry, now);
        seen.error = line.error;
        seen.took = h.took;
        seen.reason = line.what == event_kind::dead ? h.reason : death::none;
        if (is_applied) {
            seen.tag = h.tag;
            seen.text = exception_text_ ? std::string_view(h.text) : std::string_view{};
            if (const auto* const again = std::get_if<retry>(&h.outcome)) {
                seen.delay = std::max(again->at - now, duration::zero());
            }
        }
        return seen;
    }

    [[nodiscard]] event event_of(event_kind what, const entry& e, time_point at) const {
        return {.what = what,
                .at = at,
                .queue = e.queue,
                .topic = e.topic,
                .worker = worker_,
                .group = e.group,
                .id = e.id,
                .attempt = e.attempts,
                .is_saga = is_saga_progress(e.progress),
                .age = std::max(at - e.created_at, duration::zero())};
    }

    [[nodiscard]] static trace_line line_of(const entry& e, event_kind what, std::string error) {
        return {.id = e.id, .topic = e.topic, .attempt = e.attempts, .what = what, .error = std::move(error)};
    }

    [[nodiscard]] static std::size_t& count(report& out, event_kind what) noexcept {
        switch (what) {
        case event_kind::succeeded: return out.succeeded;
        case event_kind::advanced: return out.advanced;
        case event_kind::retried: return out.retried;
        case event_kind::dead: return out.dead;
        case event_kind::released: return out.released;
        case event_kind::stale: return out.stale;
        default: return out.unsettled;
        }
    }

    const observer_list& outer_;
    observer_list own_{};
    std::string worker_;
    bool exception_text_;
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/detail/phases.hpp
// The phases of a pass over one queue: claim, handle, settle. A runner puts them together into passes; a worker runs
// them on several threads. Each phase ends at a point where the process may die: what was claimed and not settled is
// claimed again when its lease ends.
//
// Used by one thread at a time, except `handle`, `handle_together`, `handle_all` and `convert_record_failure`, which any
// number of threads may call.

namespace vouch {
inline namespace v0 {
namespace detail {

struct phase_options {
    std::string queue{};
    std::string worker{};
    std::size_t batch_size = 0;
    duration lease{};
    dispatch_options dispatch{};
    bool exception_text = false;
};

template <class Store>
class phases {
  public:
    using transaction = typename Store::transaction;
    using completion = detail::completion<Store>;
    using batch = std::vector<completion>;

    /// Outbox and router must outlive the phases. Throws `invalid_argument` for options that no claim would accept.
    phases(const outbox<Store>& from, const router<Store>& routes, phase_options options)
        : outbox_(from), router_(routes), options_(std::move(options)), can_(from.store().capabilities()),
          events_(from.observers(), options_.worker, options_.exception_text) {
        validate(request(options_.batch_size, {}), can_.limits);
        if (options_.batch_size == 0) {
            refuse({"runner", "batch_size"}, "is 0; it must be at least 1");
        }
    }

    [[nodiscard]] event_reporter& events() noexcept { return events_; }
    [[nodiscard]] settle_hooks<transaction>& hooks() noexcept { return hooks_; }
    [[nodiscard]] const phase_options& options() const noexcept { return options_; }

    [[nodiscard]] claims claim(const claim_plan& plan) { return claim(request(plan.limit, outbox_.now()), plan); }

    /// Claims this entry only, if it is due.
    [[nodiscard]] claims claim_only(const id& only, const claim_plan& plan) {
        auto wanted = request(1, outbox_.now());
        wanted.only = only;
        return claim(wanted, plan);
    }

    /// Calls the handler. The store accepts the outcome that this returns.
    [[nodiscard]] completion handle(entry e, std::stop_token stop) const {
        std::optional<time_point> start;
        auto h = dispatch()(std::move(e), std::move(stop), [&](const entry& s) {
            start = outbox_.now();
            events_.started(s, *start);
        });
        if (start) {
            h.took = std::max(outbox_.now() - *start, duration::zero());
        }
        return h;
    }

    /// Calls a batch handler once. All entries have the batch route whose `batch_of` is not null.
    [[nodiscard]] batch handle_together(std::vector<claimed_entry<Store>> some, const std::stop_token& stop) const {
        const auto rules = dispatch();
        std::optional<time_point> start;
        auto done = batch_dispatcher<Store>(rules)(std::move(some), stop, [&](completion& h) {
            start = start ? start : outbox_.now();
            h.took = duration::zero();
            events_.started(h.entry, *start);
        });
        for (auto& h : done) {
            if (h.took) {
                h.took = std::max(outbox_.now() - *start, duration::zero());
            }
        }
        return done;
    }

    /// The batch of the entry's route; null if the entry is handled by itself.
    [[nodiscard]] const batch_options* batch_of(const entry& e) const noexcept { return dispatch().batch_of(e); }

    /// The `size_max` of the largest batch route; 1 if there is none.
    [[nodiscard]] std::size_t largest_batch() const noexcept { return router_.largest_batch_; }

    /// Calls the handlers of all entries; `runner::handle_all` gives the order. Entries that have not started when a stop
    /// is requested are handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop) const {
        batch out(entries.size());
        const auto plan = plan_calls(entries, [this](const entry& e) { return batch_of(e); });
        for (std::size_t first = 0; first < entries.size(); ++first) {
            const auto size = plan[first].size;
            if (size > 0 && stop.stop_requested()) {
                for (auto i = first; i != no_entry; i = plan[i].next) {
                    out[i] = {.entry = std::move(entries[i]), .outcome = release{}};
                }
            } else if (size == 1) {
                out[first] = handle(std::move(entries[first]), stop);
            } else if (size > 1) {
                std::vector<claimed_entry<Store>> some;
                some.reserve(size);
                for (auto i = first; i != no_entry; i = plan[i].next) {
                    some.push_back({std::move(entries[i]), stop});
                }
                auto done = handle_together(std::move(some), stop);
                for (auto i = first, at = std::size_t{0}; i != no_entry; i = plan[i].next) {
                    out[i] = std::move(done[at++]);
                }
            }
        }
        return out;
    }

    /// Converts a failed `record` into an outcome, which may call the handler's `ended`.
    [[nodiscard]] completion convert_record_failure(completion h) const {
        const auto why = *h.record_failure;
        dispatch().fail_recording(h, why);
        return h;
    }

    struct settled {
        vouch::report report{};
        std::optional<detail::claims> claims{}; ///< set if the settle and the claim shared a commit
    };

    /// Settles every completion without a result and, if `next` is given and every completion gets a result, claims in
    /// the same commit. Reports the outcomes, then the claims. With `calls_handlers` unset, failed records are left for
    /// `convert_record_failure`.
    [[nodiscard]] settled settle(batch& done, const claim_plan* next, bool calls_handlers) {
        if (done.empty()) {
            return {};
        }
        const auto rules = dispatch();
        batch_settler<Store> settler(outbox_.store(), outbox_.clock(), rules, hooks_, calls_handlers);
        next_claim wanted;
        if (next != nullptr) {
            wanted = {.request = request(next->limit, outbox_.now()), .plan = *next};
        }
        auto got = settler(std::span(done), next != nullptr ? &wanted : nullptr);
        settled out{.report = report_all(done)};
        if (got) {
            out.claims = reported(std::move(*got));
        }
        return out;
    }

    /// Extends the leases of completions that wait to be settled. One whose claim was taken over is stale.
    void extend(batch& waiting) {
        const auto most = can_.limits.batch_max;
        for (std::size_t first = 0; first < waiting.size(); first += most) {
            const auto some = std::span(waiting).subspan(first, std::min(most, waiting.size() - first));
            std::vector<ticket> tickets;
            for (const auto& h : some) {
                tickets.push_back(ticket_of(h.entry));
            }
            const auto answers =
                transact(outbox_.store(), [&](auto& tx) { return tx.extend(tickets, outbox_.now(), options_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (answers[i] != verdict::applied && !some[i].in_doubt) {
                    some[i].result = settle_result{.what = settle_result::kind::stale};
                }
            }
        }
    }

    /// Reports the results that were not reported yet.
    report report_results(batch& done) const {
        return report_if(done, [](const completion& h) { return h.result.has_value(); });
    }
    /// The same, and what hooks hold up.
    report report_all(batch& done) const {
        return report_if(done, [](const completion&) { return true; });
    }

  private:
    template <class Predicate>
    report report_if(batch& done, const Predicate& is_wanted) const {
        report out;
        const auto now = outbox_.now();
        for (auto& h : done) {
            if (is_wanted(h)) {
                events_.settled(out, h, now);
            }
        }
        return out;
    }

    [[nodiscard]] claim_request request(std::size_t limit, time_point now) const {
        return {
            .queue = options_.queue, .limit = limit, .now = now, .lease = options_.lease, .worker = options_.worker};
    }

    [[nodiscard]] claims claim(const claim_request& wanted, const claim_plan& plan) {
        if (auto at_once = claim_at_once(outbox_.store(), wanted)) {
            return reported({.entries = std::move(*at_once)});
        }
        return reported(transact(outbox_.store(), [&](auto& tx) { return claim_apart(tx, wanted, plan); }));
    }

    [[nodiscard]] claims reported(claims got) const {
        for (const auto& e : got.entries) {
            events_.claimed(e);
        }
        return got;
    }

    [[nodiscard]] dispatcher<Store> dispatch() const { return {router_, outbox_, options_.dispatch, can_}; }

    const outbox<Store>& outbox_;
    const router<Store>& router_;
    phase_options options_;
    capabilities can_;
    event_reporter events_;
    settle_hooks<transaction> hooks_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/runner.hpp
// One deterministic pass over a queue: claim, handle each entry, settle. A runner has no threads, sleeps, clocks or
// randomness of its own: the same store, clock, ids and handlers give the same trace. The phases are public, so a
// simulator or a debugger can stop between any two.
//
//   vouch::runner runner(outbox, router, {.queue = "mail"});
//   runner.run_until_idle();
//
// An entry whose last claim ended with its lease may have killed its process, so it is claimed and handled alone. A
// caller that uses the phases must therefore settle what it has claimed before it claims again. Outcomes that a failing
// hook holds up are kept, and settled by a later pass.
//
// A runner is used by one thread at a time, except `handle`, which any number of threads may call. Several runners may
// share an outbox and a router.

namespace vouch {
inline namespace v0 {

struct runner_options {
    std::string queue{};
    std::string worker = "runner";                ///< who claims; shown to operators
    std::size_t batch_size = 50;                  ///< entries per claim
    duration lease = std::chrono::minutes{5};     ///< must be longer than a batch takes
    retry_policy retry{};                         ///< for routes and entries without a policy of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic fits no route
    std::size_t passes_max = 1'000'000;           ///< `run_until_idle` gives up after this many passes
    bool exception_text = false;                  ///< whether observers see it; it may contain personal data
};

template <class Store>
class runner {
    static_assert(explain_store<Store>());
    using phases = detail::phases<Store>;

  public:
    using transaction = typename Store::transaction;
    /// A claim whose handler has finished. Pass it to `settle`; its parts are not for users.
    using completion = typename phases::completion;
    using batch = std::vector<completion>;

    /// Outbox and router must outlive the runner. Throws `invalid_argument` for options that no claim would accept.
    runner(const outbox<Store>& from, const router<Store>& routes, runner_options options)
        : outbox_(from), batch_size_(options.batch_size), passes_max_(options.passes_max),
          phases_(from, routes,
                  {.queue = std::move(options.queue),
                   .worker = std::move(options.worker),
                   .batch_size = options.batch_size,
                   .lease = options.lease,
                   .dispatch = {.retry = std::move(options.retry), .unhandled = options.unhandled},
                   .exception_text = options.exception_text}) {}

    runner(const outbox<Store>&&, const router<Store>&, runner_options) = delete; // the runner would outlive its outbox
    runner(const outbox<Store>&, const router<Store>&&, runner_options) = delete; // the runner would outlive its router
    runner(const outbox<Store>&&, const router<Store>&&, runner_options) = delete;

    // Observers and hooks.

    /// Reports the events of this runner to `o`, in addition to the outbox's observers. It must outlive the runner.
    template <observer O>
    void observe(O& o) {
        phases_.events().add(o);
    }
    /// Calls `sink` in the settling transaction: before each terminal outcome, and after a settle that completes a
    /// group. If it throws, the outcome is kept, and settled by a later pass.
    void audit(audit_sink<transaction> sink) { phases_.hooks().audit = std::move(sink); }
    /// Calls `sink` in the settling transaction, before each outcome, retries, releases and checkpoints included. If it
    /// throws, the outcome is kept, and settled by a later pass.
    void history(history_sink<transaction> sink) { phases_.hooks().history = std::move(sink); }
    /// Calls `callback` in the settling transaction, once each time the number of unfinished members falls to zero. If
    /// it throws, the outcome is kept, and settled by a later pass.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        phases_.hooks().group_complete = std::move(callback);
    }

    // Passes.

    report run_once(const std::stop_token& stop = {}) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(), stop);
        }
        return out;
    }

    /// Runs one entry at once, if it is due: for producers that do not want to wait for the next pass.
    report run_only(const id& only) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(only), {});
        }
        return out;
    }

    /// Makes passes until nothing is due, or until failing hooks hold up a whole batch of outcomes. Each settle shares
    /// its commit with the next claim.
    report run_until_idle(const std::stop_token& stop = {}) {
        auto total = settle_kept();
        if (!has_room()) {
            return total;
        }
        auto entries = claim();
        total.claimed += entries.size();
        for (std::size_t passes = 0; !entries.empty(); ++passes) {
            auto done = handle_all(std::move(entries), stop);
            const keeper keeps(*this, done);
            if (stop.stop_requested() || passes + 1 >= passes_max_ || !has_room()) {
                total += settle(done);
                check_passes(passes + 1);
                return total;
            }
            auto [settled, next] = settle_and_claim(done);
            total += settled;
            total.claimed += next.size();
            entries = std::move(next);
        }
        return total;
    }

    /// Makes passes until no live entry is left, and moves the clock to each next due time: for tests, in which hours
    /// pass at once. Returns early if a hook fails. `time` must be the outbox's clock.
    report run_until_idle(const manual_clock& time) {
        report total;
        for (std::size_t passes = 0;; ++passes) {
            check_passes(passes);
            total += run_until_idle();
            const auto next = outbox_.store().next_due(phases_.options().queue);
            if (!next || !kept_.empty()) {
                return total;
            }
            if (*next > time()) {
                time.set(*next);
            }
            if (outbox_.now() < *next) {
                throw error(error_kind::misuse, "runner: run_until_idle was given a clock that is not the outbox's");
            }
        }
    }

    // Phases. The process may die after each of them: what was claimed and not settled is claimed again when its lease
    // ends.

    [[nodiscard]] std::vector<entry> claim() { return claim(batch_size_); }

    /// Claims at most `limit` entries.
    [[nodiscard]] std::vector<entry> claim(std::size_t limit) {
        auto how = plan();
        how.limit = std::min(how.limit, limit);
        return remembered(phases_.claim(how));
    }
    /// Claims this entry only, if it is due.
    [[nodiscard]] std::vector<entry> claim(const id& only) { return phases_.claim_only(only, plan()).entries; }

    /// Calls the handler; for an entry of a batch route with a batch of one. The store accepts the outcome that this
    /// returns.
    [[nodiscard]] completion handle(entry e, std::stop_token stop = {}) const {
        return phases_.handle(std::move(e), std::move(stop));
    }
    /// Calls the handlers, in the order of the entries. A batch handler is called at the place of its first entry, with
    /// the entries of its route that follow, up to `size_max`; the next one starts a new batch at its own place. An entry
    /// with a lapse is a batch by itself. Returns the completions in the order of the entries. Entries that have not
    /// started when a stop is requested are handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop = {}) const {
        return phases_.handle_all(std::move(entries), stop);
    }

    /// Settles every outcome of the batch that is not settled yet. Only outcomes that a failing hook holds up stay
    /// unsettled. Throws the store's faults; then the same batch may be settled again, under the same tickets.
    report settle(batch& done) { return phases_.settle(done, nullptr, true).report; }
    /// The same, and claims: in the same commit if every outcome is settled, otherwise after it.
    [[nodiscard]] std::pair<report, std::vector<entry>> settle_and_claim(batch& done) {
        const auto how = plan();
        auto settled = phases_.settle(done, &how, true);
        return {std::move(settled.report),
                remembered(settled.claims ? std::move(*settled.claims) : phases_.claim(plan()))};
    }

  private:
    /// Where one entry has lapsed there are often more: they are then claimed one by one.
    [[nodiscard]] detail::claim_plan plan() const noexcept { return {.limit = was_alone_ ? 1 : batch_size_}; }

    [[nodiscard]] std::vector<entry> remembered(detail::claims got) {
        was_alone_ = got.entries.size() == 1 && detail::has_lapsed(got.entries.front());
        return std::move(got.entries);
    }

    report pass(std::vector<entry> entries, const std::stop_token& stop) {
        const auto count = entries.size();
        auto done = handle_all(std::move(entries), stop);
        const keeper keeps(*this, done);
        auto out = settle(done);
        out.claimed = count;
        return out;
    }

    /// Keeps unsettled outcomes at the end of a pass, even if it ends by an exception, so that no handler is called
    /// again for them.
    struct keeper {
        keeper(runner& of, batch& done) : of_(of), batch_(done) { of_.kept_.reserve(of_.kept_.size() + done.size()); }
        keeper(const keeper&) = delete;
        keeper& operator=(const keeper&) = delete;
        ~keeper() {
            try {
                std::ignore = of_.phases_.report_results(batch_);
            } catch (...) { // NOLINT(bugprone-empty-catch): no memory for a report without a reader
            }
            for (auto& h : batch_) {
                if (!h.result) {
                    of_.kept_.push_back(std::move(h));
                }
            }
        }
        runner& of_;
        batch& batch_;
    };
    [[nodiscard]] bool has_room() const noexcept { return kept_.size() < batch_size_; }

    report settle_kept() {
        if (kept_.empty()) {
            return {};
        }
        auto out = settle(kept_);
        forget_settled();
        phases_.extend(kept_); // so that this runner does not claim them again
        out += phases_.report_results(kept_);
        forget_settled();
        return out;
    }
    /// Outcomes that were held up untried come first the next time.
    void forget_settled() {
        std::erase_if(kept_, [](const auto& h) { return h.result.has_value(); });
        std::stable_partition(kept_.begin(), kept_.end(), [](const auto& h) { return h.is_untried; });
    }

    void check_passes(std::size_t passes) const {
        if (passes >= passes_max_) {
            throw error(error_kind::misuse, "runner: not idle after " + std::to_string(passes) +
                                                " passes (passes_max); a handler keeps handing its entry back");
        }
    }

    const outbox<Store>& outbox_;
    std::size_t batch_size_;
    std::size_t passes_max_;
    phases phases_;
    batch kept_{};           ///< outcomes that are not settled yet
    bool was_alone_ = false; ///< the last pass handled an entry with a lapse
};

} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER
