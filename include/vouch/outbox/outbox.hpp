// SPDX-License-Identifier: MIT
// The producer's side: turns emissions into drafts, with id, time and trail filled in, and enqueues them through
// whatever writer the caller has. The outbox never commits: what is emitted lives or dies with the caller's
// transaction. Only emitting to a store is a commit, and only that is told to the outbox's observers; what went into a
// transaction of the caller's is told when the caller says that it is committed (`tell`).
//
// An outbox is immutable after construction and may be used from several threads, if its clock and ids may.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/outbox/trail.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>

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
