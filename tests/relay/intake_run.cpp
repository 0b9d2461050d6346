// SPDX-License-Identifier: MIT
// An intake that runs until it is stopped.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "relay_support.hpp"

namespace intake_run_test {

using namespace relay_test;

namespace {

/// A consumer that does in each call of `receive` what a test has written down, and then requests the stop.
struct scripted_consumer {
    std::deque<std::function<std::vector<received>()>> script{};
    std::stop_source stop{};
    std::vector<std::string> log{};
    std::function<void()> at_acknowledge = [] {};
    std::function<void()> at_set_aside = [] {};

    [[nodiscard]] std::vector<received> receive(std::size_t, vouch::duration, const std::stop_token&) {
        log.emplace_back("receive");
        if (script.size() <= 1) {
            stop.request_stop();
        }
        if (script.empty()) {
            return {};
        }
        const auto next = std::move(script.front());
        script.pop_front();
        return next();
    }
    void acknowledge(std::span<const received> some) {
        log.push_back("acknowledge " + std::to_string(some.size()));
        at_acknowledge();
    }
    void give_back(std::span<const received> some) { log.push_back("give_back " + std::to_string(some.size())); }
    void set_aside(std::span<const received> some) {
        log.push_back("set_aside " + std::to_string(some.size()));
        at_set_aside();
    }
    void cancel() { log.emplace_back("cancel"); }
};

[[nodiscard]] std::function<std::vector<received>()> arrives(std::string id) {
    return [id] { return std::vector<received>{{.message = {.id = id, .topic = "t"}, .source = "q", .tag = 1}}; };
}

[[nodiscard]] std::function<std::vector<received>()> fails(vouch::error_kind kind) {
    return [kind]() -> std::vector<received> { throw vouch::error(kind, "scripted"); };
}

using lines = std::vector<std::string>;

struct running {
    scripted_consumer from{};
    commit_fault_store store{};
    vouch::outbox<commit_fault_store> outbox{store};

