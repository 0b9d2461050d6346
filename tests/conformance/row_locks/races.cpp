// SPDX-License-Identifier: MIT
// For each defect of the store with row locks, a race that shows its effect: what the correct store answers, and what the
// defective one does. So every mutant of that store is known to be wrong, whether or not a clause of the suite finds it.
#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "drafts.hpp"
#include "relations.hpp"
#include "verbs.hpp"

namespace races {

[[nodiscard]] std::string answers(const race& of, defect d) {
    scene s(d);
    of.prepare(s);
    auto a = s.begin();
    auto b = s.begin();
    of.play(s, a, b);
    return s.said();
}

/// Plays races and remembers which defects they have shown.
struct judge {
    std::set<defect> shown{};
    std::size_t wrong = 0;

    void expect(const race& of, defect d, std::string_view expected) {
        const auto seen = answers(of, d);
        if (seen != expected) {
            std::printf("race %d, %s\n  expected: %s\n  seen:     %s\n", static_cast<int>(of.defect),
                        d == defect::none ? "the correct store" : "the defective store", std::string(expected).c_str(),
                        seen.c_str());
            wrong += 1;
        }
    }
    template <class Races>
    void play(const Races& some) {
        for (const auto& of : some) {
            expect(of, defect::none, of.right);
            expect(of, of.defect, of.wrong);
            wrong += of.right == of.wrong ? 1U : 0U;
            shown.insert(of.defect);
        }
    }
};

} // namespace races

int main() {
    using races::defect;
    races::judge all;
    all.play(races::verbs);
    all.play(races::relations);
    all.play(races::drafts);
    for (std::size_t n = 1; n < row_locks::defect_count; ++n) {
        if (!all.shown.contains(static_cast<defect>(n))) {
            std::printf("defect %zu has no race\n", n);
            all.wrong += 1;
        }
    }
    std::printf("%zu races, %zu wrong\n", all.shown.size(), all.wrong);
    return all.wrong == 0 ? 0 : 1;
}
