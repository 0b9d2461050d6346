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
#include <exception>
#include <functional>
#include <initializer_list>
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

// ---- vouch/contract/id.hpp
// A 128-bit identifier with the text form of a UUID. Ids are made by the caller (`policy/id_source.hpp`), never by a
// store; an entry's id is the idempotency key its handler hands on.
//
// Ids order like their bytes and like their text, so time-ordered ids (UUIDv7) stay in order in any index.

namespace vouch {
inline namespace v0 {

struct id {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    /// The nil id stands for "none" in optional fields and is refused where an id is required.
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

    [[nodiscard]] static constexpr id from_bytes(const std::array<std::uint8_t, 16>& bytes) noexcept {
        id out;
        for (std::size_t i = 0; i < 8; ++i) {
            out.high = (out.high << 8) | bytes[i];
            out.low = (out.low << 8) | bytes[i + 8];
        }
        return out;
    }

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in either case; anything else is no id.
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

/// The finaliser of SplitMix64: every input bit reaches every output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31;
    return x;
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

/// The id that belongs to `base` under `label`: the same pair always gives the same id, so that work done twice from
/// the same beginning names the same entries. The leading 48 bits (UUIDv7's time) are kept: derived ids stay
/// time-ordered.
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
// Time as the contract knows it: microseconds of UTC, always handed in by the caller. No store reads a clock,
// so the same calls give the same result, and tests own the time.

namespace vouch {
inline namespace v0 {

using duration = std::chrono::microseconds;
using time_point = std::chrono::time_point<std::chrono::system_clock, duration>;

/// `at + by`, held at the ends of the representable range instead of overflowing.
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

// ---- vouch/contract/draft.hpp
// What a producer wants stored. Drafts are plain values: fill in what matters, the rest has a meaning when left alone.

namespace vouch {
inline namespace v0 {

/// Names and values that travel with an entry, in the order given. Names may repeat.
using header_list = std::vector<std::pair<std::string, std::string>>;
using id_list = std::vector<vouch::id>;

struct draft {
    vouch::id id{};          ///< required; the idempotency key of the work
    std::string queue{};     ///< required; who claims it
    std::string topic{};     ///< required; what it is, words joined by dots
    std::string payload{};   ///< opaque bytes
    std::string key{};       ///< dedup key, unique per queue among stored entries; empty: none
    std::string group{};     ///< entries that complete together, across queues; empty: none
    std::string lane{};      ///< ordering key within the queue; empty: none
    vouch::id parent{};      ///< the entry to nudge when this one ends; nil: none
    vouch::id predecessor{}; ///< the dead entry this one replaces, whose key, group and lane it takes over; nil: none
    std::optional<time_point> due_at{};     ///< when it may run; unset: now
    std::optional<time_point> expires_at{}; ///< when trying ends, whatever the retries; unset: never
    std::uint32_t attempts_max = 0;         ///< 0: the handler's
    id_list trail{};                        ///< the emissions that led here, outermost first, its own last
    header_list headers{};
    std::string progress{};              ///< where a multi-step entry begins
    std::optional<std::string> result{}; ///< set: born succeeded; then lane, group, parent and predecessor are refused

    [[nodiscard]] friend bool operator==(const draft&, const draft&) = default;
};

/// Calls `f(name, value...)` for every field of one or several drafts side by side.
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

} // namespace v0
} // namespace vouch

// ---- vouch/contract/state.hpp
// The five states of an entry. `lifecycle.hpp` says which verb leads from which to which; nothing else can happen.

namespace vouch {
inline namespace v0 {

enum class state : std::uint8_t {
    pending,   ///< waits for its first attempt, or for the next step after a checkpoint
    retrying,  ///< an attempt failed or was handed back; waits for the next one
    claimed,   ///< a runner holds it under a lease
    succeeded, ///< terminal: done
    dead,      ///< terminal: given up, kept for a person to see
};

inline constexpr std::array<state, 5> all_states{state::pending, state::retrying, state::claimed, state::succeeded,
                                                 state::dead};

/// Terminal entries are frozen: no field of theirs changes again, and only a purge removes them.
[[nodiscard]] constexpr bool is_terminal(state s) noexcept { return s == state::succeeded || s == state::dead; }
[[nodiscard]] constexpr bool is_live(state s) noexcept { return !is_terminal(s); }

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

/// How many entries of a queue are in each state. Every state is present; zero is a number too.
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

} // namespace v0
} // namespace vouch

// ---- vouch/contract/ticket.hpp
// The fence a claim hands out. Good once the claiming transaction has committed, used up by the settle that lands, and
// worthless from the moment somebody else claims the entry.

namespace vouch {
inline namespace v0 {

struct ticket {
    vouch::id id{};
    std::uint64_t epoch = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const ticket&, const ticket&) noexcept = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/entry.hpp
// A stored draft with its life. What a draft brings never changes; what changes is `life`, and only the verbs of
// `lifecycle.hpp` change it.

namespace vouch {
inline namespace v0 {

/// The part of an entry that verbs change.
struct life {
    vouch::state state = vouch::state::pending;
    std::uint32_t attempts = 0;                  ///< claims that count; a release gives one back, an advance all
    std::uint32_t lapses = 0;                    ///< claims in a row that ended with their lease, not with an outcome
    std::uint32_t failures = 0;                  ///< accepted failed results
    std::uint64_t epoch = 0;                     ///< every claim ever; only grows
    time_point due_at{};                         ///< when it may run; a claim does not touch it
    std::optional<time_point> lease_until{};     ///< claimed only: when the claim may be taken over
    bool woken = false;                          ///< claimed only: nudged since the claim, to be due when it ends
    std::string last_error{};                    ///< code of the last failure; kept after success
    std::optional<std::string> result{};         ///< what succeed or bury left
    std::string progress{};                      ///< the last checkpoint
    std::string worker{};                        ///< who claimed it last
    time_point updated_at{};                     ///< the `now` of the last change
    std::optional<time_point> last_attempt_at{}; ///< the `now` of the last claim

    [[nodiscard]] friend bool operator==(const life&, const life&) = default;
};

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
    std::uint64_t sequence = 0;   ///< order of entry into the store; never reused, may have gaps
    std::uint32_t generation = 1; ///< one more than the predecessor's
    time_point created_at{};

    [[nodiscard]] friend bool operator==(const entry&, const entry&) = default;
};

[[nodiscard]] inline ticket ticket_of(const entry& e) noexcept { return {.id = e.id, .epoch = e.epoch}; }

/// Calls `f(name, value...)` for every field of one or several entries side by side: a store that forgets a field fails
/// by its name.
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

/// The entry a draft becomes: pending, or succeeded if it carries a result. The store adds the sequence and, for a
/// successor, what it takes over.
[[nodiscard]] inline entry born(const draft& d, time_point now) {
    entry e;
    e.id = d.id;
    e.queue = d.queue;
    e.topic = d.topic;
    e.payload = d.payload;
    e.key = d.key;
    e.group = d.group;
    e.lane = d.lane;
    e.parent = d.parent;
    e.predecessor = d.predecessor;
    e.expires_at = d.expires_at;
    e.attempts_max = d.attempts_max;
    e.trail = d.trail;
    e.headers = d.headers;
    e.created_at = now;
    e.state = d.result ? state::succeeded : state::pending;
    e.due_at = d.due_at.value_or(now);
    e.result = d.result;
    e.progress = d.progress;
    e.updated_at = now;
    return e;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/error.hpp
// The one root of everything that goes wrong below a caller: faults of the store, and misuse of it. Facts of the domain
// (a stale ticket, a duplicate) are not errors; they are values (`verdict.hpp`).
//
// A message names fields, limits and sizes; it never contains a payload or another exception's text.

namespace vouch {
inline namespace v0 {

enum class error_kind : std::uint8_t {
    invalid_argument, ///< refused at the boundary; nothing was written and an open transaction stays open
    unsupported,      ///< the store does not declare the capability this asks for
    unrouted,         ///< an emission names no queue and no binding matches its topic
    conflict,         ///< another transaction won; this one is rolled back, repeat it from `begin`
    busy,             ///< the store could not be had in time
    full,             ///< no room: disk, quota or memory
    read_only,        ///< the store may be read but not written
    corrupt,          ///< what is stored is not what was written
    io,               ///< the medium or the connection failed
    misuse,           ///< a call the contract does not allow, such as using a closed transaction
};

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

class error : public std::runtime_error {
  public:
    error(error_kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

    /// An error whose commit may or may not have happened. `code` is the backend's own, 0 if it has none.
    struct details {
        bool in_doubt = false;
        int code = 0;
    };
    error(error_kind kind, const std::string& message, details more)
        : std::runtime_error(message), kind_(kind), details_(more) {}

    [[nodiscard]] error_kind kind() const noexcept { return kind_; }

    /// Whether the same call may succeed later with nobody changing the program or the data.
    [[nodiscard]] bool is_transient() const noexcept {
        return kind_ == error_kind::conflict || kind_ == error_kind::busy || kind_ == error_kind::full ||
               kind_ == error_kind::io;
    }

    /// Whether the commit that failed may have happened all the same. Claims of that transaction are to be forgotten;
    /// settles and enqueues are to be repeated whole under the same tickets and ids.
    [[nodiscard]] bool is_in_doubt() const noexcept { return details_.in_doubt; }

    /// The backend's own result code, 0 if there is none.
    [[nodiscard]] int code() const noexcept { return details_.code; }

  private:
    error_kind kind_;
    details details_{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/bytes.hpp
// An entry as bytes and back, for stores that keep values and not columns: a log, a file, a key-value database.
//
// The bytes mean the same on every machine and say themselves where they end, so that entries can stand one after the
// other: a byte for the format, then every field in the order of `for_each_field`. Numbers go in groups of seven bits,
// the lowest first; texts and lists follow their length; what may be absent follows a number that says whether it is.

namespace vouch {
inline namespace v0 {

namespace detail {

inline constexpr std::uint64_t entry_format = 1;

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

struct byte_reader {
    std::string_view left;

    static void check(bool is_sound) {
        if (!is_sound) {
            throw error(error_kind::corrupt, "these bytes are no entry, or none of a format that is known here");
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
            const auto is_there = number();
            check(is_there <= 1);
            if (is_there == 1) {
                pass(value.emplace());
            }
        } else {
            auto size = number();
            check(size <= left.size()); // each takes a byte at least, so nobody asks for more memory than there are
            value.resize(size);
            for (auto& item : value) {
                pass(item);
            }
        }
    }
};

} // namespace detail

template <std::same_as<entry> Entry> // a template, so that only who uses it pays for it
[[nodiscard]] std::string to_bytes(const Entry& e) {
    detail::byte_writer out;
    out.number(detail::entry_format);
    for_each_field([&](auto, const auto& field) { out.pass(field); }, e);
    return std::move(out.out);
}

/// Reads the entry at the beginning of `bytes` and leaves there what comes after it. Throws `corrupt` if there is none.
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
// capabilities; it never lowers any.

namespace vouch {
inline namespace v0 {

struct limits {
    std::size_t name_max = 255;             ///< bytes of a queue, topic, key, group, lane, worker or header name
    std::size_t error_max = 100;            ///< bytes of an error code
    std::size_t payload_max = 1024 * 1024;  ///< bytes of a payload
    std::size_t result_max = 1024 * 1024;   ///< bytes of a result
    std::size_t progress_max = 1024 * 1024; ///< bytes of a progress
    std::size_t trail_max = 32;             ///< ids of a trail
    std::size_t headers_max = 64;           ///< headers of a draft
    std::size_t header_value_max = 4096;    ///< bytes of one header's value
    std::size_t batch_max = 10'000;         ///< items of one call, and the largest `limit` of a claim, list or purge
    duration lease_min{1};                  ///< the shortest lease
    duration lease_max = std::chrono::hours{24 * 366}; ///< the longest lease

    [[nodiscard]] friend constexpr bool operator==(const limits&, const limits&) noexcept = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/capability.hpp
// What a store can do beyond the base contract. A capability that is off is refused, never ignored: a draft that uses
// it is `unsupported` and nothing is written.

namespace vouch {
inline namespace v0 {

/// The level of the contract these headers describe. A store declares the level it was written for.
inline constexpr int contract_level = 1;

struct capabilities {
    bool groups = false;  ///< `draft::group`: the settle that completes a group says so
    bool lanes = false;   ///< `draft::lane`: one claimed at a time, in sequence
    bool wakes = false;   ///< models `waking_store`: one may wait for new work
    bool durable = false; ///< committed work survives the process and the machine
    bool shared = false;  ///< several handles, threads or processes may use the same stored work
    vouch::limits limits{};

    [[nodiscard]] friend constexpr bool operator==(const capabilities&, const capabilities&) noexcept = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/outcome.hpp
// What a runner says became of a claim. A settle pairs an outcome with the ticket that entitles to it.

namespace vouch {
inline namespace v0 {

/// Done for good.
struct succeed {
    std::string result{};
    [[nodiscard]] friend bool operator==(const succeed&, const succeed&) = default;
};

/// Failed; try again at `at`.
struct retry {
    std::string error{};
    time_point at{};
    [[nodiscard]] friend bool operator==(const retry&, const retry&) = default;
};

/// Failed for good. The result may carry a participant's failure reply.
struct bury {
    std::string error{};
    std::optional<std::string> result{};
    [[nodiscard]] friend bool operator==(const bury&, const bury&) = default;
};

/// Handed back untouched: costs no attempt, and says nothing about earlier lapses. With `at` it is snoozed until then,
/// else its due time stays.
struct release {
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const release&, const release&) = default;
};

/// A checkpoint: progress replaced, attempts back to 0, due at `at` (unset: now). Only when progress moved; "nothing to
/// do yet" is a release with `at`.
struct advance {
    std::string progress{};
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const advance&, const advance&) = default;
};

using outcome = std::variant<succeed, retry, bury, release, advance>;

/// `std::visit` for an outcome, at a fraction of what that costs the compiler.
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

struct settle {
    vouch::ticket ticket{};
    vouch::outcome outcome{};
    [[nodiscard]] friend bool operator==(const settle&, const settle&) = default;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/query.hpp
// Reading several entries: exactly one path (each has an index behind it), then filters, then a page by sequence.
//
//   for (auto page = query::dead("mail");; page.after = found.back().sequence) { ... }

namespace vouch {
inline namespace v0 {

struct query {
    enum class path : std::uint8_t {
        group,  ///< members of `group`, across queues
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
    std::string topic{};                 ///< exactly this one; empty: any
    std::uint64_t after = 0;             ///< only sequences greater than this
    std::size_t limit = 100;             ///< 0 finds nothing
    bool payloads = false;               ///< false: payloads come back empty

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
// What is asked of a claim and of a purge. Time is always an argument.

namespace vouch {
inline namespace v0 {

/// Eligible is exactly `gate <= now`; the first `limit` by (gate, sequence) are taken.
struct claim_request {
    std::string queue{};
    std::size_t limit = 1; ///< 0 takes nothing
    time_point now{};
    duration lease = std::chrono::minutes{5};
    std::string worker{}; ///< who asks; may be empty
    vouch::id only{};     ///< nil: any; else this entry alone, if it is eligible and in the queue
};

/// Removes at most `limit` terminal entries of the queue that ended before `before`, oldest first (by end, then by
/// sequence), and none that a live entry still needs: as its parent, or in its group.
///
/// An entry and its successors, all generations, go by the newest of them: its end and state are what `before` and
/// `state` ask about, and its place among the others is theirs. They go eldest first, so that a limit that cuts through
/// them leaves the newest; if one of them is needed, all are kept, and use up nothing of the limit. What is left of
/// them after such a cut has no predecessor, even if another entry is given that id.
///
/// A purge may look at a bounded number of ended entries, so that those which are needed cost it no more than its limit
/// allows, however many they are: at the oldest 1,000 at least, and at `limit` others that earlier purges have not
/// looked at. So fewer than `limit` removed does not mean that none is left: call again; every call that removes fewer
/// gets further by `limit` entries, and begins again with the oldest when it has seen all.
struct purge_request {
    std::string queue{};
    time_point before{};
    std::size_t limit = 1000;
    std::optional<vouch::state> state{}; ///< unset: succeeded and dead; else only those that ended so
};

namespace detail {

/// How many ended entries a purge of our stores looks at in each of its parts: among the oldest, and among those that
/// earlier purges have not looked at.
[[nodiscard]] constexpr std::size_t purge_looks(std::size_t limit) noexcept { return 1000 + 2 * limit; }

} // namespace detail

} // namespace v0
} // namespace vouch

// ---- vouch/contract/verdict.hpp
// What the store says became of a write. No write goes without a condition, and none without an answer.

namespace vouch {
inline namespace v0 {

/// Only `applied` changes anything.
enum class verdict : std::uint8_t {
    applied,
    repeated, ///< nothing left to do: the ticket is used up, the entry already due, marked or dead
    stale,    ///< not entitled: another claim has taken over, or the entry's state does not allow it
    unknown,  ///< no such entry
};

inline constexpr std::array<verdict, 4> all_verdicts{verdict::applied, verdict::repeated, verdict::stale,
                                                     verdict::unknown};

[[nodiscard]] constexpr std::string_view name_of(verdict v) noexcept {
    switch (v) {
    case verdict::applied: return "applied";
    case verdict::repeated: return "repeated";
    case verdict::stale: return "stale";
    case verdict::unknown: return "unknown";
    }
    return "?";
}

/// What became of one settle.
struct settlement {
    vouch::verdict verdict = vouch::verdict::unknown;
    bool group_completed = false; ///< this settle took the group's members not yet succeeded from one to zero
    [[nodiscard]] friend constexpr bool operator==(const settlement&, const settlement&) noexcept = default;
};

/// What became of one draft.
struct receipt {
    enum class kind : std::uint8_t {
        inserted,
        duplicate, ///< nothing written: `id` is stored already, by its id, its key, or as the predecessor's successor
        refused,   ///< nothing written: the predecessor is absent, not dead, or of another queue
    };
    receipt::kind what = kind::refused;
    vouch::id id{}; ///< inserted: the draft's; duplicate: the stored entry's; refused: nil

    [[nodiscard]] friend constexpr bool operator==(const receipt&, const receipt&) noexcept = default;
};

[[nodiscard]] constexpr std::string_view name_of(receipt::kind k) noexcept {
    switch (k) {
    case receipt::kind::inserted: return "inserted";
    case receipt::kind::duplicate: return "duplicate";
    case receipt::kind::refused: return "refused";
    }
    return "?";
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/store.hpp
// The contract a store fulfils, as four concepts: `reader`, `writer`, `transaction`, `store`; and `waking_store` for
// the capability `wakes`. The smallest model is the memory store (`backends/memory`); `explain.hpp` tells in plain
// words what a type lacks; the conformance suite checks what no concept can say.
//
// For all operations:
//  1. Time and ids are arguments. No store reads a clock or makes an id.
//  2. No write without a condition and a verdict. Never read a set, decide, then write by id.
//  3. Batches answer per item, in order. An invalid item rejects its whole batch before anything is written.
//  4. Facts of the domain are values; faults throw `vouch::error`.
//  5. After any error but `invalid_argument` the transaction is closed, as after commit and when moved from. Using a
//     closed one throws `misuse`.
//  6. Any operation or commit of a transaction may throw `conflict`: it is rolled back, its verdicts are void, and it
//  is
//     to be repeated from `begin` (`transact` does). Of the parties to a conflict one gets through.
//  7. An error that `is_in_doubt` comes from commit only: claims of that transaction are forgotten (never run, settled,
//     extended or released), settles are repeated whole under the same tickets (`repeated` or `unknown`: it had landed;
//     `stale`: lost), enqueues are repeated whole with the same ids (duplicate of the same id: it had landed).
//
// Not required: priorities, fairness between lanes, gapless sequences, atomicity across stores.

namespace vouch {
inline namespace v0 {

/// Looks without changing.
///  1. `find` gives the entry with its payload, or nothing.
///  2. `list` gives what the query says, by ascending sequence.
///  3. `counts` has every state, zero-filled. It may cost the queue's rows; nothing on the way of emit, claim or settle
///     calls it.
///  4. `next_due` is the smallest gate of the queue: lease end if claimed, none if terminal or blocked in its lane,
///  else
///     due_at. It may be in the past.
template <class R>
concept reader = requires(const R& r, const id& an_id, const query& q, std::string_view queue) {
    { r.find(an_id) } -> std::same_as<std::optional<entry>>;
    { r.list(q) } -> std::same_as<std::vector<entry>>;
    { r.counts(queue) } -> std::same_as<state_counts>;
    { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
};

/// Changes, within a transaction. Its reads see its own writes.
///  1. `enqueue`: an id that is stored is a duplicate of itself; a (queue, key) that is stored, in any generation, is a
///     duplicate of the newest; a successor is inserted once per dead predecessor. A later draft of the same batch sees
///     the earlier ones.
///  2. `claim`: eligible is exactly `gate <= now`; takes the first `limit` by (gate, sequence); returns them by
///     (due_at, sequence), as they are after the claim. It may pass over entries another open transaction has touched,
///     and only those. It is an attempt, unless it takes over after the first lapse in a row. Its cost does not grow
///     with future, blocked, claimed or terminal entries.
///  3. `settle`: by ticket alone, never by time. When an entry becomes terminal, by any verb, its parent is nudged and
///  the
///     next entry of its lane gets its gate, in the same transaction.
///  4. `extend`: lease_until = max(lease_until, now + lease).
///  5. `nudge`, `cancel`: as `lifecycle.hpp` says.
///  6. `purge`: removes terminal entries that no live entry needs, as `purge_request` says. Returns how many. It
///     may look at a bounded number of entries, and then goes on where it stopped when it is called again.
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

/// A writer of its own: nothing of it is seen before `commit`, all of it after; destruction without commit leaves
/// nothing, dedup keys included. It may move between threads and is used by one at a time.
template <class T>
concept transaction = writer<T> && std::movable<T> && requires(T& tx) {
    { tx.commit() } -> std::same_as<void>;
};

/// Holds the work. Safe for concurrent `begin` and reads. Reads on the store see what is committed and never wait for
/// writers; `begin` may wait for another transaction to end.
template <class S>
concept store = reader<S> && transaction<typename S::transaction> && requires(S& s, const S& looked_at) {
    { s.begin() } -> std::same_as<typename S::transaction>;
    { looked_at.capabilities() } -> std::same_as<capabilities>;
    { S::contract_level } -> std::convertible_to<int>;
};

/// Capability `wakes`: a number per queue that changes with every commit that may have brought work nearer, and a wait
/// for it to differ from the one seen. Only ever a hint: dropping every wake-up loses nothing.
template <class S>
concept waking_store = store<S> &&
    requires(S& s, std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
    { s.wakes(queue) } -> std::same_as<std::uint64_t>;
    { s.wait(queue, seen, at_most, stop) } -> std::same_as<std::uint64_t>;
};

} // namespace v0
} // namespace vouch

// ---- vouch/contract/explain.hpp
// One plain sentence per missing operation, at compile time. Templates of vouch that take a store say
// `static_assert(explain_store<S>())` first, so that an author reads sentences, not a concept's insides.

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

/// True for a writer; for any other type the compiler prints what it lacks.
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

/// True for a store; for any other type the compiler prints what it lacks.
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
// How a saga's entry is told from any other, for those who must treat it differently without knowing more of sagas: a
// saga may have done work that has to be undone, so it is never buried, cancelled or started afresh like another entry.
// A look at the first bytes of the progress; nothing is decoded.

namespace vouch {
inline namespace v0 {

/// How the progress of every saga begins; the number of its format follows.
inline constexpr std::string_view saga_progress_mark = "saga";

/// Whether these bytes claim to be the progress of a saga. The format is a control character, so that a handler's own
/// text that begins with the word is not taken for one.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    constexpr auto size = saga_progress_mark.size();
    return bytes.size() > size && bytes.substr(0, size) == saga_progress_mark && bytes[size] > '\0' &&
           bytes[size] < ' ';
}

/// Whether an entry is a saga: one that was begun by `saga_definition::begin`, or has passed its first checkpoint.
[[nodiscard]] inline bool is_saga(const entry& e) noexcept { return is_saga_progress(e.progress); }

} // namespace v0
} // namespace vouch

// ---- vouch/contract/lifecycle.hpp
// The lifecycle as data and as one pure function. `transitions` lists every move an entry can make, `verdicts` every
// answer to every attempt at one; `apply` carries them out on a value, so a simple store reads an entry, applies, and
// writes it back under the fence.
//
// Lanes are not seen here: that a blocked entry cannot be claimed is the business of whoever keeps the gates.

namespace vouch {
inline namespace v0 {

enum class verb : std::uint8_t { claim, succeed, retry, bury, release, advance, extend, nudge, cancel };

inline constexpr std::array<verb, 9> all_verbs{verb::claim,   verb::succeed, verb::retry, verb::bury,  verb::release,
                                               verb::advance, verb::extend,  verb::nudge, verb::cancel};

struct transition {
    state from;
    vouch::verb verb;
    state to;
    [[nodiscard]] friend constexpr bool operator==(const transition&, const transition&) noexcept = default;
};

/// Every move there is. A claimed entry may be claimed or cancelled only when its lease is over.
inline constexpr std::array transitions{
    transition{state::pending, verb::claim, state::claimed},
    transition{state::retrying, verb::claim, state::claimed},
    transition{state::claimed, verb::claim, state::claimed},
    transition{state::claimed, verb::succeed, state::succeeded},
    transition{state::claimed, verb::retry, state::retrying},
    transition{state::claimed, verb::bury, state::dead},
    transition{state::claimed, verb::release, state::pending},
    transition{state::claimed, verb::release, state::retrying},
    transition{state::claimed, verb::advance, state::pending},
    transition{state::claimed, verb::extend, state::claimed},
    transition{state::pending, verb::nudge, state::pending},
    transition{state::retrying, verb::nudge, state::retrying},
    transition{state::claimed, verb::nudge, state::claimed},
    transition{state::pending, verb::cancel, state::dead},
    transition{state::retrying, verb::cancel, state::dead},
    transition{state::claimed, verb::cancel, state::dead},
};

[[nodiscard]] constexpr bool is_allowed(state from, verb v, state to) noexcept {
    return std::find(transitions.begin(), transitions.end(), transition{from, v, to}) != transitions.end();
}

/// How an entry stands at a given time.
enum class standing : std::uint8_t { waiting, held, lapsed, succeeded, dead, absent };

[[nodiscard]] constexpr standing standing_of(const life& l, time_point now) noexcept {
    switch (l.state) {
    case state::pending:
    case state::retrying: return standing::waiting;
    case state::claimed: return l.lease_until && *l.lease_until <= now ? standing::lapsed : standing::held;
    case state::succeeded: return standing::succeeded;
    case state::dead: break;
    }
    return standing::dead;
}

/// What is asked, as far as the answer depends on it.
enum class asked : std::uint8_t {
    settle,        ///< settle or extend, with the entry's present epoch
    settle_behind, ///< settle or extend, with any other epoch
    nudge,
    nudge_again, ///< already due, or already marked
    cancel,
};

/// Rows: `asked`. Columns: `standing`.
inline constexpr std::array<std::array<verdict, 6>, 5> verdicts = [] {
    using enum verdict;
    return std::array<std::array<verdict, 6>, 5>{{
        //                 waiting   held      lapsed    succeeded dead      absent
        /* settle        */ {repeated, applied, applied, repeated, repeated, unknown},
        /* settle_behind */ {stale, stale, stale, stale, stale, unknown},
        /* nudge         */ {applied, applied, applied, stale, stale, unknown},
        /* nudge_again   */ {repeated, repeated, repeated, stale, stale, unknown},
        /* cancel        */ {applied, stale, applied, stale, repeated, unknown},
    }};
}();

[[nodiscard]] constexpr verdict verdict_on(asked what, standing at) noexcept {
    return verdicts[static_cast<std::size_t>(what)][static_cast<std::size_t>(at)];
}

namespace detail {

/// What every end of a claim has in common. `due` is when the entry would run next; a nudge that met the claim wins.
inline void end_claim(life& l, state to, time_point due, time_point now) {
    l.due_at = l.woken ? std::min(due, now) : due;
    l.state = to;
}

struct settle_on {
    life& l;
    time_point now;

    void operator()(const succeed& o) const {
        l.state = state::succeeded;
        l.lapses = 0;
        l.result = o.result;
    }
    void operator()(const retry& o) const {
        end_claim(l, state::retrying, o.at, now);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
    }
    void operator()(const bury& o) const {
        l.state = state::dead;
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
        l.result = o.result;
    }
    void operator()(const release& o) const {
        l.attempts -= 1;
        end_claim(l, l.attempts == 0 ? state::pending : state::retrying, o.at.value_or(l.due_at), now);
    }
    void operator()(const advance& o) const {
        l.attempts = 0;
        l.lapses = 0;
        l.progress = o.progress;
        end_claim(l, state::pending, o.at.value_or(now), now);
    }
};

[[nodiscard]] inline verdict verdict_on_ticket(const life& l, std::uint64_t epoch, time_point now) noexcept {
    return verdict_on(epoch == l.epoch ? asked::settle : asked::settle_behind, standing_of(l, now));
}

} // namespace detail

/// The gate of an entry that is not blocked in a lane: when a claim may take it; none if it is terminal.
[[nodiscard]] constexpr std::optional<time_point> gate_of(const life& l) noexcept {
    if (is_terminal(l.state)) {
        return std::nullopt;
    }
    return l.state == state::claimed ? l.lease_until : l.due_at;
}

/// Carries out a claim. Requires that the entry's gate is at or before `request.now`.
///
/// A claim counts as an attempt, except one that takes over after a first lapse: the process may have died of another
/// entry it held, so that lapse is not held against this one. Later lapses in a row are: a runner handles an entry with
/// a lapse alone, so an entry that kills its process every time still runs out of attempts.
inline void apply(life& l, const claim_request& request) {
    const bool is_takeover = l.state == state::claimed;
    l.attempts += is_takeover && l.lapses == 0 ? 0U : 1U;
    l.lapses += is_takeover ? 1U : 0U;
    l.state = state::claimed;
    l.epoch += 1;
    l.lease_until = request.now + request.lease;
    l.woken = false;
    l.worker = request.worker;
    l.last_attempt_at = request.now;
    l.updated_at = request.now;
}

/// Settles by ticket alone, never by time: a lease that is over but not taken over still settles.
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

/// Prolongs a claim; never shortens it.
struct extend {
    vouch::ticket ticket{};
    duration lease{};
};

[[nodiscard]] inline verdict apply(life& l, const extend& x, time_point now) {
    const auto v = detail::verdict_on_ticket(l, x.ticket.epoch, now);
    if (v == verdict::applied) {
        l.lease_until = std::max(*l.lease_until, now + x.lease);
        l.updated_at = now;
    }
    return v;
}

/// Makes an entry due now; one that is claimed is marked, and becomes due when its claim ends.
struct nudge {};

[[nodiscard]] inline verdict apply(life& l, nudge, time_point now) {
    const bool is_claimed = l.state == state::claimed;
    const bool again = is_claimed ? l.woken : l.due_at <= now;
    const auto v = verdict_on(again ? asked::nudge_again : asked::nudge, standing_of(l, now));
    if (v == verdict::applied) {
        if (is_claimed) {
            l.woken = true;
        } else {
            l.due_at = now;
        }
        l.updated_at = now;
    }
    return v;
}

/// Ends an entry nobody holds. The epoch moves on if it was claimed, so that the lapsed ticket is stale.
struct cancel {
    std::string_view error{};
};

[[nodiscard]] inline verdict apply(life& l, const cancel& c, time_point now) {
    const auto v = verdict_on(asked::cancel, standing_of(l, now));
    if (v == verdict::applied) {
        l.epoch += l.state == state::claimed ? 1U : 0U;
        l.state = state::dead;
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
// What a query asks for, as a pure function, for stores that look at entries one by one.

namespace vouch {
inline namespace v0 {

/// Whether an entry is on the query's path, passes its filters and comes after `after`. How many of those are given, in
/// which order, and whether with their payloads, is left to the store. Requires a valid query: one that names what its
/// path needs and nothing else, so that whatever is empty may be anything.
[[nodiscard]] inline bool matches(const entry& e, const query& q) noexcept {
    return (q.queue.empty() || q.queue == e.queue) && (q.key.empty() || q.key == e.key) &&
           (q.group.empty() || q.group == e.group) && (q.parent.is_nil() || q.parent == e.parent) &&
           (q.by != query::path::dead || e.state == state::dead) && (q.by != query::path::live || is_live(e.state)) &&
           (!q.state || *q.state == e.state) && (q.topic.empty() || q.topic == e.topic) && q.after < e.sequence;
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/transact.hpp
// One-liners over a store: the bounded loop that repeats a transaction on `conflict`, and the operations people call on
// their own.

namespace vouch {
inline namespace v0 {

inline constexpr int transact_tries = 16;

/// Runs `work(tx)` in a transaction of its own, commits, and returns what `work` returned. On `conflict` everything is
/// repeated from `begin`, at most `transact_tries` times in all; any other error goes through, and so does an exception
/// of `work`, which leaves nothing behind. Because of the repeats `work` should touch nothing but the transaction.
template <class Store, class Work>
auto transact(Store& store, Work&& work) {
    static_assert(explain_store<Store>());
    using transaction = typename Store::transaction;
    for (int left = transact_tries - 1;; --left) {
        try {
            transaction tx = store.begin();
            if constexpr (std::is_void_v<std::invoke_result_t<Work&, transaction&>>) {
                work(tx);
                tx.commit();
                return;
            } else {
                auto result = work(tx);
                tx.commit();
                return result;
            }
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 0) {
                throw;
            }
        }
    }
}

/// Enqueues in a transaction of its own. A commit in doubt is repeated with the same ids, so the drafts are stored
/// once; a draft that turns out to be stored by then counts as inserted. If the repeat fails, its error is in doubt.
template <class Store>
std::vector<receipt> enqueue(Store& store, std::span<const draft> drafts, time_point now) {
    bool in_doubt = false;
    for (int left = transact_tries - 1;; --left) {
        try {
            auto receipts = transact(store, [&](auto& tx) { return tx.enqueue(drafts, now); });
            for (std::size_t i = 0; in_doubt && i < receipts.size(); ++i) {
                if (receipts[i].id == drafts[i].id) {
                    receipts[i].what = receipt::kind::inserted;
                }
            }
            return receipts;
        } catch (const error& e) {
            if (in_doubt && !e.is_in_doubt()) {
                // The repeat says nothing about the commit it was to resolve.
                throw error(e.kind(), e.what(), {.in_doubt = true, .code = e.code()});
            }
            if (!e.is_in_doubt() || left == 0) {
                throw;
            }
            in_doubt = true;
        }
    }
}

template <class Store>
std::vector<entry> claim(Store& store, const claim_request& request) {
    return transact(store, [&](auto& tx) { return tx.claim(request); });
}

namespace detail {

/// `fresh` names the successor, which begins with this progress. An entry with a parent is a command of a saga: its end
/// has been seen and acted upon, so the saga is what can be carried on.
template <class Writer>
receipt replace_dead(Writer& tx, const std::optional<entry>& found, const id& fresh, time_point now,
                     std::string progress) {
    if (!found || found->state != state::dead || !found->parent.is_nil()) {
        return {};
    }
    const std::array drafts{draft{.id = fresh,
                                  .queue = found->queue,
                                  .topic = found->topic,
                                  .payload = found->payload,
                                  .predecessor = found->id,
                                  .attempts_max = found->attempts_max,
                                  .trail = found->trail,
                                  .headers = found->headers,
                                  .progress = std::move(progress)}};
    return tx.enqueue(drafts, now).front();
}

} // namespace detail

/// Gives a dead entry a successor that starts afresh: attempts 0, due now, no expiry. The dead one never changes.
/// Inserted; duplicate of the successor it already has; or refused, if it is absent, not dead, has a parent, or is a
/// saga: that would do its work a second time under other keys. `resume` carries a saga on.
template <class Writer>
[[nodiscard]] receipt requeue(Writer& tx, const id& dead, const id& fresh, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(dead);
    return found && is_saga(*found) ? receipt{} : detail::replace_dead(tx, found, fresh, now, {});
}

/// As `requeue`, but the successor goes on from the dead entry's last checkpoint. Sagas are not refused.
template <class Writer>
[[nodiscard]] receipt resume(Writer& tx, const id& dead, const id& fresh, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(dead);
    return detail::replace_dead(tx, found, fresh, now, found ? found->progress : std::string{});
}

} // namespace v0
} // namespace vouch

// ---- vouch/contract/validate.hpp
// Validation at the boundary, in one place, called by every store before it writes anything. What is wrong is refused
// with `invalid_argument` (or `unsupported`), naming the field, the limit and the size given; never the content.

namespace vouch {
inline namespace v0 {

namespace detail {

/// Says where in the arguments a field stands, but only once something is wrong with it: the way past is free.
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

// What a refusal says is put together apart from the checks: every entry passes a dozen of them, so they are inlined.

inline void check_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    if (given > limit) {
        refuse_size(f, given, limit, unit);
    }
}

inline void check_name(const field& f, std::string_view name, std::size_t limit) {
    check_size(f, name.size(), limit, "bytes");
    for (std::size_t i = 0; i < name.size(); ++i) {
        const auto c = static_cast<unsigned char>(name[i]);
        if (c < 0x20 || c == 0x7f) {
            refuse_control_character(f, i);
        }
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
                      std::to_string(limit.lease_min.count()) + " to " + std::to_string(limit.lease_max.count()) +
                      " us");
    }
}

/// So that `now + lease` is a time: a lease must end after it began.
inline void check_room(const field& f, time_point now, duration lease) {
    if (now > time_point::max() - lease) {
        refuse(f, "is too late, the lease would end after the last representable time");
    }
}

inline void check_headers(const draft& d, std::size_t index, const limits& limit) {
    check_size({"draft", "headers", index}, d.headers.size(), limit.headers_max, "headers");
    for (const auto& [name, value] : d.headers) {
        check_required_name({"draft", "header name", index}, name, limit.name_max);
        check_size({"draft", "header value", index}, value.size(), limit.header_value_max, "bytes");
    }
}

inline void check_combination(const draft& d, std::size_t index) {
    if (!d.predecessor.is_nil()) {
        constexpr std::string_view because = "is taken over from the predecessor and must be empty";
        check_empty({"draft", "key", index}, d.key.empty(), because);
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
    }
    if (d.result) {
        constexpr std::string_view because = "cannot be set on a draft that carries a result";
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
        check_empty({"draft", "parent", index}, d.parent.is_nil(), because);
        check_empty({"draft", "predecessor", index}, d.predecessor.is_nil(), because);
    }
}

inline void check_capable(const draft& d, std::size_t index, const capabilities& can) {
    const auto unsupported = [&](std::string_view name) {
        throw error(error_kind::unsupported, field{"draft", name, index}.str() + " is not supported by this store");
    };
    if (!d.group.empty() && !can.groups) {
        unsupported("group");
    }
    if (!d.lane.empty() && !can.lanes) {
        unsupported("lane");
    }
}

} // namespace detail

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

inline void validate(std::span<const draft> drafts, const capabilities& can) {
    detail::check_size({"enqueue", "drafts"}, drafts.size(), can.limits.batch_max, "items");
    for (std::size_t i = 0; i < drafts.size(); ++i) {
        validate(drafts[i], can, i);
    }
}

inline void validate(const claim_request& r, const limits& limit) {
    detail::check_required_name({"claim", "queue"}, r.queue, limit.name_max);
    detail::check_name({"claim", "worker"}, r.worker, limit.name_max);
    detail::check_size({"claim", "limit"}, r.limit, limit.batch_max, "items");
    detail::check_lease({"claim", "lease"}, r.lease, limit);
    detail::check_room({"claim", "now"}, r.now, r.lease);
}

namespace detail {

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

inline void validate(const purge_request& r, const limits& limit) {
    detail::check_required_name({"purge", "queue"}, r.queue, limit.name_max);
    detail::check_size({"purge", "limit"}, r.limit, limit.batch_max, "items");
    if (r.state && !is_terminal(*r.state)) {
        detail::refuse({"purge", "state"},
                       "is " + std::string(name_of(*r.state)) + ", only terminal entries are purged");
    }
}

inline void validate(const query& q, const limits& limit) {
    constexpr std::string_view foreign = "is not part of this path and must be empty";
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

// ---- vouch/memory/hash_index.hpp
// A flat hash multi-index of items: open addressing, linear probing, no allocation per item. Erasing closes the gap, so
// it never allocates and never throws.

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

    /// Not an error if it is not there.
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

    /// Moves later cells of the run back over the hole, unless that would put one before its home.
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

// ---- vouch/memory/sequence_list.hpp
// Items in order of their sequence: the members of a queue, a group, a lane, or the children of a parent. New items
// come at the end, because sequences only grow. Erasing leaves a gap that `restore` can fill again without allocating;
// `tidy` closes the gaps once nobody can want them back.

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

    /// A place that `restore` will fill.
    void append_gap(std::uint64_t sequence) {
        places_.push_back({sequence, nullptr});
        ++gaps_;
    }

    /// Not an error if it is not there.
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

// ---- vouch/memory/heap.hpp
// An eight-way heap by (time, sequence) whose items know their place, so that any of them can be taken out in O(log n).
// Room is made ahead with `make_room`; after that nothing allocates and nothing throws.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

inline constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

struct moment {
    time_point at{};
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const moment&, const moment&) noexcept = default;
};

/// `Item` has a public `place` with the `moment when` it is ordered by and its index `in_heap`, `nowhere` while it is
/// in no heap.
template <class Item>
class heap {
  public:
    struct node {
        moment when; // beside the item, so that a comparison touches no item
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

// ---- vouch/memory/timeline.hpp
// Items by (time, sequence), the earliest at hand. Work mostly comes in order: what is enqueued is due now, leases end
// in the order they were taken, retries wait equally long. So an item first tries to stand near the end of one of a few
// sorted lists, where coming and going is O(1); only one that fits in none of them goes into the heap behind, O(log n).
//
// Room is made ahead with `make_room`; after that nothing allocates and nothing throws.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// `Item` has a public `timeline_place<Item> place` and is in one timeline at a time.
template <class Item>
struct timeline_place {
    moment when{};
    Item* before = nullptr; ///< in its list
    Item* after = nullptr;
    std::size_t in_heap = nowhere; ///< `nowhere`: it is in a list, or not in a timeline at all
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
    static constexpr std::size_t lists = 3; // what is due now, leases, retries
    static constexpr int patience = 8;      // steps from the end of a list

    /// An item comes before none.
    [[nodiscard]] static bool is_before(const Item* a, const Item* b) noexcept {
        return a != nullptr && (b == nullptr || a->place.when < b->place.when);
    }

    struct list {
        Item* first = nullptr;
        Item* last = nullptr;

        [[nodiscard]] bool take(Item& item) noexcept {
            auto* before = last;
            for (int step = 0; before != nullptr && item.place.when < before->place.when; ++step) {
                if (step == patience) {
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

// ---- vouch/memory/row.hpp
// A stored entry with its places in the indexes, and the indexes it has places in.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// Looks up by `std::string_view` without making a string.
struct name_hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept {
        return std::hash<std::string_view>{}(name);
    }
};
template <class T>
using by_name = std::unordered_map<std::string, T, name_hash, std::equal_to<>>;

/// The rows and indexes of a store with this seam: one template, so that who includes the store without using it does
/// not pay for it.
template <class Seam>
struct shelf {
    struct queue_index;
    struct lane_index;
    struct group_index;
    struct family_index;

    struct row {
        row() = default;
        /// The entry comes into being where it stays: it is too large to be moved for nothing.
        template <class Make>
        explicit row(const Make& make) : entry(make()) {}

        vouch::entry entry;

        queue_index* queue = nullptr;
        lane_index* lane = nullptr;     ///< null: none, or terminal since an earlier commit
        group_index* group = nullptr;   ///< null: none
        family_index* family = nullptr; ///< null: no parent
        row* successor = nullptr;
        timeline_place<row> place;         ///< in the queue's `gates` while live, in `ended_in` while terminal
        timeline<row>* ended_in = nullptr; ///< one of the queue's `ended`
        bool entered = false;              ///< counts and timelines know of it

        // Towards the open transaction.
        std::size_t record = nowhere; ///< in the journal, if it touched the row
        bool fresh = false;           ///< it inserted the row: readers do not see it
        bool purged = false;          ///< it purged the row: it does not see it, readers do

        row* next_free = nullptr;
    };

    /// Live entries of one (queue, lane). The first is the head and has a gate; the others are blocked and have none.
    struct lane_index {
        sequence_list<row> live;
        row* head = nullptr;  ///< the first, whose gate is in the queue's `gates`
        std::size_t rows = 0; ///< that point here
    };

    /// Members of one group, across queues.
    struct group_index {
        sequence_list<row> members;
        std::size_t live = 0;
        /// Not yet succeeded; a dead member with a successor does not count, its successor does.
        std::size_t unfinished = 0;
    };

    /// Entries with the same parent.
    struct family_index {
        sequence_list<row> children;
        std::size_t live = 0;
    };

    /// Terminal entries of one state, by (updated_at, sequence). Purges look at them in rounds, so that those which are
    /// still needed are not looked at again before all others were.
    struct ended_index {
        [[nodiscard]] timeline<row>& waiting() noexcept { return lines[round]; }    ///< to be looked at in this round
        [[nodiscard]] timeline<row>& passed() noexcept { return lines[1 - round]; } ///< looked at, and needed

        std::array<timeline<row>, 2> lines;
        std::size_t round = 0;
    };

    struct queue_index {
        sequence_list<row> all;
        timeline<row> gates; ///< what a claim looks at: live entries that are not blocked, by (gate, sequence)
        ended_index succeeded;
        ended_index dead;
        by_name<lane_index> lanes;
        state_counts counts;
        std::uint64_t wakes = 0; ///< grows with every commit that may have brought work nearer

        [[nodiscard]] ended_index& ended(state as) noexcept { return as == state::dead ? dead : succeeded; }

        [[nodiscard]] std::optional<time_point> next_due() const noexcept {
            const auto* const first = gates.first();
            return first == nullptr ? std::nullopt : std::optional{first->place.when.at};
        }

        /// The first row a claim may take, or null.
        [[nodiscard]] row* first_open(time_point now) const noexcept {
            auto* const first = gates.first();
            return first != nullptr && first->place.when.at <= now ? first : nullptr;
        }

        /// What readers see while a transaction that touched the queue is open.
        struct snapshot {
            state_counts counts;
            std::optional<time_point> next_due;
        };
        std::optional<snapshot> committed;
        bool stirred = false; ///< that transaction may have brought work nearer
    };
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/seam.hpp
// Where a test may step in between two internal steps of the store: a seam is called after each row that was inserted,
// changed or removed, and may throw. The default does nothing and costs nothing. A seam that has `looked()` hears of
// every row a purge looks at, and one that has a static `begin_limit` says how long `begin` waits.

namespace vouch {
inline namespace v0 {
namespace memory {

struct no_seam {
    void operator()(std::string_view) const noexcept {}
};

} // namespace memory
} // namespace v0
} // namespace vouch

// ---- vouch/memory/ledger.hpp
// All rows, their indexes, and the journal of the one open transaction. Three primitives change it: `insert`, `change`
// and `remove`; `commit` forgets the journal and `roll_back` undoes it. It knows nothing of verbs and takes no lock.
//
// Rows change in place. Readers of the committed state meanwhile see each touched row as the journal remembers it.
//
// `Seam` is for tests (`seam.hpp`).
//
// Invariants: 1. A row is in `gates` exactly if it is live and not blocked, in one of `ended` exactly if it is
// terminal.
//             2. Whatever may throw comes before the first index is touched, or leaves what `roll_back` can undo.
//             3. `commit` and `roll_back` neither throw nor allocate.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

enum class view : bool {
    committed, ///< of everybody outside the open transaction
    own,       ///< of the open transaction
};

template <class Seam>
class ledger {
  public:
    using row = typename shelf<Seam>::row;
    using queue_index = typename shelf<Seam>::queue_index;
    using lane_index = typename shelf<Seam>::lane_index;
    using group_index = typename shelf<Seam>::group_index;
    using family_index = typename shelf<Seam>::family_index;

    explicit ledger(Seam seam = {}) : seam_(std::move(seam)) {}

    // Looking.

    /// What the view sees of a row: its life, or null if the row does not exist for it.
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
        return by_id_.find(std::hash<id>{}(wanted),
                           [&](const row& r) { return r.entry.id == wanted && seen(r, v) != nullptr; });
    }

    /// The newest generation of (queue, key).
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, view v) const {
        return by_key_.find(key_hash(queue, key), [&](const row& r) {
            return r.queue == &queue && r.entry.key == key && seen(r, v) != nullptr && !has_successor(r, v);
        });
    }

    [[nodiscard]] bool has_successor(const row& r, view v) const noexcept {
        return r.successor != nullptr && seen(*r.successor, v) != nullptr;
    }

    /// The dead row this one replaced, or null: there was none, it is purged, or another row has its id now.
    [[nodiscard]] row* predecessor_of(const row& r, view v) const {
        auto* const found = r.entry.predecessor.is_nil() ? nullptr : find(r.entry.predecessor, v);
        return found != nullptr && found->successor == &r ? found : nullptr;
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return find_in(queues_, name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return find_in(groups_, name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return find_in(families_, parent); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const auto* const found = find_queue(queue);
        return found == nullptr ? 0 : found->wakes;
    }

    /// Names of queues that have held anything.
    [[nodiscard]] std::vector<std::string> queue_names() const {
        std::vector<std::string> names;
        for (const auto& [name, queue] : queues_) {
            names.push_back(name);
        }
        return names;
    }

    [[nodiscard]] queue_index& queue(std::string_view name) {
        if (last_queue_ == nullptr || last_queue_->first != name) {
            last_queue_ = &*queues_.try_emplace(std::string(name)).first;
        }
        return last_queue_->second;
    }

    // Changing.

    /// Stores what `make() -> entry` gives, an entry of this queue, with the next sequence. `predecessor` is the dead
    /// row it replaces, or null.
    template <class Make>
    void insert(std::string_view queue_name, const Make& make, row* predecessor) {
        auto& in = queue(queue_name);
        touch(in);
        row& r = allocate(make);
        try {
            remember(r);
        } catch (...) {
            free(r);
            throw;
        }
        r.fresh = true;
        r.queue = &in;
        r.entry.sequence = ++last_sequence_;
        link(r);
        enter(r);
        if (predecessor != nullptr) {
            remember(*predecessor);
            set_successor(*predecessor, &r);
        }
        seam_("inserted");
    }

    /// Lets `verb(life&) -> verdict` change a row and brings its places up to date. If the verb throws, only
    /// `roll_back` can follow.
    template <class Verb>
    verdict change(row& r, Verb&& verb) {
        touch(*r.queue);
        auto& remembered = remember(r);
        if (!r.fresh && remembered.before == nowhere) {
            lives_.push_back(r.entry);
            remembered.before = lives_.size() - 1;
        }
        leave(r);
        const verdict answer = verb(static_cast<life&>(r.entry));
        enter(r);
        seam_("changed");
        return answer;
    }

    /// Takes a terminal row out.
    void remove(row& r) {
        touch(*r.queue);
        remember(r);
        leave(r);
        r.purged = true;
        seam_("removed");
    }

    /// Notes that a purge has looked at these terminal rows, of this queue and state, and left them.
    void pass(queue_index& in, state as, const std::vector<row*>& looked_at) {
        auto& to = in.ended(as).passed();
        to.make_room(in.all.size());
        for (auto* const r : looked_at) {
            r->ended_in->erase(*r);
            r->ended_in = &to;
            to.push(*r, r->place.when);
        }
    }

    /// All have been looked at; the next purge begins again with the oldest.
    void begin_round(queue_index& in, state as) {
        in.ended(as).passed().make_room(in.all.size());
        in.ended(as).round = 1 - in.ended(as).round;
    }

    /// For tests that count what a purge looks at.
    void looked_at(const row&) {
        if constexpr (requires { seam_.looked(); }) {
            seam_.looked();
        }
    }

    // Ending.

    void commit() noexcept {
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            r.fresh = false;
            if (r.purged) {
                unlink(r);
                free(r);
            } else if (is_terminal(r.entry.state)) {
                leave_lane(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->wakes += q->stirred ? 1U : 0U;
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
                unlink(r);
                free(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->all.tidy();
        }
        forget();
    }

    /// Whether the open transaction may have brought work nearer in any queue.
    [[nodiscard]] bool is_stirred() const noexcept {
        for (const auto* q : touched_queues_) {
            if (q->stirred) {
                return true;
            }
        }
        return false;
    }

  private:
    struct record {
        row* target = nullptr;
        std::size_t before = nowhere; ///< in `lives_`: the committed life, if it may have changed
    };

    template <class Map, class Key>
    [[nodiscard]] static auto find_in(Map& map, const Key& key) -> typename Map::mapped_type* {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }

    [[nodiscard]] static std::size_t key_hash(const queue_index& queue, std::string_view key) noexcept {
        return vouch::detail::mix(std::hash<std::string_view>{}(key) ^ std::hash<const void*>{}(&queue));
    }

    // The journal.

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
            leave(r);
        }
        if (r.fresh) {
            if (auto* const predecessor = predecessor_of(r, view::committed)) {
                set_successor(*predecessor, nullptr);
            }
            return; // unlinked once every other row is what it was
        }
        r.purged = false;
        if (what.before != nowhere) {
            std::swap(static_cast<life&>(r.entry), lives_[what.before]);
        }
        enter(r);
    }

    void forget() noexcept {
        for (auto* q : touched_queues_) {
            q->committed.reset();
            q->stirred = false;
        }
        touched_queues_.clear();
        journal_.clear();
        lives_.clear();
    }

    // Places that depend on what never changes.

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

    /// Not an error if `link` did not come to its end.
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

    /// Says whether the list is empty now.
    static bool take_out(sequence_list<row>& list, std::uint64_t sequence) noexcept {
        list.erase(sequence);
        list.tidy();
        return list.empty();
    }

    // Places and counts that depend on a row's life: `leave` takes back exactly what `enter` did.

    [[nodiscard]] static std::size_t unfinished(const row& r) noexcept {
        return r.entry.state == state::succeeded || (r.entry.state == state::dead && r.successor != nullptr) ? 0U : 1U;
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

    void open_gate(row& r) noexcept {
        r.queue->gates.push(r, {*gate_of(r.entry), r.entry.sequence});
        r.queue->stirred |= r.entry.state != state::claimed;
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

    // Rows stay where they are; free ones are used again.

    template <class Make>
    row& allocate(const Make& make) {
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

    void free(row& r) noexcept {
        r = row();
        r.next_free = free_;
        free_ = &r;
    }

    static constexpr std::size_t rows_per_block = 64;
    std::vector<std::vector<row>> blocks_; // full but the last; none ever grows beyond what it reserved
    row* free_ = nullptr;
    std::uint64_t last_sequence_ = 0;

    hash_index<row> by_id_;
    hash_index<row> by_key_;
    by_name<queue_index> queues_;                                     // none is ever removed
    typename by_name<queue_index>::value_type* last_queue_ = nullptr; // a batch is mostly for one queue
    by_name<group_index> groups_;
    std::unordered_map<id, family_index> families_;

    std::vector<record> journal_;
    std::vector<life> lives_;
    std::vector<queue_index*> touched_queues_;
    Seam seam_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch

// ---- vouch/memory/purging.hpp
// Purge: the newest generations that ended long enough ago, oldest first, each with the dead ones it replaced; none of
// them if a live entry still needs one.
//
// It looks at a bounded number of rows, in two parts: the oldest, and those that purges have not looked at in this
// round. So any number of rows that are still needed costs a purge no more than its limit allows, and hides nothing for
// good.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class purging {
  public:
    using row = typename shelf<Seam>::row;
    using queue_index = typename shelf<Seam>::queue_index;

    purging(ledger<Seam>& in, const purge_request& what) : ledger_(in), request_(what) {}

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
                gone += go_on(*queue, as, request_.limit - gone);
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

    /// Looks at rows of this round, and leaves those behind that are still needed.
    std::size_t go_on(queue_index& queue, state as, std::size_t limit) {
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

    /// One more than may be looked at, if there are so many.
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

    /// The oldest of them, in order, as many as may be looked at.
    void cut(std::vector<row*>& rows) const {
        std::sort(rows.begin(), rows.end(), [](const row* a, const row* b) { return a->place.when < b->place.when; });
        rows.resize(std::min(rows.size(), looks_));
    }

    /// Removes at most `limit`, of the newest generations among `rows` and their predecessors.
    looked remove_of(const std::vector<row*>& rows, std::size_t limit) {
        std::vector<row*> going;
        std::size_t at = 0;
        for (; at < rows.size() && going.size() < limit; ++at) {
            ledger_.looked_at(*rows[at]);
            if (rows[at]->successor == nullptr) {
                add_generations(*rows[at], going);
            }
        }
        going.resize(std::min(going.size(), limit)); // the elder generations go first
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

    /// Adds the newest generation with its predecessors, eldest first; none of them if one is needed.
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

// ---- vouch/memory/reading.hpp
// The reader's operations, as a view of the ledger sees them.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class reading {
  public:
    using row = typename shelf<Seam>::row;

    reading(ledger<Seam>& in, view as) noexcept : ledger_(in), view_(as) {}

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

    /// The rows of every path but `key`, in sequence.
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

// ---- vouch/memory/writing.hpp
// The writer's operations on the ledger but for purge, each as the contract says it. Arguments are valid when they come
// here.

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class writing {
  public:
    using row = typename shelf<Seam>::row;

    explicit writing(ledger<Seam>& in) noexcept : ledger_(in) {}

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

    [[nodiscard]] verdict extend(const ticket& t, time_point now, duration lease) {
        return change(t.id, [&](life& l) { return apply(l, vouch::extend{t, lease}, now); });
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

  private:
    [[nodiscard]] row* find(const id& wanted) const { return ledger_.find(wanted, view::own); }

    /// Whether a claim may take the row: it has a gate and the gate is open.
    [[nodiscard]] static bool is_open(const row& r, time_point now) noexcept {
        const bool is_blocked = r.lane != nullptr && r.lane->head != &r;
        return is_live(r.entry.state) && !is_blocked && *gate_of(r.entry) <= now;
    }

    /// Sorts before it copies: an entry is large.
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

// ---- vouch/memory/store.hpp
// The memory store and its transaction: validation, locking and misuse around the ledger.
//
// A store is a handle: copies share the same work, so a second handle is a copy. One transaction is open at a time;
// `begin` waits for it. On the thread that used it last, and has not moved it since, `begin` would wait for itself and
// says `misuse`; after a minute it says `busy`. Each operation holds the lock only while it runs, so readers see the
// committed state at any time and wait for no transaction.

namespace vouch {
inline namespace v0 {
namespace memory {

namespace detail {

inline constexpr vouch::capabilities can{.groups = true, .lanes = true, .wakes = true, .shared = true};

/// How long `begin` waits. A minute is longer than any transaction that ends by itself; a seam may say otherwise.
template <class Seam>
[[nodiscard]] constexpr std::chrono::milliseconds begin_limit() noexcept {
    if constexpr (requires { Seam::begin_limit; }) {
        return Seam::begin_limit;
    } else {
        return std::chrono::minutes{1};
    }
}

/// What all handles and transactions of one store share.
template <class Seam>
struct shared {
    explicit shared(Seam seam) : ledger(std::move(seam)) {}

    std::mutex mutex; ///< guards everything below
    detail::ledger<Seam> ledger;
    bool writing = false;                ///< a transaction is open
    std::thread::id writer;              ///< the thread that used it last; none after a move
    std::condition_variable idle;        ///< no transaction is open
    std::condition_variable_any stirred; ///< some queue's `wakes` has grown

    /// Made ahead, because there may be no memory left to say so: copying it allocates nothing.
    const error out_of_memory{error_kind::full, "memory: out of memory"};

    void end(bool committed) noexcept {
        const bool wake = committed && ledger.is_stirred();
        committed ? ledger.commit() : ledger.roll_back();
        writing = false;
        idle.notify_one();
        if (wake) {
            stirred.notify_all();
        }
    }
};

} // namespace detail

template <class Seam>
class basic_store;

template <class Seam = no_seam>
class basic_transaction {
    using shared = detail::shared<Seam>;

    friend class basic_store<Seam>;
    explicit basic_transaction(std::shared_ptr<shared> s) noexcept : shared_(std::move(s)) {}

    [[nodiscard]] shared& opened() const {
        if (!shared_) {
            throw error(error_kind::misuse, "memory: the transaction is closed");
        }
        return *shared_;
    }

    /// What validation goes by; a closed transaction says so before it looks at any argument.
    [[nodiscard]] const vouch::capabilities& can() const {
        std::ignore = opened();
        return detail::can;
    }

    /// Runs one operation under the lock. An exception in it rolls everything back and closes the transaction.
    template <class Operation>
    auto use(Operation&& operation) const {
        std::exception_ptr fault;
        {
            auto& open = opened();
            const std::lock_guard lock(open.mutex);
            open.writer = std::this_thread::get_id();
            try {
                return operation(open.ledger);
            } catch (const std::bad_alloc&) {
                open.end(false);
            } catch (...) {
                open.end(false);
                fault = std::current_exception();
            }
        }
        const auto closed = std::exchange(shared_, nullptr);
        if (fault) {
            std::rethrow_exception(fault);
        }
        throw closed->out_of_memory;
    }

    template <class Item, class Operation>
    auto each(std::span<const Item> items, Operation&& operation) {
        return use([&](auto& ledger) {
            detail::writing writing(ledger);
            std::vector<decltype(operation(writing, items.front()))> answers;
            answers.reserve(items.size());
            for (const auto& item : items) {
                answers.push_back(operation(writing, item));
            }
            return answers;
        });
    }

    template <class Look>
    auto look(Look&& look) const {
        return use([&](auto& ledger) { return look(detail::reading(ledger, detail::view::own)); });
    }

    /// Whose it is shows when it is used next.
    void hand_over() const noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->writer = {};
        }
    }

    void roll_back() noexcept {
        if (shared_) {
            const std::lock_guard lock(shared_->mutex);
            shared_->end(false);
        }
    }

    mutable std::shared_ptr<shared> shared_; // null: closed; a read that fails closes too

  public:
    basic_transaction(basic_transaction&& other) noexcept : shared_(std::move(other.shared_)) { hand_over(); }
    basic_transaction& operator=(basic_transaction&& other) noexcept {
        if (this != &other) {
            roll_back();
            shared_ = std::move(other.shared_);
            hand_over();
        }
        return *this;
    }
    ~basic_transaction() { roll_back(); }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](const auto& reading) { return reading.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, can().limits);
        return look([&](const auto& reading) { return reading.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, can().limits);
        return look([&](const auto& reading) { return reading.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, can().limits);
        return look([&](const auto& reading) { return reading.next_due(queue); });
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        validate(drafts, can());
        return each(drafts, [&](auto& writing, const draft& d) { return writing.enqueue(d, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        validate(request, can().limits);
        return use([&](auto& ledger) { return detail::writing(ledger).claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        validate(settles, can().limits);
        return each(settles, [&](auto& writing, const vouch::settle& s) { return writing.settle(s, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        validate(tickets, now, lease, can().limits);
        return each(tickets, [&](auto& writing, const ticket& t) { return writing.extend(t, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return use([&](auto& ledger) { return detail::writing(ledger).nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        validate_error_code(error, can().limits);
        return use([&](auto& ledger) { return detail::writing(ledger).cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        validate(request, can().limits);
        return use([&](auto& ledger) { return detail::purging(ledger, request).purge(); });
    }

    void commit() {
        auto& open = opened();
        {
            const std::lock_guard lock(open.mutex);
            open.end(true);
        }
        shared_.reset();
    }
};

template <class Seam = no_seam>
class basic_store {
    using shared = detail::shared<Seam>;

    template <class Look>
    auto look(Look&& look) const {
        const std::lock_guard lock(shared_->mutex);
        try {
            return look(detail::reading(shared_->ledger, detail::view::committed));
        } catch (const std::bad_alloc&) {
            throw shared_->out_of_memory;
        }
    }

    std::shared_ptr<shared> shared_;

  public:
    using transaction = basic_transaction<Seam>;
    static constexpr int contract_level = vouch::contract_level;

    explicit basic_store(Seam seam = {}) : shared_(std::make_shared<shared>(std::move(seam))) {}
    // Copied where others are moved, so that a handle is never without its work.
    basic_store(const basic_store&) = default;
    basic_store& operator=(const basic_store&) = default;
    ~basic_store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::can; }

    [[nodiscard]] transaction begin() {
        std::unique_lock lock(shared_->mutex);
        const auto me = std::this_thread::get_id();
        if (shared_->writing && shared_->writer == me) {
            throw error(error_kind::misuse, "memory: begin while this thread has a transaction open would wait for "
                                            "itself; end that one first, or write through it");
        }
        if (!shared_->idle.wait_for(lock, detail::begin_limit<Seam>(), [&] { return !shared_->writing; })) {
            throw error(error_kind::busy, "memory: begin: the open transaction did not end in time; one that is this "
                                          "thread's own, or waits for it, never will");
        }
        shared_->writing = true;
        shared_->writer = me;
        return transaction(shared_);
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return look([&](const auto& reading) { return reading.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        validate(q, detail::can.limits);
        return look([&](const auto& reading) { return reading.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](const auto& reading) { return reading.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        return look([&](const auto& reading) { return reading.next_due(queue); });
    }

    /// Every queue something was ever enqueued to, in no order. Not part of the contract.
    [[nodiscard]] std::vector<std::string> queues() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.queue_names();
    }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::can.limits);
        const std::lock_guard lock(shared_->mutex);
        return shared_->ledger.wakes(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::can.limits);
        // The longest waits would lead past the last time there is, and the most negative before the first.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::can.limits.lease_max);
        std::unique_lock lock(shared_->mutex);
        auto& ledger = shared_->ledger;
        shared_->stirred.wait_for(lock, stop, at_most, [&] { return ledger.wakes(queue) != seen; });
        return ledger.wakes(queue);
    }
};

using store = basic_store<>;
using transaction = basic_transaction<>;

} // namespace memory
} // namespace v0
} // namespace vouch

// ---- vouch/memory.hpp
// The memory store: the whole contract in one process, with nothing kept on disk. For unit tests, for work that may die
// with the process, and as the executable explanation of the contract.

// ---- vouch/observe/audit.hpp
// The audit trail: one line per terminal outcome and per completed group, appended inside the settling transaction,
// before the change of state where the outcome is known before. So no outcome is recorded without its line, and no line
// without its outcome. Failed attempts that will be retried are not audited; the entry's own `last_error` tells of
// them.

namespace vouch {
inline namespace v0 {

struct audit_line {
    enum class kind : std::uint8_t { succeeded, dead, group_completed };
    audit_line::kind what{};
    time_point at{};
    vouch::id id{}; ///< the entry; for a group the one that completed it
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

/// Appends a line through the settling transaction. If it throws, nothing of the outcome is recorded: it is kept and
/// settled again later, and if the process dies before, the entry's lease heals it.
template <class Transaction>
using audit_sink = std::function<void(Transaction&, const audit_line&)>;

} // namespace v0
} // namespace vouch

// ---- vouch/observe/observer.hpp
// What happened, for observers that log, count or record it. Events are reported after the fact and never throw: an
// observer can watch, not interfere. They carry names and codes, never payloads; the text of an exception only where
// the runner or the worker was asked for it.

namespace vouch {
inline namespace v0 {

enum class event_kind : std::uint8_t {
    enqueued, ///< and committed: by a handler (then with its worker), or by an outbox that has observers
    claimed,
    started,
    succeeded,
    advanced,
    retried,
    dead,
    released,
    stale,       ///< an outcome came too late: another claim had taken over
    unsettled,   ///< the outcome was given up; the entry stays claimed until its lease is over
    hook_failed, ///< an audit sink or a group callback threw; the outcome is kept and settled again later
    group_completed,
    lease_lost,  ///< a claim was taken over while in hand; its handler is told, or (tag `unstarted`) never called
    purged,      ///< `count` ended entries were removed
    store_error, ///< the store failed; the worker tries again, or stops if that makes no sense
    polled,      ///< the worker went to the store, and came back with `count` claims
};

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
    none,       ///< it is not
    rejected,   ///< its handler threw `reject`
    buried,     ///< its handler returned `bury`
    exhausted,  ///< its attempts are used up
    expired,    ///< its time is over
    no_handler, ///< no route fits its topic
    invalid,    ///< its outcome or an emission is one the store would refuse
};

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

/// Views are good during the call only. What does not apply to an event is empty.
struct event {
    event_kind what{};
    time_point at{};
    std::string_view queue{};
    std::string_view topic{};
    std::string_view worker{};
    std::string_view group{};
    std::string_view error{}; ///< a code, never a message
    std::string_view tag{};   ///< what the handler has to say of its outcome, such as `compensated`
    std::string_view text{};  ///< of the exception, only if asked for: may carry other people's data
    vouch::id id{};
    std::uint32_t attempt = 0;
    std::size_t count = 1;
    death reason{};       ///< dead: why
    bool is_saga = false; ///< claimed, and all that ends a claim: the entry's progress is a saga's
    duration age{};       ///< claimed, and all that ends a claim: since the entry was enqueued
    duration late{};      ///< claimed: since it was due
    duration delay{};     ///< retried: until the next try
    /// All that ends a claim: what the handler took, none if it was not called. Polled, purged: what the store took.
    std::optional<duration> took{};
};

template <class O>
concept observer = requires(O& o, const event& e) {
    { o.on(e) }
    noexcept;
};

/// An observer that keeps something back until it is told.
template <class O>
concept flushing_observer = observer<O> && requires(O& o) {
    { o.flush() }
    noexcept;
};

/// An observer that writes a log. A worker that has one does not log by itself.
template <class O>
concept logging_observer = observer<O> && requires {
    requires O::writes_log;
};

/// Several observers as one; each outlives the list. Not to be changed while events are being reported.
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

    /// Whether one of them writes a log.
    [[nodiscard]] bool has_log() const noexcept { return has_log_; }

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
// Topics are words joined by dots; patterns may have `*` for exactly one word and `#` for any number of words, none
// included. The rules are RabbitMQ's. Matching allocates nothing.

namespace vouch {
inline namespace v0 {

namespace detail {

/// Walks the words of a topic; `a..b` has an empty word in the middle.
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

/// Whether the topic fits the pattern. Both are taken as they are; `topic_pattern` validates.
[[nodiscard]] constexpr bool topic_matches(std::string_view pattern, std::string_view topic) noexcept {
    detail::word_cursor p(pattern);
    detail::word_cursor t(topic);
    // Where to go on from if what follows the last `#` does not fit: let it swallow one word more. Going back to the
    // last one is enough, because an earlier `#` could only swallow what the last one can.
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

/// How narrow a pattern is. Less is narrower: fewer `#` first, then fewer `*`, then more words spelled out.
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

/// A validated pattern: not empty, within the limit of a name, no control character, no empty word, and a wildcard only
/// as a whole word (`a*` is taken for a slip, not for a word).
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
                detail::refuse({"topic", "pattern"}, "has a wildcard that is not a word of its own");
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
// One event, many listeners: which queues get a copy of an emission that names none. Each copy is an entry with its own
// retries and its own dead letter.

namespace vouch {
inline namespace v0 {

class bindings {
  public:
    /// Sends emissions whose topic fits `pattern` to `queue` too.
    bindings& bind(std::string pattern, std::string queue) {
        detail::check_required_name({"binding", "queue"}, queue, limits{}.name_max);
        bound_.emplace_back(topic_pattern(std::move(pattern)), std::move(queue));
        return *this;
    }

    [[nodiscard]] bool empty() const noexcept { return bound_.empty(); }

    /// The queues bound to the topic, each once, in the order they were first bound.
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
    std::vector<std::pair<topic_pattern, std::string>> bound_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/codec.hpp
// How typed values become payload bytes and back. Specialise `codec<T>` for your own types, with whatever library you
// like; strings and bytes are built in.
//
//   template <> struct vouch::codec<user> {
//       static std::string encode(const user&);
//       static user decode(std::string_view);   // throws what it likes if the bytes are no user
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

template <std::same_as<std::byte> Byte> // a template, so that only who uses it pays for it
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

// ---- vouch/outbox/trail.hpp
// A trail tells how work came about: the ids of the emissions that led to an entry, outermost first, its own last.

namespace vouch {
inline namespace v0 {

/// The trail below `above`, one emission further. A trail that grows too long keeps its first id, where everything
/// began, and its last 31.
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
// handing the trail to each `emit`.
//
//   const vouch::tracking scope(outbox);
//   outbox.emit(tx, {.topic = "user.created"}); // below the trail of the scope
//
// A scope belongs to the thread that opened it, and ends there. A thread started inside it has no scope of its own;
// give it one with the same trail: `vouch::tracking again(scope.trail())`. Nor does a coroutine take a scope along when
// another thread resumes it. Scopes nest: an inner one continues the trail of the outer one, and the outer one is back
// when the inner one ends. A trail handed to `emit` goes before the scope's; a handler has the scope of its delivery.

namespace vouch {
inline namespace v0 {

class outbox;

namespace detail {

/// Of the innermost scope of this thread; null where there is none.
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
    /// Opens a trail with an id of the outbox, below the trail of the scope this one is in.
    explicit tracking(const outbox& from);

    /// Continues this trail, whatever the scope this one is in.
    explicit tracking(id_list trail) : trail_(std::move(trail)) {}

    tracking(const tracking&) = delete;
    tracking& operator=(const tracking&) = delete;
    ~tracking() = default;

    [[nodiscard]] const id_list& trail() const noexcept { return trail_; }

    /// The trail of the innermost scope of this thread; empty where there is none.
    [[nodiscard]] static id_list current() { return detail::trail_here == nullptr ? id_list{} : *detail::trail_here; }

  private:
    id_list trail_;
    detail::trail_scope scope_{trail_};
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/clock.hpp
// Where the `now` of a call comes from. A clock is any callable that gives a time; the core asks it at its edges and
// hands the answer down.

namespace vouch {
inline namespace v0 {

using clock = std::function<time_point()>;

/// The machine's UTC time, in whole microseconds.
[[nodiscard]] inline time_point system_now() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

/// A clock that moves only when told. Copies share one time, so a test keeps one and hands others out. Thread-safe.
class manual_clock {
  public:
    explicit manual_clock(time_point start = time_point{std::chrono::hours{24 * 365 * 50}})
        : now_(std::make_shared<std::atomic<duration::rep>>(start.time_since_epoch().count())) {}

    [[nodiscard]] time_point operator()() const noexcept { return time_point{duration{now_->load()}}; }
    void set(time_point now) const noexcept { now_->store(now.time_since_epoch().count()); }
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
// Where fresh ids come from. An id source is any callable that gives a new id; stores never make one.

// <random> would cost every including file more than this one call is worth.
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#include <unistd.h>
#else
#include <random>
#endif

namespace vouch {
inline namespace v0 {

using id_source = std::function<id()>;

namespace detail {

/// 64 bits nobody else has.
[[nodiscard]] inline std::uint64_t system_seed() {
#if __has_include(<sys/random.h>)
    std::uint64_t seed = 0;
    if (getentropy(&seed, sizeof seed) != 0) {
        throw error(error_kind::io, "id_source: the system gives no random bits");
    }
    return seed;
#else
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
#endif
}

/// Tells a forked child from its parent.
[[nodiscard]] inline std::int64_t process_id() noexcept {
#if __has_include(<sys/random.h>)
    return getpid();
#else
    return 0;
#endif
}

} // namespace detail

/// UUIDv7: 48 bits of milliseconds, then a 12-bit count within the millisecond, then 62 random bits. Ids of one source
/// only grow, also when its clock stands still or runs back. Copies share one state. Thread-safe.
class uuid7_source {
  public:
    /// Random bits from the system; a forked child gets its own.
    explicit uuid7_source(clock now = system_now)
        : shared_(std::make_shared<shared>(std::move(now), detail::system_seed(), detail::process_id())) {}
    /// The same clock and seed give the same ids.
    uuid7_source(clock now, std::uint64_t seed)
        : shared_(std::make_shared<shared>(std::move(now), seed, std::nullopt)) {}

    [[nodiscard]] id operator()() const {
        const std::lock_guard lock(shared_->mutex);
        return shared_->next();
    }

  private:
    struct shared {
        shared(clock c, std::uint64_t seed, std::optional<std::int64_t> p)
            : now(std::move(c)), state(seed), process(p) {}

        [[nodiscard]] id next() {
            const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch()).count();
            // The count overflows into the milliseconds: order is kept, and time catches up.
            const auto tick = static_cast<std::uint64_t>(since > 0 ? since : 0) << 12;
            last = tick > last ? tick : last + 1;
            return {.high = ((last >> 12) << 16) | 0x7000U | (last & 0x0fffU),
                    .low = 0x8000000000000000U | (random() >> 2)};
        }

        /// SplitMix64: ids must differ, not be secret.
        [[nodiscard]] std::uint64_t random() {
            if (process && *process != detail::process_id()) {
                process = detail::process_id();
                state = detail::system_seed();
            }
            return detail::mix(state += 0x9e3779b97f4a7c15U);
        }

        std::mutex mutex;
        clock now;
        std::uint64_t state;
        std::optional<std::int64_t> process; ///< unset: seeded by the caller, the same in every process
        std::uint64_t last = 0;
    };

    std::shared_ptr<shared> shared_;
};

/// 1, 2, 3 ...: ids a person can tell apart in a test. Copies share one count. Thread-safe.
class counting_ids {
  public:
    explicit counting_ids(std::uint64_t first = 1) : next_(std::make_shared<std::atomic<std::uint64_t>>(first)) {}
    [[nodiscard]] id operator()() const noexcept { return {.high = 0, .low = next_->fetch_add(1)}; }

  private:
    std::shared_ptr<std::atomic<std::uint64_t>> next_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/outbox/outbox.hpp
// The producer's side: turns emissions into drafts, with id, time and trail filled in, and enqueues them through
// whatever writer the caller has. The outbox never commits: what is emitted lives or dies with the caller's
// transaction. Only emitting to a store is a commit, and only that is told to the outbox's observers; what went into a
// transaction of the caller's is told when the caller says that it is committed (`tell`).
//
// An outbox is immutable after construction and may be used from several threads, if its clock and ids may.

namespace vouch {
inline namespace v0 {

/// What a producer says: a draft without the parts the outbox fills in.
struct emission {
    std::string queue{};   ///< empty: every queue bound to the topic
    std::string topic{};   ///< required
    std::string payload{}; ///< `encode(value)` for typed ones
    std::string key{};
    std::string group{};
    std::string lane{};
    vouch::id parent{};
    std::optional<time_point> due_at{};     ///< not before this time
    std::optional<duration> due_in{};       ///< not before this long from now; not together with `due_at`
    std::optional<time_point> expires_at{}; ///< no further try from this time on; later than the time it is due
    std::optional<duration> expires_in{};   ///< the same, counted from when it is due; not together with `expires_at`
    std::uint32_t attempts_max = 0;
    header_list headers{};
    std::string progress{};
};

struct outbox_options {
    vouch::clock clock = system_now;
    id_source ids{}; ///< empty: UUIDv7 from the clock
    vouch::bindings bindings{};
    std::optional<duration> expires_in{}; ///< for emissions without an expiry; counted from when they are due
    observer_list observers{};            ///< of what the application itself enqueues; handlers' emissions are told to
                                          ///< the runner's or worker's. All outlive the outbox
};

/// What an observer is told of a draft that was stored, or of the entry it became.
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

class outbox {
  public:
    explicit outbox(outbox_options options = {}) : options_(std::move(options)) {
        if (!options_.ids) {
            options_.ids = uuid7_source(options_.clock);
        }
    }

    [[nodiscard]] time_point now() const { return options_.clock(); }
    [[nodiscard]] id fresh_id() const { return options_.ids(); }

    /// A trail for an entry point of the application, so that all it emits can be traced back to it. `tracking` is the
    /// same as a scope.
    [[nodiscard]] id_list open_trail() const { return {fresh_id()}; }

    /// Enqueues an emission below the trail `above`, or if that is empty below the trail of the `tracking` scope this
    /// thread is in, if any: one entry in the named queue, or one per bound queue. One receipt
    /// per entry. Throws `unrouted` if it names no queue and none is bound, and `invalid_argument` if it expires before
    /// it is due; then nothing is written.
    ///
    /// Through a writer it becomes part of that transaction. Given a store it commits by itself, and resolves a commit
    /// in doubt: the drafts are made once and enqueued once, and observers hear of those that were inserted.
    template <class Target>
    std::vector<receipt> emit(Target& to, const emission& e, const id_list& above = {}) const {
        return emit(to, std::span(&e, 1), above);
    }

    /// Many emissions in one operation.
    template <class Target>
    std::vector<receipt> emit(Target& to, std::initializer_list<emission> emissions, const id_list& above = {}) const {
        return emit(to, std::span(emissions.begin(), emissions.size()), above);
    }
    template <class Target>
    std::vector<receipt> emit(Target& to, std::span<const emission> emissions, const id_list& above = {}) const {
        const auto at = now();
        const auto& below = above.empty() && detail::trail_here != nullptr ? *detail::trail_here : above;
        std::vector<draft> all;
        for (const auto& e : emissions) {
            append_drafts(all, e, below, fresh_id(), at);
        }
        if constexpr (requires {
                          to.begin();
                      }) { // a store; `Target::transaction` would be true of a class of that name
            auto receipts = enqueue(to, all, at);
            for (std::size_t i = 0; i < receipts.size(); ++i) {
                if (receipts[i].what == receipt::kind::inserted) {
                    options_.observers.on(enqueued_event(all[i], at));
                }
            }
            return receipts;
        } else {
            static_assert(explain_writer<Target>());
            return to.enqueue(all, at);
        }
    }

    /// Tells the observers of what was emitted into a transaction of the caller's, which is committed by now. They hear
    /// of what was inserted and is stored: not of duplicates, nor of what was rolled back after all. Throws the
    /// reader's faults.
    template <class Reader>
    void tell(const Reader& store, std::span<const receipt> receipts) const {
        for (const auto& r : receipts) {
            if (r.what != receipt::kind::inserted) {
                continue;
            }
            if (const auto stored = store.find(r.id)) {
                options_.observers.on(enqueued_event(*stored, stored->created_at));
            }
        }
    }

    /// Appends the drafts of an emission, for callers that may have to enqueue the very same ones again (a commit in
    /// doubt). If it goes to one queue, the entry's id is the emission's own; if to several, each is derived from it
    /// and the queue's name.
    void append_drafts(std::vector<draft>& out, const emission& e, const id_list& above, const id& emission_id,
                       time_point at) const {
        auto d = draft_of(e, at);
        d.trail = trail_below(above, emission_id);
        const auto queues = e.queue.empty() ? options_.bindings.queues_for(e.topic) : std::vector{e.queue};
        if (queues.empty()) {
            throw error(error_kind::unrouted, "emission: it names no queue and no binding fits its topic");
        }
        for (const auto& queue : queues) {
            d.id = queues.size() == 1 ? emission_id : derive(emission_id, queue);
            d.queue = queue;
            out.push_back(d);
        }
    }

  private:
    [[nodiscard]] draft draft_of(const emission& e, time_point at) const {
        const auto due = either("due", e.due_at, e.due_in, at);
        return {.topic = e.topic,
                .payload = e.payload,
                .key = e.key,
                .group = e.group,
                .lane = e.lane,
                .parent = e.parent,
                .due_at = due,
                .expires_at = expiry(e, std::max(due.value_or(at), at)),
                .attempts_max = e.attempts_max,
                .headers = e.headers,
                .progress = e.progress};
    }

    /// An entry that expires before its first try could only die, so such an emission is refused.
    [[nodiscard]] std::optional<time_point> expiry(const emission& e, time_point due) const {
        const auto expires_in = e.expires_in || e.expires_at ? e.expires_in : options_.expires_in;
        const auto expires = either("expires", e.expires_at, expires_in, due);
        if (expires && *expires <= due) {
            detail::refuse({"emission", "expires_at"}, "is not after the time it is due, which is " +
                                                           std::to_string((due - *expires).count()) +
                                                           " us later; give a later one");
        }
        return expires;
    }

    [[nodiscard]] static std::optional<time_point> either(std::string_view what, std::optional<time_point> at,
                                                          std::optional<duration> in, time_point from) {
        if (at && in) {
            detail::refuse({"emission", what}, "is given both as a time and as a length of time");
        }
        return in ? std::optional{later(from, *in)} : at;
    }

    outbox_options options_;
};

inline tracking::tracking(const outbox& from) : trail_(trail_below(current(), from.fresh_id())) {}

} // namespace v0
} // namespace vouch

// ---- vouch/policy/backoff.hpp
// How long to wait after the n-th attempt. Pure functions: the same entry and attempt always give the same delay,
// jitter included, so that a schedule can be replayed and a test can pin it. Nothing overflows for any attempt.

namespace vouch {
inline namespace v0 {

/// min(base * 2^(n-1), max).
struct exponential {
    duration base = std::chrono::seconds{30};
    duration max = std::chrono::hours{1};
    double jitter = 0; ///< 0 to 1: the share of the delay that may be taken off it
};

/// The n-th delay of a list; after its end there is no further try. An empty list means none at all.
struct schedule {
    std::vector<duration> delays{};
    double jitter = 0;

    schedule() = default;
    schedule(std::initializer_list<duration> list, double with_jitter = 0) : delays(list), jitter(with_jitter) {}
    explicit schedule(std::vector<duration> list, double with_jitter = 0)
        : delays(std::move(list)), jitter(with_jitter) {}
};

/// Always the same.
struct fixed {
    duration delay{};
    double jitter = 0;
};

/// Any of the three.
class backoff {
  public:
    backoff() = default;
    backoff(const exponential& e) : doubling_(e) {}                                             // NOLINT: implicit
    backoff(const fixed& f) : doubling_{.base = f.delay, .max = f.delay, .jitter = f.jitter} {} // NOLINT: implicit
    backoff(schedule s)
        : doubling_{.jitter = s.jitter}, delays_(std::move(s.delays)), listed_(true) {} // NOLINT: implicit

    /// How many attempts a schedule has delays for, and one; nothing if there is no such end.
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

    /// Takes up to `jitter` of the delay off, by a number in [0, 1) that (entry, attempt) alone decides.
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
    bool listed_ = false; ///< by `delays_`; else doubling
};

/// The wait after attempt `attempt` (counted from 1) of this entry; nothing if there is to be no further one.
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
// How long terminal entries stay. Retention is also the dedup window: once an entry is purged its key is free again.
// Dead entries wait for a person, so both rules say `never` until told otherwise.

namespace vouch {
inline namespace v0 {

class purge_rule {
  public:
    [[nodiscard]] static constexpr purge_rule immediately() noexcept { return purge_rule{duration::zero()}; }
    [[nodiscard]] static constexpr purge_rule never() noexcept { return purge_rule{std::nullopt}; }
    [[nodiscard]] static constexpr purge_rule after(duration age) noexcept { return purge_rule{age}; }

    /// The `before` of a purge at `now`; nothing if there is to be none.
    [[nodiscard]] constexpr std::optional<time_point> before(time_point now) const noexcept {
        if (!age_) {
            return std::nullopt;
        }
        // A purge spares what ended at `before` itself; one tick more lets an entry go when its age is reached.
        return later(later(now, -*age_), duration{1});
    }

  private:
    constexpr explicit purge_rule(std::optional<duration> age) noexcept : age_(age) {}
    std::optional<duration> age_;
};

struct retention {
    purge_rule succeeded = purge_rule::never();
    purge_rule dead = purge_rule::never();
};

} // namespace v0
} // namespace vouch

// ---- vouch/policy/retry.hpp
// Whether a failed attempt is tried again, and when. Policy lives here and in the runner; the store carries none.
// What an entry says goes before what its handler says, and that before the default.

namespace vouch {
inline namespace v0 {

inline constexpr std::uint32_t default_attempts_max = 8;

/// What is left open is decided elsewhere: for a route by the runner's policy, for a runner by the defaults.
struct retry_policy {
    std::optional<vouch::backoff> backoff{}; ///< unset, in the end: exponential, from 30 s to 1 h
    std::uint32_t attempts_max = 0; ///< 0: as many as a schedule has delays, and one; else `default_attempts_max`

    // Presets, by the kind of work.

    /// Calls of other systems, for hours: 30 s, doubling up to 1 h, 8 attempts. The same as a default `retry_policy`.
    [[nodiscard]] static retry_policy external_call() {
        return {.backoff = exponential{.base = std::chrono::seconds{30}, .max = std::chrono::hours{1}},
                .attempts_max = default_attempts_max};
    }
    /// Listeners of events, for minutes: after 1, 10, 60 and 300 s, 5 attempts.
    [[nodiscard]] static retry_policy listener() {
        using std::chrono::seconds;
        return {.backoff = schedule{seconds{1}, seconds{10}, seconds{60}, seconds{300}}};
    }
    /// Deliveries to subscribers: `base`, doubling without end, as many attempts as are configured.
    [[nodiscard]] static retry_policy webhook(duration base, std::uint32_t attempts_max) {
        return {.backoff = exponential{.base = base, .max = duration::max()}, .attempts_max = attempts_max};
    }
    /// Compensations of a saga: 5 retries after the first try, 1 s doubling up to 1 min; then the saga is dead.
    [[nodiscard]] static retry_policy compensation() {
        return {.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                .attempts_max = 6};
    }
    /// One attempt: an entry that fails is dead at once.
    [[nodiscard]] static retry_policy none() { return {.backoff = schedule{}}; }
};

/// `own`, with what it leaves open taken from `fallback`. A schedule of its own brings its own number of attempts.
[[nodiscard]] inline retry_policy filled_up(retry_policy own, const retry_policy& fallback) {
    const bool is_counted = own.backoff && own.backoff->attempts();
    if (!own.backoff) {
        own.backoff = fallback.backoff;
    }
    if (own.attempts_max == 0 && !is_counted) {
        own.attempts_max = fallback.attempts_max;
    }
    return own;
}

/// The wait after attempt `attempt` of this entry; nothing if there is to be no further one.
[[nodiscard]] inline std::optional<duration> delay_after(const retry_policy& policy, const id& entry,
                                                         std::uint32_t attempt) {
    return policy.backoff ? delay_after(*policy.backoff, entry, attempt) : delay_after(backoff{}, entry, attempt);
}

/// How often this entry may be claimed between two checkpoints.
[[nodiscard]] inline std::uint32_t attempts_max_of(const entry& e, const retry_policy& policy) noexcept {
    if (e.attempts_max != 0) {
        return e.attempts_max;
    }
    if (policy.attempts_max != 0) {
        return policy.attempts_max;
    }
    return policy.backoff ? policy.backoff->attempts().value_or(default_attempts_max) : default_attempts_max;
}

/// What a failed attempt of a claimed entry comes to: a retry, or a burial when its attempts or its time are used up.
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

// ---- vouch/run/failure.hpp
// How a handler says that it failed, and what is kept of any exception: a code of the handler's choosing or the name of
// the exception's class. Its message is never kept, because messages carry other people's data.

#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
#include <typeinfo>
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
#include <cstdlib>
#include <memory>

#include <cxxabi.h>
#endif
#endif
#endif

namespace vouch {
inline namespace v0 {

/// Thrown by a handler: try again later, by policy, and remember this code.
class failure : public std::exception {
  public:
    explicit failure(std::string code) : code_(std::move(code)) {}
    [[nodiscard]] const std::string& code() const noexcept { return code_; }
    [[nodiscard]] const char* what() const noexcept override { return code_.c_str(); }

  private:
    std::string code_;
};

/// Thrown by a handler: never try again. To a saga whose command it handles it says that this attempt has done nothing.
class reject : public failure {
  public:
    explicit reject(std::string code = "rejected") : failure(std::move(code)) {}
};

/// A code fit for storing: within the limit, no control characters, not cut inside a UTF-8 character.
[[nodiscard]] inline std::string error_code(std::string_view text) {
    auto size = text.size() < limits{}.error_max ? text.size() : limits{}.error_max;
    if (size < text.size()) {
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) {
            --size;
        }
    }
    std::string code(text.substr(0, size));
    for (auto& c : code) {
        const auto byte = static_cast<unsigned char>(c);
        c = byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return code;
}

/// The name of an exception's class, as written in the source where the platform can tell.
[[nodiscard]] inline std::string class_of([[maybe_unused]] const std::exception& e) {
#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
    const char* const raw = typeid(e).name();
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(raw, nullptr, nullptr, &status), std::free);
    if (status == 0 && plain) {
        return error_code(plain.get());
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
// What a handler is handed: the claimed entry, and a way to emit follow-ups that are enqueued in the transaction that
// settles it, so that there is never an outcome without its follow-ups nor the other way round.
//
// A delivery belongs to one call of one handler; it is used by one thread.

namespace vouch {
inline namespace v0 {

class delivery {
  public:
    delivery(const vouch::entry& claimed, const outbox& from, time_point now, std::stop_token stop = {})
        : entry_(claimed), outbox_(from), now_(now), stop_(std::move(stop)) {}

    delivery(const delivery&) = delete; // an emission on a copy would be lost
    delivery& operator=(const delivery&) = delete;

    [[nodiscard]] const vouch::entry& entry() const noexcept { return entry_; }
    /// The idempotency key to hand on; of a saga's command that is the header `saga-key`.
    [[nodiscard]] const vouch::id& id() const noexcept { return entry_.id; }
    [[nodiscard]] const std::string& queue() const noexcept { return entry_.queue; }
    [[nodiscard]] const std::string& topic() const noexcept { return entry_.topic; }
    [[nodiscard]] const std::string& payload() const noexcept { return entry_.payload; }
    [[nodiscard]] const id_list& trail() const noexcept { return entry_.trail; }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return entry_.attempts; } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return now_; }                   ///< when the handler was called
    [[nodiscard]] time_point time() const { return outbox_.now(); }                  ///< what the clock says now

    /// Asked to stop: what can be cut short should be. Nobody kills a handler.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (const auto& [key, value] : entry_.headers) {
            if (key == name) {
                return value;
            }
        }
        return std::nullopt;
    }

    /// The payload as a value. Bytes the codec rejects end the entry as dead with `undecodable`.
    template <decodable T>
    [[nodiscard]] T as() const {
        try {
            return codec<T>::decode(entry_.payload);
        } catch (const failure&) {
            throw; // the codec chose its own words
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the bytes
        } catch (...) {
            throw reject("undecodable");
        }
    }

    /// Emits below this delivery's trail, if the handler ends well (succeed or advance). Returns the emission's id. An
    /// emission that turns out invalid ends the entry as dead with `invalid_emission` or `unrouted`.
    vouch::id emit(emission e) {
        emissions_.push_back({std::move(e), outbox_.fresh_id(), outbox_.now()});
        return emissions_.back().id;
    }

    /// A word about the outcome, for the event that reports it. Nothing of it is stored.
    void tag(std::string word) { tag_ = std::move(word); }
    [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

    /// The text of an exception that the handler turned into an outcome itself. It reaches observers where the runner
    /// or the worker was asked for exception texts, and nothing else.
    void explain(std::string text) { text_ = std::move(text); }
    [[nodiscard]] const std::string& explanation() const noexcept { return text_; }

    /// The drafts of everything emitted so far.
    [[nodiscard]] std::vector<draft> emitted() const {
        std::vector<draft> out;
        for (const auto& e : emissions_) {
            outbox_.append_drafts(out, e.what, entry_.trail, e.id, e.at);
        }
        return out;
    }

  private:
    struct emitted_one {
        emission what{};
        vouch::id id{};
        time_point at{}; ///< what its due time and its expiry count from: a handler may have run for long
    };

    const vouch::entry& entry_;
    const outbox& outbox_;
    time_point now_;
    std::stop_token stop_;
    std::vector<emitted_one> emissions_;
    std::string tag_;
    std::string text_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/handler.hpp
// The forms a handler may have, brought to one.
//
//   [](delivery&) { ... }                       done when it returns; the delivery may be left out
//   [](delivery&) { return value; }             done, with a result: a string, or anything with a codec
//   [](delivery&) -> outcome { ... }            says itself what became of it: succeed, retry, bury, release, advance
//   [](const user&, delivery&) { ... }          typed payload: `on<user>(pattern, handler)`; the delivery may be
//                                               left out
//   struct { R work(delivery&);                 any of the above as a member, outside any transaction
//            void record(transaction&, const R&);   inside the settling transaction: short, no I/O but the store's
//            outcome ended(delivery&, ending); }    instead of burying, when time or attempts have run out
//
// `record` and `ended` may be left out, overloaded or templates. A member of one of these names that cannot be called
// is a compile error. An entry that has expired is handed to `ended` only, never to `work` again. `record` is called
// again if its transaction was rolled back.

namespace vouch {
inline namespace v0 {

/// Why an entry that nobody rejected is about to be buried.
enum class ending : std::uint8_t { expired, exhausted };

/// What a handler's work came to: an outcome, and what is to be recorded with it in the settling transaction.
template <class Transaction>
struct worked {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};
};

template <class Transaction>
struct handler {
    std::function<worked<Transaction>(delivery&)> work;
    std::function<outcome(delivery&, ending)> ended; ///< empty: bury
    bool runs_sagas = false;                         ///< its entries have a saga's progress
};

namespace detail {

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

/// Calls `f` with the payload (unless `T` is void) and the delivery, as far as it takes them.
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

/// The payload as the handler wants it; it lives as long as what the handler returns may refer to it.
template <class T>
[[nodiscard]] auto body_of(const delivery& d) {
    if constexpr (std::is_void_v<T>) {
        return no_body{};
    } else {
        return d.as<T>();
    }
}

template <class Transaction, class T, class F>
[[nodiscard]] worked<Transaction> run_work(F& f, delivery& d) {
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

/// What `work` returned is kept for `record`.
template <class Transaction, class T, class H, class F>
[[nodiscard]] worked<Transaction> run_work_and_record(const std::shared_ptr<H>& h, F& work, delivery& d) {
    const auto body = body_of<T>(d);
    using returned = decltype(call<T>(work, body, d));
    if constexpr (std::is_void_v<returned>) {
        call<T>(work, body, d);
        static_assert(
            requires(Transaction & tx) { h->record(tx); },
            "vouch: the `record` of a `work` that returns nothing is public and takes `transaction&`");
        return {.outcome = succeed{}, .record = [h](Transaction& tx) { h->record(tx); }};
    } else {
        using kept = std::remove_cvref_t<returned>;
        const auto value = std::make_shared<const kept>(call<T>(work, body, d));
        if constexpr (requires(Transaction & tx) { h->record(tx, *value); }) {
            return {.outcome = outcome_of(*value), .record = [h, value](Transaction& tx) { h->record(tx, *value); }};
        } else {
            static_assert(
                requires(Transaction & tx) { h->record(tx); }, "vouch: `record` is public and takes `transaction&`, "
                                                               "then if it likes what `work` returned as `const R&`");
            return {.outcome = outcome_of(*value), .record = [h](Transaction& tx) { h->record(tx); }};
        }
    }
}

// Whether a handler has a member of a name, be it a template, overloaded or private: such a member makes the name
// ambiguous in a class that inherits it twice. (Nothing can inherit from a final class: there the member must be one
// that `&H::name` finds.)
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

} // namespace detail

/// Brings any of the forms above to the one a router keeps. `T` is the payload's type, void for none.
template <class Transaction, class T = void, class H>
[[nodiscard]] handler<Transaction> make_handler(H&& given) {
    using type = std::decay_t<H>;
    auto h = std::make_shared<type>(std::forward<H>(given));
    handler<Transaction> out;
    if constexpr (detail::has_work<type>) {
        auto work = [h](auto&&... args) -> decltype(h->work(std::forward<decltype(args)>(args)...)) {
            return h->work(std::forward<decltype(args)>(args)...);
        };
        if constexpr (detail::has_record<type>) {
            out.work = [h, work](delivery& d) { return detail::run_work_and_record<Transaction, T>(h, work, d); };
        } else {
            out.work = [work](delivery& d) { return detail::run_work<Transaction, T>(work, d); };
        }
    } else {
        static_assert(!detail::has_record<type>, "vouch: a handler with `record` has a `work` too");
        out.work = [h](delivery& d) { return detail::run_work<Transaction, T>(*h, d); };
    }
    if constexpr (detail::has_ended<type>) {
        static_assert(
            requires(delivery & d) {
                { h->ended(d, ending::expired) } -> std::convertible_to<outcome>;
            },
            "vouch: `ended` is a public `outcome ended(delivery&, ending)`");
        out.ended = [h](delivery& d, ending why) -> outcome { return h->ended(d, why); };
    }
    if constexpr (requires { type::runs_sagas; }) {
        out.runs_sagas = type::runs_sagas;
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/run/router.hpp
// Which handler gets an entry, by its topic, within one queue. The most specific pattern that fits wins (fewest `#`,
// then fewest `*`, then most words spelled out); of equals the one registered first.
//
// A router is filled before it is used and then only read, by as many threads as like.

namespace vouch {
inline namespace v0 {

template <class Store>
class router {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    struct route {
        topic_pattern pattern;
        vouch::handler<transaction> handler;
        std::optional<retry_policy> retry; ///< unset: the runner's
    };

    /// Hands entries whose topic fits to `handler`, in any of the forms of `handler.hpp`, and retries by the runner's
    /// policy.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler) {
        return add(std::move(pattern), make_handler<transaction>(std::forward<Handler>(handler)), {});
    }
    /// The same, with a retry policy of its own.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry) {
        return add(std::move(pattern), make_handler<transaction>(std::forward<Handler>(handler)), std::move(retry));
    }

    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler) {
        return add(std::move(pattern), make_typed<T>(std::forward<Handler>(handler)), {});
    }
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry) {
        return add(std::move(pattern), make_typed<T>(std::forward<Handler>(handler)), std::move(retry));
    }

    /// The route of a topic, or null if nobody handles it.
    [[nodiscard]] const route* find(std::string_view topic) const noexcept {
        for (const auto& r : routes_) {
            if (r.pattern.matches(topic)) {
                return &r;
            }
        }
        return nullptr;
    }

  private:
    template <class T, class Handler>
    [[nodiscard]] static vouch::handler<transaction> make_typed(Handler&& handler) {
        static_assert(decodable<T>, "vouch: specialise vouch::codec for the payload's type");
        return make_handler<transaction, T>(std::forward<Handler>(handler));
    }

    router& add(std::string pattern, vouch::handler<transaction> handler, std::optional<retry_policy> retry) {
        route added{topic_pattern(std::move(pattern)), std::move(handler), std::move(retry)};
        const auto before = std::upper_bound(routes_.begin(), routes_.end(), added, [](const route& a, const route& b) {
            return a.pattern.specificity() < b.pattern.specificity();
        });
        routes_.insert(before, std::move(added));
        return *this;
    }

    std::vector<route> routes_; // most specific first, equals as registered
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/handling.hpp
// From a claimed entry to a settle that is sure to be valid: finds the handler, calls it, turns whatever happens into
// an outcome, and checks that the store will take it. Everything a handler can do wrong is converted here and nowhere
// else.

namespace vouch {
inline namespace v0 {

namespace detail {

/// What is kept of the exception being handled: its code, and whether another try makes sense. Its text is for a log
/// that asked for it, and is never stored.
struct caught {
    std::string code;
    bool is_permanent = false;
    std::string text{};

    static constexpr std::size_t text_max = 1000;
    [[nodiscard]] static std::string text_of(const std::exception& e) {
        const char* const text = e.what();
        return text == nullptr ? std::string{} : std::string(std::string_view(text).substr(0, text_max));
    }

    /// Call inside a catch clause.
    [[nodiscard]] static caught current() {
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

/// How the settle of a handled entry fared.
struct landing {
    enum class kind : std::uint8_t {
        landed,
        stale,     ///< another claim had taken over
        unsettled, ///< the store refuses the outcome; the entry stays claimed until its lease is over
    };
    landing::kind what = kind::landed;
    bool group_completed = false;
    std::string error{};      ///< unsettled: a code for what was thrown
    std::string text{};       ///< unsettled: its text, as in `handled`
    bool is_reported = false; ///< to the observers
};

/// A claimed entry with what became of it, ready to be settled.
template <class Store>
struct handled {
    vouch::entry entry{};
    vouch::outcome outcome{};
    std::vector<draft> emissions{};
    std::string tag{};  ///< the handler's word about the outcome
    death reason{};     ///< if the outcome is to bury
    std::string text{}; ///< of the exception behind the outcome; for observers that asked for it, never stored
    std::function<void(typename Store::transaction&)> record{};
    std::optional<duration> took{}; ///< from the handler's call to its end; none if it was not called

    // Kept by settling, so that a batch can be given again after a fault of the store or of a hook.
    std::optional<vouch::landing> landing{};
    std::string held_up{};      ///< a code for what an audit sink or a group callback threw; the outcome is kept
    std::string held_up_text{}; ///< its text, as in `text`
    bool is_untried = false;    ///< held up because the hooks of others failed
    std::optional<detail::caught> record_failure{}; ///< `record` threw; what follows is yet to be decided
    bool is_reported = false;                       ///< to the observers: that it is held up
    std::vector<receipt> receipts{};                ///< of the emissions, as the last try got them
    bool completes_group = false;                   ///< as the last try was told
    bool in_doubt = false;                          ///< an earlier commit may have landed
};

namespace detail {

/// Brings an outcome within the limits of the store.
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

[[nodiscard]] inline bool goes_on(const outcome& o) noexcept {
    return std::holds_alternative<succeed>(o) || std::holds_alternative<advance>(o);
}

} // namespace detail

/// What a runner does with an entry whose topic none of its routes fits.
enum class unhandled : std::uint8_t {
    bury,       ///< dead at once, with the error `no_handler`: a person sees it and requeues it
    look_again, ///< handed back, due again after `look_again_in`: for workers that are deployed after their producers
};

/// How long an entry waits that this runner has no handler for, but another may.
inline constexpr duration look_again_in = std::chrono::minutes{1};

struct handling_options {
    retry_policy retry{}; ///< for routes and entries that have none of their own
    vouch::unhandled unhandled = unhandled::bury;
};

template <class Store>
class handling {
  public:
    handling(const router<Store>& routes, const outbox& from, const handling_options& options, const capabilities& can)
        : router_(routes), outbox_(from), options_(options), can_(can) {}

    /// `started` is called right before the handler is.
    template <class Started>
    [[nodiscard]] handled<Store> operator()(entry claimed, std::stop_token stop, Started&& started) const {
        handled<Store> h{.entry = std::move(claimed)};
        const auto* const route = router_.find(h.entry.topic);
        if (route == nullptr || !fits(*route, h.entry)) {
            leave(h);
            return h;
        }
        delivery d(h.entry, outbox_, outbox_.now(), stop);
        auto spent = spent_before(h.entry, *route, d.now());
        if (!spent) {
            started(h.entry);
            spent = work(h, *route, d);
        }
        if (spent) {
            end(h, *route, *spent, std::move(stop));
        } else {
            finish(h, d);
        }
        return h;
    }

    /// Decides on an entry whose work went well but could not be recorded: the attempt failed.
    void fail_recording(handled<Store>& h, const detail::caught& why) const {
        h.record_failure.reset();
        h.emissions.clear();
        h.receipts.clear();
        h.tag.clear();
        h.record = nullptr;
        const auto* const route = router_.find(h.entry.topic);
        if (const auto spent = fail(h, *route, why)) {
            end(h, *route, *spent, {});
        }
    }

  private:
    using route_type = typename router<Store>::route;

    /// Time or attempts have run out, and what the entry is to be buried with.
    struct spending {
        ending why;
        std::string code;
    };

    /// A saga that has begun is run by its own handler only: any other would end it with its steps standing.
    [[nodiscard]] static bool fits(const route_type& route, const entry& e) noexcept {
        return route.handler.runs_sagas || !is_saga_progress(e.progress);
    }

    /// Nothing here can handle it.
    void leave(handled<Store>& h) const {
        const bool is_saga = is_saga_progress(h.entry.progress);
        const auto now = outbox_.now();
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

    /// What a route leaves open the runner's policy decides.
    [[nodiscard]] retry_policy policy_of(const route_type& route) const {
        return route.retry ? filled_up(*route.retry, options_.retry) : options_.retry;
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

    [[nodiscard]] std::optional<spending> work(handled<Store>& h, const route_type& route, delivery& d) const {
        const detail::trail_scope scope(d.trail()); // for what it emits past the delivery
        try {
            auto worked = route.handler.work(d);
            h.outcome = std::move(worked.outcome);
            h.record = std::move(worked.record);
        } catch (...) {
            return fail(h, route, detail::caught::current());
        }
        return spent_after(h, route);
    }

    /// The attempt ends here: that is when the wait for the next one begins.
    [[nodiscard]] std::optional<spending> fail(handled<Store>& h, const route_type& route,
                                               const detail::caught& why) const {
        h.text = why.text;
        if (why.is_permanent) {
            h.reason = death::rejected;
            // An entry with a parent is a saga's command: that it was rejected, and has not just died, is the reply.
            h.outcome = bury{.error = why.code, .result = reply_of_rejecting(h.entry)};
            return std::nullopt;
        }
        h.outcome = after_failure(h.entry, why.code, policy_of(route), outbox_.now());
        if (std::holds_alternative<bury>(h.outcome)) {
            return spending{ending::exhausted, why.code};
        }
        return spent_after(h, route);
    }

    [[nodiscard]] static std::optional<std::string> reply_of_rejecting(const entry& e) {
        return e.parent.is_nil() ? std::nullopt : std::optional<std::string>(std::in_place);
    }

    /// A retry that can never come is none.
    [[nodiscard]] std::optional<spending> spent_after(const handled<Store>& h, const route_type& route) const {
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

    /// Buries, unless the handler's `ended` turns the entry round: with a delivery of its own, so that nothing of the
    /// failed attempt is left. A claim beyond twice attempts_max calls nobody.
    void end(handled<Store>& h, const route_type& route, const spending& spent, std::stop_token stop) const {
        h.record = nullptr;
        h.reason = spent.why == ending::expired ? death::expired : death::exhausted;
        const std::uint64_t most = attempts_max(h.entry, route);
        const std::uint64_t claims = h.entry.attempts;
        if (!route.handler.ended || claims > 2 * most) {
            h.outcome = bury{.error = error_code(spent.code)};
            return;
        }
        delivery d(h.entry, outbox_, outbox_.now(), std::move(stop));
        const detail::trail_scope scope(d.trail());
        try {
            h.outcome = route.handler.ended(d, spent.why);
        } catch (...) {
            const auto error = detail::caught::current();
            h.text = error.text;
            h.reason = error.is_permanent ? death::rejected : death::exhausted;
            const auto again = claims < most ? claims : claims - most + 1; // the delays begin anew
            const auto delay = delay_after(policy_of(route), h.entry.id, static_cast<std::uint32_t>(again));
            if (error.is_permanent || claims == 2 * most || !delay) {
                h.outcome = bury{.error = error.code};
            } else {
                h.outcome = retry{.error = error.code, .at = later(outbox_.now(), *delay)};
            }
        }
        finish(h, d);
    }

    /// Emissions and records go with succeed and advance only, and nothing is sent that the store would refuse.
    void finish(handled<Store>& h, const delivery& d) const {
        const auto meant = h.outcome.index();
        detail::make_valid(h.outcome, can_.limits);
        h.text = d.explanation().empty() ? std::move(h.text) : d.explanation();
        const bool is_as_meant = h.outcome.index() == meant;
        h.tag = is_as_meant ? d.tag() : std::string{};
        h.reason = !is_as_meant ? death::invalid : h.reason == death::none ? death::buried : h.reason;
        if (detail::goes_on(h.outcome)) {
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
    const outbox& outbox_;
    const handling_options& options_;
    const capabilities& can_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/report.hpp
// What a pass of the runner came to, in numbers and line by line. The same store, clock, ids and handlers give the same
// report, byte for byte.

namespace vouch {
inline namespace v0 {

/// One entry's end of a claim.
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
    std::size_t stale = 0;     ///< outcomes refused because another claim had taken over
    std::size_t unsettled = 0; ///< outcomes the store refuses; the entries stay claimed until their leases are over
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

// ---- vouch/run/isolation.hpp
// Entries that may kill the process that handles them are handled alone.
//
// A claim that ended with its lease, and not with an outcome, usually belonged to a process that died; which of its
// entries killed it cannot be known. So an entry with a lapse (`entry::lapses`) is handled while its process holds no
// other claim: if the process dies again, no other entry has a share in it. Such entries are found by a claim like any
// other, and handed back in the same transaction when they cannot be handled alone at once.

namespace vouch {
inline namespace v0 {
namespace detail {

[[nodiscard]] inline bool has_lapsed(const entry& e) noexcept { return e.lapses > 0; }

/// How much to claim, and what to do with entries that have a lapse.
struct claim_plan {
    enum class lapsed : std::uint8_t {
        alone,       ///< the caller holds nothing else: keep the first one and nothing with it
        handed_back, ///< the caller holds other claims, or may get some meanwhile
    };
    std::size_t limit = 0;
    claim_plan::lapsed rule = lapsed::alone;
    std::optional<time_point> until{}; ///< handed back: not due again before this
};

struct claims {
    std::vector<entry> entries{};
    bool hands_back = false; ///< entries with a lapse were found and handed back
};

/// Splits off what is not to be kept. Entries stay in their order, so that no entry with a lapse waits for ever behind
/// others: those before the first one are kept, or it alone.
[[nodiscard]] inline std::vector<entry> split_lapsed(std::vector<entry>& claimed, claim_plan::lapsed rule) {
    const auto first = std::find_if(claimed.begin(), claimed.end(), has_lapsed);
    auto kept_end = claimed.end();
    if (rule == claim_plan::lapsed::handed_back) {
        kept_end = std::stable_partition(first, claimed.end(), [](const entry& e) { return !has_lapsed(e); });
    } else if (first != claimed.end()) {
        kept_end = first == claimed.begin() ? first + 1 : first;
    }
    std::vector<entry> rest(std::make_move_iterator(kept_end), std::make_move_iterator(claimed.end()));
    claimed.erase(kept_end, claimed.end());
    return rest;
}

/// Claims, and hands back in the same transaction what must not be held together with the rest.
template <class Writer>
[[nodiscard]] claims claim_apart(Writer& tx, const claim_request& request, const claim_plan& plan) {
    claims out{.entries = tx.claim(request)};
    const auto rest = split_lapsed(out.entries, plan.rule);
    if (rest.empty()) {
        return out;
    }
    std::vector<settle> releases;
    releases.reserve(rest.size());
    for (const auto& e : rest) {
        out.hands_back = out.hands_back || has_lapsed(e);
        releases.push_back({ticket_of(e), release{.at = has_lapsed(e) ? plan.until : std::nullopt}});
    }
    for (const auto& s : tx.settle(releases, request.now)) {
        if (s.verdict != verdict::applied) {
            throw error(error_kind::corrupt, "runner: the store refuses a ticket that it has just given out");
        }
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/run/settling.hpp
// Settles handled entries in one transaction, in a fixed order: records, emissions, audit, settles, group callbacks,
// the next claim, commit. Every verdict must be `applied`; if one is not, or anything throws, the whole is rolled back,
// the entry at fault is set apart, and the others are settled together again. No handler is called again. A `record`
// is called again if and only if its transaction was rolled back.

namespace vouch {
inline namespace v0 {

/// What runs inside the settling transaction. If a hook throws, the outcome is kept and settled again later.
template <class Transaction>
struct settling_hooks {
    audit_sink<Transaction> audit{};
    std::function<void(Transaction&, const std::string& group, const entry& last)> group_complete{};
};

namespace detail {

/// The claim that goes with a settle.
struct next_claim {
    claim_request request{};
    claim_plan plan{};
};

} // namespace detail

template <class Store>
class settling {
  public:
    using transaction = typename Store::transaction;

    /// `calls_handlers`: what follows from a failed `record` is decided at once, which may call the handler's `ended`;
    /// else the entry is left with its `record_failure`, for the caller to have it decided elsewhere.
    settling(Store& store, const outbox& from, const handling<Store>& rules, const settling_hooks<transaction>& hooks,
             bool calls_handlers = true)
        : store_(store), outbox_(from), handling_(rules), hooks_(hooks), calls_handlers_(calls_handlers) {}

    /// Settles every entry of the batch that has no landing yet. Afterwards each has one, or is `held_up` by a hook, or
    /// has a `record_failure`. If `next` is given and every entry gets its landing, claims in the same commit and
    /// returns what was claimed; else returns nothing, and nothing was claimed.
    /// Throws the store's faults; then the same batch may be given again.
    [[nodiscard]] std::optional<detail::claims> operator()(std::span<handled<Store>> batch,
                                                           const detail::next_claim* next) {
        waiting unsettled;
        for (auto& h : batch) {
            if (!h.landing) {
                h.held_up.clear();
                h.is_untried = false;
                h.record_failure.reset();
                unsettled.push_back(&h);
            }
        }
        return settle_together(std::move(unsettled), next);
    }

  private:
    using waiting = std::vector<handled<Store>*>;

    /// How many entries at fault are set apart before the others are no longer tried together.
    static constexpr int culprits_max = 3;

    /// What one entry brings along. A fault of the store in a `record` counts as a hook's: it is held against nobody.
    enum class part : std::uint8_t { record, emission, hook };

    /// Thrown past the transaction: what one entry brought along has failed.
    struct culprit {
        std::size_t index;
        part what;
        detail::caught why;
    };

    struct attempt {
        std::vector<std::size_t> refused{}; ///< entries whose verdict was not `applied`; if any, all is rolled back
        detail::claims claimed{};
    };

    /// Whether it is the store that is in trouble, and not what was asked of it.
    [[nodiscard]] static bool is_fault(const error& e) noexcept {
        return e.is_in_doubt() || e.kind() == error_kind::busy || e.kind() == error_kind::full ||
               e.kind() == error_kind::io || e.kind() == error_kind::read_only || e.kind() == error_kind::corrupt ||
               e.kind() == error_kind::conflict;
    }

    std::optional<detail::claims> settle_together(waiting unsettled, const detail::next_claim* next) {
        int culprits = 0;
        for (int doubts = 0;;) {
            resolve_doubts(unsettled);
            if (unsettled.empty()) {
                return std::nullopt;
            }
            try {
                auto tried = try_once(unsettled, next);
                if (tried.refused.empty()) {
                    return next != nullptr ? std::optional{std::move(tried.claimed)} : std::nullopt;
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
                    // What it claimed is forgotten: a rolled-back claim's ticket may equal the next claimer's.
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

    /// Too many entries are at fault to go on with all of them: they are settled one by one. When hooks keep failing,
    /// they are likely to fail for the rest, too, which is then held up untried, and tried first the next time.
    std::optional<detail::claims> settle_rest(waiting unsettled) {
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

    /// A conflict that does not end may be the doing of one entry's part, which then holds up only that entry.
    std::optional<detail::claims> settle_conflicting(waiting unsettled) {
        if (unsettled.size() > 1) {
            return settle_rest(std::move(unsettled));
        }
        unsettled.front()->held_up = name_of(error_kind::conflict);
        return std::nullopt;
    }

    /// Says whether the entry can still be settled with the others.
    bool set_apart(waiting& unsettled, const culprit& c) {
        auto& h = *unsettled[c.index];
        if (c.what == part::record && calls_handlers_) {
            handling_.fail_recording(h, c.why);
            return true;
        }
        if (c.what == part::record) {
            h.record_failure = c.why;
        } else if (c.what == part::hook) {
            h.held_up = c.why.code;
            h.held_up_text = c.why.text;
        } else {
            h.landing = landing{.what = landing::kind::unsettled, .error = c.why.code};
        }
        unsettled.erase(unsettled.begin() + static_cast<std::ptrdiff_t>(c.index));
        return false;
    }

    /// The store refuses what is asked of it. That may be because a `record` went on after an error of the store's.
    void refuse(handled<Store>& h, const error& e) {
        const detail::caught why{std::string(name_of(e.kind()))};
        if (h.record) {
            waiting alone{&h};
            std::ignore = set_apart(alone, {0, part::record, why});
            if (!alone.empty()) {
                std::ignore = settle_together(std::move(alone), nullptr);
            }
        } else {
            h.landing = landing{.what = landing::kind::unsettled, .error = why.code};
        }
    }

    static void mark_stale(waiting& unsettled, const std::vector<std::size_t>& refused) {
        for (const auto i : refused) {
            unsettled[i]->landing = landing{.what = landing::kind::stale};
        }
        std::erase_if(unsettled, [](const auto* h) { return h->landing.has_value(); });
    }

    /// Asks what a settle would be answered, in a transaction that is rolled back. Tells which of those whose commit
    /// was in doubt have landed, and changes nothing.
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
                h.landing = landing{.group_completed = h.completes_group};
            } else if (answers[i].verdict == verdict::stale) {
                h.landing = landing{.what = landing::kind::stale};
            }
            h.in_doubt = h.in_doubt && h.landing.has_value(); // else it has not landed, and is settled anew
        }
        std::erase_if(unsettled, [](const auto* h) { return h->landing.has_value(); });
    }

    [[nodiscard]] std::vector<settlement> ask(const std::vector<settle>& again) {
        for (int left = transact_tries;; --left) {
            try {
                transaction tx = store_.begin();
                return tx.settle(again, outbox_.now());
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict || left == 1) {
                    throw;
                }
            }
        }
    }

    [[nodiscard]] attempt try_once(const waiting& unsettled, const detail::next_claim* next) {
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

    [[nodiscard]] attempt in_transaction(const waiting& unsettled, const detail::next_claim* next) {
        const auto now = outbox_.now();
        transaction tx = store_.begin();
        for_each(unsettled, part::record, [&](auto& h) {
            const detail::trail_scope scope(h.entry.trail);
            h.record ? h.record(tx) : void();
        });
        for_each(unsettled, part::emission, [&](auto& h) {
            if (!h.emissions.empty()) {
                h.receipts = tx.enqueue(h.emissions, now);
            }
        });
        for_each(unsettled, part::hook, [&](auto& h) { audit_outcome(tx, h, now); });
        std::vector<settle> settles;
        settles.reserve(unsettled.size());
        for (const auto* const h : unsettled) {
            settles.push_back({ticket_of(h->entry), h->outcome});
        }
        const auto settlements = tx.settle(settles, now);
        attempt out;
        for (std::size_t i = 0; i < settlements.size(); ++i) {
            unsettled[i]->completes_group = settlements[i].group_completed;
            if (settlements[i].verdict != verdict::applied) {
                out.refused.push_back(i);
            }
        }
        if (!out.refused.empty()) {
            return out; // rolls back
        }
        for_each(unsettled, part::hook,
                 [&](auto& h) { h.completes_group ? complete_group(tx, h.entry, now) : void(); });
        if (next != nullptr) {
            auto request = next->request;
            request.now = now; // what this transaction made due is claimed with it
            out.claimed = detail::claim_apart(tx, request, next->plan);
        }
        tx.commit();
        for (auto* const h : unsettled) {
            h->landing = landing{.group_completed = h->completes_group};
        }
        return out;
    }

    /// What goes wrong in a part of one entry is set apart with it, so that the others can be settled. If the store
    /// itself has failed, that shows when they are.
    template <class Part>
    static void for_each(const waiting& unsettled, part what, Part&& run) {
        for (std::size_t i = 0; i < unsettled.size(); ++i) {
            try {
                run(*unsettled[i]);
            } catch (const error& e) {
                if (e.kind() == error_kind::conflict || (what == part::emission && is_fault(e))) {
                    throw;
                }
                throw culprit{i, is_fault(e) ? part::hook : what, detail::caught::current()};
            } catch (...) {
                throw culprit{i, what, detail::caught::current()};
            }
        }
    }

    void audit_outcome(transaction& tx, const handled<Store>& h, time_point now) const {
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
    const outbox& outbox_;
    const handling<Store>& handling_;
    const settling_hooks<transaction>& hooks_;
    bool calls_handlers_;
};

} // namespace v0
} // namespace vouch

// ---- vouch/run/runner.hpp
// One deterministic pass over a queue: claim, handle each, settle. No threads, sleeps, clocks or randomness of its own:
// the same store, clock, ids and handlers give the same trace. The phases are public, so that something else (a worker,
// a simulator, a debugger) can stop between any two.
//
// An entry whose last claim ended with its lease may have killed its process, so it is claimed and handled alone (see
// `isolation.hpp`); for that a caller of the phases settles what it has claimed before it claims again. Outcomes that a
// failing hook holds up are kept, and settled by a later pass.
//
// A runner is used by one thread at a time, but for `handle`, which several may call at once; several runners may share
// store, outbox and router.

namespace vouch {
inline namespace v0 {

struct runner_options {
    std::string queue{};
    std::string worker = "runner";                ///< who claims; shown to operators
    std::size_t batch_size = 50;                  ///< entries per claim
    duration lease = std::chrono::minutes{5};     ///< must comfortably exceed what a batch takes
    retry_policy retry{};                         ///< for routes and entries that say nothing of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic no route fits
    std::size_t passes_max = 1'000'000;           ///< after which `run_until_idle` gives up
    bool exception_text = false;                  ///< hand it to observers: it may carry other people's data
};

template <class Store>
class runner {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;
    using batch = std::vector<handled<Store>>;

    /// Store, outbox and router outlive the runner. Throws `invalid_argument` for options no claim would take.
    runner(Store& store, const outbox& from, const router<Store>& routes, runner_options options)
        : store_(store), outbox_(from), router_(routes),
          options_(std::move(options)), rules_{.retry = options_.retry, .unhandled = options_.unhandled},
          can_(store.capabilities()) {
        validate(request(time_point{}, options_.batch_size), can_.limits);
        if (options_.batch_size == 0) {
            detail::refuse({"runner", "batch_size"}, "is 0, it would never claim anything");
        }
    }

    runner(Store&, const outbox&&, const router<Store>&, runner_options) = delete; // it would outlive its outbox
    runner(Store&, const outbox&, const router<Store>&&, runner_options) = delete; // it would outlive its router
    runner(Store&, const outbox&&, const router<Store>&&, runner_options) = delete;

    // Watching.

    template <observer O>
    void observe(O& o) {
        observers_.add(o);
    }
    /// Called in the settling transaction: before each terminal outcome, and after a settle that completed a group. If
    /// it throws, the outcome is kept, and settled by a later pass.
    void audit(audit_sink<transaction> sink) { hooks_.audit = std::move(sink); }
    /// Called in the settling transaction, once per fall of the group's unfinished members to zero. If it throws, the
    /// outcome is kept, and settled by a later pass.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        hooks_.group_complete = std::move(callback);
    }

    // Phases. Each is a boundary at which a process may die: what was claimed and not settled comes back when its lease
    // is over.

    [[nodiscard]] std::vector<entry> claim() { return claim(options_.batch_size); }

    /// No more than `limit`.
    [[nodiscard]] std::vector<entry> claim(std::size_t limit) {
        auto how = plan();
        how.limit = std::min(how.limit, limit);
        return taken(claim_by(how));
    }

    /// This entry only, if it is due now.
    [[nodiscard]] std::vector<entry> claim(const id& only) {
        const auto how = plan();
        auto wanted = request(outbox_.now(), 1);
        wanted.only = only;
        return claim_in_transaction(wanted, how).entries;
    }

    /// By a plan of the caller's, who knows what else the process holds.
    [[nodiscard]] detail::claims claim_by(const detail::claim_plan& plan) {
        return claim_in_transaction(request(outbox_.now(), plan.limit), plan);
    }

    /// Calls the handler and makes sure that what comes of it can be settled.
    [[nodiscard]] handled<Store> handle(entry e, std::stop_token stop = {}) const {
        std::optional<time_point> start;
        auto h = rules()(std::move(e), std::move(stop), [&](const entry& s) {
            start = outbox_.now();
            tell(event_kind::started, s, *start);
        });
        if (start) {
            h.took = std::max(outbox_.now() - *start, duration::zero());
        }
        return h;
    }

    /// Decides on an outcome whose `record` has failed; that may call the handler's `ended`.
    [[nodiscard]] handled<Store> handle_failed_record(handled<Store> h) const {
        const auto why = *h.record_failure;
        rules().fail_recording(h, why);
        return h;
    }

    /// Handles all; what has not been started when a stop is requested is handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop = {}) const {
        batch out;
        out.reserve(entries.size());
        for (auto& e : entries) {
            if (stop.stop_requested()) {
                out.push_back({.entry = std::move(e), .outcome = release{}});
            } else {
                out.push_back(handle(std::move(e), stop));
            }
        }
        return out;
    }

    /// Settles every outcome of the batch that has no landing yet; only those held up by a failing hook are left
    /// without one. Throws the store's faults; then the same batch may be settled again, under the same tickets.
    report settle(batch& handled) {
        std::ignore = land(handled, nullptr);
        return report_on(handled);
    }

    /// The same, and the next claim in the same commit where that is possible, else after it.
    [[nodiscard]] std::pair<report, std::vector<entry>> settle_and_claim(batch& handled) {
        const auto next = next_claim(plan());
        auto got = land(handled, &next);
        auto done = report_on(handled);
        if (got) {
            return {std::move(done), taken(told(std::move(*got)))};
        }
        return {std::move(done), taken(claim_by(plan()))};
    }

    /// For a worker: settles, and claims by `plan` in the same commit if every outcome lands; else claims nothing.
    /// Leaves what a failed `record` leads to for `handle_failed_record`.
    [[nodiscard]] std::pair<report, std::optional<detail::claims>>
    settle_and_try_claim(batch& handled, const detail::claim_plan& plan) {
        const auto next = next_claim(plan);
        auto got = land(handled, plan.limit > 0 ? &next : nullptr, false);
        auto done = report_on(handled);
        if (got) {
            return {std::move(done), told(std::move(*got))};
        }
        return {std::move(done), std::nullopt};
    }

    /// Extends the leases of outcomes that wait to be settled. One whose claim was taken over meanwhile is stale.
    void extend(batch& waiting) {
        const auto most = can_.limits.batch_max;
        for (std::size_t first = 0; first < waiting.size(); first += most) {
            const auto some = std::span(waiting).subspan(first, std::min(most, waiting.size() - first));
            std::vector<ticket> tickets;
            for (const auto& h : some) {
                tickets.push_back(ticket_of(h.entry));
            }
            const auto answers =
                transact(store_, [&](auto& tx) { return tx.extend(tickets, outbox_.now(), options_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (answers[i] != verdict::applied && !some[i].in_doubt) {
                    some[i].landing = landing{.what = landing::kind::stale};
                }
            }
        }
    }

    /// Reports the landings of a batch that were not reported yet.
    report report_landings(batch& handled) const {
        report out;
        const auto now = outbox_.now();
        for (auto& h : handled) {
            if (h.landing) {
                note(out, h, now);
            }
        }
        return out;
    }

    /// The same, and what is held up.
    report report_on(batch& handled) const {
        report out;
        const auto now = outbox_.now();
        for (auto& h : handled) {
            note(out, h, now);
        }
        return out;
    }

    // Passes.

    report run_once(const std::stop_token& stop = {}) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(), stop);
        }
        return out;
    }

    /// Dispatches one entry right away, if it is due: for producers that do not want to wait for the next pass.
    report run_only(const id& only) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(only), {});
        }
        return out;
    }

    /// Passes until nothing is due, each settle in one commit with the next claim; or until failing hooks hold up a
    /// whole batch of outcomes.
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
            if (stop.stop_requested() || passes + 1 >= options_.passes_max || !has_room()) {
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

    /// Passes until nothing is left to wait for, moving the clock to each next due time, or until a hook fails. For
    /// tests: hours pass at once.
    report run_until_idle(const manual_clock& time) {
        report total;
        for (std::size_t passes = 0;; ++passes) {
            check_passes(passes);
            total += run_until_idle();
            const auto next = store_.next_due(options_.queue);
            if (!next || !kept_.empty()) {
                return total;
            }
            if (*next > time()) {
                time.set(*next);
            }
            if (outbox_.now() < *next) {
                throw error(error_kind::misuse, "runner: the clock given is not the outbox's; moving it moves nothing");
            }
        }
    }

  private:
    [[nodiscard]] claim_request request(time_point now, std::size_t limit) const {
        return {
            .queue = options_.queue, .limit = limit, .now = now, .lease = options_.lease, .worker = options_.worker};
    }

    [[nodiscard]] handling<Store> rules() const { return {router_, outbox_, rules_, can_}; }

    // Claiming.

    /// What a pass claims. Where one entry with a lapse was, there are often more: they are then claimed one by one.
    [[nodiscard]] detail::claim_plan plan() const noexcept { return {.limit = was_alone_ ? 1 : options_.batch_size}; }

    [[nodiscard]] detail::next_claim next_claim(const detail::claim_plan& plan) const {
        return {.request = request(outbox_.now(), plan.limit), .plan = plan};
    }

    [[nodiscard]] detail::claims claim_in_transaction(const claim_request& wanted, const detail::claim_plan& plan) {
        return told(transact(store_, [&](auto& tx) { return detail::claim_apart(tx, wanted, plan); }));
    }

    [[nodiscard]] std::vector<entry> taken(detail::claims got) {
        was_alone_ = got.entries.size() == 1 && detail::has_lapsed(got.entries.front());
        return std::move(got.entries);
    }

    [[nodiscard]] detail::claims told(detail::claims got) const {
        for (const auto& e : got.entries) {
            auto seen = event_of(event_kind::claimed, e, *e.last_attempt_at);
            seen.late = std::max(seen.at - std::max(e.due_at, e.created_at), duration::zero());
            observers_.on(seen);
        }
        return got;
    }

    // Settling.

    report pass(std::vector<entry> entries, const std::stop_token& stop) {
        const auto count = entries.size();
        auto done = handle_all(std::move(entries), stop);
        const keeper keeps(*this, done);
        auto out = settle(done);
        out.claimed = count;
        return out;
    }

    [[nodiscard]] std::optional<detail::claims> land(batch& handled, const detail::next_claim* next,
                                                     bool calls_handlers = true) {
        if (handled.empty()) {
            return std::nullopt;
        }
        const auto how = rules();
        return settling<Store>(store_, outbox_, how, hooks_, calls_handlers)(std::span(handled), next);
    }

    /// At the end of a pass, however it ends, keeps the outcomes that are not settled: held up by a failing hook, or by
    /// a fault of the store. So no handler is called again for them.
    struct keeper {
        keeper(runner& of, batch& handled) : of_(of), batch_(handled) {
            of_.kept_.reserve(of_.kept_.size() + handled.size());
        }
        keeper(const keeper&) = delete;
        keeper& operator=(const keeper&) = delete;
        ~keeper() {
            try {
                std::ignore = of_.report_landings(batch_);
            } catch (...) { // NOLINT(bugprone-empty-catch): no memory for a report that has no reader
            }
            for (auto& h : batch_) {
                if (!h.landing) {
                    of_.kept_.push_back(std::move(h));
                }
            }
        }
        runner& of_;
        batch& batch_;
    };
    [[nodiscard]] bool has_room() const noexcept { return kept_.size() < options_.batch_size; }

    report settle_kept() {
        if (kept_.empty()) {
            return {};
        }
        auto out = settle(kept_);
        forget_landed();
        extend(kept_); // so that this runner does not claim them again
        out += report_landings(kept_);
        forget_landed();
        return out;
    }
    /// What was held up untried comes first the next time.
    void forget_landed() {
        std::erase_if(kept_, [](const auto& h) { return h.landing.has_value(); });
        std::stable_partition(kept_.begin(), kept_.end(), [](const auto& h) { return h.is_untried; });
    }

    void note(report& out, handled<Store>& h, time_point now) const {
        if (!h.landing && !h.held_up.empty()) {
            out.held_up += 1;
            out.trace.push_back({.id = h.entry.id,
                                 .topic = h.entry.topic,
                                 .attempt = h.entry.attempts,
                                 .what = event_kind::hook_failed,
                                 .error = h.held_up});
            if (!std::exchange(h.is_reported, true)) {
                auto seen = event_of(event_kind::hook_failed, h.entry, now);
                seen.error = h.held_up;
                seen.text = options_.exception_text ? std::string_view(h.held_up_text) : std::string_view{};
                observers_.on(seen);
            }
        } else if (h.landing && !h.landing->is_reported) {
            h.landing->is_reported = true;
            note(out, h, *h.landing, now);
        }
    }

    void note(report& out, const handled<Store>& h, const landing& l, time_point now) const {
        auto line = trace_line{.id = h.entry.id, .topic = h.entry.topic, .attempt = h.entry.attempts};
        const bool landed = l.what == landing::kind::landed;
        if (landed) {
            visit_outcome(name_outcome{line}, h.outcome);
        } else {
            line.what = l.what == landing::kind::stale ? event_kind::stale : event_kind::unsettled;
            line.error = l.error;
        }
        count(out, line.what) += 1;
        auto seen = event_of(line.what, h.entry, now);
        seen.error = line.error;
        seen.tag = landed ? std::string_view(h.tag) : std::string_view{};
        seen.took = h.took;
        seen.reason = line.what == event_kind::dead ? h.reason : death::none;
        if (const auto* const again = std::get_if<retry>(&h.outcome); again != nullptr && landed) {
            seen.delay = std::max(again->at - now, duration::zero());
        }
        if (options_.exception_text) {
            seen.text = landed ? h.text : l.text;
        }
        observers_.on(seen);
        for (std::size_t i = 0; landed && i < h.receipts.size(); ++i) {
            if (h.receipts[i].what == receipt::kind::inserted) {
                observers_.on(enqueued_event(h.emissions[i], now, options_.worker));
            }
        }
        if (landed && l.group_completed) {
            tell(event_kind::group_completed, h.entry, now);
        }
        out.trace.push_back(std::move(line));
    }

    struct name_outcome {
        trace_line& line;
        void operator()(const succeed&) const { line.what = event_kind::succeeded; }
        void operator()(const retry& o) const { tell(event_kind::retried, o.error); }
        void operator()(const bury& o) const { tell(event_kind::dead, o.error); }
        void operator()(const release&) const { line.what = event_kind::released; }
        void operator()(const advance&) const { line.what = event_kind::advanced; }
        void tell(event_kind what, const std::string& error) const {
            line.what = what;
            line.error = error;
        }
    };

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

    [[nodiscard]] event event_of(event_kind what, const entry& e, time_point at) const {
        return {.what = what,
                .at = at,
                .queue = e.queue,
                .topic = e.topic,
                .worker = options_.worker,
                .group = e.group,
                .id = e.id,
                .attempt = e.attempts,
                .is_saga = is_saga_progress(e.progress),
                .age = std::max(at - e.created_at, duration::zero())};
    }

    void tell(event_kind what, const entry& e, time_point at) const { observers_.on(event_of(what, e, at)); }

    void check_passes(std::size_t passes) const {
        if (passes >= options_.passes_max) {
            throw error(error_kind::misuse, "runner: still not idle after " + std::to_string(passes) +
                                                " passes; some handler keeps handing its entry back");
        }
    }

    Store& store_;
    const outbox& outbox_;
    const router<Store>& router_;
    runner_options options_;
    handling_options rules_;
    capabilities can_;
    observer_list observers_;
    settling_hooks<transaction> hooks_;
    batch kept_{};           ///< outcomes that are not settled yet
    bool was_alone_ = false; ///< the last pass handled an entry with a lapse
};

} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER
