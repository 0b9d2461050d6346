// SPDX-License-Identifier: MIT
// Layer 4: threads on handles of their own, their steps put in many orders, and every history explained by the model or
// refused.
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
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/linearization.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace history_checks {

[[nodiscard]] inline std::vector<entry> everything(const any_store& store) {
    std::vector<entry> all;
    for (const std::string queue : {"q", "r"}) {
        const auto some = store.list({.queue = queue, .limit = 1000, .payloads = true});
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

[[nodiscard]] inline bool is_overlapping(const std::vector<deed>& deeds) {
    for (std::size_t i = 0; i < deeds.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (deeds[i].overlaps(deeds[j])) {
                const auto a = deeds[i].touched();
                const auto b = deeds[j].touched();
                if (std::any_of(a.begin(), a.end(), [&](const auto& name) { return b.count(name) > 0; })) {
                    return true;
                }
            }
        }
    }
    return false;
}

/// The state the parties found, and what they did side by side.
[[nodiscard]] inline std::string told_text(const model& before, const chronicle& told, std::size_t parties) {
    std::string out = "before:\n";
    for (const auto& r : before.records) {
        out += "  " + show(r.entry) + "\n";
    }
    return out + told.text(parties);
}

/// Requires that what happened can be explained.
inline void judge(const model& before, const std::vector<deed>& deeds, const any_store& store, const chronicle& told,
                  std::size_t parties) {
    for (const auto& d : deeds) {
        if (d.ended == deed::end::threw) {
            throw failure{"a transaction threw something else than conflict", d.thrown, "an answer, or conflict",
                          told_text(before, told, parties)};
        }
    }
    const auto final = everything(store);
    if (!explanation(before, deeds, final).exists()) {
        std::string seen = "these answers; in the end";
        for (const auto& e : final) {
            seen += "\n    " + show(e);
        }
        throw failure{"no order of the transactions gives these answers and this end", seen,
                      "what some order of them would have given", told_text(before, told, parties)};
    }
}

/// Words make a beginning, told by one thread, and the deeds of several.
inline void play(trial& t, playground& ground, const words& list, std::size_t parties) {
    constexpr std::size_t deeds_max = 6;
    auto& handles = ground.enter();
    {
        auto& store = handles.front();
        story beginning(store, t.can(), t.tally());
        for (const auto word : list) {
            if (word % 5 < 3) {
                beginning.tell(word);
            }
        }
        beginning.end(true);
        const auto before = beginning.committed();

        std::vector<deed> deeds;
        std::uint64_t luck = t.seed();
        for (const auto word : list) {
            if (word % 5 >= 3 && deeds.size() < deeds_max) {
                dice d(word);
                imagination mind(t.can(), before, beginning.now(), beginning.tickets(), d);
                auto& one = deeds.emplace_back();
                one.party = d.below(parties);
                one.commits = d.chance(85);
                for (auto left = 1 + d.below(2); left > 0; --left) {
                    one.operations.push_back(some_operation(mind, beginning.now(), d));
                }
                luck ^= word;
            }
        }

        chronicle told;
        dice schedule(luck);
        act(t, handles, deeds, told,
            [&](const std::vector<std::size_t>& ready) { return ready[schedule.below(ready.size())]; });
        t.tally().histories += 1;
        t.tally().overlapping += is_overlapping(deeds) ? 1U : 0U;
        judge(before, deeds, store, told, parties);
    }
    ground.sweep();
}

template <std::size_t Parties>
void explained(trial& t) {
    playground ground(t, Parties);
    auto found = falsify(t, t.budget().histories / 2, 14, [&](const words& list) { play(t, ground, list, Parties); });
    if (found) {
        throw std::move(found->second);
    }
}

} // namespace history_checks

inline constexpr std::array histories{
    clause{"HISTORY-01", layer::histories, level::must, needs::nothing,
           "What two threads are answered can be explained by some order of their transactions.",
           history_checks::explained<2>},
    clause{"HISTORY-02", layer::histories, level::must, needs::nothing,
           "What three threads are answered can be explained by some order of their transactions.",
           history_checks::explained<3>},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
