// SPDX-License-Identifier: MIT
// Waiting: what happens while another thread is inside `wait`. A wait that ends too late is tried again, so that a
// machine that is busy for a moment does not fail a store; a store that is deaf fails every time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/wakes.hpp>
#include <vouch/conformance/detail/schedule/thread_probe.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace waiting_checks {

using namespace wakes_checks;
using std::chrono::nanoseconds;

/// How long a wait lasts that is to end earlier.
inline constexpr milliseconds long_wait{300};
inline constexpr int tries = 3;

/// A thread that is inside `wait`.
class waiter {
  public:
    waiter(any_store store, std::string queue, std::uint64_t seen, nanoseconds at_most)
        : seen_(seen), at_most_(at_most),
          thread_([this, store = std::move(store), queue = std::move(queue)]() mutable { run(store, queue); }) {
        // It is inside `wait` when it sleeps. A store that waits awake gets a moment.
        constexpr int looks = 50;
        for (int left = looks; left > 0 && !(is_inside_ && probe_.is_asleep()); --left) {
            std::this_thread::sleep_for(milliseconds{1});
        }
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter() {
        stop();
        end();
    }

    void stop() {
        is_stopped_ = true;
        stop_.request_stop();
    }
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

    /// Joins the thread. Throws what `wait` has thrown.
    void join() {
        end();
        if (const auto thrown = std::exchange(thrown_, nullptr)) {
            std::rethrow_exception(thrown);
        }
    }

    // After `join`.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] nanoseconds waited() const noexcept { return waited_; }
    [[nodiscard]] bool was_early() const noexcept { return waited_ < at_most_; }
    /// Whether it returned without any of the reasons that the contract allows.
    [[nodiscard]] bool was_without_reason() const noexcept { return was_early() && number_ == seen_ && !was_stopped_; }

  private:
    void run(any_store& store, const std::string& queue) {
        probe_ = thread_probe::current();
        is_inside_ = true;
        const auto begun = steady_clock::now();
        try {
            number_ = store.wait(queue, seen_, at_most_, stop_.get_token());
        } catch (...) {
            thrown_ = std::current_exception();
        }
        was_stopped_ = is_stopped_;
        waited_ = steady_clock::now() - begun;
        has_ended_ = true;
    }
    void end() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    std::uint64_t seen_;
    nanoseconds at_most_;
    std::uint64_t number_ = 0;
    nanoseconds waited_{};
    bool was_stopped_ = false;
    std::exception_ptr thrown_{};
    std::stop_source stop_{};
    std::atomic<bool> is_stopped_ = false;
    std::atomic<bool> is_inside_ = false;
    std::atomic<bool> has_ended_ = false;
    thread_probe probe_{};
    std::thread thread_; // last: it uses the other members
};

/// Requires that `ends_early()` is true in one of several tries.
template <class Try>
void in_time(trial& t, std::string_view what, Try&& ends_early) {
    for (int left = tries; left > 0; --left) {
        if (ends_early()) {
            return;
        }
    }
    t.fail(std::string(what), "it returned only when its time had passed", "it returns at once");
}

/// Stores are opened without a test writer, which is for one thread.
[[nodiscard]] inline any_store open_plain(trial& t) { return t.context().open(t.home()); }

/// A draft with a new number.
[[nodiscard]] inline draft next_draft(const std::string& queue) {
    static std::atomic<std::uint64_t> last = 100;
    return draft_of(++last, {.queue = queue});
}

inline void ended_by_commit(trial& t) {
    auto store = open_plain(t);
    auto other = t.can().shared ? open_plain(t) : store;
    for (auto* writer : {&store, &other}) {
        in_time(t, "a wait ends with a commit that happens meanwhile", [&] {
            const auto seen = settled(store, "q");
            waiter w(store, "q", seen, long_wait);
            put(*writer, next_draft("q"));
            w.join();
            t.expect(w.number() != seen, "the number that wait returns after a commit differs from the one given");
            return w.was_early();
        });
    }
}

inline void ended_by_stop(trial& t) {
    auto store = open_plain(t);
    in_time(t, "a wait ends when a stop is requested meanwhile", [&] {
        const auto seen = settled(store, "q");
        waiter w(store, "q", seen, long_wait);
        w.stop();
        w.join();
        t.equal(w.number(), seen, "the number that a stopped wait returns");
        return w.was_early();
    });
}

inline void ended_by_time(trial& t) {
    constexpr milliseconds short_wait{20};
    auto store = open_plain(t);
    in_time(t, "a wait ends after its time, although other queues get work meanwhile", [&] {
        waiter w(store, "q", settled(store, "q"), short_wait);
        for (const auto until = steady_clock::now() + long_wait; !w.has_ended() && steady_clock::now() < until;) {
            put(store, next_draft("r"));
            std::this_thread::sleep_for(milliseconds{1});
        }
        w.join();
        t.expect(!w.was_without_reason(), "a wait for one queue does not end early because of another queue");
        return w.waited() < long_wait;
    });
}

inline void every_waiter_ends(trial& t) {
    auto store = open_plain(t);
    auto other = t.can().shared ? open_plain(t) : store;
    in_time(t, "all waits end with a commit that happens meanwhile", [&] {
        const auto seen = settled(store, "q");
        const auto seen_there = settled(store, "r");
        waiter first(store, "q", seen, long_wait);
        waiter second(store, "q", seen, long_wait);
        waiter third(other, "q", settled(other, "q"), long_wait);
        waiter fourth(store, "r", seen_there, long_wait);
        transact(store, [&](auto& tx) {
            const std::array drafts{next_draft("q"), next_draft("r")};
            tx.enqueue(drafts, at(0));
        });
        bool were_early = true;
        for (auto* w : {&first, &second, &third, &fourth}) {
            w->join();
            were_early = were_early && w->was_early();
        }
        return were_early;
    });
}

inline void without_limit(trial& t) {
    auto store = open_plain(t);
    for (const auto at_most : {nanoseconds::max(), nanoseconds{std::chrono::hours{24 * 365 * 100}}}) {
        const auto seen = settled(store, "q");
        waiter w(store, "q", seen, at_most);
        put(store, next_draft("q"));
        constexpr std::chrono::seconds patience_for_all{2};
        for (const auto until = steady_clock::now() + patience_for_all;
             !w.has_ended() && steady_clock::now() < until;) {
            std::this_thread::sleep_for(milliseconds{1});
        }
        t.expect(w.has_ended(), "a wait without a limit ends with a commit");
        w.join();
        t.expect(!w.was_without_reason() && w.number() != seen,
                 "a wait without a limit does not end before the number changes");
    }
}

inline void numbers_differ(trial& t) {
    constexpr int commits = 300; // more than a byte can count
    auto store = open_plain(t);
    std::set<std::uint64_t> seen{settled(store, "q")};
    auto last = *seen.begin();
    for (int i = 0; i < commits; ++i) {
        put(store, next_draft("q"));
        t.expect(wakes_change(store, "q", last), "the number changes with every commit");
        last = store.wakes("q");
        t.expect(seen.insert(last).second, "the number after a commit differs from all earlier ones");
    }
}

inline void every_queue_changes(trial& t) {
    auto store = open_plain(t);
    const std::vector<std::string> queues{"q", "r", "s"};
    std::vector<std::uint64_t> seen;
    std::vector<draft> drafts;
    for (const auto& queue : queues) {
        seen.push_back(settled(store, queue));
        drafts.push_back(next_draft(queue));
    }
    transact(store, [&](auto& tx) { tx.enqueue(drafts, at(0)); });
    for (std::size_t i = 0; i < queues.size(); ++i) {
        t.expect(wakes_change(store, queues[i], seen[i]),
                 "a commit with work for several queues changes all their numbers");
    }
}

} // namespace waiting_checks

