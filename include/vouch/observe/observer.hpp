// SPDX-License-Identifier: MIT
// What happened, for whoever wants to log, count or record it. Events are reported after the fact and never throw: an
// observer can watch, not interfere. They carry names and codes, never payloads or exception texts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

enum class event_kind : std::uint8_t {
    enqueued,
    claimed,
    started,
    succeeded,
    advanced,
    retried,
    dead,
    released,
    stale,     ///< an outcome came too late: another claim had taken over
    unsettled, ///< the settling transaction was abandoned; the lease will heal the entry
    group_completed,
    lease_lost,
    purged,
    store_error,
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
    case event_kind::group_completed: return "group_completed";
    case event_kind::lease_lost: return "lease_lost";
    case event_kind::purged: return "purged";
    case event_kind::store_error: return "store_error";
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
    vouch::id id{};
    std::uint32_t attempt = 0;
    std::size_t count = 1;
};

template <class O>
concept observer = requires(O& o, const event& e) {
    { o.on(e) }
    noexcept;
};

/// Several observers as one; each outlives the list. Not to be changed while events are being reported.
class observer_list {
  public:
    template <observer O>
    void add(O& o) {
        observers_.push_back({&o, [](void* self, const event& e) noexcept { static_cast<O*>(self)->on(e); }});
    }

    void on(const event& e) const noexcept {
        for (const auto& o : observers_) {
            o.call(o.self, e);
        }
    }

  private:
    struct bound {
        void* self;
        void (*call)(void*, const event&) noexcept;
    };
    std::vector<bound> observers_;
};

} // namespace v0
} // namespace vouch
