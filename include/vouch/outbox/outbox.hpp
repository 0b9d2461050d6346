// SPDX-License-Identifier: MIT
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
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/emitter.hpp>

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
