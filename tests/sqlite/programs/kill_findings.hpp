// SPDX-License-Identifier: MIT
// The final check of a kill test, after a last runner has drained the queue. It compares orders with entries, and
// claims with executions and settles, in the database and in the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>

#include "sqlite/programs/database.hpp"
#include "sqlite/programs/kill_scene.hpp"

namespace kill_test {

struct findings {
    std::size_t orders = 0;
    std::size_t entries = 0;
    std::size_t executions = 0;
    std::size_t double_executions = 0; ///< beyond the first of each entry
    std::size_t late_settles = 0;      ///< refused by the fence

    // These must be zero, and `integrity` "ok".
    std::size_t losses = 0;           ///< orders without an entry; logged orders or executions without a stored entry
    std::size_t orphans = 0;          ///< entries without an order
    std::size_t copies = 0;           ///< entries beyond the first of an order
    std::size_t unfinished = 0;       ///< entries that have not succeeded
    std::size_t claims_run_twice = 0; ///< one ticket, two executions
    std::size_t wrongly_settled = 0;  ///< entries settled by a claim that did not hold them, or more than once
    std::size_t reappeared = 0;       ///< orders that were rolled back but are stored
    std::int64_t unaccounted = 0;     ///< ledger lines that are neither in the queue nor purged
    std::string integrity{};

    [[nodiscard]] std::vector<std::string> problems() const {
        std::vector<std::string> out;
        const auto expect_none = [&](std::size_t count, const char* what) {
            if (count != 0) {
                out.push_back(std::to_string(count) + ' ' + what);
            }
        };
        expect_none(losses, "lost");
        expect_none(orphans, "entries without an order");
        expect_none(copies, "duplicate entries");
        expect_none(unfinished, "entries not succeeded");
        expect_none(claims_run_twice, "claims executed twice");
        expect_none(wrongly_settled, "entries settled by a claim that did not hold them");
        expect_none(reappeared, "orders stored although they were rolled back");
        expect_none(static_cast<std::size_t>(unaccounted < 0 ? -unaccounted : unaccounted), "ledger lines unaccounted");
        if (integrity != "ok") {
            out.push_back("integrity_check: " + integrity);
        }
        return out;
    }
};

namespace detail {

/// Counts the lines of the log by event and subject.
[[nodiscard]] inline std::map<logged, std::map<std::string, std::size_t>> read_log(const scene& s) {
    std::map<logged, std::map<std::string, std::size_t>> out;
    std::ifstream file(s.log_path());
    for (std::string line; std::getline(file, line);) {
        out[static_cast<logged>(line.at(0))][line.substr(2)] += 1;
    }
    return out;
}

/// Claims are logged as `id epoch`.
[[nodiscard]] inline std::map<std::string, std::size_t> by_entry(const std::map<std::string, std::size_t>& claims) {
    std::map<std::string, std::size_t> out;
    for (const auto& [claim, count] : claims) {
        out[claim.substr(0, claim.find(' '))] += count;
    }
    return out;
}

} // namespace detail

[[nodiscard]] inline findings inspect(const scene& s) {
    findings f;
    const sqlite_test::database db(s.database());
    auto log = detail::read_log(s);
    const auto executed = detail::by_entry(log[logged::executed]);
    const auto settled = detail::by_entry(log[logged::settled]);

    std::map<std::string, std::size_t> entries_of; // by order
    db.each("SELECT number FROM orders", [&](const auto& row) { entries_of[std::to_string(row.integer(0))] = 0; });
    f.orders = entries_of.size();
    for (const auto& [order, count] : log[logged::ordered]) {
        f.losses += count - entries_of.count(order);
    }
    for (const auto& [order, count] : log[logged::rolled_back]) {
        f.reappeared += entries_of.count(order);
    }

    std::set<std::string> stored;
    const std::string of = "FROM vouch_entries WHERE partition >> 2 = (SELECT number FROM vouch_queues WHERE name = ";
    db.each("SELECT lower(hex(id)), payload, state, epoch, result " + of + "'orders')", [&](const auto& row) {
        auto id = row.bytes(0);
        for (const std::size_t dash : {8U, 13U, 18U, 23U}) {
            id.insert(dash, 1, '-');
        }
        f.entries += 1;
        if (const auto order = entries_of.find(row.bytes(1)); order == entries_of.end()) {
            f.orphans += 1;
        } else {
            order->second += 1;
        }
        if (row.integer(2) != static_cast<int>(vouch::state::succeeded)) {
            f.unfinished += 1;
            f.losses += settled.count(id);
        } else {
            const auto settles = settled.find(id);
            const bool twice = settles != settled.end() && settles->second > 1;
            const bool by_another = row.bytes(4) != std::to_string(row.integer(3));
            f.wrongly_settled += twice || by_another ? 1U : 0U;
            f.losses += 1 - executed.count(id);
        }
        stored.insert(std::move(id));
    });
    for (const auto& [order, count] : entries_of) {
        f.losses += count == 0 ? 1U : 0U;
        f.copies += count > 1 ? count - 1 : 0;
    }

    for (const auto& [claim, count] : log[logged::executed]) {
        f.executions += count;
        f.claims_run_twice += count - 1;
    }
    for (const auto& [id, count] : executed) {
        f.double_executions += count - 1;
        f.losses += 1 - stored.count(id);
    }
    f.late_settles = log[logged::refused].size();
    f.unaccounted = db.integer("SELECT stored - purged - (SELECT count(*) " + of + "'ledger')) FROM ledger");
    f.integrity = db.text("PRAGMA integrity_check");
    return f;
}

} // namespace kill_test
