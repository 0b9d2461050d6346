// SPDX-License-Identifier: MIT
// A history: several threads run transactions and read, each on its own handle. It contains all answers, and when each
// transaction and each call began and ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/schedule/names.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/scheduler.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// When a call began and ended, as numbers of events: the event n is before the call if n <= begun_at, and after it if
/// n > ended_at.
struct call_span {
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t begun_at = 0;
    std::uint64_t ended_at = never; ///< never: it threw
};

/// One transaction of a thread, or one read outside of transactions: its operations, its answers and its end.
struct transaction_run {
    std::size_t thread = 0;
    std::vector<operation> operations{};
    bool commits = true;
    bool is_outside = false; ///< a single read on the store

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    transaction_run::end ended = end::none;
    std::vector<answer> answers{};
    std::vector<call_span> calls{}; ///< one more than answers if the last call threw
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< the number of the event
    std::uint64_t commit_begun_at = call_span::never;
    std::uint64_t ended_at = 0;

    /// Whether its answers must be explained.
    [[nodiscard]] bool has_answers() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    /// Whether it changes what is stored.
    [[nodiscard]] bool has_effect() const {
        return ended == end::committed &&
               std::any_of(answers.begin(), answers.end(), [](const answer& a) { return a.has_effect(); });
    }
    [[nodiscard]] bool overlaps(const transaction_run& other) const noexcept {
        return begun_at < other.ended_at && other.begun_at < ended_at;
    }
    [[nodiscard]] std::set<std::string> names() const {
        std::set<std::string> all;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            add_names(operations[i], i < answers.size() ? answers[i] : answer{}, all);
        }
        return all;
    }
};

/// The events in their order, as text.
class event_log {
  public:
    std::uint64_t add(std::size_t thread, std::string text) {
        const std::lock_guard lock(mutex_);
        events_.emplace_back(thread, std::move(text));
        return events_.size();
    }

    /// The number of the latest event.
    [[nodiscard]] std::uint64_t now() const {
        const std::lock_guard lock(mutex_);
        return events_.size();
    }

    /// One column per thread.
    [[nodiscard]] std::string text(std::size_t threads) const {
        constexpr std::size_t width = 58;
        std::string out;
        for (std::size_t p = 0; p < threads; ++p) {
            out += padded("thread " + std::to_string(p + 1), width);
        }
        for (const auto& [thread, what] : events_) {
            out += "\n" + std::string(thread * width, ' ') + what;
        }
        return out + "\n";
    }

  private:
    [[nodiscard]] static std::string padded(std::string text, std::size_t width) {
        text.resize(width, ' ');
        return text;
    }

    mutable std::mutex mutex_{};
    std::vector<std::pair<std::size_t, std::string>> events_{};
};

/// The scheduled thread that the current thread is, for the store's seam.
inline thread_local scheduler* current_scheduler = nullptr;
inline thread_local std::size_t current_thread = 0;

/// Performs the operations with `call(operation)` and notes when each begins and ends.
template <class Call>
void run_operations(transaction_run& d, scheduler& with, event_log& log, const Call& call) {
    for (const auto& o : d.operations) {
        if (d.answers.empty() && !d.is_outside) {
            with.pause(d.thread, true); // begin and the first call are one step
        } else {
            with.end_step(d.thread);
        }
        d.calls.push_back({.begun_at = log.now()});
        d.answers.push_back(call(o));
        d.calls.back().ended_at =
            log.add(d.thread, (d.is_outside ? "outside: " : "") + show(o) + " -> " + show(o, d.answers.back()));
    }
}

inline void run_inside(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    with.end_step(d.thread);
    d.begun_at = log.add(d.thread, "begin");
    auto tx = store.begin();
    run_operations(d, with, log, [&](const operation& o) { return perform(tx, o); });
    with.end_step(d.thread);
    if (d.commits) {
        d.commit_begun_at = log.now();
        tx.commit();
        d.ended = transaction_run::end::committed;
    } else {
        d.ended = transaction_run::end::rolled_back; // when tx is destroyed
    }
}

inline void run_transaction(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    try {
        if (d.is_outside) {
            run_operations(d, with, log, [&](const operation& o) { return perform_read(store, o); });
            d.begun_at = d.calls.front().begun_at;
            d.ended_at = d.calls.front().ended_at;
            d.ended = transaction_run::end::committed;
            return;
        }
        run_inside(store, d, with, log);
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = transaction_run::end::threw;
        d.thrown = e.what();
    }
    const auto* const text = d.ended == transaction_run::end::committed     ? "committed"
                             : d.ended == transaction_run::end::rolled_back ? "rolled back"
                                                                            : d.thrown.c_str();
    d.ended_at = log.add(d.thread, text);
}

/// Runs the transactions, those of one thread in their order, under the schedule that `choose` makes. If the fixture has a
/// seam, threads pause inside the store, too.
template <class Choose>
void run_history(trial& t, std::vector<any_store>& handles, std::vector<transaction_run>& runs, event_log& log,
                 Choose&& choose) {
    scheduler with(handles.size(), std::forward<Choose>(choose));
    if (t.hooks().seam) {
        t.hooks().seam([](std::string_view) {
            if (current_scheduler != nullptr) {
                current_scheduler->pause(current_thread, true);
            }
        });
    }
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < handles.size(); ++p) {
        threads.emplace_back([&, p] {
            with.enter(p);
            current_scheduler = &with;
            current_thread = p;
            for (auto& d : runs) {
                if (d.thread == p) {
                    run_transaction(handles[p], d, with, log);
                }
            }
            current_scheduler = nullptr;
            with.finish(p);
        });
    }
    with.run();
    for (auto& thread : threads) {
        thread.join();
    }
    t.tally().guessed_turns += with.guesses();
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