    vouch::intake_report run() {
        vouch::intake in(from, outbox,
                         {.source = "shop", .queue = "mail", .backoff = {.base = 1ms, .max = 2ms, .jitter = 0}});
        return in.run(from.stop.get_token());
    }
};

struct read_only_commits {
    template <class Call>
    auto operator()(vouch::store_operation what, const Call& call) const {
        if (what == vouch::store_operation::commit) {
            throw vouch::error(vouch::error_kind::read_only, "planned");
        }
        return call();
    }
};

} // namespace

TEST_CASE("intake: a stop ends the batch that has arrived, and then the delivery") {
    running r;
    r.from.script = {arrives("m1")}; // the stop is requested while this is received
    const auto total = r.run();
    CHECK(r.from.log == lines{"receive", "acknowledge 1", "cancel"});
    CHECK(total.stored == 1);
    CHECK(r.store.counts("mail").total() == 1);
}

TEST_CASE("intake: a stop before the start receives nothing") {
    running r;
    r.from.stop.request_stop();
    r.run();
    CHECK(r.from.log == lines{"cancel"});
}

TEST_CASE("intake: faults of the broker and the store are waited for") {
    running r;
    using error = vouch::error_kind;
    r.from.script = {fails(error::io), fails(error::busy), arrives("m1"),
                     arrives("m1"),    fails(error::io),   arrives("m2")};
    r.store.plan().faults = {commit_fault::io};
    const auto total = r.run();
    CHECK(r.from.log == lines{"receive", "receive", "receive", "give_back 1", "receive", "acknowledge 1", "receive",
                              "receive", "acknowledge 1", "cancel"});
    CHECK(total.errors == 4);
    CHECK(total.stored == 2);
    CHECK(r.store.counts("mail").total() == 2);
}

TEST_CASE("intake: memory that runs out is waited for like a store without room") {
    running r;
    const auto lacks = []() -> std::vector<received> { throw std::bad_alloc(); };
    r.from.script = {lacks, arrives("m1")};
    const auto total = r.run();
    CHECK(r.from.log == lines{"receive", "receive", "acknowledge 1", "cancel"});
    CHECK(total.errors == 1);
    CHECK(total.stored == 1);
}

TEST_CASE("intake: the delivery ends on every way out of a run") {
    running r;
    r.from.script = {[]() -> std::vector<received> { throw std::out_of_range("a consumer's mistake"); }};
    CHECK_THROWS_AS(r.run(), std::out_of_range);
    CHECK(r.from.log == lines{"receive", "cancel"});
}

TEST_CASE("intake: a second run is refused, because its consumer delivers nothing any more") {
    running r;
    vouch::intake in(r.from, r.outbox, {.source = "shop", .queue = "mail"});
    r.from.stop.request_stop();
    in.run(r.from.stop.get_token());
    const auto before = r.from.log;
    CHECK(kind_of([&] { in.run({}); }) == vouch::error_kind::misuse);
    CHECK(r.from.log == before);
}

TEST_CASE("intake: waits that cannot be added to a time, or that are none, are refused") {
    running r;
    const auto most = vouch::limits{}.lease_max;
    const auto make = [&](vouch::duration wait, vouch::duration base, vouch::duration max) {
        return [&r, wait, base, max] {
            vouch::intake(
                r.from, r.outbox,
                {.source = "shop", .queue = "mail", .wait = wait, .backoff = {.base = base, .max = max, .jitter = 0}});
        };
    };
    make(0us, 1us, 1us)();
    make(most, most, most)();
    using given = std::array<vouch::duration, 3>;
    for (const auto& [wait, base, max] :
         {given{vouch::duration::max(), 1us, 1us}, given{-1us, 1us, 1us}, given{1us, 0us, 1us},
          given{1us, vouch::duration::max(), 1us}, given{1us, 1us, 0us}, given{1us, 1us, vouch::duration::max()}}) {
        CHECK(kind_of(make(wait, base, max)) == vouch::error_kind::invalid_argument);
    }
}

TEST_CASE("intake: what is stored is counted, even if its acknowledgement fails") {
    running r;
    r.from.script = {arrives("m1"), arrives("m1")};
    r.from.at_acknowledge = [&, count = 0]() mutable {
        if (++count == 1) {
            throw vouch::error(vouch::error_kind::io, "scripted");
        }
    };
    const auto total = r.run();
    CHECK(total.received == 2);
    CHECK(total.stored == 1);
    CHECK(total.duplicates == 1);
    CHECK(total.errors == 1);
}

TEST_CASE("intake: what its consumer could not read whole is set aside, because a part of it is not there") {
    running r;
    r.from.script = {[] {
        return std::vector<received>{
            {.message = {.id = "1", .topic = "t"}, .malformed = "message_too_large", .source = "q", .tag = 1},
            {.message = {.id = "2", .topic = "t"}, .malformed = "unreadable_headers", .source = "q", .tag = 2}};
    }};
    CHECK(r.run().dead == 2);
    CHECK(r.from.log == lines{"receive", "set_aside 2", "acknowledge 0", "cancel"});
}

TEST_CASE("intake: what is stored is acknowledged, even if another message cannot be set aside") {
    running r;
    r.from.script = {[] {
        return std::vector<received>{
            {.message = {.id = "1", .topic = "t"}, .malformed = "message_too_large", .source = "q", .tag = 1},
            {.message = {.id = "2", .topic = "t"}, .source = "q", .tag = 2}};
    }};
    r.from.at_set_aside = [] { throw vouch::error(vouch::error_kind::io, "scripted"); };
    const auto report = r.run();
    CHECK(report.errors == 1);
    CHECK(report.stored == 1);
    CHECK(r.from.log == lines{"receive", "set_aside 1", "acknowledge 1", "cancel"});
}

TEST_CASE("intake: a fault that waiting cannot mend ends the delivery and is thrown") {
    using kind = vouch::error_kind;
    for (const auto lasting : {kind::read_only, kind::corrupt, kind::misuse, kind::unsupported}) {
        running r;
        r.from.script = {fails(lasting), arrives("m1")};
        CHECK(kind_of([&] { r.run(); }) == lasting);
        CHECK(r.from.log == lines{"receive", "cancel"});
    }
}

TEST_CASE("intake: a store that can only be read ends the run, and the message stays at the broker") {
    using store = vouch::store_adaptor<vouch::memory::store, read_only_commits>;
    store only_read{vouch::memory::store{}, read_only_commits{}};
    const vouch::outbox<store> outbox(only_read);
    scripted_consumer from;
    from.script = {arrives("m1"), arrives("m2")};
    vouch::intake in(from, outbox, {.source = "shop", .queue = "mail"});
    CHECK(kind_of([&] { in.run(from.stop.get_token()); }) == vouch::error_kind::read_only);
    CHECK(from.log == lines{"receive", "give_back 1", "cancel"});
}

TEST_CASE("intake: a consumer whose cancel and give_back fail does not hide the first error") {
    struct failing_consumer : scripted_consumer {
        [[noreturn]] void give_back(std::span<const received>) { throw vouch::error(vouch::error_kind::io, "lost"); }
        [[noreturn]] void cancel() { throw vouch::error(vouch::error_kind::io, "lost"); }
    };
    failing_consumer from;
    from.script = {arrives("m1")};
    commit_fault_store store;
    store.plan().faults = {commit_fault::io};
    const vouch::outbox<commit_fault_store> outbox(store);
    vouch::intake in(from, outbox, {.source = "shop", .queue = "mail", .backoff = {.base = 1ms, .max = 1ms}});
    CHECK(in.run(from.stop.get_token()).errors == 1);
}

TEST_CASE("intake: a stop ends a wait for a message, and a wait after a fault") {
    for (const bool is_failing : {false, true}) {
        const auto total = in_time([is_failing] {
            vouch::testing::broker broker({.disconnect = is_failing ? 1U : 0U});
            broker.bind("#", "q");
            vouch::testing::broker_consumer from(broker, "q");
            vouch::memory::store store;
            const vouch::outbox<vouch::memory::store> outbox(store);
            vouch::intake in(from, outbox,
                             {.source = "shop", .queue = "mail", .wait = 1h, .backoff = {.base = 1h, .max = 1h}});
            std::stop_source stop;
            auto done = std::async(std::launch::async, [&] { return in.run(stop.get_token()); });
            std::this_thread::sleep_for(20ms); // so that it is likely to wait
            stop.request_stop();
            return done.get().received;
        });
        CHECK(total == 0U);
    }
}

} // namespace intake_run_test
