// SPDX-License-Identifier: MIT
// A runner on a store whose commits can fail, for the tests of the settling transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "commit_fault_store.hpp"
#include "support.hpp"

namespace runner_test {

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::state;

/// The handler of "t" counts its calls and emits a follow-up.
struct runner_fixture {
    commit_fault_store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox<commit_fault_store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::router<commit_fault_store> router{outbox};
    int called = 0;
    std::vector<std::string> log{};
    vouch::runner<commit_fault_store> runner{outbox, router, {.queue = "q"}};

    runner_fixture() {
        router.on("t", [this](delivery& d) {
            ++called;
            d.emit({.queue = "next", .topic = "follow"});
        });
    }
    void put(std::uint64_t n, std::string group = {}) {
        auto d = draft_of(n);
        d.group = std::move(group);
        vouch::enqueue(store.plain(), std::span(&d, 1), clock());
    }
    [[nodiscard]] vouch::state_counts counts() const { return store.counts("q"); }
    [[nodiscard]] std::size_t follow_ups() const { return store.counts("next").total(); }
};

struct recording_handler {
    std::function<void()> then;
    std::string work(delivery&) { return "r"; }
    void record(vouch::memory::transaction&, const std::string&) { then(); }
};

} // namespace runner_test
