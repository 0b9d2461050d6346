// SPDX-License-Identifier: MIT
// Arbitrary handlers and crashes: every entry ends, none is lost, and no handler is called too often.
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

enum class action { finish, fail, reject, advance, snooze, fan_out, retry_at };
enum class pass_fault { none, crash_before_handling, crash_before_settling, outlive_the_lease };

/// The result of one run.
struct run_result {
    std::size_t stored = 0;
    std::size_t succeeded = 0;
    std::size_t dead = 0;
    std::uint32_t most_calls = 0; ///< of one entry's handler between two checkpoints
    bool stuck = false;
};

/// Runs entries until all have ended. Each call of an entry's handler takes the next of `actions`, then finishes; each
/// pass of the runner has the next of `faults`, then none.
run_result run_to_end(std::size_t entries, const std::vector<action>& actions, const std::vector<pass_fault>& faults,
                      std::uint32_t attempts_max) {
    vouch::manual_clock clock{t0};
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock, .ids = vouch::counting_ids{}});
    vouch::router router(outbox);
    run_result out{.stored = entries};
    std::map<vouch::id, std::uint32_t> calls; // since the last checkpoint
    std::map<vouch::id, std::size_t> next_action;
    router.on("#", [&](delivery& d) -> vouch::outcome {
        out.most_calls = std::max(out.most_calls, ++calls[d.id()]);
        const auto at = next_action[d.id()]++;
        switch (at < actions.size() ? actions[(at + d.id().low) % actions.size()] : action::finish) {
        case action::finish: break;
        case action::fail: throw std::runtime_error("failed");
        case action::reject: throw vouch::reject();
        case action::advance: return vouch::advance{.progress = std::to_string(at)};
        case action::snooze: calls[d.id()] -= 1; return vouch::release{.at = d.now() + 10s};
        case action::fan_out:
            if (d.trail().size() < 3) {
                d.emit({.queue = "q", .topic = "child", .lane = "lane"});
            }
            break;
        case action::retry_at: return vouch::retry{"later", d.now() + 3s};
        }
        return vouch::succeed{};
    });
    vouch::runner runner(outbox, router,
                         {.queue = "q", .batch_size = 4, .lease = 30s, .retry = {.attempts_max = attempts_max}});
    struct watch {
        std::map<vouch::id, std::uint32_t>* calls;
        std::size_t* stored;
        void on(const vouch::event& e) noexcept {
            if (e.what == vouch::event_kind::advanced) {
                (*calls)[e.id] = 0;
            }
            *stored += e.what == vouch::event_kind::enqueued ? 1U : 0U;
        }
    } watching{&calls, &out.stored};
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
        const auto fault = pass < faults.size() ? faults[pass] : pass_fault::none;
        auto claimed = runner.claim();
        if (fault != pass_fault::crash_before_handling) {
            auto handled = runner.handle_all(std::move(claimed));
            if (fault == pass_fault::outlive_the_lease) {
                clock.pass(31s);
                std::ignore = runner.run_once(); // another runner takes over
            }
            if (fault != pass_fault::crash_before_settling) {
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

TEST_CASE("runner: every entry ends succeeded or dead, whatever handlers do and wherever runners crash") {
    check_property("every entry ends, none is lost, and each attempt calls a handler once, or twice after a lapse", [] {
        const auto entries = *rc::gen::element<std::size_t>(1, 2, 3, 7);
        const auto actions = *rc::gen::container<std::vector<action>>(
            rc::gen::element(action::finish, action::fail, action::reject, action::advance, action::snooze,
                             action::fan_out, action::retry_at));
        const auto faults = *rc::gen::container<std::vector<pass_fault>>(
            rc::gen::element(pass_fault::none, pass_fault::crash_before_handling, pass_fault::crash_before_settling,
                             pass_fault::outlive_the_lease));
        const auto attempts_max = *rc::gen::element<std::uint32_t>(1, 2, 3, 8);
        const auto end = run_to_end(entries, actions, faults, attempts_max);
        RC_CLASSIFY(end.dead > 0, "some died");
        RC_ASSERT_FALSE(end.stuck);
        RC_ASSERT(end.succeeded + end.dead == end.stored);
        RC_ASSERT(end.most_calls <= 2 * attempts_max);
    });
}

} // namespace run_convergence_test
