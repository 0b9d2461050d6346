// SPDX-License-Identifier: MIT
// Threads that run freely, on as many processors as there are. No schedule orders them, so ThreadSanitizer sees the
// races of a store. Their checks use only what holds in every order.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Where threads wait for each other, so that they go on at the same moment. They spin: a thread that had to be woken
/// would be late.
class start_line {
  public:
    explicit start_line(std::size_t threads) : threads_(threads) {}

    /// Waits for the others. Returns false if one of them has failed and will not come.
    [[nodiscard]] bool wait() {
        const auto rounds = arrived_.fetch_add(1) / threads_;
        while (arrived_ / threads_ == rounds && !is_broken_) {
            std::this_thread::yield();
        }
        return !is_broken_;
    }
    void give_up() noexcept { is_broken_ = true; }
    [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }

  private:
    std::size_t threads_;
    std::atomic<std::size_t> arrived_ = 0;
    std::atomic<bool> is_broken_ = false;
};

/// Gives up the processor at every fourth call, so that another thread runs meanwhile. Always would be slow on a machine
/// that has other work.
inline void yield_sometimes() {
    thread_local unsigned calls = 0;
    if (++calls % 4 == 0) {
        std::this_thread::yield();
    }
}

/// While it exists, the store gives up the processor at some of its seams, if it has any.
class yielding_seam {
  public:
    explicit yielding_seam(trial& t) : trial_(t) {
        if (t.hooks().seam) {
            t.hooks().seam([](std::string_view) { yield_sometimes(); });
        }
    }
    yielding_seam(const yielding_seam&) = delete;
    yielding_seam& operator=(const yielding_seam&) = delete;
    ~yielding_seam() {
        if (trial_.hooks().seam) {
            trial_.hooks().seam(nullptr);
        }
    }

  private:
    trial& trial_;
};

/// Calls `work()` and returns its failure, as text for the report.
template <class Work>
[[nodiscard]] failure failure_of(const Work& work) {
    try {
        work();
        return {};
    } catch (const failure& f) {
        return f;
    } catch (const error& e) {
        return {.what = "a call threw an error while other threads used the store",
                .seen = show(e.kind()) + ": " + e.what(),
                .expected = "an answer, or conflict"};
    } catch (const std::exception& e) {
        return {.what = "an exception that is not a vouch::error was thrown while other threads used the store",
                .seen = e.what(),
                .expected = "an answer, or conflict"};
    }
}

/// Runs `work(n, line)` on thread n of `count`, all at once. Throws the failure of the first thread that has one.
template <class Work>
void run_freely(trial& t, std::size_t count, const Work& work) {
    const yielding_seam seam(t);
    start_line line(count);
    std::vector<failure> failures(count);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < count; ++n) {
        threads.emplace_back([&, n] {
            failures[n] = failure_of([&] {
                if (line.wait()) {
                    work(n, line);
                }
            });
            if (!failures[n].what.empty()) {
                line.give_up();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (auto& f : failures) {
        if (!f.what.empty()) {
            f.transcript =
                "The threads ran freely, so their calls cannot be repeated in the same order. Run the clause "
                "again, or compile\nthe program with -fsanitize=thread and run it with --layer threads.\n";
            throw std::move(f);
        }
    }
}

/// Calls `work` on a thread of its own and waits for it. Throws what it throws.
template <class Work>
void on_another_thread(const Work& work) {
    std::exception_ptr thrown;
    std::thread([&] {
        try {
            work();
        } catch (...) {
            thrown = std::current_exception();
        }
    }).join();
    if (thrown) {
        std::rethrow_exception(thrown);
    }
}

/// Calls `work`, and again after a conflict, like `transact` but oftener, because the other threads do not rest.
template <class Work>
void repeat_after_conflict(const Work& work) {
    constexpr int tries = 5'000;
    for (int left = tries;; --left) {
        try {
            work();
            return;
        } catch (const error& e) {
            const bool is_worth_another = e.kind() == error_kind::conflict || e.kind() == error_kind::busy;
            if (!is_worth_another || e.is_in_doubt() || left == 1) {
                throw;
            }
        }
        std::this_thread::yield();
    }
}

/// Runs `work(tx)` and commits. Repeats it from `begin` after a conflict.
template <class Work>
void commit_freely(any_store& store, const Work& work) {
    repeat_after_conflict([&] {
        auto tx = store.begin();
        yield_sometimes();
        work(tx);
        yield_sometimes();
        tx.commit();
    });
}

/// The handles of the threads: copies of one, or one each if the store is shared.
[[nodiscard]] inline std::vector<any_store> handles_of(trial& t, const location& p, std::size_t count, bool separate) {
    std::vector<any_store> out{t.context().open(p)};
    while (out.size() < count) {
        out.push_back(separate ? t.context().open(p) : out.front());
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
