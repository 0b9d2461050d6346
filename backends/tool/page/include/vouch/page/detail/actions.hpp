// SPDX-License-Identifier: MIT
// What a request can change. Each function is one short transaction and returns a sentence.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/policy/id_source.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

struct done {
    int status = 200; ///< of HTTP
    std::string sentence{};
    id successor{};
};

[[nodiscard]] inline done done_of(verdict v, std::string applied, std::string repeated, std::string stale) {
    switch (v) {
    case verdict::applied: return {200, std::move(applied)};
    case verdict::repeated: return {200, std::move(repeated)};
    case verdict::stale: return {409, std::move(stale)};
    case verdict::unknown: break;
    }
    return {404, "There is no such entry."};
}

template <class Store>
[[nodiscard]] done retry(Store& store, const id& which, time_point now) {
    bool is_held = false;
    const auto v = transact(store, [&](auto& tx) {
        const auto found = tx.find(which);
        is_held = found && found->state == state::claimed;
        return tx.nudge(which, now);
    });
    return done_of(v, is_held ? "A worker holds it; it is due again when that claim ends." : "It is due now.",
                   is_held ? "A worker holds it, and it is marked already." : "It was due already.",
                   "It has ended and cannot run again.");
}

/// A saga is asked to compensate; any other entry ends as dead.
template <class Store>
[[nodiscard]] done cancel(Store& store, const id& which, time_point now) {
    bool asked = false;
    const auto v = transact(store, [&](auto& tx) {
        const auto found = tx.find(which);
        asked = found && is_saga(*found);
        return asked ? request_cancel(tx, which, now) : tx.cancel(which, "cancelled", now);
    });
    return asked ? done_of(v, "The saga was asked to compensate.", "The saga was asked already.", "The saga has ended.")
                 : done_of(v, "It is dead now.", "It was dead already.", "A worker holds it, or it has succeeded.");
}

/// A dead saga continues where it stopped; any other dead entry starts again.
template <class Writer>
[[nodiscard]] receipt give_successor(Writer& tx, const entry& dead, const id& fresh, time_point now) {
    const requeue_request r{.dead = dead.id, .successor = fresh, .now = now};
    return is_saga(dead) ? resume(tx, r) : requeue(tx, r);
}

template <class Store>
[[nodiscard]] done requeue_one(Store& store, const id& which, const id_source& ids, time_point now) {
    const auto fresh = ids();
    std::optional<entry> found;
    const auto got = transact(store, [&](auto& tx) {
        found = tx.find(which);
        return found ? give_successor(tx, *found, fresh, now) : receipt{};
    });
    if (!found) {
        return {404, "There is no such entry."};
    }
    using kind = receipt::kind;
    return got.what == kind::inserted    ? done{200, "It has a successor now.", got.id}
           : got.what == kind::duplicate ? done{200, "It had a successor already.", got.id}
                                         : done{409, "Only a dead entry that is no command of a saga can be requeued."};
}

struct requeued {
    std::size_t inserted = 0;
    std::size_t had_one = 0;
    std::size_t refused = 0; ///< commands of sagas
};

/// All of them in one commit.
template <class Store>
[[nodiscard]] requeued requeue_all(Store& store, const std::vector<entry>& dead, const id_source& ids, time_point now) {
    return transact(store, [&](auto& tx) {
        requeued out;
        for (const auto& e : dead) {
            const auto got = give_successor(tx, e, ids(), now).what;
            using kind = receipt::kind;
            (got == kind::inserted ? out.inserted : got == kind::duplicate ? out.had_one : out.refused) += 1;
        }
        return out;
    });
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
