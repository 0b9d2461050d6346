// SPDX-License-Identifier: MIT
// Arbitrary batch handlers beside single ones, with failures and crashes: every entry ends, as often tried as its policy
// says, the same run gives the same trace, and deciding in a batch gives the same states as deciding one by one.
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "support.hpp"

namespace batch_convergence_test {

using namespace support;
using vouch::delivery;
using vouch::delivery_batch;
using vouch::outcome;
using vouch::state;

namespace {

enum class action { finish, fail, reject, advance, snooze, retry_at, fan_out, fail_all, too_few };
enum class pass_fault { none, crash_before_handling, crash_before_settling, outlive_the_lease };

struct plan {
    std::size_t entries = 0;
    std::size_t size_max = 0;
    std::uint32_t attempts_max = 0;
    std::vector<action> actions{};
    std::vector<pass_fault> faults{};
    bool is_batched = true; ///< otherwise the handlers of the batch routes decide one by one
};

struct run_result {
    std::vector<vouch::entry> entries{};
    std::vector<vouch::trace_line> trace{};
    std::size_t stored = 0;
    std::size_t shared_calls = 0;   ///< with more than one entry
    std::uint32_t most_calls = 0;   ///< of one entry's handler between two checkpoints
    bool shared_with_lapse = false; ///< an entry with a lapse was in a call with others
    bool too_large = false;         ///< a call had more than size_max entries
    bool stuck = false;
};

/// One run of a plan. Each time an entry reaches a handler takes the next of its actions, then it finishes.
class run {
  public:
    explicit run(const plan& how) : how_(how) {
        if (how.is_batched) {
            const auto work = [this](delivery_batch& all) { return decide(all); };
            router_.on_batch("a", work, {.size_max = how.size_max}).on_batch("b", work, {.size_max = how.size_max});
        } else {
            router_.on("a", [this](delivery& d) { return thrown(decide(d)); });
            router_.on("b", [this](delivery& d) { return thrown(decide(d)); });
        }
        router_.on("#", [this](delivery& d) { return thrown(decide(d)); });
        runner_.observe(watching_);
    }
    run(const run&) = delete;
    run& operator=(const run&) = delete;

    [[nodiscard]] run_result operator()() {
        vouch::transact(store_, [&](auto& tx) {
            for (std::size_t n = 0; n < how_.entries; ++n) {
                outbox_.emit(tx, {.queue = "q", .topic = n % 3 == 0 ? "a" : n % 3 == 1 ? "b" : "single"});
            }
        });
        out_.stored += how_.entries;
        for (std::size_t n = 0; store_.counts("q").live() > 0 && !out_.stuck; ++n) {
            pass(n < how_.faults.size() ? how_.faults[n] : pass_fault::none);
            if (const auto next = store_.next_due("q"); next && *next > clock_()) {
                clock_.set(*next);
            }
            out_.stuck = n > 20'000;
        }
        out_.entries = store_.list(vouch::query::all("q"));
        return std::move(out_);
    }

  private:
    struct watch {
        run* of;
        void on(const vouch::event& e) noexcept {
            if (e.what == vouch::event_kind::advanced) {
                of->calls_[e.id] = 0;
            }
            of->out_.stored += e.what == vouch::event_kind::enqueued ? 1U : 0U;
        }
    };

    void pass(pass_fault fault) {
        auto claimed = runner_.claim();
        if (fault == pass_fault::crash_before_handling) {
            return;
        }
        auto handled = runner_.handle_all(std::move(claimed));
        if (fault == pass_fault::outlive_the_lease) {
            clock_.pass(31s);
            note(runner_.run_once()); // another runner takes over
        }
        if (fault != pass_fault::crash_before_settling) {
            note(runner_.settle(handled));
        }
    }
    void note(const vouch::report& r) { out_.trace.insert(out_.trace.end(), r.trace.begin(), r.trace.end()); }

    [[nodiscard]] action next_action(const delivery& d) {
        out_.most_calls = std::max(out_.most_calls, ++calls_[d.id()]);
        const auto at = next_[d.id()]++;
        return at < how_.actions.size() ? how_.actions[(at + d.id().low) % how_.actions.size()] : action::finish;
    }

    /// The outcome of one entry. A batch handler fails a retry without a time by policy, and a single one throws it.
    [[nodiscard]] outcome decide(delivery& d) {
        switch (next_action(d)) {
        case action::fail: return vouch::retry{"failed"};
        case action::reject: return vouch::bury{"rejected"};
        case action::advance: return vouch::advance{.progress = std::to_string(next_[d.id()])};
        case action::snooze: calls_[d.id()] -= 1; return vouch::release{.at = d.now() + 10s};
        case action::retry_at: return vouch::retry{"later", d.now() + 3s};
        case action::fan_out:
            if (d.trail().size() < 3) {
                d.emit({.queue = "q", .topic = "b"});
            }
            return vouch::succeed{"r"};
        case action::fail_all:
        case action::too_few: return vouch::retry{"together"};
        case action::finish: break;
        }
        return vouch::succeed{"r"};
    }
    [[nodiscard]] static outcome thrown(outcome o) {
        if (const auto* const again = std::get_if<vouch::retry>(&o); again != nullptr && again->at == t_unset) {
            throw vouch::failure(again->error);
        }
        return o;
    }

