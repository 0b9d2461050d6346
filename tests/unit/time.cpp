// SPDX-License-Identifier: MIT
#include <cstdint>

#include <vouch/vouch.hpp>

#include "property.hpp"

using vouch::duration;
using vouch::later;
using vouch::time_point;

TEST_CASE("later: is limited to the smallest and largest time, without overflow") {
    CHECK(later(time_point{duration{5}}, duration{7}) == time_point{duration{12}});
    CHECK(later(time_point{duration{5}}, duration{-7}) == time_point{duration{-2}});

    CHECK(later(time_point::max(), duration{0}) == time_point::max());
    CHECK(later(time_point::max(), duration{1}) == time_point::max());
    CHECK(later(time_point::max() - duration{1}, duration{1}) == time_point::max());
    CHECK(later(time_point::min(), duration{-1}) == time_point::min());
    CHECK(later(time_point::min() + duration{1}, duration{-1}) == time_point::min());
}

TEST_CASE("later: a positive duration never gives an earlier time, a negative one never a later time") {
    check_property("the result is on the side of the duration's sign", [](std::int64_t at, std::int64_t by) {
        const time_point from{duration{at}};
        const time_point to = later(from, duration{by});
        return by >= 0 ? to >= from : to <= from;
    });
}
