// SPDX-License-Identifier: MIT
// The order of a lane, and what survives cut connections and restarts.
#pragma once

#include <atomic>
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
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline void expect_all_in_order(trial& t, const std::vector<message>& published) {
    mailbox at(t, t.consumer(), acknowledging::on_arrival);
    at.expect_all(published);
    expect_lane_order(t, at, published);
}

inline void lanes_keep_their_order(trial& t) {
    std::vector<message> all;
    for (std::size_t call = 0; call < 10; ++call) {
        std::vector<message> some;
        for (std::size_t i = 0; i < 20; ++i) {
            some.push_back(t.make(call * 20 + i, "lane" + std::to_string(i % 4)));
        }
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
    }
    expect_all_in_order(t, all);
}

/// One message for each of ten lanes, as a relay sends them: the next of a lane follows when the last is confirmed.
[[nodiscard]] inline std::vector<message> one_per_lane(const trial& t, std::size_t round) {
    std::vector<message> out;
    for (std::size_t lane = 0; lane < 10; ++lane) {
        out.push_back(t.make(round * 10 + lane, "lane" + std::to_string(lane)));
    }
    return out;
}

inline void cut_between_calls(trial& t) {
    std::vector<message> all;
    for (std::size_t round = 0; round < 6; ++round) {
        const auto some = one_per_lane(t, round);
        send(t, some);
        all.insert(all.end(), some.begin(), some.end());
        if (round % 2 == 0) {
            t.fixture().cut();
        }
    }
    expect_all_in_order(t, all);
}

/// Cuts the connections again and again while it lives.
class cutter {
  public:
    explicit cutter(const hooks& fixture)
        : thread_([this, &fixture](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  std::this_thread::sleep_for(std::chrono::milliseconds{40});
                  fixture.cut();
                  ++cuts_;
              }
          }) {}
    [[nodiscard]] std::size_t cuts() const noexcept { return cuts_; }

  private:
    std::atomic<std::size_t> cuts_ = 0;
    std::jthread thread_; // last: it uses the other member
};

inline void cut_during_calls(trial& t) {
    constexpr std::size_t rounds_min = 30;
    constexpr std::size_t rounds_max = 300;
    std::vector<message> all;
    (void)t.publisher();
    {
        const cutter cutting(t.fixture());
        for (std::size_t round = 0; round < rounds_max && (round < rounds_min || cutting.cuts() < 4); ++round) {
            const auto some = one_per_lane(t, round);
            send(t, some);
            all.insert(all.end(), some.begin(), some.end());
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }
    expect_all_in_order(t, all);
}

inline void confirmed_messages_survive_a_restart(trial& t) {
    const auto before = numbered(t, 1, 50, "lane");
    send(t, before);
    t.fixture().restart();
    auto all = before;
    const auto after = numbered(t, 51, 55, "lane");
    for (const auto& m : after) {
        send(t, {m});
        all.push_back(m);
    }
    expect_all_in_order(t, all);
}

inline constexpr clause publish_order[] = {
    {"PUB-10", needs::nothing, "publisher 6, consumer 8",
     "Messages of one lane arrive in the order of their publication, within a call and from one call to the next.",
     "what the lane is mapped to (a partition, a queue), and repetitions by the client library",
     &lanes_keep_their_order},
    {"PUB-11", needs::cut, "publisher 3, 4, 6, 7",
     "After a cut the next calls connect again, nothing confirmed is missing, and lanes keep their order.",
     "how a lost connection is noticed, and whether anything that is lost is called refused or confirmed",
     &cut_between_calls},
    {"PUB-12", needs::cut, "publisher 2, 3, 4, 6, 7",
     "Connections that are cut during calls lose nothing confirmed, and lanes keep their order.",
     "what is said of messages that are sent and not answered yet, and answers of an old connection",
     &cut_during_calls},
    {"PUB-13", needs::restart, "publisher 2, 7", "What is confirmed survives a restart of the broker.",
     "durable queues, persistent messages, and acknowledgement by all replicas", &confirmed_messages_survive_a_restart},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
