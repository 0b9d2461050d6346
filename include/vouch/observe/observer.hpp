// SPDX-License-Identifier: MIT
// Events for observers that log, count or record what happens. An event is reported after the fact, so an observer can
// watch but not interfere, and its `on` must not throw. Events carry names, ids and codes, never payloads. They carry
// the text of an exception only if the runner or worker has `exception_text` set.
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
