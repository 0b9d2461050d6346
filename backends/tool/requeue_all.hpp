// SPDX-License-Identifier: MIT
// Requeue of all dead entries with the same error, for instance `no_handler`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "confirm.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

/// Requeues one page per commit, so that workers can write in between. It may be repeated: an entry never gets a second
/// successor.
template <class Database>
int requeue_all(Database& in, const arguments& with) {
    if (!is_confirmed(with, "requeue every dead entry of queue " + plain(with.queue) + " with the error " +
                                plain(with.error))) {
        return refused;
    }
    auto& store = in.store();
    const vouch::outbox outbox(store);
    std::size_t requeued = 0;
    std::size_t had_one = 0;
    std::size_t skipped = 0;
    auto page = vouch::query::dead(with.queue);
    // A successor that dies meanwhile is not requeued again.
    auto first_successor = std::numeric_limits<std::uint64_t>::max();
    for (auto found = store.list(page); !found.empty() && found.front().sequence < first_successor;
         found = store.list(page)) {
        page.after = found.back().sequence;
        std::erase_if(
            found, [&](const vouch::entry& e) { return e.last_error != with.error || e.sequence >= first_successor; });
        const auto receipts = vouch::transact(store, [&](auto& tx) {
            std::vector<vouch::receipt> out;
            for (const auto& e : found) {
                const auto fresh = outbox.fresh_id();
                out.push_back(with.resume
                                  ? vouch::resume(tx, {.dead = e.id, .successor = fresh, .now = outbox.now()})
                                  : vouch::requeue(tx, {.dead = e.id, .successor = fresh, .now = outbox.now()}));
            }
            return out;
        });
        for (const auto& r : receipts) {
            using kind = vouch::receipt::kind;
            if (r.what == kind::inserted && requeued == 0) {
                const auto successor = store.find(r.id);
                first_successor = successor ? successor->sequence : first_successor;
            }
            (r.what == kind::inserted ? requeued : r.what == kind::duplicate ? had_one : skipped) += 1;
        }
    }
    if (with.json) {
        print(json_object{}
                  .number("requeued", requeued)
                  .number("had_a_successor", had_one)
                  .number("skipped", skipped)
                  .str() +
              "\n");
    } else {
        print(std::to_string(requeued) + " requeued, " + std::to_string(had_one) + " already had a successor, " +
              std::to_string(skipped) + " skipped: sagas and their commands\n");
    }
    return done;
}

} // namespace tool
