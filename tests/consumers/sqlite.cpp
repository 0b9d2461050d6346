// SPDX-License-Identifier: MIT
// The same for the SQLite store.
#include <array>
#include <chrono>
#include <cstdio>

#include <vouch/sqlite.hpp>

int main() {
    std::remove("consumer.db");
    vouch::sqlite::store store("consumer.db");
    const vouch::time_point now{std::chrono::hours{1}};
    const std::array drafts{vouch::draft{.id = {.high = 1, .low = 2}, .queue = "q", .topic = "t"}};
    vouch::enqueue(store, drafts, now);
    return vouch::claim(store, {.queue = "q", .now = now}).size() == 1 ? 0 : 1;
}
