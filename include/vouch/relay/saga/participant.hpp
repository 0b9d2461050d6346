// SPDX-License-Identifier: MIT
// A handler of commands from sagas in other services. It answers each command once: the reply is an entry in the queue
// `replies` of the participant's own store, committed with the command's outcome, and a relay sends it.
//
//   vouch::intake intake(consumer, outbox, {.source = "orders", .queue = "payment", .map = vouch::command_emission_of});
//   router.on("payment.#", vouch::participant(outbox, charge_or_refund)); // a router for the queue `payment`
//   replies.on(vouch::relay(publisher));                                  // a router for the queue `replies`
//
// The handler is any that a router takes. When it succeeds, its result is the reply. When it rejects in its first
// attempt, the saga knows that nothing was done. When it rejects later, or runs out of attempts or time, the saga undoes
// the step. In all these cases the command is answered, and its entry succeeds: what to do next is the saga's business.
//
// A compensating command may arrive while the command that it undoes waits here, and even before that arrives: a copy may
// wait somewhere in a network. So a compensation first leaves a mark, then cancels the forward command, or waits for its
// handler to end, and only then calls its own handler. A forward command that finds the mark is rejected without a call.
// Keep the entries of commands, and with them the marks, for longer than a copy may wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/relay/intake_options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/saga/detail/recorded_outcome.hpp>
#include <vouch/relay/saga/reply.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/detail/handler.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/saga/command.hpp>

namespace vouch {
inline namespace v0 {

/// For `intake_options::map` of a participant's intake: the entry's parent is the saga, so that the commands of a saga are
/// found, and a compensating command does not wait in the lane of the command that it undoes.
[[nodiscard]] inline emission command_emission_of(const message& m) {
    auto out = emission_of(m);
    for (const auto& [name, value] : m.headers) {
        if (name == detail::saga_header) {
            out.parent = id::parse(value).value_or(id{});
        } else if (name == detail::compensation_header && value == "true") {
            out.lane.clear();
        }
    }
    return out;
}

struct participant_options {
    std::string replies = "replies";        ///< the queue of the replies, in the participant's store
    std::string reply_topic = "saga.reply"; ///< for commands that do not name one
};

template <class Store>
class participant {
    using transaction = typename Store::transaction;
    using answer = detail::recorded_outcome<transaction>;

  public:
    /// The outbox must outlive the participant.
    template <class Handler>
    participant(const outbox<Store>& of, Handler&& handler, participant_options options = {})
        : outbox_(&of), options_(std::move(options)), handler_(made(std::forward<Handler>(handler))) {}

    answer work(delivery& d) const {
        const auto command = checked(d);
        if (command.is_compensation) {
            leave_mark(d, command);
            if (const auto held = stop_forward(d, command)) {
                return {release{.at = std::min(*held, later(d.time(), recheck_interval))}};
            }
        } else if (is_marked(d, command)) {
            return {answered(d, {.command = command.id, .what = rejected, .error = "undone_before"})};
        }
        try {
            auto worked = handler_.work(d);
            return {after(d, command, std::move(worked.outcome)), std::move(worked.record)};
        } catch (const reject& e) {
            return {answered(d, refusal(d, command, e.code()))};
        }
    }

    void record(transaction& tx, const answer& of) const { of.record ? of.record(tx) : void(); }

    outcome ended(delivery& d, ending why) const {
        const auto command = checked(d);
        if (handler_.ended) {
            return after(d, command, handler_.ended(d, why));
        }
        const auto& last = d.entry().last_error;
        const auto code = why == ending::expired ? "expired" : last.empty() ? "attempts_exhausted" : last;
        return answered(d, {.command = command.id, .what = failed, .error = code});
    }

  private:
    template <class Handler>
    [[nodiscard]] static detail::handler<transaction> made(Handler&& from) {
        return detail::make_handler<transaction>(std::forward<Handler>(from));
    }

    static constexpr auto succeeded = saga_reply::status::succeeded;
    static constexpr auto rejected = saga_reply::status::rejected;
    static constexpr auto failed = saga_reply::status::failed;

    [[nodiscard]] static saga_command checked(const delivery& d) {
        auto command = command_of(d.entry());
        if (!command || d.entry().parent != command->saga) {
            throw reject("no_command"); // or its intake does not use `command_emission_of`
        }
        return std::move(*command);
    }

    /// A rejection says nothing about earlier claims.
    [[nodiscard]] static saga_reply refusal(const delivery& d, const saga_command& command, std::string code) {
        return {.command = command.id, .what = d.entry().epoch == 1 ? rejected : failed, .error = std::move(code)};
    }

    /// The outcome of a command whose handler has decided. One that is not over yet has no reply.
    [[nodiscard]] outcome after(delivery& d, const saga_command& command, outcome decided) const {
        if (auto* const done = std::get_if<succeed>(&decided)) {
            return answered(d, {.command = command.id, .what = succeeded, .result = std::move(done->result)});
        }
        if (auto* const dead = std::get_if<bury>(&decided)) {
            auto reply = refusal(d, command, error_code(dead->error));
            reply.what = dead->result ? reply.what : failed;
            return answered(d, std::move(reply));
        }
        return decided;
    }

    [[nodiscard]] outcome answered(delivery& d, saga_reply reply) const {
        d.tag(std::string(name_of(reply.what)));
        succeed out{.result = reply.result};
        auto e = emission_of(std::move(reply));
        e.queue = options_.replies;
        e.topic = std::string(d.header(reply_topic_header).value_or(options_.reply_topic));
        e.lane = d.entry().lane;
        d.emit(std::move(e));
        return out;
    }

    // Compensations against forward commands. The mark is committed before the forward command is looked for, and a
    // forward command looks for the mark after it is claimed. So either it finds the mark, or it is found here.

    [[nodiscard]] static std::string mark_of(const saga_command& command) {
        return "undone/" + to_string(saga_key(command.saga, command.step, true));
    }

    [[nodiscard]] bool is_marked(const delivery& d, const saga_command& command) const {
        return !outbox_->store().list(query::keyed(d.queue(), mark_of(command))).empty();
    }

    void leave_mark(const delivery& d, const saga_command& command) const {
        if (!is_marked(d, command)) {
            const draft mark{.id = derive(d.id(), "undone"),
                             .queue = d.queue(),
                             .topic = "saga.undone",
                             .key = mark_of(command),
                             .result = std::string{}};
            enqueue(outbox_->store(), std::span(&mark, 1), d.now());
        }
    }

    /// Cancels the forward commands that this one undoes. If the handler of one is running, returns when its lease ends.
    [[nodiscard]] std::optional<time_point> stop_forward(const delivery& d, const saga_command& command) const {
        auto& store = outbox_->store();
        std::optional<time_point> held;
        auto page = query::children(command.saga);
        for (auto found = store.list(page); !found.empty(); found = store.list(page)) {
            page.after = found.back().sequence;
            for (const auto& e : found) {
                const auto other = command_of(e);
                if (!is_live(e.state) || !other || other->is_compensation || other->step != command.step) {
                    continue;
                }
                const auto stopped = transact(store, [&](auto& tx) { return tx.cancel(e.id, "undone", d.time()); });
                if (stopped == verdict::stale) {
                    held = e.lease_until.value_or(d.time());
                }
            }
        }
        return held;
    }

    static constexpr duration recheck_interval = std::chrono::seconds{1};

    const outbox<Store>* outbox_;
    participant_options options_;
    detail::handler<transaction> handler_;
};

} // namespace v0
} // namespace vouch
