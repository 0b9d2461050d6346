// SPDX-License-Identifier: MIT
// Layer 2: long random stories, told to the store and to the model.
#pragma once

#include <array>
#include <utility>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/model/falsify.hpp>
#include <vouch/conformance/detail/model/model_run.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace story_checks {

inline void tell(trial& t, playground& ground, const words& list, tally& seen, script* written) {
    auto& store = ground.enter().front();
    {
        story s(written == nullptr ? store : write_down(store, *written), t.can(), seen);
        for (const auto word : list) {
            s.tell(word);
        }
        s.end(true);
    }
    ground.sweep();
}

inline void same_story(trial& t) {
    playground ground(t, 1);
    auto found = falsify(t, t.budget().stories, t.budget().story_commands,
                         [&](const words& list) { tell(t, ground, list, t.tally(), nullptr); });
    if (found) {
        // Once more, to write it down.
        script written;
        tally ignored;
        try {
            tell(t, ground, found->first, ignored, &written);
        } catch (const failure&) { // the one we know
        } catch (const error&) {
        }
        found->second.story = written.text();
        throw std::move(found->second);
    }
}

} // namespace story_checks

inline constexpr std::array stories{
    clause{
        "STORY-01", layer::stories, level::must, needs::nothing,
        "Whatever is done in whatever order, the store answers and looks as the contract says, inside the transaction "
        "and outside.",
        story_checks::same_story},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
