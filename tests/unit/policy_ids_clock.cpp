// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace policy_ids_clock_test {

using namespace support;
using vouch::id;
using vouch::manual_clock;
using vouch::uuid7_source;

namespace {

std::uint64_t milliseconds_of(const id& value) { return value.high >> 16; }

std::uint64_t since_epoch(vouch::time_point t) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count());
}

} // namespace

TEST_CASE("uuid7: an id has the time first, then version and variant") {
    const manual_clock clock(t0 + 123'456us);
    const uuid7_source ids(clock, 1);
    for (int n = 0; n < 100; ++n) {
        const auto value = ids();
        CHECK(milliseconds_of(value) == since_epoch(t0) + 123);
        CHECK(((value.high >> 12) & 0xfU) == 7);
        CHECK(value.low >> 62 == 2);
        CHECK(to_string(value)[14] == '7');
    }
}

TEST_CASE("uuid7: the ids of one source always increase, whatever its clock does") {
    const manual_clock clock(t0);
    const uuid7_source ids(clock, 7);
    auto previous = ids();
    const auto check_grows = [&](int times) {
        bool grows = true;
        for (int n = 0; n < times; ++n) {
            const auto next = ids();
            grows = grows && next > previous;
            previous = next;
        }
        CHECK(grows);
    };
    check_grows(10'000); // more than the counter of one millisecond can hold
    CHECK(milliseconds_of(previous) == since_epoch(t0) + 2);
    clock.pass(-1h);
    check_grows(1000);
    clock.set(vouch::time_point{});
    check_grows(10);
    clock.set(vouch::time_point::min());
    check_grows(10);
    clock.set(t0 + 5s);
    check_grows(10);
    CHECK(milliseconds_of(previous) == since_epoch(t0 + 5s));
}

TEST_CASE("uuid7: the same clock and seed give the same ids, another seed gives others") {
    const manual_clock clock(t0);
    const uuid7_source a(clock, 42);
    const uuid7_source b(clock, 42);
    const uuid7_source c(clock, 43);
    for (int n = 0; n < 50; ++n) {
        const auto value = a();
        CHECK(value == b());
        CHECK(value != c());
    }
}

TEST_CASE("uuid7: sources without a seed differ") {
    const manual_clock clock(t0);
    std::set<std::uint64_t> random;
    for (int n = 0; n < 20; ++n) {
        random.insert(uuid7_source(clock)().low);
    }
    CHECK(random.size() == 20);
    const auto from_system = uuid7_source{}();
    CHECK(milliseconds_of(from_system) > since_epoch(t0));
}

TEST_CASE("id sources: copies share one state, also across threads") {
    const auto unique_over_threads = [](const vouch::id_source& source) {
        std::mutex mutex;
        std::set<id> all;
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, mine = source] {
                for (int n = 0; n < 500; ++n) {
                    const auto value = mine();
                    const std::lock_guard lock(mutex);
                    all.insert(value);
                }
            });
        }
        threads.clear();
        CHECK(all.size() == 2000);
    };
    unique_over_threads(uuid7_source(manual_clock(t0), 1));
    unique_over_threads(vouch::counting_ids{});
}

TEST_CASE("counting ids: count from 1, or from the given number") {
    const vouch::counting_ids ids;
    CHECK(ids() == id{.high = 0, .low = 1});
    CHECK(ids() == id{.high = 0, .low = 2});
    const auto copy = ids; // NOLINT(performance-unnecessary-copy-initialization): that it shares is the point
    CHECK(copy() == id{.high = 0, .low = 3});
    CHECK(vouch::counting_ids(100)() == id{.high = 0, .low = 100});
}

TEST_CASE("manual clock: moves only by pass and set, and so do all its copies") {
    const manual_clock clock(t0);
    const vouch::clock copy_of_clock = clock;
    CHECK(copy_of_clock() == t0);
    CHECK(copy_of_clock() == t0);
    clock.pass(5s);
    CHECK(copy_of_clock() == t0 + 5s);
    clock.pass(-10s);
    CHECK(copy_of_clock() == t0 - 5s);
    clock.set(t0 + 1us);
    CHECK(copy_of_clock() == t0 + 1us);
    CHECK(manual_clock{}() > vouch::time_point{});
}

TEST_CASE("manual clock: does not pass the largest time") {
    const manual_clock clock(vouch::time_point::max());
    clock.pass(1us);
    CHECK(clock() == vouch::time_point::max());
}

TEST_CASE("manual clock: concurrent steps are all counted") {
    const manual_clock clock(t0);
    std::latch start(4);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            start.arrive_and_wait();
            for (int n = 0; n < 500'000; ++n) {
                clock.pass(1us);
            }
        });
    }
    threads.clear();
    CHECK(clock() == t0 + 2'000'000us);
}

TEST_CASE("system clock: returns the system's time in whole microseconds") {
    const auto before = std::chrono::system_clock::now();
    const auto now = vouch::system_now();
    CHECK(now >= std::chrono::floor<vouch::duration>(before));
    CHECK(now <= std::chrono::system_clock::now());
}

TEST_CASE("uuid7: a forked child makes different ids") {
    const vouch::manual_clock still(t0);
    const vouch::uuid7_source ids{vouch::clock(still)};
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const auto made = ids().low;
        const auto written = write(ends[1], &made, sizeof made);
        _exit(written == static_cast<ssize_t>(sizeof made) ? 0 : 1);
    }
    std::uint64_t theirs = 0;
    REQUIRE(read(ends[0], &theirs, sizeof theirs) == static_cast<ssize_t>(sizeof theirs));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    close(ends[0]);
    close(ends[1]);
    CHECK(ids().low != theirs);
}

} // namespace policy_ids_clock_test
