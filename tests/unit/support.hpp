// SPDX-License-Identifier: MIT
// Helpers for all tests: readable times and ids, operations that run in a transaction of their own, a comparable
// snapshot of a store, and the way Catch2 prints times.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace support {

using namespace std::chrono_literals;

inline constexpr vouch::time_point t0{std::chrono::hours{24 * 365 * 50}};
inline constexpr vouch::duration tick{1};

[[nodiscard]] constexpr vouch::id id_of(std::uint64_t n) noexcept { return {.high = 7, .low = n}; }

[[nodiscard]] inline vouch::draft draft_of(std::uint64_t n, std::string queue = "q") {
    return {.id = id_of(n), .queue = std::move(queue), .topic = "t"};
}

// Each of these runs in a transaction of its own.

inline vouch::receipt put(vouch::memory::store& store, const vouch::draft& draft, vouch::time_point now = t0) {
    return vouch::enqueue(store, std::span(&draft, 1), now).front();
}

struct claim_options {
    std::size_t limit = 100;
    std::string queue = "q";
    vouch::duration lease = 1min;
    vouch::id only{};
};

[[nodiscard]] inline vouch::claim_request request(vouch::time_point now, claim_options how = {}) {
    return {.queue = std::move(how.queue),
            .limit = how.limit,
            .now = now,
            .lease = how.lease,
            .worker = "w",
            .only = how.only};
}

[[nodiscard]] inline std::vector<vouch::entry> take(vouch::memory::store& store, vouch::time_point now,
                                                    claim_options how = {}) {
    return vouch::claim(store, request(now, std::move(how)));
}

/// Claims the only entry that can be claimed.
[[nodiscard]] inline vouch::ticket take_one(vouch::memory::store& store, vouch::time_point now,
                                            claim_options how = {}) {
    const auto claimed = take(store, now, std::move(how));
    REQUIRE(claimed.size() == 1);
    return ticket_of(claimed.front());
}

template <class Writer>
vouch::settlement settle_in(Writer& tx, const vouch::ticket& ticket, vouch::outcome outcome, vouch::time_point now) {
    const std::array settles{vouch::settle{ticket, std::move(outcome)}};
    return tx.settle(settles, now).front();
}

inline vouch::settlement settle(vouch::memory::store& store, const vouch::ticket& ticket, const vouch::outcome& outcome,
                                vouch::time_point now = t0) {
    return vouch::transact(store, [&](auto& tx) { return settle_in(tx, ticket, outcome, now); });
}

inline vouch::verdict extend(vouch::memory::store& store, const vouch::ticket& ticket, vouch::time_point now,
                             vouch::duration lease) {
    return vouch::transact(store, [&](auto& tx) { return tx.extend(std::span(&ticket, 1), now, lease).front(); });
}

inline vouch::verdict nudge(vouch::memory::store& store, const vouch::id& id, vouch::time_point now = t0) {
    return vouch::transact(store, [&](auto& tx) { return tx.nudge(id, now); });
}

inline vouch::verdict cancel(vouch::memory::store& store, const vouch::id& id, vouch::time_point now = t0) {
    return vouch::transact(store, [&](auto& tx) { return tx.cancel(id, "cancelled", now); });
}

inline std::size_t purge(vouch::memory::store& store, const vouch::purge_request& request) {
    return vouch::transact(store, [&](auto& tx) { return tx.purge(request); });
}

// Reading.

[[nodiscard]] inline std::vector<std::uint64_t> numbers(const std::vector<vouch::entry>& entries) {
    std::vector<std::uint64_t> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id.low);
    }
    return out;
}

/// A list of numbers, for comparing with `numbers`.
using list = std::vector<std::uint64_t>;

/// Everything a reader returns for the ids 1 to 40 and for a few names.
struct snapshot {
    std::vector<vouch::entry> found{};
    std::vector<std::vector<vouch::entry>> listed{};
    std::vector<vouch::state_counts> counts{};
    std::vector<std::optional<vouch::time_point>> due{};

    [[nodiscard]] friend bool operator==(const snapshot&, const snapshot&) = default;
};

template <class Reader>
[[nodiscard]] snapshot look(const Reader& reader) {
    snapshot out;
    const auto add = [&](vouch::query q) {
        q.payloads = true;
        out.listed.push_back(reader.list(q));
    };
    for (std::uint64_t n = 1; n <= 40; ++n) {
        if (auto e = reader.find(id_of(n))) {
            out.found.push_back(std::move(*e));
        }
        add(vouch::query::children(id_of(n)));
    }
    for (const std::string queue : {"q", "r"}) {
        add(vouch::query::all(queue));
        add(vouch::query::live(queue));
        add(vouch::query::dead(queue));
        add(vouch::query::keyed(queue, "k"));
        add(vouch::query::keyed(queue, "l"));
        out.counts.push_back(reader.counts(queue));
        out.due.push_back(reader.next_due(queue));
    }
    add(vouch::query::members("g"));
    add(vouch::query::members("h"));
    return out;
}

/// The `vouch::error` that `f` throws, or none.
template <class F>
[[nodiscard]] std::optional<vouch::error> error_of(F&& f) {
    try {
        f();
    } catch (const vouch::error& e) {
        return e;
    }
    return std::nullopt;
}

template <class F>
[[nodiscard]] std::optional<vouch::error_kind> kind_of(F&& f) {
    const auto e = error_of(f);
    return e ? std::optional{e->kind()} : std::nullopt;
}

/// Runs `f` on a thread of its own and returns its result, or none if it does not return within 20 seconds. The thread
/// is then detached, so `f` must own what it uses.
template <class F>
[[nodiscard]] auto in_time(F f) -> std::optional<std::invoke_result_t<F&>> {
    std::packaged_task<std::invoke_result_t<F&>()> task(std::move(f));
    auto result = task.get_future();
    std::thread thread(std::move(task));
    if (result.wait_for(20s) != std::future_status::ready) {
        thread.detach();
        return std::nullopt;
    }
    thread.join();
    return result.get();
}

} // namespace support

namespace Catch {

template <>
struct StringMaker<vouch::time_point> {
    static std::string convert(vouch::time_point value) {
        return "t0 + " + std::to_string((value - support::t0).count()) + " us";
    }
};

} // namespace Catch
