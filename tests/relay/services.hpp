// SPDX-License-Identifier: MIT
// Four services, each with a store of its own, that talk through one broker: one runs the order saga, and one each
// reserves goods, takes money and ships. A test moves every part by hand, so it can stop, kill and reorder them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <vouch/relay_saga.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

namespace services {

using namespace std::chrono_literals;
using store = vouch::memory::store;
using runner = vouch::runner<store>;

inline const std::vector<std::string> participants{"inventory", "payment", "shipping"};

/// How a participant treats a forward command.
enum class behaviour { succeeds, rejects, fails, fails_after_effect, rejects_after_effect, never_answers };

/// What the participants have done, by the saga's idempotency key, and in which order they were called.
struct ledger {
    std::set<std::string> effects{};
    std::vector<std::string> calls{};
};

/// A service: its store, and the ways into and out of it.
class service {
  public:
    service(vouch::testing::broker& broker, const vouch::manual_clock& clock, std::string name, std::string queue,
            std::string source)
        : outbox(stored, {.clock = clock}), broker_(broker), to_(broker), name_(std::move(name)),
          queue_(std::move(queue)), source_(std::move(source)) {
        connect();
    }

    /// The connection of the intake ends, and a new one begins.
    void connect() {
        from_.reset();
        from_.emplace(broker_, name_);
    }

    void take_in() {
        vouch::intake in(*from_, outbox,
                         {.source = source_, .queue = queue_, .wait = 0us, .map = vouch::command_emission_of});
        try {
            in.run_once();
        } catch (const vouch::error& e) {
            if (!e.is_transient()) {
                throw;
            }
        }
    }

    /// The process dies after it has received messages, and before it has stored them.
    void die_receiving() {
        try {
            static_cast<void>(from_->receive(10, 0us, {}));
        } catch (const vouch::error&) { // the connection was lost anyway
        }
        connect();
    }

    [[nodiscard]] vouch::testing::broker_publisher& publisher() noexcept { return to_; }

    store stored{};
    vouch::outbox<store> outbox;

  private:
    vouch::testing::broker& broker_;
    vouch::testing::broker_publisher to_;
    std::optional<vouch::testing::broker_consumer> from_{};
    std::string name_;
    std::string queue_;
    std::string source_;
};

class world {
  public:
    explicit world(vouch::testing::broker_faults faults = {}, std::map<std::string, behaviour> behaviours = {},
                   std::optional<vouch::retry_policy> of_commands = {})
        : broker(faults), saga(order_saga(of_commands)), behaviours_(std::move(behaviours)) {
        for (const auto& channel : vouch::channels_of(saga, {.replies = "orders"})) {
            for (const auto& topic : channel.topics) {
                broker.bind(topic, channel.name);
            }
        }
        orders = std::make_unique<service>(broker, clock, "orders", "replies", "participants");
        sagas_.emplace(orders->outbox).on(saga);
        commands_.emplace(orders->outbox).on(vouch::command_relay(orders->publisher()));
        replies_.emplace(orders->outbox).on(vouch::reply_handler(orders->outbox));
        for (const auto& name : participants) {
            add_participant(name);
        }
    }
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    vouch::id start() { return orders->outbox.start(saga, "sagas", std::string("order 42")); }

    // One pass of each part. Which queue of which service: "sagas", "replies" or a participant's of the orders service;
    // "work" or "replies" of a participant.

    [[nodiscard]] runner orders_runner(const std::string& queue) {
        auto& router = queue == "sagas" ? *sagas_ : queue == "replies" ? *replies_ : *commands_;
        return runner(orders->outbox, router, {.queue = queue, .lease = lease});
    }
    [[nodiscard]] runner participant_runner(const std::string& name, const std::string& queue) {
        auto& p = parts.at(name);
        return runner(p.service->outbox, queue == "work" ? *p.work : *p.replies, {.queue = queue, .lease = lease});
    }

