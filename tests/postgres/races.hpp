// SPDX-License-Identifier: MIT
// Two transactions on connections of their own, interleaved on purpose: one is held open at a known point, and the server
// says when the other waits for it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/libpq_faults.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_races {

using namespace support;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::faults;
using postgres_test::fresh_prefix;
using vouch::verdict;
using store = vouch::postgres::store;
using transaction = store::transaction;
using kind = vouch::receipt::kind;

/// When the races happen. Entries are stored and claimed at t0, and `later` is not due yet.
inline constexpr auto now = t0 + 50 * tick;
inline constexpr auto later = t0 + 90 * tick;
inline constexpr auto end_of_time = t0 + 24h;

/// A draft of queue q. The other fields are set by name.
[[nodiscard]] inline vouch::draft with(std::uint64_t n, vouch::draft d) {
    d.id = id_of(n);
    d.queue = "q";
    d.topic = "t";
    return d;
}

class scene {
  public:
    [[nodiscard]] transaction begin() { return store_.begin(); }
    [[nodiscard]] const application& app() const { return app_; }
    [[nodiscard]] const std::string& prefix() const { return prefix_; }

    // What is committed before the race.

    void given(std::vector<vouch::draft> drafts) { vouch::enqueue(store_, drafts, t0); }
    /// Claims the entry. Its epoch is then 1.
    void held(std::uint64_t n, vouch::duration lease = 1h, vouch::time_point when = t0) {
        const auto got = vouch::claim(store_, request(when, {.lease = lease, .only = id_of(n)}));
        REQUIRE(got.size() == 1);
    }
    void dead(std::uint64_t n) {
        vouch::transact(store_, [&](auto& tx) { REQUIRE(tx.cancel(id_of(n), "c", t0) == verdict::applied); });
    }

    /// Starts a call on another thread, and returns when the server says that it waits for another transaction.
    template <class F>
    [[nodiscard]] auto waits(F call) const {
        auto answer = std::async(std::launch::async, std::move(call));
        const auto waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + name_ +
                             "' AND cardinality(pg_blocking_pids(pid)) > 0";
        bool is_waiting = false;
        while (!is_waiting && answer.wait_for(1ms) != std::future_status::ready) {
            is_waiting = app_.number(waiting) > 0;
        }
        CHECK(is_waiting); // false: it has not waited, and has returned
        return answer;
    }

    // What can be seen at the end.

    [[nodiscard]] std::optional<vouch::entry> find(std::uint64_t n) const { return store_.find(id_of(n)); }
    [[nodiscard]] list claimable(vouch::time_point when = now) { return numbers(vouch::claim(store_, request(when))); }
    [[nodiscard]] list in_order() const { return numbers(store_.list(vouch::query::all("q"))); }

    store& all() { return store_; }

    /// Stores a draft, unless it would have to wait for another transaction. Returns whether it was stored.
    [[nodiscard]] bool stores_at_once(const vouch::draft& d) const {
        store impatient(conninfo(), {.prefix = prefix_, .busy_limit = 50ms});
        return !error_of([&] { vouch::enqueue(impatient, std::span(&d, 1), t0); });
    }

  private:
    application app_{};
    std::string prefix_ = fresh_prefix();
    std::string name_ = "race_" + prefix_.substr(0, prefix_.size() - 1);
    store store_{conninfo() + " application_name=" + name_, {.prefix = prefix_}};
};

// Operations that return what is compared.

inline vouch::receipt put(transaction& tx, const vouch::draft& d) { return tx.enqueue(std::span(&d, 1), now).front(); }
inline vouch::settlement end(transaction& tx, std::uint64_t n, vouch::outcome how = vouch::succeed{}) {
    return settle_in(tx, {id_of(n), 1}, std::move(how), now);
}
inline verdict cancel(transaction& tx, std::uint64_t n) { return tx.cancel(id_of(n), "c", now); }
inline std::size_t purge(transaction& tx) { return tx.purge({.queue = "q", .before = now}); }
inline list claim(transaction& tx, std::size_t limit = 100) {
    return numbers(tx.claim(request(now, {.limit = limit})));
}

/// Runs `call`, and `other` before its n-th round trip. Returns the number of round trips of the call.
template <class Call>
std::size_t interrupted(const Call& call, std::size_t n, const std::function<void()>& other) {
    const auto thread = std::this_thread::get_id();
    std::size_t trips = 0;
    bool is_in_other = false;
    faults::all().set_seam([&](std::string_view) {
        if (std::this_thread::get_id() == thread && !is_in_other && ++trips == n) {
            is_in_other = true;
            other();
            is_in_other = false;
        }
    });
    call();
    faults::all().set_seam(nullptr);
    return trips;
}

} // namespace postgres_races
