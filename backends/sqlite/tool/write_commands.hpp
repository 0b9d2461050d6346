// SPDX-License-Identifier: MIT
// The verbs that write: retry, cancel, requeue, purge. Each prints what the store answered. Those that cannot be undone
// ask first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "database.hpp"
#include "output.hpp"
#include "read_commands.hpp"
#include "sagas.hpp"

namespace tool {

/// Whether the user agrees: by `--yes`, or at the terminal.
[[nodiscard]] inline bool is_confirmed(const arguments& with, const std::string& what) {
    if (with.yes) {
        return true;
    }
    if (isatty(STDIN_FILENO) == 0) {
        std::fprintf(stderr, "vouch: %s: needs --yes, because stdin is not a terminal\n", what.c_str());
        return false;
    }
    std::fprintf(stderr, "%s? [y/N] ", what.c_str());
    const int answer = std::getchar();
    return answer == 'y' || answer == 'Y';
}

/// Prints the sentence for the verdict. Returns the exit code.
[[nodiscard]] inline int report(const arguments& with, vouch::verdict v, std::string_view applied,
                                std::string_view repeated, std::string_view stale) {
    if (with.json) {
        print(json_object{}.text("verdict", name_of(v)).str() + "\n");
    } else if (v == vouch::verdict::unknown) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.entry_id.c_str());
    } else {
        const auto said = v == vouch::verdict::applied ? applied : v == vouch::verdict::repeated ? repeated : stale;
        std::fprintf(v == vouch::verdict::stale ? stderr : stdout, "%s\n", std::string(said).c_str());
    }
    return v == vouch::verdict::unknown ? not_found : v == vouch::verdict::stale ? refused : done;
}

inline int retry(database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    bool is_held = false;
    const auto v = vouch::transact(in.store(), [&](auto& tx) {
        const auto found = tx.find(id);
        is_held = found && found->state == vouch::state::claimed;
        return tx.nudge(id, vouch::system_now());
    });
    return report(with, v,
                  is_held ? "a worker holds the entry; if it has to run again, it is due as soon as that claim ends"
                          : "the entry is due now",
                  is_held ? "a worker holds the entry, and it is already marked to be due when that claim ends"
                          : "the entry was already due",
                  "the entry has ended; `requeue` gives a dead entry a successor");
}

inline int cancel(database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return report(with, vouch::verdict::unknown, {}, {}, {});
    }
    const auto now = vouch::system_now();
    if (sagas::is_saga(*found) && !with.abandon) {
        if (!is_confirmed(with, "ask saga " + with.entry_id + " to compensate")) {
            return refused;
        }
        const auto v = vouch::transact(store, [&](auto& tx) { return sagas::request_cancel(tx, id, now); });
        return report(with, v, "the saga was asked to compensate", "the saga was already asked", "the saga has ended");
    }
    if (!is_confirmed(with, "end " + with.entry_id + " (" + plain(found->topic) + ") as dead")) {
        return refused;
    }
    const auto v = vouch::transact(store, [&](auto& tx) { return tx.cancel(id, "cancelled", now); });
    return report(with, v, "the entry is dead", "the entry was already dead",
                  "a worker holds the entry, or it has succeeded; `show` tells which");
}

inline int requeue(database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    if (with.resume && with.afresh) {
        throw bad_usage("requeue takes --resume or --afresh, not both");
    }
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return report(with, vouch::verdict::unknown, {}, {}, {});
    }
    const bool is_saga = sagas::is_saga(*found);
    if (is_saga && !with.resume && !with.afresh) {
        std::fprintf(stderr,
                     "vouch: refused: the entry is a saga; --resume continues it, --afresh repeats all its steps\n");
        return refused;
    }
    if (is_saga && with.afresh && !is_confirmed(with, "repeat all steps of saga " + with.entry_id)) {
        return refused;
    }
    const vouch::outbox outbox(store);
    const auto fresh = outbox.fresh_id();
    const auto got = vouch::transact(store, [&](auto& tx) {
        return with.resume ? vouch::resume(tx, {.dead = id, .successor = fresh, .now = outbox.now()})
               : is_saga   ? sagas::requeue_saga(tx, {.dead = id, .successor = fresh, .now = outbox.now()})
                           : vouch::requeue(tx, {.dead = id, .successor = fresh, .now = outbox.now()});
    });
    using kind = vouch::receipt::kind;
    if (with.json) {
        print(json_object{}.text("receipt", name_of(got.what)).id("id", got.id).str() + "\n");
    } else if (got.what == kind::refused) {
        std::fprintf(stderr, "vouch: refused: only a dead entry without a parent can be requeued\n");
    } else {
        print((got.what == kind::inserted ? "the successor is " : "the entry already has a successor: ") +
              to_string(got.id) + "\n");
    }
    return got.what == kind::refused ? refused : done;
}

/// Removes entries in small commits, so that workers can write in between.
inline int purge(database& in, const arguments& with) {
    if (with.queue.empty() || !with.older_than) {
        throw bad_usage("purge needs --queue and --older-than");
    }
    if (with.state && vouch::is_live(*with.state)) {
        throw bad_usage("purge removes only ended entries: --state must be succeeded or dead");
    }
    auto& store = in.store();
    const auto what = with.state ? std::string(name_of(*with.state)) + " entries" : std::string("ended entries");
    if (!is_confirmed(with, "permanently remove " + what + " of queue " + plain(with.queue))) {
        return refused;
    }
    const auto before = vouch::purge_rule::after(*with.older_than).before(vouch::system_now());
    constexpr std::size_t at_once = 500;
    const auto counts = store.counts(with.queue);
    auto unseen = counts[vouch::state::succeeded] + counts[vouch::state::dead];
    std::size_t gone = 0;
    for (bool more = true; more;) {
        const auto now_gone = vouch::transact(store, [&](auto& tx) {
            return tx.purge({.queue = with.queue, .before = *before, .limit = at_once, .state = with.state});
        });
        gone += now_gone;
        unseen -= std::min(unseen, at_once); // each call looks at at least this many
        more = now_gone == at_once || unseen > 0;
    }
    print(with.json ? json_object{}.number("purged", gone).str() + "\n" : std::to_string(gone) + " removed\n");
    return done;
}

} // namespace tool
