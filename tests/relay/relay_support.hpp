// SPDX-License-Identifier: MIT
// Two services that talk through the broker in memory: a store, an outbox and a relay on one side, a store, an outbox
// and an intake on the other.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/commit_fault_store.hpp"
#include "unit/support.hpp"

namespace relay_test {

using namespace support;
using vouch::confirmation;
using vouch::message;
using vouch::received;
using vouch::state;
using kind = vouch::confirmation::kind;

/// A publisher whose answers a test writes down. It keeps what it was given.
struct scripted_publisher {
    std::function<std::vector<confirmation>(std::span<const message>)> answer = [](std::span<const message> m) {
        return std::vector<confirmation>(m.size(), {kind::confirmed});
    };
    std::vector<std::vector<message>> calls{};

    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        calls.emplace_back(messages.begin(), messages.end());
        return answer(messages);
    }
};

/// A store whose queue "out" goes to a publisher.
template <class Publisher>
struct sender {
    explicit sender(Publisher& to, vouch::relay_options options = {}) {
        router.on(vouch::relay<Publisher>(to, std::move(options)));
    }

    vouch::id put(std::string payload, std::string lane = {}) {
        return outbox
            .emit({.queue = "out", .topic = "mail.new", .payload = std::move(payload), .lane = std::move(lane)})
            .front()
            .id;
    }
    [[nodiscard]] vouch::entry entry(const vouch::id& id) const { return store.find(id).value(); }

    vouch::memory::store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox<vouch::memory::store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::router<vouch::memory::store> router{outbox};
    vouch::runner<vouch::memory::store> runner{outbox, router, {.queue = "out"}};
};

/// A broker with the queue "mailer", and a store that takes what arrives there. Commits of the store can fail.
struct receiver {
    explicit receiver(vouch::emitter_options options = {}, std::size_t message_max = 128 * 1024 * 1024)
        : broker({}, message_max), outbox(store, with_clock(std::move(options))) {
        broker.bind("#", "mailer");
        from.emplace(broker, "mailer");
    }

    void send(const message& m) { REQUIRE(to.publish(std::span(&m, 1)).front().what == kind::confirmed); }
    void send(std::string id, std::string payload = "p") {
        send({.id = std::move(id), .topic = "mail.new", .payload = std::move(payload)});
    }

    [[nodiscard]] vouch::intake_options options() const {
        return {.source = "shop", .queue = "mail", .wait = vouch::duration::zero()};
    }
    vouch::intake_report take(const vouch::intake_options& how) { return vouch::intake(*from, outbox, how).run_once(); }
    vouch::intake_report take() { return take(options()); }

    /// The entries of a queue with their payloads.
    [[nodiscard]] std::vector<vouch::entry> entries(std::string queue = "mail") const {
        auto q = vouch::query::all(std::move(queue));
        q.payloads = true;
        return store.list(q);
    }
    [[nodiscard]] std::size_t waiting() const { return broker.size("mailer"); }

    vouch::manual_clock clock{t0};
    vouch::testing::broker broker;
    commit_fault_store store{};
    vouch::outbox<commit_fault_store> outbox;
    vouch::testing::broker_publisher to{broker};
    std::optional<vouch::testing::broker_consumer> from{};

  private:
    [[nodiscard]] vouch::emitter_options with_clock(vouch::emitter_options options) const {
        options.clock = clock;
        options.ids = vouch::counting_ids{};
        return options;
    }
};

[[nodiscard]] inline std::vector<std::string> payloads(const std::vector<vouch::entry>& entries) {
    std::vector<std::string> out;
    for (const auto& e : entries) {
        out.push_back(e.payload);
    }
    return out;
}

[[nodiscard]] inline bool has_words(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}

} // namespace relay_test
