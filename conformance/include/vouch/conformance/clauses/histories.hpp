// SPDX-License-Identifier: MIT
// Histories: threads run random transactions and reads, each thread on its own handle, under a random schedule. The
// answers must be explained by some order of the transactions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/model/falsify.hpp>
#include <vouch/conformance/detail/model/generator.hpp>
#include <vouch/conformance/detail/model/model_run.hpp>
#include <vouch/conformance/detail/schedule/final_comparison.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/linearization.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace history_checks {

[[nodiscard]] inline std::vector<entry> everything(const any_store& store, const std::vector<std::string>& queues) {
    std::vector<entry> all;
    for (const auto& queue : queues) {
        const auto some = store.list({.queue = queue, .limit = 1000, .payloads = true});
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

[[nodiscard]] inline bool is_overlapping(const std::vector<transaction_run>& runs) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (runs[i].overlaps(runs[j])) {
                const auto a = runs[i].names();
                const auto b = runs[j].names();
                if (std::any_of(a.begin(), a.end(), [&](const auto& name) { return b.count(name) > 0; })) {
                    return true;
                }
            }
        }
    }
    return false;
}

/// The state before, and the steps of all threads side by side.
[[nodiscard]] inline std::string transcript_of(const model& before, const event_log& log, std::size_t threads) {
    std::string out = "before:\n";
    for (const auto& r : before.records) {
        out += "  " + show(r.entry) + "\n";
    }
    return out + log.text(threads);
}

/// Requires that some order of the transactions explains the history, and that the store behaves as the model does then.
/// Entries are in these queues.
inline void require_linearization(const model& before, const std::vector<transaction_run>& runs, any_store& store,
                                  const event_log& log, std::size_t threads, const std::vector<std::string>& queues) {
    for (const auto& d : runs) {
        if (d.ended == transaction_run::end::threw) {
            throw failure{"a transaction threw an error other than conflict", d.thrown, "an answer, or conflict",
                          transcript_of(before, log, threads)};
        }
    }
    const auto final = everything(store, queues);
    const linearization order(before, runs, final);
    if (!order.exists()) {
        std::string seen = "these answers; at the end";
        for (const auto& e : final) {
            seen += "\n    " + show(e);
        }
        throw failure{"no order of the transactions gives these answers and this final state", seen,
                      "the answers and the final state of some order", transcript_of(before, log, threads)};
    }
    if (order.is_decidable()) {
        try {
            compare_hidden_state(store, order.after(), queues);
        } catch (failure& f) {
            f.transcript = transcript_of(before, log, threads);
            throw;
        }
    }
}

/// A transaction of one or two writes, and sometimes a read.
[[nodiscard]] inline transaction_run some_transaction(generator& arguments, time_point now, std::size_t threads,
                                                      random_source& d) {
    transaction_run one;
    one.thread = d.below(threads);
    one.commits = d.chance(85);
    for (auto left = 1 + d.below(2); left > 0; --left) {
        one.operations.push_back(some_operation(arguments, now, d));
    }
    if (d.chance(35)) {
        const auto where = static_cast<std::ptrdiff_t>(d.below(one.operations.size() + 1));
        one.operations.insert(one.operations.begin() + where, some_read(arguments, d));
    }
    return one;
}

/// Some words make the setup, which one thread runs; the others make the concurrent transactions.
inline void play(trial& t, store_pool& pool, const words& list, std::size_t threads) {
    constexpr std::size_t transactions_max = 6;
    auto& handles = pool.acquire();
    {
        auto& store = handles.front();
        model_run setup(store, t.can(), t.tally());
        for (const auto word : list) {
            if (word % 5 < 3) {
                setup.step(word);
            }
        }
        setup.end(true);
        const auto before = setup.committed();

        std::vector<transaction_run> runs;
        std::size_t transactions = 0;
        std::uint64_t luck = t.seed();
        for (const auto word : list) {
            if (word % 5 >= 3 && transactions++ < transactions_max) {
                random_source d(word);
                generator arguments(t.can(), before, setup.now(), setup.tickets(), d);
                runs.push_back(some_transaction(arguments, setup.now(), threads, d));
                if (d.chance(35)) {
                    runs.push_back(
                        {.thread = d.below(threads), .operations = {some_read(arguments, d)}, .is_outside = true});
                }
                luck ^= word;
            }
        }

        event_log log;
        random_source schedule(luck);
        run_history(t, handles, runs, log, [&](const std::vector<scheduler::ready_thread>& ready) {
            return ready[schedule.below(ready.size())].index;
        });
        t.tally().histories += 1;
        t.tally().overlapping += is_overlapping(runs) ? 1U : 0U;
        require_linearization(before, runs, store, log, threads, pool.queues());
    }
    pool.clear();
}

template <std::size_t Threads>
void explained(trial& t) {
    store_pool pool(t, Threads);
    auto found = falsify(t, t.budget().histories / 2, 14, [&](const words& list) { play(t, pool, list, Threads); });
    if (found) {
        throw std::move(found->second);
    }
}

} // namespace history_checks

inline constexpr std::array histories{
    clause{"HISTORY-01", layer::histories, level::must, needs::nothing,
           "The answers that two threads receive can be explained by some order of their transactions.",
           history_checks::explained<2>},
    clause{"HISTORY-02", layer::histories, level::must, needs::nothing,
           "The answers that three threads receive can be explained by some order of their transactions.",
           history_checks::explained<3>},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
