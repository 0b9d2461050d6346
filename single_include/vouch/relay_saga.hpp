// SPDX-License-Identifier: MIT
// Sagas whose participants are in other services: the relay of commands, the participant, and the handler of replies.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_RELAY_SAGA
#define VOUCH_SINGLE_HEADER_RELAY_SAGA

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/relay.hpp>
#include <vouch/saga.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// ---- vouch/relay/saga/channels.hpp
// The channels that a saga across services needs: one per participant, for its commands, and one for the replies. A
// broker's topology is made from them: a channel is a queue bound to its topics in RabbitMQ, and a topic in Kafka.

namespace vouch {
inline namespace v0 {

struct saga_channel {
    std::string name{};                ///< of a participant: its queue in the saga's store
    std::vector<std::string> topics{}; ///< of the messages that it carries

    [[nodiscard]] friend bool operator==(const saga_channel&, const saga_channel&) = default;
};

struct saga_channel_options {
    std::string replies = "replies";        ///< the name of the channel of the replies
    std::string reply_topic = "saga.reply"; ///< as in `command_relay_options`
};

/// The channels in the order of the steps, the one of the replies last; none if the saga sends no commands.
[[nodiscard]] inline std::vector<saga_channel> channels_of(const saga_definition& saga,
                                                           const saga_channel_options& how = {}) {
    std::vector<saga_channel> out;
    const auto add = [&](const std::string& name, const std::string& topic) {
        auto at = std::find_if(out.begin(), out.end(), [&](const saga_channel& c) { return c.name == name; });
        if (at == out.end()) {
            at = out.insert(out.end(), saga_channel{.name = name});
        }
        if (!topic.empty() && std::find(at->topics.begin(), at->topics.end(), topic) == at->topics.end()) {
            at->topics.push_back(topic);
        }
    };
    for (const auto& step : saga.steps) {
        if (step.is_remote()) {
            add(step.queue, step.topic);
            add(step.queue, step.undo_topic);
        }
    }
    if (!out.empty()) {
        add(how.replies, how.reply_topic);
    }
    return out;
}

} // namespace v0
} // namespace vouch

// ---- vouch/relay/saga/reply.hpp
// The reply of a participant in another service: an entry in the participant's store, sent by a relay, stored by the
// intake of the saga's service, and handled there by `reply_handler`.
//
//   command id        header `saga-reply-to`
//   status            header `saga-reply`: succeeded, rejected or failed
//   failure reason    header `saga-reply-error`: a code
//   result            payload
//   ordering key      lane: the command's

namespace vouch {
inline namespace v0 {

struct saga_reply {
    enum class status : std::uint8_t {
        succeeded, ///< the step is done
        rejected,  ///< nothing was done, and never will be: the step is not undone
        failed,    ///< the participant has given up, and something may have been done: the step is undone
    };
    vouch::id command{}; ///< its id in the saga's store
    saga_reply::status what = status::failed;
    std::string error{};  ///< a code; empty if it succeeded
    std::string result{}; ///< of a success
};

[[nodiscard]] constexpr std::string_view name_of(saga_reply::status status) noexcept {
    switch (status) {
    case saga_reply::status::succeeded: return "succeeded";
    case saga_reply::status::rejected: return "rejected";
    case saga_reply::status::failed: return "failed";
    }
    return "?";
}

/// The headers that tell the participant's service where the reply goes, and the saga's service what it answers.
inline constexpr std::string_view reply_topic_header = "saga-reply-topic";
inline constexpr std::string_view reply_to_header = "saga-reply-to";
inline constexpr std::string_view reply_header = "saga-reply";
inline constexpr std::string_view reply_error_header = "saga-reply-error";

/// The emission that sends a reply. The caller sets queue, topic and lane.
[[nodiscard]] inline emission emission_of(saga_reply reply) {
    return {.payload = std::move(reply.result),
            .headers = {{std::string(reply_to_header), to_string(reply.command)},
                        {std::string(reply_header), std::string(name_of(reply.what))},
                        {std::string(reply_error_header), std::move(reply.error)}}};
}

/// Reads an entry as a reply; nothing if it is none.
[[nodiscard]] inline std::optional<saga_reply> reply_of(const entry& e) {
    const auto to = detail::header_of(e, reply_to_header);
    const auto word = detail::header_of(e, reply_header);
    const auto command = to ? id::parse(*to) : std::nullopt;
    using enum saga_reply::status;
    for (const auto status : std::array{succeeded, rejected, failed}) {
        if (command && word == name_of(status)) {
            return saga_reply{.command = *command,
                              .what = status,
                              .error = std::string(detail::header_of(e, reply_error_header).value_or("")),
                              .result = e.payload};
        }
    }
    return std::nullopt;
}

} // namespace v0
} // namespace vouch

// ---- vouch/relay/saga/command_relay.hpp
// Sends the commands of sagas to a participant in another service. A command stays open after the broker has confirmed
// it: its reply ends it (`reply_handler`), which wakes the saga, or the saga's timeout does.
//
//   router.on(vouch::command_relay(broker, {.reply_topic = "orders.reply"}));
//   worker.serve(router, {.queue = "payment"}); // the queue that the saga's step names
//
// What the saga knows of a command is what it would know of one in its own store. A command that was never claimed had
// no effect; one that may have been sent and has no reply is unknown, and undone; one that the broker refuses when it is
// sent for the first time is rejected, and not undone.
//
// A command that has no reply is sent again from time to time, under the same message id: the participant's intake drops
// it if it has it. A broker that is away costs no attempt.
//
// Any number of threads may use it, as its publisher allows that.

