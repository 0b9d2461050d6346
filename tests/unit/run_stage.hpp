// SPDX-License-Identifier: MIT
// A runner on a scripted store, for the tests of the settling transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "scripted_store.hpp"
#include "support.hpp"

namespace run_stage {

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::state;

/// The handler counts its calls and emits a follow-up.
struct stage {
    scripted_store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox<scripted_store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::router<scripted_store> router{outbox};
    int called = 0;
    std::vector<std::string> log{};
    vouch::runner<scripted_store> runner{outbox, router, {.queue = "q"}};

    stage() {
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

struct recording {
    std::function<void()> then;
    std::string work(delivery&) { return "r"; }
    void record(vouch::memory::transaction&, const std::string&) { then(); }
};

} // namespace run_stage
