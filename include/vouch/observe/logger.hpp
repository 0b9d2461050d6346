// SPDX-License-Identifier: MIT
// An observer that writes a line per event, by level, to a sink of the application's choosing (stderr by default).
// Warnings and errors are on unless told otherwise. A line has names, ids and codes, never a payload; an exception's
// text only where the runner or the worker was asked for it. Whatever these contain, a line stays one line.
//
// Thread-safe: a logger hands lines to its sink one at a time. A sink may do what is logged in its turn, such as emit
// through an outbox that the logger observes: those lines are dropped, whichever logger they would go to.
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

enum class log_level : std::uint8_t {
    debug,   ///< polls, claims, starts
    info,    ///< what went as it should
    warning, ///< retries, dead letters, claims lost
    error,   ///< the store failed, an outcome could not be recorded, a payload could not be read
    off,     ///< above all events
};

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
    case event_kind::released: return e.tag.empty() ? log_level::info : log_level::warning; // nobody knows its kind
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

/// Gets a line without its end. What it throws is dropped.
using log_sink = std::function<void(log_level, std::string_view line)>;

inline void log_to_stderr(log_level /*level*/, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

namespace detail {

/// Whether this thread is inside the sink of a logger.
inline thread_local bool is_in_log_sink = false;

/// Calls the sink, as whose doing all events of this thread count meanwhile.
struct log_sink_call {
    log_sink_call() noexcept { is_in_log_sink = true; }
    log_sink_call(const log_sink_call&) = delete;
    log_sink_call& operator=(const log_sink_call&) = delete;
    ~log_sink_call() { is_in_log_sink = false; }
};

} // namespace detail

class logger {
  public:
    static constexpr bool writes_log = true; ///< see `logging_observer`

    explicit logger(log_level least = log_level::warning, log_sink sink = log_to_stderr)
        : least_(least), sink_(std::move(sink)) {}

    void on(const event& e) noexcept {
        const auto level = level_of(e);
        // A lock taken twice by one thread would never be had, and a line that makes a line would never end.
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

    /// ` name=value`; quoted where it must be, so that a value can neither end the line nor look like another field.
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

namespace detail {

/// Logs to stderr as long as it is needed: until an observer is there that writes a log.
class fallback_log {
  public:
    explicit fallback_log(log_level least) : log_(least) {}

    /// Not while events are being reported.
    void need(bool is_needed) noexcept { is_needed_ = is_needed; }
    void on(const event& e) noexcept {
        if (is_needed_) {
            log_.on(e);
        }
    }

  private:
    logger log_;
    bool is_needed_ = true;
};

} // namespace detail
} // namespace v0
} // namespace vouch
