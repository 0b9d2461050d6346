// SPDX-License-Identifier: MIT
// From one store to another: a relay, the client, and an intake.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/any_publisher.hpp>
#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/detail/mailbox.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/memory.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/relay/intake.hpp>
#include <vouch/relay/intake_options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/relay.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Two services with a store each. Entries of other runs may arrive too; those of this run have its topic.
class two_services {
  public:
    explicit two_services(trial& t) : trial_(t), topic_("kit." + t.mark()) {
        routes_.on(relay<any_publisher>(t.publisher(), {.size_max = 20}));
        for (std::size_t i = 0; i < count; ++i) {
            const auto lane = i % 3 == 2 ? std::string{} : "lane" + std::to_string(i % 7);
            out_.emit({.queue = "out", .topic = topic_, .payload = std::to_string(i), .lane = lane});
        }
    }

    /// Sends some, and stores what arrives. A new intake continues where a dead one has stopped.
    void work() {
        clock_.pass(std::chrono::minutes{2}); // so that what was unknown is sent again
        runner_.run_once();
        if (!consumer_) {
            consumer_.emplace(trial_.fresh_consumer());
        }
        without_lasting_fault("an intake's pass", [&] {
            intake<any_consumer, memory::store> in(*consumer_, in_,
                                                   {.source = "kit",
                                                    .queue = "in",
                                                    .batch_size = 10,
                                                    .wait = std::chrono::milliseconds{100},
                                                    .map = [&](const message& m) {
                                                        before_storing();
                                                        return emission_of(m);
                                                    }});
            in.run_once();
        });
    }
    void kill_consumer() { consumer_.reset(); }

    [[nodiscard]] std::vector<entry> arrived() const {
        auto out = to_.list({.queue = "in", .limit = 10'000, .payloads = true});
        std::erase_if(out, [&](const entry& e) { return e.topic != topic_; });
        return out;
    }

    /// Every entry is there once, the lanes are in order, and the first store says that all is done.
    void expect_done() const {
        std::map<std::string, std::vector<std::string>> expected;
        std::map<std::string, std::vector<std::string>> seen;
        for (std::size_t i = 0; i < count; ++i) {
            const bool has_lane = i % 3 != 2;
            expected[has_lane ? "lane" + std::to_string(i % 7) : ""].push_back(std::to_string(i));
        }
        for (auto& e : arrived()) {
            seen[e.lane].push_back(e.payload);
        }
        for (auto& [lane, names] : expected) {
            if (lane.empty()) {
                std::sort(names.begin(), names.end());
                std::sort(seen[lane].begin(), seen[lane].end());
            }
            expect_equal(lane.empty() ? "the entries without a lane in the second store, sorted"
                                      : "the entries of " + lane + " in the second store",
                         joined(names), joined(seen[lane]));
        }
    }

    static constexpr std::size_t count = 150;
    std::function<void()> before_storing = [] {}; ///< called for each message that has arrived

  private:
    trial& trial_;
    std::string topic_;
    manual_clock clock_{time_point(std::chrono::hours{24 * 365 * 50})};
    memory::store from_{};
    memory::store to_{};
    outbox<memory::store> out_{from_, {.clock = clock_}};
    outbox<memory::store> in_{to_, {.clock = clock_}};
    router<memory::store> routes_{out_};
    runner<memory::store> runner_{out_, routes_, {.queue = "out", .batch_size = 20}};
    std::optional<any_consumer> consumer_{};
};

/// `disturb` is called before each round.
template <class Disturb>
void run_two_services(trial& t, two_services& both, Disturb&& disturb) {
    const time_limit limit(2 * t.patience());
    for (std::size_t round = 0; both.arrived().size() < two_services::count && !limit.is_over(); ++round) {
        disturb(round);
        both.work();
    }
    both.work(); // what is delivered once more must not be stored once more
    both.expect_done();
}

inline void relay_to_intake(trial& t) {
    two_services both(t);
    run_two_services(t, both, [](std::size_t) {});
}

/// Cuts between the calls of the client, and between the receipt of a message and its acknowledgement.
inline void relay_to_intake_with_cuts(trial& t) {
    two_services both(t);
    std::size_t arrived = 0;
    both.before_storing = [&] {
        if (++arrived % 40 == 10 && arrived < 150) {
            t.fixture().cut();
        }
    };
    std::size_t cuts = 0;
    std::size_t deaths = 0;
    run_two_services(t, both, [&](std::size_t round) {
        if (round % 4 == 3 && cuts < 5) {
            t.fixture().cut();
            ++cuts;
        }
        if (round % 9 == 8 && deaths < 2) {
            both.kill_consumer();
            ++deaths;
        }
    });
}

inline constexpr clause end_to_end[] = {
    {"END-01", needs::nothing, "all",
     "Every entry that a relay sends is stored by an intake exactly once, and lanes keep their order.",
     "the clauses PUB and CON that fail; if none does, message ids that change when a message is sent again",
     &relay_to_intake},
    {"END-02", needs::cut, "all", "The same holds when connections are cut and consumers die on the way.",
     "the clauses PUB-11, PUB-12 and CON-14 to CON-16", &relay_to_intake_with_cuts},
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
