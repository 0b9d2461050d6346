// SPDX-License-Identifier: MIT
// A saga with two remote participants, for tests of the engine.
#pragma once

#include <string>
#include <utility>

#include <vouch/saga.hpp>

#include "saga_support.hpp"

namespace saga_support {

/// Two steps at participants `a` and `b`, each with a timeout of 10 s.
[[nodiscard]] inline vouch::saga_definition two_participants(vouch::saga_options options = {},
                                                             vouch::retry_policy retry = times(3)) {
    const auto at = [&](const std::string& queue) {
        return vouch::command_options{.queue = queue, .topic = "do", .undo = "undo", .retry = retry, .timeout = 10s};
    };
    return define(std::move(options)).command("sa", at("a")).command("sb", at("b")).build();
}

/// The reply of the forward command, as its compensating command carries it.
[[nodiscard]] inline std::string reply_in(const vouch::delivery& d) {
    return d.as<vouch::compensation>().reply.value_or("");
}

/// Participants that log what they do, and reply.
inline void be_helpful(stage& on, const std::string& queue) {
    on.on(queue, "do", [&on, queue](vouch::delivery& d) {
        on.note("do " + queue);
        return queue + ":" + d.payload();
    });
    on.on(queue, "undo", [&on, queue](vouch::delivery& d) { on.note("undo " + queue + " <" + reply_in(d) + ">"); });
}

/// A saga that was started, and its participants' queues.
struct played : stage {
    explicit played(vouch::saga_definition d = two_participants()) : definition(std::move(d)) {
        play(definition);
        saga = begin(definition);
    }
    /// The command the saga waits for.
    [[nodiscard]] vouch::entry command() const { return entry(status(saga).waits_for); }

    vouch::saga_definition definition;
    vouch::id saga{};
};

} // namespace saga_support
