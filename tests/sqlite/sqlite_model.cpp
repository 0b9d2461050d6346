// SPDX-License-Identifier: MIT
// The SQLite store and the naive model tell the same stories.
#include <cstdint>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "unit/model_story.hpp"

namespace sqlite_model_test {

namespace {

#ifdef __OPTIMIZE__
constexpr std::uint64_t stories = 900;
#else
constexpr std::uint64_t stories = 120;
#endif

} // namespace

TEST_CASE("model: the SQLite store and the naive model tell the same story") {
    const sqlite_test::folder folder;
    model::compare_with_model(stories, [&] {
        return vouch::sqlite::store(folder.fresh_path(), {.synchronous = vouch::sqlite::synchronous::normal});
    });
}

} // namespace sqlite_model_test
