// SPDX-License-Identifier: MIT
// A handler of commands from sagas in other services. It answers each command once: the reply is an entry in the queue
// `replies` of the participant's own store, committed with the command's outcome, and a relay sends it.
//
//   vouch::intake intake(consumer, outbox, {.source = "orders", .queue = "payment", .map = vouch::command_emission_of});
//   router.on("payment.#", vouch::participant(outbox, charge_or_refund)); // a router for the queue `payment`
//   replies.on(vouch::relay(publisher));                                  // a router for the queue `replies`
//
// The handler is any that a router takes. When it succeeds, its result is the reply. When it rejects in its first
// attempt, the saga knows that nothing was done. When it rejects later, runs out of attempts or time, or does what the
// store cannot keep (a result or a follow-up over a limit), the saga undoes the step. In all these cases the command is
// answered, and its entry succeeds: what to do next is the saga's business. Follow-ups and records of the handler are
// committed with a success only.
//
// A compensating command may arrive while the command that it undoes waits here, and even before that arrives: a copy may
// wait somewhere in a network. So a compensation first leaves a mark, then cancels the forward command, or waits for its
// handler to end, and only then calls its own handler. A forward command that finds the mark is rejected without a call.
//
// A mark is an entry that has succeeded, in the queue `marks`, which no worker serves: nothing is purged there unless
// the application does it. Purge marks that are older than a copy of a command may wait anywhere: in the saga's store, in
// the broker, in its dead-letter queue, here. A forward command that arrives after its mark is gone is handled.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/relay/intake_options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/saga/detail/recorded_outcome.hpp>
#include <vouch/relay/saga/reply.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/detail/caught_exception.hpp>
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
    std::string marks = "undone";           ///< the queue of the marks of undone steps; no worker serves it
};

template <class Store>
class participant {
    using transaction = typename Store::transaction;
    using answer = detail::recorded_outcome<transaction>;

  public:
    /// The runner asks `buried` before it buries a command, whatever the reason.
    static constexpr bool answers_burials = true;

    /// The outbox must outlive the participant. Throws `invalid_argument` for options that no reply would fit.
    template <class Handler>
    participant(const outbox<Store>& of, Handler&& handler, participant_options options = {})
        : outbox_(&of), options_(std::move(options)), handler_(made(std::forward<Handler>(handler))) {
        const auto limit = outbox_->store().capabilities().limits;
        detail::check_required_name({"participant", "replies"}, options_.replies, limit.name_max);
        detail::check_required_name({"participant", "reply_topic"}, options_.reply_topic, limit.name_max);
        detail::check_required_name({"participant", "marks"}, options_.marks, limit.name_max);
        result_max_ = std::min(limit.result_max, limit.payload_max); // a result is the payload of the reply, too
    }

    answer work(delivery& d) const {
        const auto command = checked(d);
        if (auto early = before_handler(d, command)) {
            return {std::move(*early)};
        }
        auto worked = handler_.work(d);
        return {after(d, command, std::move(worked.outcome)), std::move(worked.record)};
    }

    void record(transaction& tx, const answer& of) const { of.record ? of.record(tx) : void(); }

    /// Without an `ended` of the handler's, the runner buries with the code of the failure, and asks `buried`.
    outcome ended(delivery& d, ending why) const {
        const auto command = checked(d);
        return handler_.ended ? after(d, command, handler_.ended(d, why)) : outcome{bury{}};
    }

    /// The reply to a command that would be dead. An empty result says that the handler has rejected it, which says
    /// nothing about earlier claims.
    outcome buried(delivery& d, const bury& dead) const {
        const auto command = command_in(d);
        if (!command) {
            return dead;
        }
        const auto what = dead.result && d.entry().epoch == 1 ? rejected : failed;
        const auto& code = dead.error;
        return answered(
            d, {.command = command->id, .what = what, .error = code.empty() ? std::string(name_of(what)) : code});
    }

  private:
    template <class Handler>
    [[nodiscard]] static detail::handler<transaction> made(Handler&& from) {
        return detail::make_handler<transaction>(std::forward<Handler>(from));
    }

    static constexpr auto succeeded = saga_reply::status::succeeded;
    static constexpr auto rejected = saga_reply::status::rejected;
    static constexpr auto failed = saga_reply::status::failed;

    /// Nothing if the entry is no command, or if its intake does not use `command_emission_of`.
    [[nodiscard]] static std::optional<saga_command> command_in(const delivery& d) {
        auto command = command_of(d.entry());
        return command && d.entry().parent == command->saga ? std::move(command) : std::nullopt;
    }

    [[nodiscard]] static saga_command checked(const delivery& d) {
        auto command = command_in(d);
        if (!command) {
            throw reject("no_command");
        }
        return std::move(*command);
    }

    /// The outcome of a command whose handler is not to be called now. A fault of the store says nothing about the
    /// command, and costs it no attempt.
    [[nodiscard]] std::optional<outcome> before_handler(delivery& d, const saga_command& command) const {
        const auto again = later(d.time(), recheck_interval);
        try {
            if (!command.is_compensation) {
                return is_marked(command) ? std::optional(answered(
                                                d, {.command = command.id, .what = rejected, .error = "undone_before"}))
                                          : std::nullopt;
            }
            leave_mark(d, command);
            const auto held = stop_forward(d, command);
            return held ? std::optional<outcome>(release{.at = std::min(*held, again)}) : std::nullopt;
        } catch (const error& e) {
            d.tag(std::string(name_of(e.kind())));
            d.explain(detail::caught_exception::text_of(e));
            return release{.at = again};
        }
    }

    /// The outcome of a command whose handler has decided. One that is not over yet has no reply. One that is buried gets
    /// its reply from `buried`.
    [[nodiscard]] outcome after(delivery& d, const saga_command& command, outcome decided) const {
        auto* const done = std::get_if<succeed>(&decided);
        if (done == nullptr) {
            return decided;
        }
        if (done->result.size() > result_max_) {
            return bury{.error = "result_too_large"};
        }
        return answered(d, {.command = command.id, .what = succeeded, .result = std::move(done->result)});
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
    // forward command looks for the mark after it is claimed. So either it finds the mark, or it is found here. The two
    // may be in different queues, so the mark is found by its id.

    [[nodiscard]] static id mark_of(const saga_command& command) {
        return derive(saga_key(command.saga, command.step, true), "undone");
    }

    [[nodiscard]] bool is_marked(const saga_command& command) const {
        return outbox_->store().find(mark_of(command)).has_value();
    }

    void leave_mark(const delivery& d, const saga_command& command) const {
        if (!is_marked(command)) {
            const draft mark{
                .id = mark_of(command), .queue = options_.marks, .topic = "saga.undone", .result = std::string{}};
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
    std::size_t result_max_ = 0;
};

} // namespace v0
} // namespace vouch
