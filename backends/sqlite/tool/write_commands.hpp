// SPDX-License-Identifier: MIT
// The verbs that change something: retry, cancel, requeue, purge. Each says what the store answered; those that cannot
// be taken back ask first.
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

/// Whether the person at the terminal agrees; without one only `--yes` does.
[[nodiscard]] inline bool is_confirmed(const arguments& with, const std::string& what) {
    if (with.yes) {
        return true;
    }
    if (isatty(STDIN_FILENO) == 0) {
        std::fprintf(stderr, "vouch: %s: needs --yes where nobody can be asked\n", what.c_str());
        return false;
    }
    std::fprintf(stderr, "%s? [y/N] ", what.c_str());
    const int answer = std::getchar();
    return answer == 'y' || answer == 'Y';
}

/// Says what became of it.
[[nodiscard]] inline int answered(const arguments& with, vouch::verdict v, std::string_view applied,
                                  std::string_view repeated, std::string_view stale) {
    if (with.json) {
        print(json_object{}.text("verdict", name_of(v)).str() + "\n");
    } else if (v == vouch::verdict::unknown) {
        std::fprintf(stderr, "vouch: there is no entry %s\n", with.subject.c_str());
    } else {
        const auto said = v == vouch::verdict::applied ? applied : v == vouch::verdict::repeated ? repeated : stale;
        std::fprintf(v == vouch::verdict::stale ? stderr : stdout, "%s\n", std::string(said).c_str());
    }
    return v == vouch::verdict::unknown ? not_found : v == vouch::verdict::stale ? refused : done;
}

inline int retry(database& in, const arguments& with) {
    const auto id = subject_of(with);
    bool is_held = false;
    const auto v = vouch::transact(in.store(), [&](auto& tx) {
        const auto found = tx.find(id);
        is_held = found && found->state == vouch::state::claimed;
        return tx.nudge(id, vouch::system_now());
    });
    return answered(
        with, v,
        is_held ? "a worker holds it; if it is to run again, it is due as soon as that claim ends" : "it is due now",
        is_held ? "a worker holds it, and it was marked already to be due when that claim ends" : "it was due already",
        "it has ended; `requeue` gives a dead entry a successor");
}

inline int cancel(database& in, const arguments& with) {
    const auto id = subject_of(with);
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return answered(with, vouch::verdict::unknown, {}, {}, {});
    }
    const auto now = vouch::system_now();
    if (sagas::is_saga(*found) && !with.abandon) {
        if (!is_confirmed(with, "ask saga " + with.subject + " to turn round")) {
            return refused;
        }
        const auto v = vouch::transact(store, [&](auto& tx) { return sagas::request_cancel(tx, id, now); });
        return answered(with, v, "it has been asked to turn round", "it had been asked already", "it has ended");
    }
    if (!is_confirmed(with, "end " + with.subject + " (" + plain(found->topic) + ") as dead")) {
        return refused;
    }
    const auto v = vouch::transact(store, [&](auto& tx) { return tx.cancel(id, "cancelled", now); });
    return answered(with, v, "it is dead", "it was dead already",
                    "a worker holds it, or it has succeeded; `show` tells until when");
}

inline int requeue(database& in, const arguments& with) {
    const auto id = subject_of(with);
    if (with.resume && with.afresh) {
        throw bad_usage("requeue wants --resume or --afresh, not both");
    }
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return answered(with, vouch::verdict::unknown, {}, {}, {});
    }
    const bool is_saga = sagas::is_saga(*found);
    if (is_saga && !with.resume && !with.afresh) {
        std::fprintf(stderr,
                     "vouch: refused: it is a saga; --resume carries it on, --afresh does all its work again\n");
        return refused;
    }
    if (is_saga && with.afresh && !is_confirmed(with, "do all the work of saga " + with.subject + " again")) {
        return refused;
    }
    const vouch::outbox outbox;
    const auto fresh = outbox.fresh_id();
    const auto got = vouch::transact(store, [&](auto& tx) {
        return with.resume ? vouch::resume(tx, id, fresh, outbox.now())
               : is_saga   ? sagas::requeue_saga(tx, id, fresh, outbox.now())
                           : vouch::requeue(tx, id, fresh, outbox.now());
    });
    using kind = vouch::receipt::kind;
    if (with.json) {
        print(json_object{}.text("receipt", name_of(got.what)).id("id", got.id).str() + "\n");
    } else if (got.what == kind::refused) {
        std::fprintf(stderr, "vouch: refused: only a dead entry without a parent can be requeued\n");
    } else {
        print((got.what == kind::inserted ? "its successor is " : "it has a successor already: ") + to_string(got.id) +
              "\n");
    }
    return got.what == kind::refused ? refused : done;
}

/// In bounded commits, so that workers get their turns.
inline int purge(database& in, const arguments& with) {
    if (with.queue.empty() || !with.older_than) {
        throw bad_usage("purge wants --queue and --older-than");
    }
    if (with.state && vouch::is_live(*with.state)) {
        throw bad_usage("purge removes ended entries only: --state succeeded or dead");
    }
    auto& store = in.store();
    const auto what = with.state ? std::string(name_of(*with.state)) + " entries" : std::string("ended entries");
    if (!is_confirmed(with, "remove " + what + " of queue " + plain(with.queue) + " for good")) {
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
        unseen -= std::min(unseen, at_once); // each call gets further by its limit at least
        more = now_gone == at_once || unseen > 0;
    }
    print(with.json ? json_object{}.number("purged", gone).str() + "\n" : std::to_string(gone) + " removed\n");
    return done;
}

} // namespace tool
