// SPDX-License-Identifier: MIT
// What is delivered again, and what is not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/clauses/receive.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// What arrives, in order, until a last message of the lane, which is published now. Everything that the broker delivers
/// again comes before that one. The mailbox acknowledges it.
[[nodiscard]] inline std::string until_the_end(trial& t, mailbox& at) {
    const auto end = t.make("end", "lane");
    send(t, {end});
    at.expect_one(end);
    auto names = joined(at.first_arrivals());
    at.acknowledge_all();
    return names;
}

inline void unacknowledged_come_again(trial& t) {
    send(t, numbered(t, 1, 6, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 6);
        first.acknowledge(std::span(at.arrived()).first(3));
    }
    mailbox at(t, t.consumer());
    expect_equal("six messages were received, the first three acknowledged, and the consumer has died; then arrive",
                 "4 5 6 end", until_the_end(t, at));
}

inline void nothing_is_lost_by_a_gap(trial& t) {
    send(t, numbered(t, 1, 3, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        const std::vector<received> some{at.arrived()[0], at.arrived()[2]};
        first.acknowledge(some);
    }
    mailbox at(t, t.consumer());
    const auto seen = until_the_end(t, at);
    expect(seen == "2 end" || seen == "2 3 end",
           "three messages were received, the first and the third acknowledged, and the consumer has died; then arrive",
           "2 end, or 2 3 end", seen);
}

inline void what_is_given_back_comes_again(trial& t) {
    const auto sent = numbered(t, 1, 4, "lane");
    send(t, sent);
    auto& from = t.consumer();
    mailbox at(t, from);
    take(t, at, 3);
    from.give_back(at.arrived());
    at.forget();
    at.expect_all(sent);
    at.acknowledge_all();
    expect_equal("three messages were given back, and came again and were acknowledged; then arrives", "end",
                 until_the_end(t, at));
}

/// Rule 8. An intake whose store fails gives its batch back, and the lane must not be stored in another order then.
inline void what_comes_again_comes_first(trial& t) {
    const auto sent = numbered(t, 1, 8, "lane");
    send(t, sent);
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.give_back(at.arrived());
        at.forget();
        at.expect_all(sent);
        expect_equal(
            "eight messages of a lane; three were received and given back; then arrive, each for the first time",
            joined(names_of(t, sent)), joined(at.first_arrivals()));
        first.acknowledge(std::span(at.arrived()).first(2));
    }
    mailbox at(t, t.consumer());
    expect_equal("eight messages of a lane were received, two acknowledged, and the consumer has died; then arrive",
                 "3 4 5 6 7 8 end", until_the_end(t, at));
}

inline void what_is_set_aside_does_not_come_again(trial& t) {
    send(t, numbered(t, 1, 3, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.acknowledge(std::span(at.arrived()).first(1));
        first.set_aside(std::span(at.arrived()).subspan(1, 1));
        at.forget();
        const auto between = t.make("between", "lane");
        send(t, {between});
        at.expect_one(between);
        expect_equal("of three messages the first was acknowledged and the second set aside; then arrives", "between",
                     joined(at.first_arrivals()));
    }
    mailbox at(t, t.consumer());
    expect_equal("the third message was not acknowledged, and the consumer has died; then arrive", "3 between end",
                 until_the_end(t, at));
}

inline constexpr clause receive_acknowledge[] = {
    {"CON-05", needs::nothing, "consumer 2, 3",
     "After the consumer's death, messages that it has not acknowledged come again, and acknowledged ones do not.",
     "acknowledgement by the client library itself (auto-ack, auto-commit), and acknowledge without effect",
     &unacknowledged_come_again},
    {"CON-06", needs::nothing, "consumer 2, 3",
     "If the first and the third of three messages are acknowledged, the second comes again.",
     "acknowledgements up to a tag or an offset: it must stop before the first message that is not acknowledged",
     &nothing_is_lost_by_a_gap},
    {"CON-07", needs::nothing, "consumer 2, 4", "What is given back comes again soon, to the same consumer too.",
     "whether give_back really returns the message, and whether it returns the right ones",
     &what_is_given_back_comes_again},
    {"CON-08", needs::nothing, "consumer 8", "What is delivered again comes before what has not been delivered yet.",
     "messages that the client library has fetched in advance: give_back must return those as well",
     &what_comes_again_comes_first},
    {"CON-09", needs::nothing, "consumer 5", "What is set aside does not come again, and its neighbours are untouched.",
     "a rejection without requeueing, and the offset that it stands for", &what_is_set_aside_does_not_come_again},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
