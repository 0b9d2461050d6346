// SPDX-License-Identifier: MIT
// Reports what a runner or a worker does: to the observers of the outbox, to those of the runner itself, and into the
// report of a pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/report.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The trace line that names an outcome.
struct outcome_line {
    trace_line& line;
    void operator()(const succeed&) const { line.what = event_kind::succeeded; }
    void operator()(const retry& o) const { failed(event_kind::retried, o.error); }
    void operator()(const bury& o) const { failed(event_kind::dead, o.error); }
    void operator()(const release&) const { line.what = event_kind::released; }
    void operator()(const advance&) const { line.what = event_kind::advanced; }
    void failed(event_kind what, const std::string& error) const {
        line.what = what;
        line.error = error;
    }
};

class event_reporter {
  public:
    /// `outer` must outlive the reporter.
    event_reporter(const observer_list& outer, std::string worker, bool exception_text)
        : outer_(outer), worker_(std::move(worker)), exception_text_(exception_text) {}

    template <observer O>
    void add(O& o) {
        own_.add(o);
    }

    void on(const event& e) const noexcept {
        outer_.on(e);
        own_.on(e);
    }

    void claimed(const entry& e) const {
        auto seen = event_of(event_kind::claimed, e, *e.last_attempt_at);
        seen.late = std::max(seen.at - std::max(e.due_at, e.created_at), duration::zero());
        on(seen);
    }
    void started(const entry& e, time_point at) const { on(event_of(event_kind::started, e, at)); }

    /// Reports what is new about a completion: its result, or that a hook holds it up.
    template <class Store>
    void settled(report& out, completion<Store>& h, time_point now) const {
        if (!h.result && !h.held_up.empty()) {
            out.held_up += 1;
            out.trace.push_back(line_of(h.entry, event_kind::hook_failed, h.held_up));
            if (!std::exchange(h.is_reported, true)) {
                auto seen = event_of(event_kind::hook_failed, h.entry, now);
                seen.error = h.held_up;
                seen.text = exception_text_ ? std::string_view(h.held_up_text) : std::string_view{};
                on(seen);
            }
        } else if (h.result && !std::exchange(h.result->is_reported, true)) {
            add_result(out, h, now);
        }
    }

  private:
    template <class Store>
    void add_result(report& out, const completion<Store>& h, time_point now) const {
        const auto& result = *h.result;
        const bool is_applied = result.what == settle_result::kind::applied;
        auto line = line_of(h.entry, event_kind::unsettled, result.error);
        if (is_applied) {
            visit_outcome(outcome_line{line}, h.outcome);
        } else if (result.what == settle_result::kind::stale) {
            line.what = event_kind::stale;
        }
        count(out, line.what) += 1;
        on(settled_event(h, line, is_applied, now));
        for (std::size_t i = 0; is_applied && i < h.receipts.size(); ++i) {
            if (h.receipts[i].what == receipt::kind::inserted) {
                on(enqueued_event(h.emissions[i], now, worker_));
            }
        }
        if (is_applied && result.group_completed) {
            on(event_of(event_kind::group_completed, h.entry, now));
        }
        out.trace.push_back(std::move(line));
    }

    template <class Store>
    [[nodiscard]] event settled_event(const completion<Store>& h, const trace_line& line, bool is_applied,
                                      time_point now) const {
        auto seen = event_of(line.what, h.entry, now);
        seen.error = line.error;
        seen.took = h.took;
        seen.reason = line.what == event_kind::dead ? h.reason : death::none;
        if (is_applied) {
            seen.tag = h.tag;
            seen.text = exception_text_ ? std::string_view(h.text) : std::string_view{};
            if (const auto* const again = std::get_if<retry>(&h.outcome)) {
                seen.delay = std::max(again->at - now, duration::zero());
            }
        }
        return seen;
    }

    [[nodiscard]] event event_of(event_kind what, const entry& e, time_point at) const {
        return {.what = what,
                .at = at,
                .queue = e.queue,
                .topic = e.topic,
                .worker = worker_,
                .group = e.group,
                .id = e.id,
                .attempt = e.attempts,
                .is_saga = is_saga_progress(e.progress),
                .age = std::max(at - e.created_at, duration::zero())};
    }

    [[nodiscard]] static trace_line line_of(const entry& e, event_kind what, std::string error) {
        return {.id = e.id, .topic = e.topic, .attempt = e.attempts, .what = what, .error = std::move(error)};
    }

    [[nodiscard]] static std::size_t& count(report& out, event_kind what) noexcept {
        switch (what) {
        case event_kind::succeeded: return out.succeeded;
        case event_kind::advanced: return out.advanced;
        case event_kind::retried: return out.retried;
        case event_kind::dead: return out.dead;
        case event_kind::released: return out.released;
        case event_kind::stale: return out.stale;
        default: return out.unsettled;
        }
    }

    const observer_list& outer_;
    observer_list own_{};
    std::string worker_;
    bool exception_text_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
