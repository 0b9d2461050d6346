// SPDX-License-Identifier: MIT
// What `publish` says of each message.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void one_confirmation_per_message(trial& t) {
    (void)answers_to(t.publisher(), {});
    std::vector<message> all;
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{2}}) {
        const auto some = numbered(t, all.size() + 1, all.size() + count, {});
        all.insert(all.end(), some.begin(), some.end());
        send(t, some);
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

inline void confirmed_messages_arrive(trial& t) {
    std::vector<message> all;
    for (std::size_t call = 0; call < 4; ++call) {
        const auto some = numbered(t, call * 50 + 1, call * 50 + 50, {});
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

/// Says which message a refusal must be a refusal of, and checks the answers to one call.
inline void expect_refused(const trial& t, const std::vector<message>& sent, const std::vector<bool>& is_refused,
                           const std::vector<confirmation>& answers) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto what = "message " + t.name_of(sent[i]) + ", number " + std::to_string(i + 1) + " of " +
                          std::to_string(sent.size()) + " in one call";
        if (is_refused[i]) {
            expect(answers[i].what == confirmation::kind::refused && !answers[i].code.empty(), what,
                   "refused, with a code", text_of(answers[i]));
        } else {
            expect(answers[i].what == confirmation::kind::confirmed, what, "confirmed", text_of(answers[i]));
        }
    }
}

/// Publishes good and bad messages in one call. The good ones are confirmed and arrive.
inline void refused_beside_others(trial& t, const message& bad) {
    auto sent = numbered(t, 1, 7, {});
    const std::vector<bool> is_bad{false, true, false, true, true, false, true};
    std::vector<message> good;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        if (is_bad[i]) {
            sent[i].topic = bad.topic;
            sent[i].payload = bad.payload;
        } else {
            good.push_back(sent[i]);
        }
    }
    expect_refused(t, sent, is_bad, answers_to(t.publisher(), sent));
    const std::vector<message> alone(sent.begin() + 1, sent.begin() + 2);
    expect_refused(t, alone, {true}, answers_to(t.publisher(), alone));
    const auto last = t.make("last");
    send(t, {last});
    good.push_back(last);
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(good);
}

inline void unroutable_is_refused(trial& t) {
    auto bad = t.make("bad");
    bad.topic = t.fixture().unroutable_topic();
    refused_beside_others(t, bad);
}

/// Some brokers count the id, the topic and the headers too. Those of the kit's messages are smaller than this.
inline constexpr std::size_t other_parts_max = 1024;

inline void too_large_is_refused(trial& t) {
    auto bad = t.make("bad");
    bad.payload.assign(t.fixture().message_max() + other_parts_max, 'x');
    refused_beside_others(t, bad);
    auto largest = t.make("largest");
    largest.payload.assign(t.fixture().message_max(), 'y');
    send(t, {largest});
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_one(largest);
    expect(at.arrived().back().message.payload == largest.payload, "a message of the largest size",
           std::to_string(largest.payload.size()) + " bytes, as published",
           std::to_string(at.arrived().back().message.payload.size()) + " bytes or other bytes");
}

/// Calls of one thread. Their sizes, and the places of the unroutable messages, differ from thread to thread.
inline void publish_from_thread(trial& t, any_publisher& to, std::size_t thread, std::vector<message>& good) {
    for (std::size_t call = 0; call < 8; ++call) {
        std::vector<message> sent;
        std::vector<bool> is_bad;
        for (std::size_t i = 0; i < 4 + thread; ++i) {
            const auto name = std::to_string(thread) + "-" + std::to_string(call) + "-" + std::to_string(i);
            sent.push_back(t.make(name));
            is_bad.push_back(t.fixture().unroutable_topic && i == (thread + call) % 4);
            if (is_bad.back()) {
                sent.back().topic = t.fixture().unroutable_topic();
            } else {
                good.push_back(sent.back());
            }
        }
        expect_refused(t, sent, is_bad, answers_to(to, sent));
    }
}

inline void threads_get_their_own_answers(trial& t) {
    constexpr std::size_t count = 4;
    auto& to = t.publisher();
    std::vector<std::vector<message>> good(count);
    std::vector<std::exception_ptr> failures(count);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                publish_from_thread(t, to, i, good[i]);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    }
    threads.clear();
    std::vector<message> all;
    for (std::size_t i = 0; i < count; ++i) {
        if (failures[i]) {
            std::rethrow_exception(failures[i]);
        }
        all.insert(all.end(), good[i].begin(), good[i].end());
    }
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(all);
}

inline constexpr clause publish_answers[] = {
    {"PUB-01", needs::nothing, "publisher 1", "`publish` returns one confirmation per message, and none for none.",
     "the size of the vector that publish returns, also for an empty span", &one_confirmation_per_message},
    {"PUB-02", needs::nothing, "publisher 2", "Every confirmed message reaches a consumer.",
     "whether `confirmed` waits for the broker's answer, and whether the fixture's topology binds kit.# to its queue",
     &confirmed_messages_arrive},
    {"PUB-03", needs::unroutable_topic, "publisher 2, 3, 5",
     "A message that no queue takes is refused with a code, and its neighbours are confirmed and arrive.",
     "returned messages (mandatory), and how an answer finds its message", &unroutable_is_refused},
    {"PUB-04", needs::message_max, "publisher 3, 5",
     "A message over the broker's limit is refused with a code, its neighbours are confirmed and arrive, and the "
     "largest "
     "one is delivered.",
     "checks of the size before a message is sent: many brokers close the connection of a client that sends too much",
     &too_large_is_refused},
    {"PUB-05", needs::nothing, "publisher 1, 2", "Four threads that publish at once get their own answers.",
     "a lock around a call, or how an answer finds its call", &threads_get_their_own_answers},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
