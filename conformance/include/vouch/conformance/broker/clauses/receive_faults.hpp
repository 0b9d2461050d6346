// SPDX-License-Identifier: MIT
// Cut connections and messages that cannot be read.
#pragma once

#include <chrono>
#include <cstddef>
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

/// Some brokers resume a connection without delivering again; then the old acknowledgements count. If messages come
/// again after the cut, what was received before it is of a connection that is lost.
inline void old_tags_have_no_effect(trial& t) {
    const auto sent = numbered(t, 1, 3, "lane");
    const auto end = t.make("end", "lane");
    send(t, sent);
    std::vector<message> expected;
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        take(t, at, 3);
        const auto old = at.arrived();
        t.fixture().cut();
        send(t, {end});
        at.forget();
        at.expect_one(end);
        const bool came_again = at.first_arrivals().size() > 1;
        if (came_again) {
            at.expect_all(sent);
            without_lasting_fault("acknowledge", [&] { first.acknowledge(old); });
            without_lasting_fault("set_aside", [&] { first.set_aside(old); });
        }
        expected = sent;
        expected.push_back(end);
    }
    mailbox at(t, t.consumer());
    at.expect_all(expected);
    at.acknowledge_all();
}

inline void unacknowledged_come_again_after_a_cut(trial& t) {
    send(t, numbered(t, 1, 5, "lane"));
    for (const bool sees_the_cut : {false, true}) {
        auto dying = t.fresh_consumer();
        mailbox at(t, dying);
        take(t, at, 5);
        t.fixture().cut();
        if (sees_the_cut) {
            at.receive(1, std::chrono::milliseconds{50});
        }
    }
    mailbox at(t, t.consumer());
    expect_equal("five messages were received, the connection was cut, and the consumer has died; then arrive",
                 "1 2 3 4 5 end", until_the_end(t, at));
}

inline void faults_are_over(trial& t) {
    auto& from = t.consumer();
    mailbox at(t, from, acknowledging::on_arrival); // says which exceptions are wrong
    for (std::size_t round = 0; round < 3; ++round) {
        const auto before = t.make(round * 2, "lane");
        send(t, {before});
        at.expect_one(before);
        t.fixture().cut();
        const auto after = t.make(round * 2 + 1, "lane");
        send(t, {after});
        at.expect_one(after);
    }
}

inline void malformed_blocks_nothing(trial& t) {
    const auto before = t.make("before", "lane");
    const auto after = t.make("after", "lane");
    send(t, {before});
    t.fixture().publish_malformed();
    send(t, {after});
    {
        auto first = t.fresh_consumer();
        mailbox at(t, first);
        at.expect_one(before);
        at.expect_one(after);
        expect(at.receive_until([&] { return !at.malformed().empty(); }), "a message that cannot be read was published",
               "it is returned with a code in `malformed`", "it is not returned");
        first.set_aside(at.malformed());
        at.acknowledge_all();
    }
    mailbox at(t, t.consumer());
    const auto seen = until_the_end(t, at);
    expect_equal("the malformed message was set aside and the others were acknowledged; then arrives", "end", seen);
    expect_equal("malformed messages that come again after they were set aside", "0",
                 std::to_string(at.malformed().size()));
}

inline constexpr clause receive_faults[] = {
    {"CON-14", needs::cut, "consumer 2, 3",
     "Acknowledgements of what was received before a cut have no effect on what came again after it.",
     "tags that begin again at 1 with every connection: a tag must say of which connection it is",
     &old_tags_have_no_effect},
    {"CON-15", needs::cut, "consumer 2", "What is not acknowledged when the connection is cut comes again.",
     "acknowledgement by the client library itself (auto-ack, auto-commit on close)",
     &unacknowledged_come_again_after_a_cut},
    {"CON-16", needs::cut, "consumer 10",
     "After a cut the same consumer receives again; its faults are vouch::error and is_transient.",
     "how a lost connection is noticed, and the kind of the error that says so", &faults_are_over},
    {"CON-17", needs::publish_malformed, "consumer 5, 9",
     "A message that cannot be read is returned with a code, blocks nothing, and can be set aside.",
     "exceptions while a message is read", &malformed_blocks_nothing},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
