// SPDX-License-Identifier: MIT
// Whatever handlers do and wherever runners die: every entry ends, nothing is lost, no handler is called too often.
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "support.hpp"

namespace run_convergence_test {

using namespace support;
using vouch::delivery;

namespace {

enum class deed { finish, fail, reject, advance, snooze, fan_out, retry_at };
enum class fate { settle, die_before_handling, die_before_settling, sleep_past_the_lease };

/// What one run of a world came to.
struct ending_of_all {
    std::size_t entered = 0;
    std::size_t succeeded = 0;
    std::size_t dead = 0;
    std::uint32_t most_calls = 0; ///< of one entry's handler between two checkpoints
    bool stuck = false;
};

/// Runs entries whose handlers do the given deeds, by runners that meet the given fates; when the fates are used up,
/// runners live. Deeds are finite per entry: from then on it finishes.
ending_of_all run_world(std::size_t entries, const std::vector<deed>& deeds, const std::vector<fate>& fates,
                        std::uint32_t attempts_max) {
    vouch::manual_clock clock{t0};
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids{}});
    vouch::router router(outbox);
    ending_of_all out{.entered = entries};
    std::map<vouch::id, std::uint32_t> calls; // since the last checkpoint
    std::map<vouch::id, std::size_t> next_deed;
    router.on("#", [&](delivery& d) -> vouch::outcome {
        out.most_calls = std::max(out.most_calls, ++calls[d.id()]);
        const auto at = next_deed[d.id()]++;
        switch (at < deeds.size() ? deeds[(at + d.id().low) % deeds.size()] : deed::finish) {
        case deed::finish: break;
        case deed::fail: throw std::runtime_error("failed");
        case deed::reject: throw vouch::reject();
        case deed::advance: return vouch::advance{.progress = std::to_string(at)};
        case deed::snooze: calls[d.id()] -= 1; return vouch::release{.at = d.now() + 10s};
        case deed::fan_out:
            if (d.trail().size() < 3) {
                d.emit({.queue = "q", .topic = "child", .lane = "lane"});
            }
            break;
        case deed::retry_at: return vouch::retry{"later", d.now() + 3s};
        }
        return vouch::succeed{};
    });
    vouch::runner runner(outbox, router,
                         {.queue = "q", .batch_size = 4, .lease = 30s, .retry = {.attempts_max = attempts_max}});
    struct watch {
        std::map<vouch::id, std::uint32_t>* calls;
        std::size_t* entered;
        void on(const vouch::event& e) noexcept {
            if (e.what == vouch::event_kind::advanced) {
                (*calls)[e.id] = 0;
            }
            *entered += e.what == vouch::event_kind::enqueued ? 1U : 0U;
        }
    } watching{&calls, &out.entered};
    runner.observe(watching);
    vouch::transact(store, [&](auto& tx) {
        for (std::size_t n = 0; n < entries; ++n) {
            outbox.emit(tx, {.queue = "q", .topic = "root", .lane = n % 2 == 0 ? "lane" : ""});
        }
    });
    for (std::size_t pass = 0; store.counts("q").live() > 0; ++pass) {
        if (pass > 20'000) {
            out.stuck = true;
            return out;
        }
        const auto meets = pass < fates.size() ? fates[pass] : fate::settle;
        auto claimed = runner.claim();
        if (meets != fate::die_before_handling) {
            auto handled = runner.handle_all(std::move(claimed));
            if (meets == fate::sleep_past_the_lease) {
                clock.pass(31s);
                std::ignore = runner.run_once(); // somebody else takes over
            }
            if (meets != fate::die_before_settling) {
                runner.settle(handled);
            }
        }
        if (const auto next = store.next_due("q"); next && *next > clock()) {
            clock.set(*next);
        }
    }
    out.succeeded = store.counts("q")[vouch::state::succeeded];
    out.dead = store.counts("q")[vouch::state::dead];
    return out;
}

} // namespace

TEST_CASE("runner: any handlers and any crashes, and every entry ends succeeded or dead") {
    check_property(
        "every entry ends, nothing is lost, and each attempt calls a handler at most once, and once before if that "
        "lapsed",
        [] {
            const auto entries = *rc::gen::element<std::size_t>(1, 2, 3, 7);
            const auto deeds = *rc::gen::container<std::vector<deed>>(rc::gen::element(
                deed::finish, deed::fail, deed::reject, deed::advance, deed::snooze, deed::fan_out, deed::retry_at));
            const auto fates = *rc::gen::container<std::vector<fate>>(rc::gen::element(
                fate::settle, fate::die_before_handling, fate::die_before_settling, fate::sleep_past_the_lease));
            const auto attempts_max = *rc::gen::element<std::uint32_t>(1, 2, 3, 8);
            const auto end = run_world(entries, deeds, fates, attempts_max);
            RC_CLASSIFY(end.dead > 0, "some died");
            RC_ASSERT_FALSE(end.stuck);
            RC_ASSERT(end.succeeded + end.dead == end.entered);
            RC_ASSERT(end.most_calls <= 2 * attempts_max);
        });
}

} // namespace run_convergence_test