    /// Everything once.
    void round() {
        orders_runner("sagas").run_until_idle();
        for (const auto& name : participants) {
            orders_runner(name).run_once();
            parts.at(name).service->take_in();
            participant_runner(name, "work").run_once();
            participant_runner(name, "replies").run_once();
        }
        orders->take_in();
        orders_runner("replies").run_once();
    }

    /// Rounds until the saga has ended, an hour at most between them.
    [[nodiscard]] bool settle(const vouch::id& saga_id, std::size_t rounds = 3000) {
        for (std::size_t i = 0; i < rounds; ++i) {
            round();
            if (vouch::is_terminal(orders->stored.find(saga_id)->state)) {
                return true;
            }
            clock.pass(i % 10 == 9 ? vouch::duration(10min) : vouch::duration(2s));
        }
        return false;
    }

    [[nodiscard]] std::optional<vouch::saga_progress> progress_of(const vouch::id& saga_id) const {
        const auto found = orders->stored.find(saga_id);
        return found ? vouch::decode_progress(found->progress) : std::nullopt;
    }

    static constexpr vouch::duration lease = 30s;

    vouch::manual_clock clock{};
    vouch::testing::broker broker;
    ledger done{};
    const vouch::saga_definition saga;
    std::unique_ptr<service> orders{};

    struct part {
        std::unique_ptr<services::service> service{};
        std::optional<vouch::router<store>> work{};
        std::optional<vouch::router<store>> replies{};
    };
    std::map<std::string, part> parts{};

  private:
    [[nodiscard]] static vouch::saga_definition order_saga(const std::optional<vouch::retry_policy>& retry) {
        return vouch::define_saga<std::string>("order")
            .command("reserve",
                     {.queue = "inventory", .topic = "inventory.reserve", .undo = "inventory.release", .retry = retry})
            .command("charge",
                     {.queue = "payment", .topic = "payment.charge", .undo = "payment.refund", .retry = retry})
            .command("ship", {.queue = "shipping", .topic = "shipping.ship", .undo = "shipping.cancel", .retry = retry})
            .build();
    }

    void add_participant(const std::string& name) {
        auto& p = parts[name];
        p.service = std::make_unique<service>(broker, clock, name, "work", "orders");
        p.work.emplace(p.service->outbox)
            .on("#",
                vouch::participant(p.service->outbox, [this, name](vouch::delivery& d) { return handle(d, name); }),
                {.backoff = vouch::fixed{1s}, .attempts_max = 2});
        p.replies.emplace(p.service->outbox).on(vouch::relay(p.service->publisher()));
    }

    [[nodiscard]] vouch::outcome handle(vouch::delivery& d, const std::string& name) {
        const auto command = *vouch::command_of(d.entry());
        const auto effect = command.step + " of " + to_string(command.saga);
        done.calls.push_back(d.topic());
        if (command.is_compensation) {
            done.effects.erase(effect);
            return vouch::succeed{};
        }
        const auto found = behaviours_.find(name);
        switch (found == behaviours_.end() ? behaviour::succeeds : found->second) {
        case behaviour::rejects: throw vouch::reject("declined");
        case behaviour::fails: throw vouch::failure("unavailable");
        case behaviour::fails_after_effect: done.effects.insert(effect); throw vouch::failure("unavailable");
        case behaviour::rejects_after_effect:
            if (!done.effects.insert(effect).second) {
                throw vouch::reject("declined");
            }
            throw vouch::failure("unavailable");
        case behaviour::never_answers: return vouch::release{.at = d.now() + 24h};
        case behaviour::succeeds: break;
        }
        done.effects.insert(effect);
        return vouch::succeed{.result = name + " done"};
    }

    std::map<std::string, behaviour> behaviours_;
    std::optional<vouch::router<store>> sagas_{};
    std::optional<vouch::router<store>> commands_{};
    std::optional<vouch::router<store>> replies_{};
};

} // namespace services