namespace vouch {
inline namespace v0 {

struct command_relay_options {
    std::string pattern = "#";              ///< the topics of the commands that are sent
    std::string reply_topic = "saga.reply"; ///< the topic of the replies
    std::size_t size_max = 100;             ///< messages per call of the publisher
    duration wait{}; ///< how long a worker's thread waits for more messages to send with the first
    duration retry_in = std::chrono::seconds{1};     ///< when to send again what the broker has not confirmed
    duration resend_after = std::chrono::minutes{5}; ///< when to send again what has no reply
};

template <publisher Publisher>
class command_relay {
  public:
    /// The publisher must outlive the relay. Throws `invalid_argument` if a time is not positive, or if the topic of the
    /// replies is none.
    explicit command_relay(Publisher& to, command_relay_options options = {}) : to_(&to), options_(std::move(options)) {
        detail::check_required_name({"command_relay", "reply_topic"}, options_.reply_topic, limits{}.name_max);
        check_positive("retry_in", options_.retry_in);
        check_positive("resend_after", options_.resend_after);
    }

    [[nodiscard]] const command_relay_options& options() const noexcept { return options_; }

    [[nodiscard]] std::vector<outcome> operator()(delivery_batch& batch) const {
        auto out = detail::publish_batch(
            *to_, batch, [&](const entry& e) { return message_for(e); },
            [&](delivery& d) { return sent(d, options_.resend_after); },
            [&](delivery& d, std::string code) {
                d.tag(std::move(code));
                return sent(d, options_.retry_in);
            });
        for (std::size_t i = 0; i < out.size(); ++i) {
            adapt(out[i], batch[i]);
        }
        return out;
    }

  private:
    /// Otherwise a command would be sent again at once, without an end.
    static void check_positive(std::string_view option, duration given) {
        if (given <= duration::zero()) {
            detail::refuse({"command_relay", option},
                           "is " + std::to_string(given.count()) + " us, it must be at least 1 us");
        }
    }

    /// The lane keeps the commands of one order in order, and the participant from handling two of them at a time.
    [[nodiscard]] message message_for(const entry& e) const {
        const auto command = command_of(e);
        if (!command) {
            throw reject("no_command");
        }
        auto out = message_of(e);
        if (out.lane.empty()) {
            out.lane = "saga:" + to_string(command->saga);
        }
        out.group.clear();
        out.headers.emplace_back(detail::remote_header, out.id);
        out.headers.emplace_back(reply_topic_header, options_.reply_topic);
        return out;
    }

    /// The command has been sent, and may have arrived. It is marked as such, and stays open.
    [[nodiscard]] static outcome sent(const delivery& d, duration again_in) {
        const auto again = later(d.time(), again_in);
        if (detail::is_relayed(d.entry())) {
            return release{.at = again};
        }
        return advance{.progress = std::string(detail::relayed_progress), .at = again};
    }

    /// A command has the attempts of its participant, so one that could not be sent must not spend them. One that was
    /// sent before may have arrived, even if the broker refuses it now. Only what is refused at once had no effect: the
    /// empty result says so.
    void adapt(outcome& o, delivery& d) const {
        if (const auto* const unsent = std::get_if<vouch::retry>(&o)) {
            d.tag(unsent->error);
            o = release{.at = later(d.time(), options_.retry_in)};
        } else if (auto* const refused = std::get_if<bury>(&o); refused && !detail::is_relayed(d.entry())) {
            refused->result.emplace();
        }
    }

    Publisher* to_;
    command_relay_options options_;
};

/// Makes `router.on(command_relay)` work; call that.
template <class Store, publisher Publisher>
void add_route(router<Store>& to, const command_relay<Publisher>& added) {
    const auto& how = added.options();
    to.on_batch(how.pattern, added, {.size_max = how.size_max, .wait = how.wait});
}

} // namespace v0
} // namespace vouch

// ---- vouch/relay/saga/detail/recorded_outcome.hpp
// What `work` of a handler returns if its `record` depends on the entry: an outcome, and what to do in the transaction
// that settles it.

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Transaction>
struct recorded_outcome {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};

    operator vouch::outcome() const { return outcome; } // NOLINT(google-explicit-constructor): a handler's result
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/relay/saga/participant.hpp
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

// ---- vouch/relay/saga/reply_handler.hpp
// Ends commands with the replies that arrive from other services. In one transaction it ends the command, which wakes the
// saga, and the reply's own entry; the intake has dropped copies of the reply before.
//
//   router.on(vouch::reply_handler(outbox, "orders.reply"));
//   worker.serve(router, {.queue = "replies"}); // the queue into which the intake stores replies
//
// A reply to a command that has ended changes nothing: the saga has given it up, and undoes it. While the relay holds the
// command, which takes as long as a confirmation, the reply waits. So does the reply to a command that is not marked as
// sent. A reply that names something else, or a command that was never claimed, is dead with the code `no_command`.

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

#endif // VOUCH_SINGLE_HEADER_RELAY_SAGA
