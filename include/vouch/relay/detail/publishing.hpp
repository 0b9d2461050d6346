// SPDX-License-Identifier: MIT
// Publishes the messages of a batch of entries, and turns the broker's confirmations into outcomes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/delivery_batch.hpp>
#include <vouch/run/detail/caught_exception.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The messages to send, and the outcomes of entries for which none could be made.
struct made_messages {
    std::vector<message> messages{};
    std::vector<std::size_t> senders{}; ///< for each message, its entry's place in the batch
    std::vector<std::optional<outcome>> failed{};
};

/// The retry has no time: when, and whether at all, is for the policy to say.
[[nodiscard]] inline outcome failed_attempt(delivery& d, const caught_exception& why) {
    d.explain(why.text);
    if (why.is_permanent) {
        return bury{.error = why.code};
    }
    return retry{.error = why.code};
}

template <class Make>
[[nodiscard]] made_messages make_messages(delivery_batch& batch, const Make& make) {
    made_messages out;
    out.failed.resize(batch.size());
    out.messages.reserve(batch.size()); // both, so that memory that runs out leaves no message without its sender
    out.senders.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        try {
            out.messages.push_back(make(batch[i].entry()));
            out.senders.push_back(i);
        } catch (...) {
            out.failed[i] = failed_attempt(batch[i], caught_exception::current());
        }
    }
    return out;
}

/// One call of a publisher.
struct publish_call {
    std::vector<confirmation> answers{};
    std::string text{}; ///< of what it has thrown
    bool has_thrown = false;
    bool may_be_a_message = false; ///< it has thrown, and not because the broker is away
};

/// A publisher that throws says `unknown` of every message. Its error's own code tells an operator more than its kind.
template <publisher Publisher>
[[nodiscard]] publish_call publish_together(Publisher& to, std::span<const message> messages) {
    publish_call out;
    const auto unknown = [&](std::string code) {
        out.answers.assign(messages.size(), confirmation{confirmation::kind::unknown, std::move(code)});
    };
    try {
        out.answers = to.publish(messages);
        if (out.answers.size() != messages.size()) {
            unknown("wrong_confirmation_count");
        }
    } catch (const error& e) {
        const auto own = e.text_code();
        unknown(own.empty() ? "broker_" + std::string(name_of(e.kind())) : std::string(own));
        out.text = caught_exception::text_of(e);
        out.has_thrown = true;
        out.may_be_a_message = !e.is_transient();
    } catch (...) {
        auto why = caught_exception::current();
        unknown(std::move(why.code));
        out.text = std::move(why.text);
        out.has_thrown = out.may_be_a_message = true;
    }
    return out;
}

/// After so many messages in a row for which the publisher throws, the fault is taken for the broker's.
inline constexpr int throwing_messages_max = 5;

/// A publisher that throws because of one message would throw for as long as that is in the batch. So the messages are
/// sent again, each alone, and only those that it throws for stay unknown. If the broker is away, the rest is not tried.
/// A message is not sent after one of its lane that may not have arrived.
template <publisher Publisher>
void publish_one_by_one(Publisher& to, const made_messages& made, delivery_batch& batch,
                        std::vector<confirmation>& answers) {
    std::vector<std::string_view> waiting; // lanes
    int throwing = 0;                      // in a row
    for (std::size_t i = 0; i < made.messages.size() && !batch.stop().stop_requested(); ++i) {
        const auto& one = made.messages[i];
        if (!one.lane.empty() && std::find(waiting.begin(), waiting.end(), one.lane) != waiting.end()) {
            answers[i].code = "lane_waits";
            continue;
        }
        auto call = publish_together(to, std::span(&one, 1));
        answers[i] = std::move(call.answers.front());
        batch[made.senders[i]].explain(std::move(call.text));
        if (answers[i].what == confirmation::kind::unknown) {
            waiting.push_back(one.lane);
        }
        throwing = call.has_thrown ? throwing + 1 : 0;
        if (throwing == throwing_messages_max || (call.has_thrown && !call.may_be_a_message)) {
            return;
        }
    }
}

template <publisher Publisher>
[[nodiscard]] std::vector<confirmation> confirmations_of(Publisher& to, const made_messages& made,
                                                         delivery_batch& batch) {
    auto all = publish_together(to, made.messages);
    for (const auto i : made.senders) {
        batch[i].explain(all.text);
    }
    if (all.may_be_a_message && made.messages.size() > 1) {
        publish_one_by_one(to, made, batch, all.answers);
    }
    return std::move(all.answers);
}

/// Publishes, and returns one outcome per entry: `confirmed(delivery)` for what the broker has confirmed,
/// `unconfirmed(delivery, code)` for what it may have or not, a bury for what it refuses.
template <publisher Publisher, class Make, class Confirmed, class Unconfirmed>
[[nodiscard]] std::vector<outcome> publish_batch(Publisher& to, delivery_batch& batch, const Make& make,
                                                 const Confirmed& confirmed, const Unconfirmed& unconfirmed) {
    auto made = make_messages(batch, make);
    const auto answers = made.messages.empty() ? std::vector<confirmation>{} : confirmations_of(to, made, batch);
    auto& outcomes = made.failed;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        auto& d = batch[made.senders[i]];
        auto& out = outcomes[made.senders[i]];
        const auto& code = answers[i].code;
        switch (answers[i].what) {
        case confirmation::kind::confirmed: out = confirmed(d); break;
        case confirmation::kind::refused: out = bury{.error = code.empty() ? "refused" : code}; break;
        case confirmation::kind::unknown: out = unconfirmed(d, code.empty() ? "unconfirmed" : code); break;
        }
    }
    std::vector<outcome> out;
    out.reserve(outcomes.size());
    for (auto& o : outcomes) {
        out.push_back(std::move(*o));
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch
