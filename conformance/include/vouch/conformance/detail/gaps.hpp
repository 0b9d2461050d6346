// SPDX-License-Identifier: MIT
// Whether a run has seen enough for a verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vouch/conformance/report.hpp>
#include <vouch/contract/capability.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The answers and overlaps that a verdict requires and that the run did not see, although it ran the layer.
[[nodiscard]] inline std::vector<std::string> gaps_of(const tally& t, const capabilities& can) {
    std::vector<std::string> gaps;
    constexpr std::uint64_t percent_min = 30;
    if (t.histories > 0 && 100 * t.overlapping < percent_min * t.histories) {
        gaps.push_back("fewer than " + std::to_string(percent_min) + " % of the histories overlap");
    }
    const auto expect = [&](const std::string& what) {
        if (t.commands > 0 && t.answers.find(what) == t.answers.end()) {
            gaps.push_back("never seen: " + what);
        }
    };
    for (const std::string verb : {"succeed", "retry", "bury", "release", "advance", "extend", "nudge", "cancel"}) {
        for (const auto v : all_verdicts) {
            expect(verb + " " + std::string(name_of(v)));
        }
    }
    for (const auto* const what : {"enqueue inserted", "enqueue duplicate", "enqueue refused", "claim something",
                                   "claim nothing", "purge something", "purge nothing"}) {
        expect(what);
    }
    if (can.groups) {
        expect("group completed");
    }
    return gaps;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