inline constexpr std::array waiting{
    clause{"WAIT-01", layer::examples, level::may, needs::wakes,
           "wait returns the new number as soon as a commit changes it, through any handle.",
           waiting_checks::ended_by_commit},
    clause{"WAIT-02", layer::examples, level::may, needs::wakes, "wait returns as soon as a stop is requested.",
           waiting_checks::ended_by_stop},
    clause{"WAIT-03", layer::examples, level::may, needs::wakes,
           "Work for other queues neither ends a wait early, unless the number changes, nor makes it longer.",
           waiting_checks::ended_by_time},
    clause{"WAIT-04", layer::examples, level::may, needs::wakes,
           "A commit ends all waits for its queues, on every handle.", waiting_checks::every_waiter_ends},
    clause{"WAIT-05", layer::examples, level::may, needs::wakes,
           "wait accepts the longest time there is, and then ends only when the number changes or a stop is requested.",
           waiting_checks::without_limit},
    clause{"WAIT-06", layer::examples, level::may, needs::wakes,
           "A queue's number never returns to an earlier value, so that a wait with an old number ends at once.",
           waiting_checks::numbers_differ},
    clause{"WAIT-07", layer::examples, level::may, needs::wakes,
           "A commit with work for several queues changes the number of each.", waiting_checks::every_queue_changes},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
