// SPDX-License-Identifier: MIT
// Consumers that end, consumers that share, and how much a consumer holds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/clauses/acknowledge.hpp>
#include <vouch/conformance/broker/clauses/receive.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void expect_nothing(mailbox& at, const std::string& what) {
    const auto before = at.arrived().size();
    for (int i = 0; i < 3; ++i) {
        at.receive(100, std::chrono::milliseconds{50});
    }
    expect_equal(what, "0 messages", std::to_string(at.arrived().size() - before) + " messages");
}

inline void cancelled_receives_nothing(trial& t) {
    send(t, numbered(t, 1, 10, "lane"));
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        first.cancel();
        first.cancel(); // no effect
        expect_nothing(at, "receive after cancel returns");
        first.acknowledge(at.arrived());
    }
    mailbox at(t, t.consumer());
    expect_equal(
        "of ten messages three were received, then the consumer was cancelled, then they were acknowledged, and "
        "the consumer has died; then arrive",
        "4 5 6 7 8 9 10 end", until_the_end(t, at));
}

inline void cancelled_leaves_the_rest(trial& t) {
    const auto sent = numbered(t, 1, 10, "lane");
    send(t, sent);
    auto first = t.fresh_consumer();
    mailbox at(t, first);
    take(t, at, 3);
    first.cancel();
    first.give_back(at.arrived());
    mailbox other(t, t.consumer()); // a second one, while the first still lives
    other.expect_all(sent);
    other.acknowledge_all();
    expect_nothing(at, "receive after cancel returns");
}

inline void two_consumers_share(trial& t) {
    auto first = t.fresh_consumer();
    std::optional<any_consumer> second(t.fresh_consumer());
    mailbox a(t, first, acknowledging::on_arrival);
    std::vector<message> sent;
    for (std::size_t i = 0; i < 40; ++i) {
        sent.push_back(t.make(i, "lane" + std::to_string(i % 8)));
    }
    send(t, sent);
    std::vector<std::string> seen;
    {
        mailbox b(t, *second);
        const time_limit limit(t.patience());
        // The second one acknowledges only the first half of what it gets, then it dies.
        while (a.arrived().size() + b.arrived().size() < sent.size() && b.arrived().size() < 10 && !limit.is_over()) {
            a.receive(5, std::chrono::milliseconds{20});
            b.receive(5, std::chrono::milliseconds{20});
        }
        const auto half = b.arrived().size() / 2;
        second->acknowledge(std::span(b.arrived()).first(half));
        for (std::size_t i = 0; i < half; ++i) {
            seen.push_back(b.arrived()[i].message.id);
        }
        second.reset();
    }
    std::erase_if(sent, [&](const message& m) { return std::find(seen.begin(), seen.end(), m.id) != seen.end(); });
    a.expect_all(sent);
}

inline void unacknowledged_is_bounded(trial& t) {
    const auto max = t.fixture().unacknowledged_max();
    const auto sent = numbered(t, 1, max + 20, {});
    send(t, sent);
    mailbox at(t, t.consumer());
    const auto is_quiet = [&] {
        const auto before = at.arrived().size();
        at.receive(max + 20, t.silence());
        return at.arrived().size() == before && before > 0;
    };
    const time_limit limit(t.patience());
    while (!is_quiet() && at.arrived().size() <= max && !limit.is_over()) {
    }
    expect(at.arrived().size() <= max,
           std::to_string(sent.size()) + " messages were published and none was acknowledged",
           "at most " + std::to_string(max) + " are received", std::to_string(at.arrived().size()) + " were received");
    auto missing = sent;
    std::erase_if(missing, [&](const message& m) {
        return std::any_of(at.arrived().begin(), at.arrived().end(),
                           [&](const received& r) { return r.message.id == m.id; });
    });
    at.acknowledge_all();
    mailbox rest(t, t.consumer(), acknowledging::on_arrival);
    rest.expect_all(missing);
}

inline constexpr clause receive_cancel[] = {
    {"CON-10", needs::nothing, "consumer 6",
     "After `cancel`, `receive` returns nothing, and what was received before can still be acknowledged.",
     "messages that the client library has fetched in advance, and a channel that is closed too early",
     &cancelled_receives_nothing},
    {"CON-11", needs::nothing, "consumer 4, 6",
     "What a cancelled consumer has given back, and what it has not returned, goes to another consumer.",
     "messages that the client library has fetched in advance: cancel must return them", &cancelled_leaves_the_rest},
    {"CON-12", needs::nothing, "consumer 2",
     "Two consumers share the messages, and nothing is missing when one of them dies.",
     "what happens to the messages of a consumer that leaves", &two_consumers_share},
    {"CON-13", needs::unacknowledged_max, "consumer 7",
     "A consumer that acknowledges nothing receives a bounded number of messages.", "prefetch, or paused partitions",
     &unacknowledged_is_bounded},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
