// SPDX-License-Identifier: MIT
// `vouch requeue` and `vouch resume`: give dead entries successors. A saga is continued where it stopped, unless --afresh
// asks for all its steps again.
#pragma once

#include <string>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../bulk.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"
#include "../json.hpp"
#include "../output.hpp"

namespace tool {

[[nodiscard]] inline vouch::receipt successor_of(any_transaction& tx, const vouch::entry& e, const arguments& with,
                                                 vouch::time_point now) {
    static const vouch::uuid7_source fresh;
    const vouch::requeue_request request{.dead = e.id, .successor = fresh(), .now = now};
    const bool is_saga = vouch::is_saga(e);
    return is_saga && with.afresh                            ? vouch::requeue_saga(tx, request)
           : is_saga || with.resume || with.verb == "resume" ? vouch::resume(tx, request)
                                                             : vouch::requeue(tx, request);
}

[[nodiscard]] constexpr bulk_act requeue_all(std::string_view verb, std::string_view applied) {
    return {.verb = verb,
            .applied = applied,
            .repeated = "already had a successor",
            .refused = "refused: commands of sagas",
            .may_apply = [](const vouch::entry& e, const arguments&,
                            vouch::time_point) { return e.state == vouch::state::dead; },
            .apply = [](any_transaction& tx, const vouch::entry& e, const arguments& with,
                        vouch::time_point now) { return answer_of(successor_of(tx, e, with, now)); }};
}

inline int requeue_one(database& in, const arguments& with) {
    const auto e = entry_of(in, with);
    if (vouch::is_saga(e) && with.afresh && !is_confirmed(with, "repeat all steps of saga " + to_string(e.id))) {
        return refused;
    }
    const auto got =
        vouch::transact(in.store(), [&](auto& tx) { return successor_of(tx, e, with, vouch::system_now()); });
    using kind = vouch::receipt::kind;
    if (is_json(with)) {
        print(text_of(json{{"receipt", name_of(got.what)}, {"id", json_of(got.id)}}) + "\n");
    } else if (got.what == kind::refused) {
        say("refused: only a dead entry without a parent can be requeued");
    } else {
        print((got.what == kind::inserted ? "the successor is " : "the entry already has a successor: ") +
              to_string(got.id) + "\n");
    }
    return got.what == kind::refused ? refused : done;
}

inline int requeue(database& in, const arguments& with) {
    if (with.resume && with.afresh) {
        throw bad_usage("requeue takes --resume or --afresh, not both");
    }
    if (!with.entry_id.empty()) {
        return requeue_one(in, with);
    }
    auto dead = with;
    dead.only_dead = true;
    return act_on_all(in, dead,
                      with.verb == "resume" ? requeue_all("resume", "resumed") : requeue_all("requeue", "requeued"));
}

} // namespace tool
