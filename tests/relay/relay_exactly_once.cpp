// SPDX-License-Identifier: MIT
// From store to store through a broker that fails, with processes that die: every entry arrives exactly once, and lanes
// keep their order.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "relay_support.hpp"

namespace relay_exactly_once_test {

using namespace relay_test;

namespace {

/// Never, or every n-th time, from `often` on.
[[nodiscard]] std::size_t any_rate(std::size_t often) {
    const auto n = *rc::gen::inRange<std::size_t>(0, 9);
    return n < often ? 0 : n;
}

[[nodiscard]] vouch::testing::broker_faults any_faults() {
    // Faults that happen every time would leave nothing to arrive. Neither would a disconnection every second time: calls
    // of `receive` and `acknowledge` alternate, and no acknowledgement would ever get through.
    return {.lost_confirmation = any_rate(2),
            .lost_message = any_rate(2),
            .duplicate = any_rate(1),
            .reorder = any_rate(1),
            .disconnect = any_rate(3)};
}

/// Two services whose processes die now and then: clients, relay, runner and intake are made anew, the stores stay.
class dying_services {
  public:
    explicit dying_services(vouch::testing::broker_faults faults) : broker_(faults) {
        broker_.bind("#", "q");
        restart_sender();
        restart_receiver();
    }

    void put(std::string payload, std::string lane) {
        expected_[lane].push_back(payload);
        outbox_.emit({.queue = "out", .topic = "t", .payload = std::move(payload), .lane = std::move(lane)});
    }

    /// The process dies after it has published and before it settles.
    void die_with_claim() {
        const auto claimed = runner_->claim();
        (void)runner_->handle_all(claimed, {});
        restart_sender();
        clock_.pass(10min);
    }
    void restart_sender() {
        runner_.reset();
        router_.emplace(outbox_);
        router_->on(vouch::relay<vouch::testing::broker_publisher>(to_, {.size_max = 7}));
        runner_.emplace(outbox_, *router_, vouch::runner_options{.queue = "out", .batch_size = 10});
    }
    void restart_receiver() {
        from_.reset();
        from_.emplace(broker_, "q", 25);
    }
    /// The process dies with messages that it has received and not stored.
    void die_with_messages() {
        try {
            (void)from_->receive(5, vouch::duration::zero(), {});
        } catch (const vouch::error&) { // NOLINT(bugprone-empty-catch): a lost connection
        }
        restart_receiver();
    }
    /// The next commit of the receiver.
    void fail_commit(commit_fault how) { to_store_.plan().faults.push_back(how); }

    void send() {
        runner_->run_once();
        clock_.pass(2min);
    }
    void take() {
        vouch::intake in(*from_, inbox_,
                         {.source = "a", .queue = "in", .batch_size = 6, .wait = vouch::duration::zero()});
        try {
            in.run_once();
        } catch (const vouch::error& e) {
            RC_ASSERT(e.is_transient());
        }
    }

    [[nodiscard]] bool is_done() const { return !from_store_.next_due("out") && broker_.size("q") == 0; }

    void check() const {
        auto q = vouch::query::all("in");
        q.payloads = true;
        q.limit = 10'000;
        std::map<std::string, std::vector<std::string>> seen;
        for (const auto& e : to_store_.list(q)) {
            seen[e.lane].push_back(e.payload);
        }
        auto expected = expected_;
        for (auto* const of : {&expected, &seen}) { // without a lane there is no order
            if (const auto none = of->find(""); none != of->end()) {
                std::sort(none->second.begin(), none->second.end());
            }
        }
        RC_ASSERT(seen == expected);
        RC_ASSERT(from_store_.counts("out")[state::succeeded] == from_store_.counts("out").total());
    }

  private:
    vouch::manual_clock clock_{t0};
    vouch::testing::broker broker_;
    vouch::memory::store from_store_{};
    commit_fault_store to_store_{};
    vouch::outbox<vouch::memory::store> outbox_{from_store_, {.clock = clock_, .ids = vouch::counting_ids{}}};
    vouch::outbox<commit_fault_store> inbox_{to_store_, {.clock = clock_, .ids = vouch::counting_ids{}}};
    vouch::testing::broker_publisher to_{broker_};
    std::optional<vouch::router<vouch::memory::store>> router_{};
    std::optional<vouch::runner<vouch::memory::store>> runner_{};
    std::optional<vouch::testing::broker_consumer> from_{};
    std::map<std::string, std::vector<std::string>> expected_{};
};

/// One thing that may happen.
void any_step(dying_services& s, std::size_t& put) {
    switch (*rc::gen::inRange(0, 12)) {
    case 0:
    case 1:
    case 2: s.send(); break;
    case 3:
    case 4:
    case 5: s.take(); break;
    case 6: s.die_with_claim(); break;
    case 7: s.die_with_messages(); break;
    case 8: s.restart_receiver(); break;
    case 9:
        s.fail_commit(*rc::gen::element(commit_fault::io, commit_fault::conflict, commit_fault::rolled_back_in_doubt,
                                        commit_fault::committed_in_doubt));
        break;
    default: s.put(std::to_string(put), *rc::gen::element<std::string>("", "a", "b", "c")); ++put;
    }
}

} // namespace

TEST_CASE("relay and intake: every entry arrives exactly once and lanes keep their order, whatever fails") {
    check_property("faults of the broker, of the store, and deaths of processes", [] {
        dying_services s(any_faults());
        std::size_t put = 0;
        const auto steps = *rc::gen::inRange(1, 120);
        for (int i = 0; i < steps; ++i) {
            any_step(s, put);
        }
        for (int i = 0; i < 3000 && !s.is_done(); ++i) {
            s.send();
            s.take();
        }
        RC_ASSERT(s.is_done());
        s.check();
    });
}

} // namespace relay_exactly_once_test
