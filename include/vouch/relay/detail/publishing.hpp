// SPDX-License-Identifier: MIT
// Publishes the messages of a batch of entries, and turns the broker's confirmations into outcomes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
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

/// A publisher that throws says `unknown` of every message. Its error's own code tells an operator more than its kind.
template <publisher Publisher>
[[nodiscard]] std::vector<confirmation> confirmations_of(Publisher& to, const made_messages& made,
                                                         delivery_batch& batch) {
    const auto unknown = [&](std::string code) {
        return std::vector<confirmation>(made.messages.size(),
                                         confirmation{confirmation::kind::unknown, std::move(code)});
    };
    try {
        auto answers = to.publish(made.messages);
        return answers.size() == made.messages.size() ? std::move(answers) : unknown("wrong_confirmation_count");
    } catch (const error& e) {
        for (const auto i : made.senders) {
            batch[i].explain(caught_exception::text_of(e));
        }
        const auto own = e.text_code();
        return unknown(own.empty() ? "broker_" + std::string(name_of(e.kind())) : std::string(own));
    } catch (...) {
        return unknown(caught_exception::current().code);
    }
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
