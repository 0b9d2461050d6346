// SPDX-License-Identifier: MIT
// An observer that writes one line for each event to a sink, which is stderr by default. It writes warnings and errors,
// or from any other level on. A line has names, ids and codes, never a payload; it has the text of an exception only if
// the runner or worker has `exception_text` set. Values are escaped, so an event is always one line.
//
// Thread-safe: a logger calls its sink for one line at a time. A sink may cause events itself, for example by emitting
// through an outbox that a logger observes. The lines of such events are dropped, in every logger.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/utc.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {

/// How important an event is.
enum class log_level : std::uint8_t {
    debug,   ///< polls, claims, starts of handlers
    info,    ///< normal outcomes
    warning, ///< retries, dead letters, lost claims
    error,   ///< the store failed, an outcome was not recorded, a payload could not be decoded
    off,     ///< no event has this level
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(log_level level) noexcept {
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
    }
    return "?";
}

/// The level at which the logger writes an event.
[[nodiscard]] constexpr log_level level_of(const event& e) noexcept {
    switch (e.what) {
    case event_kind::claimed:
    case event_kind::started:
    case event_kind::polled: return log_level::debug;
    case event_kind::enqueued:
    case event_kind::succeeded:
    case event_kind::advanced:
    case event_kind::group_completed:
    case event_kind::purged: return log_level::info;
    case event_kind::released: return e.tag.empty() ? log_level::info : log_level::warning; // no handler knows it
    case event_kind::retried:
    case event_kind::stale:
    case event_kind::lease_lost: return log_level::warning;
    case event_kind::dead: return e.error == "undecodable" ? log_level::error : log_level::warning;
    case event_kind::unsettled:
    case event_kind::hook_failed:
    case event_kind::store_error: return log_level::error;
    }
    return log_level::error;
}

/// Receives a line, without a line break. An exception that it throws is dropped.
using log_sink = std::function<void(log_level, std::string_view line)>;

/// The default sink.
inline void log_to_stderr(log_level /*level*/, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

namespace detail {

/// Whether this thread is inside the sink of a logger.
inline thread_local bool is_in_log_sink = false;

/// Marks this thread while it is inside a sink.
struct log_sink_call {
    log_sink_call() noexcept { is_in_log_sink = true; }
    log_sink_call(const log_sink_call&) = delete;
    log_sink_call& operator=(const log_sink_call&) = delete;
    ~log_sink_call() { is_in_log_sink = false; }
};

} // namespace detail

/// Writes events at `least` and above.
class logger {
  public:
    static constexpr bool writes_log = true; ///< see `logging_observer`

    explicit logger(log_level least = log_level::warning, log_sink sink = log_to_stderr)
        : least_(least), sink_(std::move(sink)) {}

    void on(const event& e) noexcept {
        const auto level = level_of(e);
        // Inside a sink, the lock is held by this thread already, and a line that causes a line would never end.
        if (level < least_ || detail::is_in_log_sink) {
            return;
        }
        try {
            const std::lock_guard lock(mutex_);
            write(level, e);
            const detail::log_sink_call call;
            sink_(level, line_);
        } catch (...) { // NOLINT(bugprone-empty-catch): an observer cannot fail
        }
    }

  private:
    void write(log_level level, const event& e) {
        line_ = to_utc(e.at);
        line_ += ' ';
        line_ += name_of(level);
        line_ += ' ';
        line_ += name_of(e.what);
        add("queue", e.queue);
        add("topic", e.topic);
        if (!e.id.is_nil()) {
            add("id", to_string(e.id));
        }
        add("group", e.group);
        if (e.attempt != 0) {
            add("attempt", std::to_string(e.attempt));
        }
        if (e.what == event_kind::purged || e.what == event_kind::polled) {
            add("count", std::to_string(e.count));
        }
        if (e.took && *e.took != duration::zero()) {
            add("took_us", std::to_string(e.took->count()));
        }
        if (e.delay != duration::zero()) {
            add("delay_us", std::to_string(e.delay.count()));
        }
        add("error", e.error);
        if (e.reason != death::none) {
            add("reason", name_of(e.reason));
        }
        add("text", e.text);
        add("tag", e.tag);
        add("worker", e.worker);
    }

    /// Adds ` name=value`. The value is quoted if needed, so it can neither end the line nor look like another field.
    void add(std::string_view name, std::string_view value) {
        if (value.empty()) {
            return;
        }
        line_ += ' ';
        line_ += name;
        line_ += '=';
        const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '='; };
        bool plain = true;
        for (const char c : value) {
            plain = plain && is_plain(c);
        }
        if (plain) {
            line_ += value;
            return;
        }
        constexpr std::string_view hex = "0123456789abcdef";
        line_ += '"';
        for (const char c : value) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == ' ' || c == '=' || is_plain(c)) {
                line_ += c;
            } else if (c == '"' || c == '\\') {
                line_ += '\\';
                line_ += c;
            } else {
                line_ += "\\x";
                line_ += hex[byte >> 4U];
                line_ += hex[byte & 0xfU];
            }
        }
        line_ += '"';
    }

    log_level least_;
    log_sink sink_;
    std::mutex mutex_;
    std::string line_{};
};

} // namespace v0
} // namespace vouch
