// SPDX-License-Identifier: MIT
// The memory store and the naive model tell the same stories.
#include <cstdint>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "model_story.hpp"

namespace memory_model_test {

namespace {

#ifdef __OPTIMIZE__
constexpr std::uint64_t stories = 900;
#else
constexpr std::uint64_t stories = 120;
#endif

} // namespace

TEST_CASE("model: the memory store and the naive model tell the same story") {
    model::compare_with_model(stories, [] { return vouch::memory::store(); });
}

} // namespace memory_model_test
