// SPDX-License-Identifier: MIT
// Model: long random sequences of commands, run on the store and on the model.
#pragma once

#include <array>
#include <utility>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/model/falsify.hpp>
#include <vouch/conformance/detail/model/model_run.hpp>
#include <vouch/conformance/detail/replay/shortened.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace model_checks {

inline void run_commands(trial& t, store_pool& pool, const words& list, tally& seen, test_source* source) {
    auto& store = pool.acquire().front();
    {
        model_run s(source == nullptr ? store : write_test(store, *source), t.can(), seen);
        for (const auto word : list) {
            s.step(word);
        }
        s.end(true);
    }
    pool.clear();
}

inline void matches_model(trial& t) {
    store_pool pool(t, 1);
    auto found = falsify(t, t.budget().model_runs, t.budget().commands_per_run,
                         [&](const words& list) { run_commands(t, pool, list, t.tally(), nullptr); });
    if (found) {
        // Once more, to write the calls down as a test.
        test_source source;
        tally ignored;
        try {
            run_commands(t, pool, found->first, ignored, &source);
        } catch (const failure&) { // the same failure again
        } catch (const error&) {
        }
        found->second.transcript = shortened_text(t.context(), source, found->second);
        throw std::move(found->second);
    }
}

} // namespace model_checks

inline constexpr std::array model_runs{
    clause{"STORY-01", layer::model, level::must, needs::nothing,
           "After any sequence of operations, all answers and reads are as the contract says, inside the transaction "
           "and outside.",
           model_checks::matches_model},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