    [[nodiscard]] std::vector<outcome> decide(delivery_batch& all) {
        std::vector<outcome> outcomes;
        bool fails = false;
        out_.shared_calls += all.size() > 1 ? 1U : 0U;
        out_.too_large = out_.too_large || all.size() > how_.size_max;
        for (auto& d : all) {
            out_.shared_with_lapse = out_.shared_with_lapse || (all.size() > 1 && d.entry().lapses > 0);
            outcomes.push_back(decide(d));
            const auto* const again = std::get_if<vouch::retry>(&outcomes.back());
            fails = fails || (again != nullptr && again->error == "together");
        }
        if (fails && all.size() % 2 == 0) {
            outcomes.pop_back();
        } else if (fails) {
            throw std::runtime_error("failed together");
        }
        return outcomes;
    }

    static constexpr vouch::time_point t_unset{};

    plan how_;
    vouch::manual_clock clock_{t0};
    vouch::memory::store store_{};
    vouch::outbox<vouch::memory::store> outbox_{store_, {.clock = clock_, .ids = vouch::counting_ids{}}};
    vouch::router<vouch::memory::store> router_{outbox_};
    vouch::runner<vouch::memory::store> runner_{
        outbox_, router_, {.queue = "q", .batch_size = 7, .lease = 30s, .retry = {.attempts_max = how_.attempts_max}}};
    watch watching_{this};
    run_result out_{};
    std::map<vouch::id, std::uint32_t> calls_{}; // since the last checkpoint
    std::map<vouch::id, std::size_t> next_{};
};

/// A plan whose entries take some of these actions.
[[nodiscard]] plan any_plan(const std::vector<action>& of) {
    return {.entries = *rc::gen::element<std::size_t>(1, 2, 5, 9, 16),
            .size_max = *rc::gen::element<std::size_t>(1, 2, 3, 100),
            .attempts_max = *rc::gen::element<std::uint32_t>(1, 2, 3, 8),
            .actions = *rc::gen::container<std::vector<action>>(rc::gen::elementOf(of)),
            .faults = *rc::gen::container<std::vector<pass_fault>>(
                rc::gen::element(pass_fault::none, pass_fault::crash_before_handling, pass_fault::crash_before_settling,
                                 pass_fault::outlive_the_lease))};
}

} // namespace

TEST_CASE("batch: every entry ends succeeded or dead, whatever handlers do and wherever runners crash") {
    check_property("every entry ends, tried as often as its policy says, and the same run gives the same trace", [] {
        const auto how = any_plan({action::finish, action::fail, action::reject, action::advance, action::snooze,
                                   action::retry_at, action::fan_out, action::fail_all, action::too_few});
        const auto end = run(how)();
        RC_CLASSIFY(end.shared_calls > 0, "calls with several entries");
        RC_ASSERT_FALSE(end.stuck);
        RC_ASSERT_FALSE(end.too_large);
        RC_ASSERT_FALSE(end.shared_with_lapse);
        RC_ASSERT(end.entries.size() == end.stored);
        RC_ASSERT(end.most_calls <= 2 * how.attempts_max);
        for (const auto& e : end.entries) {
            RC_ASSERT(e.state == state::succeeded || e.state == state::dead);
            // A claim whose attempts are used up may crash as well.
            RC_ASSERT(e.attempts <= how.attempts_max + how.faults.size());
            RC_ASSERT(e.state == state::succeeded || e.last_error == "rejected" || e.attempts >= how.attempts_max);
        }
        const auto again = run(how)();
        RC_ASSERT(again.trace == end.trace);
        RC_ASSERT(again.entries == end.entries);
    });
}

TEST_CASE("batch: a handler that decides about each entry gives the same entries as a single handler") {
    check_property("all entries are the same in the end, with their attempts, errors and times", [] {
        auto how =
            any_plan({action::finish, action::fail, action::reject, action::advance, action::snooze, action::retry_at});
        const auto together = run(how)();
        how.is_batched = false;
        const auto one_by_one = run(how)();
        RC_CLASSIFY(together.shared_calls > 0, "calls with several entries");
        RC_ASSERT(together.entries == one_by_one.entries);
        RC_ASSERT(together.trace == one_by_one.trace);
    });
}

} // namespace batch_convergence_test
