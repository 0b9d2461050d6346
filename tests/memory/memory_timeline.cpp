// SPDX-License-Identifier: MIT
// The memory store's timeline against a `std::set`: whatever comes and goes, in whatever order, both agree.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"

namespace timeline_test {

using vouch::memory::detail::moment;

struct item {
    vouch::memory::detail::timeline_place<item> place;
};
using timeline = vouch::memory::detail::timeline<item>;

constexpr moment at(std::int64_t time, std::uint64_t sequence) {
    return {vouch::time_point{vouch::duration{time}}, sequence};
}

inline std::vector<moment> walked(const timeline& line, std::size_t at_most = 10'000) {
    std::vector<moment> seen;
    line.walk([&](const item& i) {
        seen.push_back(i.place.when);
        return seen.size() < at_most;
    });
    return seen;
}

inline std::vector<moment> sorted(const std::set<moment>& moments) { return {moments.begin(), moments.end()}; }

TEST_CASE("timeline: an empty one has no first and nothing to walk") {
    const timeline line;
    CHECK(line.first() == nullptr);
    CHECK(walked(line).empty());
}

TEST_CASE("timeline: items in order, in reverse and all at one time come out by (time, sequence)") {
    const int step = GENERATE(1, -1, 0);
    timeline line;
    line.make_room(100);
    std::deque<item> items(100);
    std::set<moment> model;
    for (std::size_t n = 0; n < items.size(); ++n) {
        const auto when = at(step * static_cast<std::int64_t>(n), n);
        line.push(items[n], when);
        model.insert(when);
    }
    CHECK(walked(line) == sorted(model));
    for (const auto& when : model) {
        REQUIRE(line.first() != nullptr);
        REQUIRE(line.first()->place.when == when);
        line.erase(*line.first());
    }
    CHECK(line.first() == nullptr);
}

TEST_CASE("timeline: a walk ends where its visitor says") {
    timeline line;
    std::deque<item> items(5);
    for (std::size_t n = 0; n < items.size(); ++n) {
        line.push(items[n], at(0, n));
    }
    CHECK(walked(line, 2) == std::vector{at(0, 0), at(0, 1)});
}

TEST_CASE("timeline: agrees with a sorted set whatever comes and goes") {
    // Two of three steps push at a time; the third erases one of the items inside.
    using steps = std::vector<std::pair<std::uint8_t, std::uint8_t>>;
    check_property("timeline like set", [](const steps& taken) {
        timeline line;
        line.make_room(taken.size());
        std::deque<item> items;
        std::vector<item*> inside;
        std::set<moment> model;
        for (const auto& [number, time] : taken) {
            if (number % 3 != 0 || inside.empty()) {
                auto& fresh = items.emplace_back();
                line.push(fresh, at(time, items.size()));
                model.insert(fresh.place.when);
                inside.push_back(&fresh);
            } else {
                const auto which = inside.begin() + static_cast<std::ptrdiff_t>(time % inside.size());
                model.erase((*which)->place.when);
                line.erase(**which);
                inside.erase(which);
            }
            RC_ASSERT(walked(line) == sorted(model));
            RC_ASSERT((line.first() == nullptr) == model.empty());
            if (!model.empty()) {
                RC_ASSERT(line.first()->place.when == *model.begin());
            }
        }
    });
}

} // namespace timeline_test
