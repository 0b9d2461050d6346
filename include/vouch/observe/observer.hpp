// SPDX-License-Identifier: MIT
// What happened, for observers that log, count or record it. Events are reported after the fact and never throw: an
// observer can watch, not interfere. They carry names and codes, never payloads; the text of an exception only where
// the runner or the worker was asked for it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

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
