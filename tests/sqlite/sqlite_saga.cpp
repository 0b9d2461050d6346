// SPDX-License-Identifier: MIT
// Sagas on a SQLite file: the traces of the sources, and two handlers racing for the inbox.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "unit/saga_orders.hpp"
#include "unit/support.hpp"

namespace sqlite_saga_test {

using namespace support;

TEST_CASE("sqlite saga: the three traces of the sources, in this process and with participants") {
    const bool remote = GENERATE(false, true);
    CAPTURE(remote);
    const sqlite_test::folder folder;
    vouch::sqlite::store store(folder.fresh_path());
    saga_orders::check_traces(store, remote, [](const auto& is, const auto& should) { CHECK(is == should); });
}

TEST_CASE("sqlite inbox: of handlers that race for a message one does the work, and all get its result") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    vouch::sqlite::store store(path);
    std::atomic<int> calls = 0;
    constexpr std::size_t racers = 4;
    std::vector<std::string> results(racers);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < racers; ++i) {
            threads.emplace_back([&, i] {
                vouch::sqlite::store own(path);
                results[i] = vouch::transact(own, [&](auto& tx) {
                    return vouch::inbox::once(tx, {.consumer = "c", .message = id_of(1), .now = t0},
                                              [&] { return std::to_string(++calls); });
                });
            });
        }
    }
    CHECK(calls == 1);
    CHECK(results == std::vector<std::string>(racers, "1"));
}

} // namespace sqlite_saga_test
