// SPDX-License-Identifier: MIT
// A log of the calls on a store's transactions: arguments, answers, and how each transaction ended. Reads are not
// logged. `recording` writes it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// One call. The members that do not belong to its operation are empty.
struct call {
    enum class operation : std::uint8_t {
        begin,
        enqueue,
        claim,
        settle,
        extend,
        nudge,
        cancel,
        purge,
        commit,
        roll_back ///< the transaction was destroyed without a commit
    };
    enum class status : std::uint8_t { open, committed, rolled_back, in_doubt };

    call::operation what{};
    std::uint64_t transaction = 0;     ///< the transaction's number; the first is 1
    call::status transaction_status{}; ///< as known when the log was read
    time_point now{};

    // Arguments.
    std::vector<draft> drafts{};
    claim_request wanted{};
    std::vector<vouch::settle> settles{};
    std::vector<ticket> tickets{}; ///< extend
    duration lease{};              ///< extend
    vouch::id id{};                ///< nudge, cancel
    std::string error{};           ///< cancel
    purge_request purge{};

    // Answers.
    std::vector<receipt> receipts{};
    std::vector<entry> claimed{};
    std::vector<settlement> settlements{};
    std::vector<vouch::verdict> verdicts{}; ///< extend, nudge, cancel
    std::size_t purged = 0;
    std::optional<error_kind> threw{};
};

[[nodiscard]] constexpr std::string_view name_of(call::operation what) noexcept {
    switch (what) {
    case call::operation::begin: return "begin";
    case call::operation::enqueue: return "enqueue";
    case call::operation::claim: return "claim";
    case call::operation::settle: return "settle";
    case call::operation::extend: return "extend";
    case call::operation::nudge: return "nudge";
    case call::operation::cancel: return "cancel";
    case call::operation::purge: return "purge";
    case call::operation::commit: return "commit";
    case call::operation::roll_back: return "rolled back";
    }
    return "?";
}

namespace detail {

/// `2019-12-20 08:15:30.000001`, in UTC.
[[nodiscard]] inline std::string show_date(time_point at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const auto in_day = (at - day).count();
    const auto digits = [](auto number, std::size_t width) {
        auto text = std::to_string(number);
        return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
    };
    return digits(static_cast<int>(date.year()), 4) + '-' + digits(static_cast<unsigned>(date.month()), 2) + '-' +
           digits(static_cast<unsigned>(date.day()), 2) + ' ' + digits(in_day / 3'600'000'000, 2) + ':' +
           digits(in_day / 60'000'000 % 60, 2) + ':' + digits(in_day / 1'000'000 % 60, 2) + '.' +
           digits(in_day % 1'000'000, 6);
}

struct outcome_in_words {
    std::string operator()(const succeed&) const { return "succeed"; }
    std::string operator()(const retry& o) const { return "retry (" + o.error + ") at " + show_date(o.at); }
    std::string operator()(const bury& o) const { return "bury (" + o.error + ")"; }
    std::string operator()(const release& o) const { return o.at ? "release until " + show_date(*o.at) : "release"; }
    std::string operator()(const advance& o) const { return o.at ? "advance until " + show_date(*o.at) : "advance"; }
};

[[nodiscard]] inline std::string in_words(const draft& d) {
    auto out = show(d.id) + " in " + d.queue;
    const auto add = [&](std::string_view name, const std::string& value) {
        out += value.empty() ? "" : ", " + std::string(name) + " " + value;
    };
    add("key", d.key);
    add("group", d.group);
    add("lane", d.lane);
    add("parent", d.parent.is_nil() ? "" : show(d.parent));
    add("predecessor", d.predecessor.is_nil() ? "" : show(d.predecessor));
    add("due", d.due_at ? show_date(*d.due_at) : "");
    return out;
}

/// `item: answer; item: answer`. A call that threw has fewer answers.
template <class Item, class Answer, class Words>
[[nodiscard]] std::string side_by_side(const std::vector<Item>& items, const std::vector<Answer>& answers,
                                       const Words& to_text) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        out += (i == 0 ? "" : "; ") + to_text(items[i]) + (i < answers.size() ? ": " + show(answers[i]) : "");
    }
    return out;
}

[[nodiscard]] inline std::string details_of(const call& c) {
    using kind = call::operation;
    const auto verdict = c.verdicts.empty() ? std::string() : ": " + show(c.verdicts.front());
    switch (c.what) {
    case kind::enqueue: return side_by_side(c.drafts, c.receipts, [](const draft& d) { return in_words(d); });
    case kind::claim: {
        auto out = "up to " + std::to_string(c.wanted.limit) + " of " + c.wanted.queue + " for " + c.wanted.worker +
                   (c.wanted.only.is_nil() ? "" : ", only " + show(c.wanted.only)) + ":";
        for (const auto& e : c.claimed) {
            out += ' ' + show(ticket_of(e));
        }
        return c.claimed.empty() ? out + " nothing" : out;
    }
    case kind::settle:
        return side_by_side(c.settles, c.settlements, [](const vouch::settle& s) {
            return show(s.ticket) + ' ' + visit_outcome(outcome_in_words{}, s.outcome);
        });
    case kind::extend: return side_by_side(c.tickets, c.verdicts, [](const ticket& t) { return show(t); });
    case kind::nudge:
    case kind::cancel: return show(c.id) + verdict;
    case kind::purge: return c.purge.queue + " before " + show_date(c.purge.before) + ": " + std::to_string(c.purged);
    default: return "";
    }
}

} // namespace detail

/// One line: the transaction, the operation, its `now`, its arguments and its answers.
[[nodiscard]] inline std::string to_string(const call& c) {
    auto out = "tx " + std::to_string(c.transaction) + ' ' + std::string(name_of(c.what));
    out += c.now == time_point{} ? "" : " at " + detail::show_date(c.now);
    const auto details = detail::details_of(c);
    out += details.empty() ? "" : ", " + details;
    return c.threw ? out + ", throws " + detail::show(*c.threw) : out;
}

/// The calls in the order of their answers. Thread-safe.
class call_log {
  public:
    [[nodiscard]] std::vector<call> all() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// The calls of committed transactions.
    [[nodiscard]] std::vector<call> committed() const {
        auto out = all();
        std::erase_if(out, [](const call& c) { return c.transaction_status != call::status::committed; });
        return out;
    }
    /// Returns all calls and empties the log.
    [[nodiscard]] std::vector<call> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(calls_, {});
    }
    /// All calls, one per line.
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& c : all()) {
            out += to_string(c) + '\n';
        }
        return out;
    }

    // Called by `recording`.

    [[nodiscard]] std::uint64_t next_transaction() {
        const std::lock_guard lock(mutex_);
        return ++transactions_;
    }
    void add(call c) {
        const std::lock_guard lock(mutex_);
        calls_.push_back(std::move(c));
    }
    /// Sets how a transaction ended.
    void end(std::uint64_t transaction, call::status how) {
        const std::lock_guard lock(mutex_);
        for (auto at = calls_.rbegin(); at != calls_.rend(); ++at) {
            if (at->transaction == transaction) {
                at->transaction_status = how;
                if (at->what == call::operation::begin) {
                    return;
                }
            }
        }
    }

  private:
    mutable std::mutex mutex_{};
    std::vector<call> calls_{};
    std::uint64_t transactions_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
