// SPDX-License-Identifier: MIT
// The producer's side without a store: turns emissions into drafts, fills in id, time and trail, and enqueues them
// through any writer. Use it where the process has a connection of its own and no store; `outbox` is an emitter that
// is bound to a store.
//
// An emitter never commits: what it enqueues commits or rolls back with the caller's transaction.
//
// Register all observers before the first use. After that any number of threads may use the emitter, if its clock, its
// id source and its observers allow that.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
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
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/outbox/trail.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>

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
