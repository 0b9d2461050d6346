// SPDX-License-Identifier: MIT
// Several consumers in one group: partitions move between them, and nothing is lost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <vouch/kafka.hpp>

#include "catch.hpp"
#include "kafka/cluster.hpp"

namespace kafka_group_test {

using namespace std::chrono_literals;
using kafka_test::cluster;
using kafka_test::receiving;

/// What all consumers have received, in the order in which they received it.
class journal {
  public:
    void add(const std::string& who, const std::vector<vouch::received>& some) {
        const std::lock_guard lock(mutex_);
        for (const auto& one : some) {
            count_[who] += 1;
            auto& ids = lanes_[one.message.lane];
            if (std::find(ids.begin(), ids.end(), one.message.id) == ids.end()) {
                ids.push_back(one.message.id);
                ++distinct_;
            }
        }
    }
    [[nodiscard]] std::size_t distinct() const {
        const std::lock_guard lock(mutex_);
        return distinct_;
    }
    [[nodiscard]] std::size_t count_of(const std::string& who) const {
        const std::lock_guard lock(mutex_);
        const auto at = count_.find(who);
        return at == count_.end() ? 0 : at->second;
    }
    /// The ids of each lane, each where it was received first.
    [[nodiscard]] std::map<std::string, std::vector<std::string>> lanes() const {
        const std::lock_guard lock(mutex_);
        return lanes_;
    }

  private:
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<std::string>> lanes_;
    std::map<std::string, std::size_t> count_;
    std::size_t distinct_ = 0;
};

/// A service: receives, writes down, acknowledges; gives every fifth batch back first.
class service {
  public:
    service(std::string name, const vouch::kafka::consumer_options& options, journal& into)
        : thread_([name = std::move(name), options, &into](const std::stop_token& stop) {
              vouch::kafka::consumer consumer(options);
              for (int i = 1; !stop.stop_requested(); ++i) {
                  try {
                      const auto some = consumer.receive(7, 200ms, stop);
                      into.add(name, some);
                      i % 5 == 0 ? consumer.give_back(some) : consumer.acknowledge(some);
                  } catch (const vouch::error& e) {
                      if (!e.is_transient()) {
                          throw;
                      }
                  }
              }
          }) {}

  private:
    std::jthread thread_;
};

/// Publishes to eight lanes, and knows what it has published.
class shop {
  public:
    explicit shop(const cluster& at) : publisher_(kafka_test::sending(at, 60s)) {}

    void publish(int count) {
        std::vector<vouch::message> some;
        for (int i = 0; i < count; ++i, ++next_) {
            const auto lane = "lane" + std::to_string(next_ % 8);
            some.push_back(kafka_test::message_of(next_, lane));
            sent_[lane].push_back(some.back().id);
        }
        for (const auto& answer : publisher_.publish(some)) {
            REQUIRE(answer.what == vouch::confirmation::kind::confirmed);
        }
    }
    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(next_); }
    [[nodiscard]] const std::map<std::string, std::vector<std::string>>& sent() const { return sent_; }

  private:
    vouch::kafka::publisher publisher_;
    std::map<std::string, std::vector<std::string>> sent_;
    int next_ = 0;
};

template <class Condition>
void wait_for(const Condition& is_met) {
    const auto until = std::chrono::steady_clock::now() + 120s;
    while (!is_met() && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    REQUIRE(is_met());
}

TEST_CASE("kafka group: consumers come and go, no message is lost, and lanes stay in order") {
    const auto strategy = GENERATE(as<std::string>{}, "cooperative-sticky", "range");
    CAPTURE(strategy);
    const cluster at;
    at.create("orders", 4);
    auto options = receiving(at.servers());
    options.settings.push_back({"partition.assignment.strategy", strategy});
    journal received;
    shop orders(at);
    orders.publish(100);
    auto first = std::make_unique<service>("first", options, received);
    wait_for([&] { return received.distinct() >= 100; });

    const service second("second", options, received);
    wait_for([&] {
        orders.publish(8);
        std::this_thread::sleep_for(30ms);
        return received.count_of("second") > 0;
    });
    const auto before = received.count_of("first");
    wait_for([&] { // both have partitions
        orders.publish(8);
        std::this_thread::sleep_for(30ms);
        return received.count_of("first") > before;
    });
    first.reset();
    orders.publish(40);
    wait_for([&] { return received.distinct() >= orders.count(); });
    CHECK(received.lanes() == orders.sent());
}

TEST_CASE("kafka group: what a consumer has not acknowledged goes to the one that takes over") {
    const cluster at;
    at.create("orders", 1);
    shop orders(at);
    orders.publish(8);
    auto leaving = std::make_unique<vouch::kafka::consumer>(receiving(at.servers()));
    const auto held = kafka_test::receive(*leaving, 8);
    REQUIRE(held.size() == 8);
    leaving->acknowledge(std::span(held).first(3));

    vouch::kafka::consumer next(receiving(at.servers()));
    leaving->cancel();
    leaving->acknowledge(std::span(held).subspan(4)); // behind a message that is not acknowledged
    leaving.reset();
    const auto again = kafka_test::receive(next, 5);
    REQUIRE(again.size() == 5);
    CHECK(again.front().message.id == held[3].message.id);
    CHECK(again.back().message.id == held[7].message.id);
    next.acknowledge(again);
    next.acknowledge(held); // tags of another consumer's past: no effect, no error
}

TEST_CASE("kafka group: tags of a partition that has moved to another consumer are passed over") {
    const cluster at;
    at.create("orders", 2);
    auto cooperative = receiving(at.servers()); // so that the first consumer keeps the other partition
    cooperative.settings.push_back({"partition.assignment.strategy", "cooperative-sticky"});
    shop orders(at);
    orders.publish(40);
    vouch::kafka::consumer first(cooperative);
    const auto held = kafka_test::receive(first, 40);
    REQUIRE(held.size() == 40);

    // Both poll until the second consumer has received a partition from its beginning: nothing was acknowledged.
    vouch::kafka::consumer second(cooperative);
    std::vector<vouch::received> moved;
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (moved.empty() && std::chrono::steady_clock::now() < until) {
        CHECK(first.receive(10, 50ms, {}).empty());
        moved = second.receive(1, 50ms, {});
    }
    REQUIRE(moved.size() == 1);
    const auto& source = moved.front().source;
    const auto same = std::find_if(held.begin(), held.end(), [&](const auto& r) { return r.source == source; });
    REQUIRE(same != held.end());
    CHECK(moved.front().message.id == same->message.id);

    first.acknowledge(held); // commits only what is left to it
    std::set<std::string> of_partition;
    for (const auto& one : held) {
        if (one.source == source) {
            of_partition.insert(one.message.id);
        }
    }
    std::set<std::string> again{moved.front().message.id};
    while (again.size() < of_partition.size() && std::chrono::steady_clock::now() < until) {
        for (const auto& one : second.receive(100, 50ms, {})) {
            again.insert(one.message.id);
        }
    }
    CHECK(again == of_partition);
}

} // namespace kafka_group_test
