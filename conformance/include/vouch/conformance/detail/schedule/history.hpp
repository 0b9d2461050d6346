// SPDX-License-Identifier: MIT
// A history: several threads run transactions, each on its own handle. It contains the answers of every transaction, and
// when the transaction began and ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/scheduler.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// One transaction of a thread: its operations, its answers and its end.
struct transaction_run {
    std::size_t thread = 0;
    std::vector<operation> operations{};
    bool commits = true;

    enum class end : std::uint8_t { none, committed, rolled_back, conflict, threw };
    transaction_run::end ended = end::none;
    std::vector<answer> answers{};
    std::string thrown{};
    std::uint64_t begun_at = 0; ///< the number of the event
    std::uint64_t ended_at = 0;

    /// Whether its answers must be explained.
    [[nodiscard]] bool has_answers() const noexcept { return ended == end::committed || ended == end::rolled_back; }
    [[nodiscard]] bool overlaps(const transaction_run& other) const noexcept {
        return begun_at < other.ended_at && other.begun_at < ended_at;
    }
    [[nodiscard]] std::set<std::string> touched() const {
        std::set<std::string> names;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            add_touched(operations[i], i < answers.size() ? answers[i] : answer{}, names);
        }
        return names;
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

    std::mutex mutex_{};
    std::vector<std::pair<std::size_t, std::string>> events_{};
};

/// The scheduled thread that the current thread is, for the store's seam.
inline thread_local scheduler* current_scheduler = nullptr;
inline thread_local std::size_t current_thread = 0;

inline void run_transaction(any_store& store, transaction_run& d, scheduler& with, event_log& log) {
    const auto note = [&](std::string text) { return log.add(d.thread, std::move(text)); };
    with.pause(d.thread);
    d.begun_at = note("begin");
    try {
        auto tx = store.begin();
        for (const auto& o : d.operations) {
            with.pause(d.thread);
            d.answers.push_back(perform(tx, o));
            note(show(o) + " -> " + show(o, d.answers.back()));
        }
        with.pause(d.thread);
        if (d.commits) {
            tx.commit();
            d.ended = transaction_run::end::committed;
        } else {
            d.ended = transaction_run::end::rolled_back; // when tx is destroyed
        }
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    } catch (const std::exception& e) {
        d.ended = transaction_run::end::threw;
        d.thrown = e.what();
    }
    switch (d.ended) {
    case transaction_run::end::committed: d.ended_at = note("committed"); break;
    case transaction_run::end::rolled_back: d.ended_at = note("rolled back"); break;
    default: d.ended_at = note(d.thrown);
    }
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
                current_scheduler->pause(current_thread);
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
    if (t.hooks().seam) {
        t.hooks().seam(nullptr);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
