// SPDX-License-Identifier: MIT
// The same for the PostgreSQL store, on the server that VOUCH_POSTGRES names.
#include <array>
#include <chrono>
#include <cstdlib>

#include <vouch/postgres.hpp>

int main() {
    const char* const server = std::getenv("VOUCH_POSTGRES");
    if (server == nullptr) {
        return 2;
    }
    vouch::postgres::store store(server, {.prefix = "consumer."});
    const vouch::time_point now{std::chrono::hours{1}};
    const std::array drafts{vouch::draft{.id = {.high = 1, .low = 2}, .queue = "q", .topic = "t"}};
    vouch::enqueue(store, drafts, now);
    return vouch::claim(store, {.queue = "q", .now = now}).size() == 1 ? 0 : 1;
}
