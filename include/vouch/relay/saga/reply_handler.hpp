// SPDX-License-Identifier: MIT
// Ends commands with the replies that arrive from other services. In one transaction it ends the command, which wakes the
// saga, and the reply's own entry; the intake has dropped copies of the reply before.
//
//   router.on(vouch::reply_handler(outbox, "orders.reply"));
//   worker.serve(router, {.queue = "replies"}); // the queue into which the intake stores replies
//
// A reply to a command that has ended changes nothing: the saga has given it up, and undoes it. While the relay holds the
// command, which takes as long as a confirmation, the reply waits. So does the reply to a command that is not marked as
// sent. A reply that names something else, or a command that was never claimed, is dead with the code `no_command`.
#pragma once

#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/relay/saga/detail/recorded_outcome.hpp>
#include <vouch/relay/saga/reply.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/router.hpp>
#include <vouch/saga/command.hpp>

namespace vouch {
inline namespace v0 {

template <class Store>
class reply_handler {
    using transaction = typename Store::transaction;
    using answer = detail::recorded_outcome<transaction>;

  public:
    /// The outbox must outlive the handler.
    explicit reply_handler(const outbox<Store>& of, std::string topic = "saga.reply")
        : outbox_(&of), topic_(std::move(topic)) {}

    [[nodiscard]] const std::string& topic() const noexcept { return topic_; }

    answer work(delivery& d) const {
        auto reply = reply_of(d.entry());
        if (!reply) {
            throw reject("no_reply");
        }
        d.tag(std::string(name_of(reply->what)));
        return {succeed{}, [this, reply = std::move(*reply)](transaction& tx) { apply(tx, reply); }};
    }

    void record(transaction& tx, const answer& of) const { of.record(tx); }

  private:
    /// A reply comes from another service, so it is not trusted to name a command that it may answer.
    void apply(transaction& tx, const saga_reply& reply) const {
        const auto now = outbox_->now();
        const auto named = tx.find(reply.command);
        if (!named) {
            return;
        }
        const auto command = command_of(*named);
        const bool is_ours = command && command->id == named->id && !named->parent.is_nil();
        if (!is_ours || (is_live(named->state) && named->epoch == 0)) {
            throw reject("no_command");
        }
        if (!is_live(named->state)) {
            return;
        }
        if (!detail::is_relayed(*named)) {
            // The relay has died before it could mark the command as sent, and will send it again; or the command is for
            // a participant in this store, and the reply changes nothing when that has ended it.
            throw failure("command_not_sent");
        }
        settle(tx, claimed(tx, *named, now), outcome_of(reply), now);
    }

    [[nodiscard]] outcome outcome_of(const saga_reply& reply) const {
        const auto code = error_code(reply.error.empty() ? name_of(reply.what) : reply.error);
        switch (reply.what) {
        case saga_reply::status::succeeded:
            if (reply.result.size() > outbox_->store().capabilities().limits.result_max) {
                return bury{.error = "result_too_large"};
            }
            return succeed{.result = reply.result};
        case saga_reply::status::rejected: return bury{.error = code, .result = std::string{}};
        case saga_reply::status::failed: break;
        }
        return bury{.error = code};
    }

    /// A command that waits to be sent again is due from now on. One that the relay holds is not nudged: it would be sent
    /// again at once.
    [[nodiscard]] static entry claimed(transaction& tx, const entry& command, time_point now) {
        if (command.state != state::claimed) {
            static_cast<void>(tx.nudge(command.id, now));
        }
        auto got = tx.claim({.queue = command.queue, .now = now, .worker = "reply", .only = command.id});
        if (got.empty()) {
            throw failure("command_in_flight");
        }
        return std::move(got.front());
    }

    static void settle(transaction& tx, const entry& held, outcome with, time_point now) {
        const vouch::settle one{ticket_of(held), std::move(with)};
        if (tx.settle(std::span(&one, 1), now).front().verdict != verdict::applied) {
            throw failure("command_in_flight");
        }
    }

    const outbox<Store>* outbox_;
    std::string topic_;
};

/// Makes `router.on(reply_handler)` work; call that.
template <class Store>
void add_route(router<Store>& to, const reply_handler<Store>& added) {
    to.on(added.topic(), added,
          retry_policy{
              .backoff =
                  exponential{.base = std::chrono::milliseconds{50}, .max = std::chrono::seconds{5}, .jitter = 0.5},
              .attempts_max = std::numeric_limits<std::uint32_t>::max()});
}

} // namespace v0
} // namespace vouch
