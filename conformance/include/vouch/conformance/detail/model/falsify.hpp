// SPDX-License-Identifier: MIT
// RapidCheck as the suite uses it. A case is a list of random words, one per command, and a failing case is shrunk by
// removing words. Words do not depend on RapidCheck's size, so the first case is as varied as the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <vouch/conformance/detail/replay/shortened.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

using words = std::vector<std::uint64_t>;

[[nodiscard]] inline rc::Gen<words> some_words(std::size_t count) {
    return rc::gen::shrink(rc::Gen<words>([count](const rc::Random& random, int) {
                               auto source = random;
                               words out(count);
                               for (auto& word : out) {
                                   word = source.next();
                               }
                               return rc::shrinkable::just(std::move(out));
                           }),
                           [](words longer) { return rc::shrink::removeChunks(std::move(longer)); });
}

/// Runs `play(words)` on `cases` lists of `length` words. If one fails, shrinks it, unless the options say otherwise, and
/// returns the smallest list that still fails with its failure.
template <class Play>
[[nodiscard]] std::optional<std::pair<words, failure>> falsify(const trial& t, std::size_t cases, std::size_t length,
                                                               Play&& play) {
    namespace rcd = rc::detail;
    std::optional<std::pair<words, failure>> smallest;
    rcd::Configuration how;
    how.testParams.seed = t.seed();
    how.testParams.disableShrinking = !t.options().explains;
    how.testParams.maxSuccess = static_cast<int>(cases);
    rcd::TestListenerAdapter silence;
    const auto all = some_words(length);
    const auto property = [&] {
        const auto list = *all;
        try {
            play(list);
        } catch (const failure& f) {
            smallest.emplace(list, f);
            RC_FAIL("the case fails");
        } catch (const error& e) {
            smallest.emplace(list, unexpected_error(e));
            RC_FAIL("the case throws");
        }
    };
    const auto result = rcd::checkTestable(property, rcd::TestMetadata{}, how.testParams, silence, how.reproduce);
    if (!result.template is<rcd::SuccessResult>() && !smallest) {
        trial::fail("a case could not be run");
    }
    return smallest;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
