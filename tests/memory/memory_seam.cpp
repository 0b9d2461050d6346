// SPDX-License-Identifier: MIT
// The memory store, stopped between any two of its internal steps: what was begun is undone.
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace memory_seam_test {

using namespace support;

namespace {

/// Throws at the n-th step, counted from when it is armed.
struct tripwire {
    std::shared_ptr<int> left = std::make_shared<int>(0);
    void operator()(std::string_view) const {
        if (*left > 0 && --*left == 0) {
            throw std::runtime_error("tripped");
        }
    }
};

using wired_store = vouch::memory::basic_store<tripwire>;

vouch::draft drafted(std::uint64_t n, std::string group, std::string lane, vouch::id parent) {
    auto d = draft_of(n);
    d.key = n == 3 ? "k" : "";
    d.group = std::move(group);
    d.lane = std::move(lane);
    d.parent = parent;
    return d;
}

/// Every kind of step: inserts, claims, ends that wake a parent and open a lane, a successor, a purge.
void work_on(wired_store::transaction& tx) {
    const std::array drafts{drafted(11, "g", "l", id_of(1)), drafted(12, "h", "", {})};
    tx.enqueue(drafts, t0);
    const auto claimed = tx.claim({.queue = "q", .limit = 10, .now = t0, .worker = "w"});
    std::vector<vouch::settle> settles;
    for (const auto& e : claimed) {
        settles.push_back({ticket_of(e), e.id.low % 2 == 0 ? vouch::outcome{vouch::bury{"b"}} : vouch::succeed{"r"}});
    }
    std::ignore = tx.settle(settles, t0);
    std::ignore = vouch::requeue(tx, {.dead = id_of(2), .successor = id_of(13), .now = t0});
    tx.purge({.queue = "q", .before = t0 + 1s, .limit = 10});
}

} // namespace

static_assert(vouch::waking_store<vouch::memory::store>);
static_assert(vouch::waking_store<wired_store>);

TEST_CASE("memory store: stopped after any internal step, the transaction is undone whole") {
    int steps = 0;
    for (bool tripped = true; tripped; ++steps) {
        const tripwire wire;
        wired_store store(wire);
        const std::array drafts{drafted(1, "", "", {}), drafted(2, "g", "l", id_of(1)), drafted(3, "g", "l", id_of(1)),
                                drafted(4, "", "", {})};
        vouch::enqueue(store, std::span(drafts), t0);
        const auto before = look(store);
        *wire.left = steps + 1;
        tripped = false;
        {
            auto tx = store.begin();
            try {
                work_on(tx);
            } catch (const std::runtime_error&) {
                tripped = true;
                CHECK(kind_of([&] { tx.commit(); }) == vouch::error_kind::misuse);
            }
        }
        *wire.left = 0;
        CHECK(look(store) == before);
        // And it goes on as if nothing had been.
        CHECK(vouch::claim(store, {.queue = "q", .limit = 10, .now = t0}).size() == 3);
    }
    CHECK(steps > 12);
}

} // namespace memory_seam_test
