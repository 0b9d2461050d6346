// SPDX-License-Identifier: MIT
// A runner in a simulation: the library's own runner, with a clock that may be wrong. It can be stopped between any two
// phases, and a crash restarts it without its claims.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/simulation/context.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulated_runner {
  public:
    using handler = std::function<outcome(delivery&)>;

    simulated_runner(simulation_context& on, handler work, std::string name, std::string queue)
        : context_(on), work_(std::move(work)), name_(std::move(name)), queue_(std::move(queue)) {
        restart();
    }
    simulated_runner(const simulated_runner&) = delete;
    simulated_runner& operator=(const simulated_runner&) = delete;

    time_point paused_until{};

    [[nodiscard]] bool is_idle() const noexcept { return waiting_.empty() && done_.empty(); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return waiting_.size() + done_.size(); }
    void set_skew(duration by) noexcept { skew_ = by; }
    void note(const std::string& what) { context_.note("runner " + name_ + ' ' + what); }

    /// Starts a new process, which knows nothing about the claims of the old one.
    void restart() {
        waiting_.clear();
        done_.clear();
        runner_.reset();
        router_.reset();
        outbox_.reset();
        if (!store_ || (context_.t.can().shared && context_.random.chance(10))) {
            store_.reset();
            store_.emplace(context_.open());
        }
        outbox_.emplace(*store_, emitter_options{.clock = clock_, .ids = [this] { return context_.fresh_id(); }});
        router_.emplace(*outbox_).on("#", work_);
        runner_.emplace(*outbox_, *router_,
                        runner_options{.queue = queue_,
                                       .worker = name_,
                                       .batch_size = context_.batch_size,
                                       .lease = context_.lease,
                                       .retry = {.backoff = context_.backoff, .attempts_max = context_.attempts_max}});
        runner_->on_group_complete([this](auto& tx, const std::string&, const entry&) {
            const std::array marks{draft{
                .id = context_.fresh_id(), .queue = "q", .topic = std::string(simulation_monitor::completion_topic)}};
            tx.enqueue(marks, clock_());
        });
    }

    /// Runs one phase: a claim, the call of a handler, or a settle. A phase that a fault stopped is repeated by the next
    /// call.
    void phase() {
        clock_.set(context_.now + skew_);
        context_.attempt("runner " + name_, [&] { step(); });
        trial::expect(waiting_.size() < 2 ||
                          std::all_of(waiting_.begin(), waiting_.end(), [](const auto& e) { return e.lapses == 0; }),
                      "runner " + name_ + " holds an entry with a lapse together with no other entry");
        if (!done_.empty() && std::all_of(done_.begin(), done_.end(), [](const auto& h) { return !!h.result; })) {
            check_landings();
            done_.clear();
        }
    }

    /// Extends the leases of the claims that are not handled yet.
    void extend() {
        std::vector<ticket> mine;
        for (const auto& e : waiting_) {
            mine.push_back(ticket_of(e));
        }
        context_.attempt("runner " + name_, [&] {
            transact(*store_, [&](auto& tx) { std::ignore = tx.extend(mine, context_.now + skew_, context_.lease); });
        });
    }

  private:
    void step() {
        auto& random = context_.random;
        const bool is_calm = context_.is_calm;
        if (!waiting_.empty() && (done_.empty() || is_calm || !random.chance(5))) {
            auto next = std::move(waiting_.front());
            waiting_.erase(waiting_.begin());
            done_.push_back(runner_->handle(std::move(next)));
        } else if (!done_.empty() && (!waiting_.empty() || random.chance(50))) {
            runner_->settle(done_);
        } else if (!done_.empty()) {
            waiting_ = runner_->settle_and_claim(done_).second;
        } else if (is_calm || random.chance(90)) {
            waiting_ = runner_->claim();
        } else if (const auto only = context_.some_id(); !only.is_nil()) {
            waiting_ = runner_->claim(only);
        }
    }

    /// A runner must report exactly the settles that took effect. Only a settle in doubt may be reported as lost
    /// although it took effect, because another runner may have claimed the entry since.
    void check_landings() const {
        for (const auto& h : done_) {
            const auto mine = ticket_of(h.entry);
            const bool is_purged = !context_.monitor.stored().contains(mine.id);
            const bool says_landed = h.result->what == vouch::detail::settle_result::kind::applied;
            if (!is_purged && (says_landed || !h.in_doubt)) {
                trial::equal(says_landed, context_.monitor.is_applied(mine),
                             "runner " + name_ + " reports that its settle under " + show(mine) + " took effect");
            }
        }
    }

    simulation_context& context_;
    handler work_;
    std::string name_;
    std::string queue_;
    manual_clock clock_{start};
    duration skew_{};
    std::optional<simulated_store> store_{};
    std::optional<outbox<simulated_store>> outbox_{};
    std::optional<router<simulated_store>> router_{};
    std::optional<runner<simulated_store>> runner_{};
    std::vector<entry> waiting_{};          ///< claimed, not handled
    runner<simulated_store>::batch done_{}; ///< handled, not settled
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
