// SPDX-License-Identifier: MIT
// How long `receive` waits, and how much it returns.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Receives exactly `count` messages, in as many calls as that takes.
inline void take(trial& t, mailbox& at, std::size_t count) {
    const time_limit limit(t.patience());
    while (at.arrived().size() < count && !limit.is_over()) {
        at.receive(count - at.arrived().size(), limit.left());
    }
    expect(at.arrived().size() == count,
           std::to_string(count) + " messages must arrive within " + seconds_text(t.patience()),
           std::to_string(count) + " messages", std::to_string(at.arrived().size()) + " messages");
}

inline void at_most_limit_in_order(trial& t) {
    const auto sent = numbered(t, 1, 10, "lane");
    send(t, sent);
    mailbox at(t, t.consumer());
    const time_limit limit(t.patience());
    while (at.arrived().size() < sent.size() && !limit.is_over()) {
        at.receive(3, limit.left()); // checks the limit
    }
    expect_equal("ten messages of one lane, received by three", joined(names_of(t, sent)), joined(at.first_arrivals()));
    at.acknowledge_all();
}

/// The consumer is connected, and nothing of this clause is on its way.
inline void warm_up(trial& t, mailbox& at) {
    const auto first = t.make("first");
    send(t, {first});
    at.expect_one(first);
    at.acknowledge_all();
}

/// How long `f` takes.
template <class F>
[[nodiscard]] duration time_of_call(F&& f) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration_cast<duration>(std::chrono::steady_clock::now() - begin);
}

inline void does_not_wait_for_more(trial& t) {
    mailbox at(t, t.consumer());
    warm_up(t, at);
    const auto one = t.make("one");
    send(t, {one});
    duration took{};
    while (at.arrived().empty() && took < t.patience()) {
        took += time_of_call([&] { at.receive(100, t.patience()); });
    }
    at.expect_one(one);
    expect(took < t.patience() / 2, "receive(100, " + seconds_text(t.patience()) + ") with one message to receive",
           "returns when it has one", "returned after " + seconds_text(took));
    at.acknowledge_all();
}

inline void empty_after_at_most(trial& t) {
    constexpr std::chrono::milliseconds at_most{200};
    mailbox at(t, t.consumer());
    warm_up(t, at);
    for (int i = 0; i < 3; ++i) {
        const auto took = time_of_call([&] { at.receive(100, at_most); });
        expect(took < at_most + t.patience() / 2, "receive(100, " + seconds_text(at_most) + ") without a message",
               "returns after " + seconds_text(at_most), "returned after " + seconds_text(took));
    }
    expect_equal("nothing was published meanwhile", "none", joined(at.first_arrivals()));
}

inline void stop_ends_the_wait(trial& t) {
    mailbox at(t, t.consumer());
    warm_up(t, at);
    for (const std::chrono::milliseconds after : {std::chrono::milliseconds{0}, std::chrono::milliseconds{100}}) {
        std::stop_source stop;
        std::jthread stopping([&] {
            std::this_thread::sleep_for(after);
            stop.request_stop();
        });
        if (after.count() == 0) {
            stopping.join();
        }
        const auto took = time_of_call([&] { at.receive(100, t.patience(), stop.get_token()); });
        expect(took < t.patience() / 2,
               "receive(100, " + seconds_text(t.patience()) + ") without a message; a stop was requested after " +
                   seconds_text(after),
               "returns soon after the request", "returned after " + seconds_text(took));
    }
    const auto last = t.make("last");
    send(t, {last});
    at.expect_one(last);
    at.acknowledge_all();
}

inline constexpr clause receive_waits[] = {
    {"CON-01", needs::nothing, "consumer 1, 8",
     "`receive` returns at most `limit` messages, in the order of their arrival.",
     "messages that the client library has fetched in advance", &at_most_limit_in_order},
    {"CON-02", needs::nothing, "consumer 1", "`receive` does not wait for more once it has a message.",
     "loops that run until `limit` or `at_most`", &does_not_wait_for_more},
    {"CON-03", needs::nothing, "consumer 1", "`receive` returns nothing after `at_most` if nothing arrives.",
     "time-outs of the client library: their unit, and whether they begin again with every frame",
     &empty_after_at_most},
    {"CON-04", needs::nothing, "consumer 1",
     "A stop request ends the wait early, and messages that arrive later are not lost.",
     "whether the wait is divided, so that it sees the stop token", &stop_ends_the_wait},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
