// SPDX-License-Identifier: MIT
// Work, a power cut, and what is there afterwards: whatever comes back must be what was there after some first
// transactions of the session, each of them whole. How many of them is what the setting of `synchronous` is about.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/programs/database.hpp"
#include "sqlite/programs/disk.hpp"
#include "sqlite/programs/disk_vfs.hpp"
#include "sqlite/programs/power_findings.hpp"

namespace power_test {

using sqlite_test::database;
using sqlite_test::disk;
using sqlite_test::disk_vfs;

class trial {
  public:
    trial(disk_vfs& vfs, mode as, std::uint64_t seed)
        : vfs_(vfs), mode_(as), random_(seed), ids_(clock_, seed), disk_(std::make_unique<disk>(seed)) {}

    void cut_the_power() {
        if (found_.points++ % 12 == 0) {
            begin_afresh(); // so that the tables' creation is cut, too
        }
        done_.clear();
        doubtful_.reset();
        vfs_.use(*disk_);
        const auto at = disk::all_requests[below(disk::all_requests.size())];
        disk_->cut_after(at, 1 + below(usual(at)));
        try {
            work();
            while (below(4) == 0) {
                connection_.close(); // in order, with a checkpoint
                work();
            }
            disk_->cut_now(); // if nothing has come of it yet: with everything open, at rest
        } catch (const std::exception&) {
            if (disk_->has_power() && mode_ != mode::off) {
                throw;
            }
        }
        const bool is_unusable = disk_->has_power(); // a file that looked sound and was not
        connection_.close();
        if (is_unusable) {
            found_.damaged += 1;
            return begin_afresh();
        }
        found_.cuts[disk_->cut_at()] += 1;
        disk_->reboot();
        look();
    }

    [[nodiscard]] const findings& found() const noexcept { return found_; }

  private:
    /// About as many of these a session makes.
    [[nodiscard]] static constexpr std::uint64_t usual(disk::request r) noexcept {
        switch (r) {
        case disk::request::write_log: return 60;
        case disk::request::write_database: return 12;
        case disk::request::sync_log: return 5;
        case disk::request::sync_database: return 2;
        default: return 1;
        }
    }

    struct connection {
        std::unique_ptr<database> app{}; // outlives the store that uses it
        std::unique_ptr<vouch::sqlite::store> store{};

        void close() noexcept {
            store.reset();
            app.reset();
        }
    };

    [[nodiscard]] static connection open(mode as) {
        using vouch::sqlite::store;
        using vouch::sqlite::synchronous;
        connection out;
        if (as == mode::off) { // which the store does not offer, but an application may have chosen
            out.app = std::make_unique<database>(path, disk_vfs::name);
            out.app->execute("PRAGMA journal_mode = WAL");
            out.app->execute("PRAGMA synchronous = OFF");
            out.store = std::make_unique<store>(out.app->handle(), vouch::sqlite::options{.vfs = disk_vfs::name});
        } else {
            out.store = std::make_unique<store>(
                path, vouch::sqlite::options{.synchronous = as == mode::full ? synchronous::full : synchronous::normal,
                                             .vfs = disk_vfs::name});
        }
        return out;
    }

    void begin_afresh() {
        disk_ = std::make_unique<disk>(random_());
        before_.clear();
    }

    // Before the cut.

    void work() {
        auto now = before_;
        for (const auto& d : done_) {
            bring(now, d);
        }
        connection_ = open(mode_);
        for (auto left = 1 + below(8); left > 0; --left) {
            clock_.pass(std::chrono::seconds{1});
            bring(now, transact(now));
            if (below(4) == 0) {
                checkpoint();
            }
        }
    }

    /// Somebody else's, because the store's own are far between.
    void checkpoint() {
        const database other(path, disk_vfs::name);
        const std::string setting = mode_ == mode::full ? "FULL" : mode_ == mode::normal ? "NORMAL" : "OFF";
        const std::string how = below(3) == 0 ? "TRUNCATE" : below(2) == 0 ? "RESTART" : "PASSIVE";
        other.execute("PRAGMA synchronous = " + setting);
        other.execute("PRAGMA wal_checkpoint(" + how + ')');
    }

    /// One transaction, committed.
    [[nodiscard]] changes transact(const world& now) {
        auto tx = connection_.store->begin();
        std::vector<vouch::id> touched;
        switch (below(10)) {
        case 0:
            tx.purge({.queue = "q", .before = clock_()});
            for (const auto& [id, e] : now) {
                touched.push_back(id);
            }
            break;
        case 1:
        case 2:
        case 3:
        case 4: touched = enqueue(tx); break;
        default: touched = settle_and_claim(tx, now); break;
        }
        changes made;
        for (const auto& id : touched) {
            made[id] = tx.find(id);
        }
        if (mode_ != mode::off && below(8) == 0) {
            disk_->fail_next(below(2) == 0 ? disk::request::write_log : disk::request::sync_log);
        }
        try {
            tx.commit();
        } catch (const vouch::error& e) {
            disk_->fail_next(disk::request::nothing);
            if (e.is_in_doubt()) {
                found_.in_doubt += 1;
                doubtful_ = made;
                if (disk_->has_power()) {
                    return answer(now);
                }
            }
            throw;
        }
        disk_->fail_next(disk::request::nothing);
        found_.acknowledged += 1;
        done_.push_back(made);
        return made;
    }

    /// What a reader sees of the transaction in doubt: that is what is to stay, though the power goes.
    [[nodiscard]] changes answer(const world& before) {
        auto with = before;
        bring(with, *doubtful_);
        world seen = before;
        for (const auto& [id, e] : *doubtful_) {
            bring(seen, {{id, connection_.store->find(id)}});
        }
        found_.answered += 1;
        const auto made = std::exchange(doubtful_, std::nullopt);
        if (seen == before) {
            return {};
        }
        if (seen != with) {
            throw std::logic_error("half a transaction is seen");
        }
        done_.push_back(*made);
        return *made;
    }

    [[nodiscard]] std::vector<vouch::id> enqueue(vouch::sqlite::transaction& tx) {
        std::vector<vouch::draft> drafts(1 + below(4));
        std::vector<vouch::id> ids;
        const auto group = "group " + std::to_string(below(100));
        for (auto& d : drafts) {
            d = {.id = ids_(), .queue = "q", .topic = "t", .payload = std::string(below(1500), 'x'), .group = group};
            ids.push_back(d.id);
        }
        tx.enqueue(drafts, clock_());
        return ids;
    }

    [[nodiscard]] std::vector<vouch::id> settle_and_claim(vouch::sqlite::transaction& tx, const world& now) {
        std::vector<vouch::id> touched;
        std::vector<vouch::settle> settles;
        for (const auto& [id, e] : now) {
            if (e.state == vouch::state::claimed) {
                settles.push_back({ticket_of(e), vouch::succeed{.result = "done"}});
                touched.push_back(id);
            }
        }
        for (const auto& s : tx.settle(settles, clock_())) {
            if (s.verdict != vouch::verdict::applied) {
                throw std::logic_error("a claim that came back does not settle");
            }
        }
        for (const auto& e : tx.claim({.queue = "q", .limit = 3, .now = clock_()})) {
            touched.push_back(e.id);
        }
        return touched;
    }

    // After it.

    /// Looks at a copy, so that the next session finds the disk as it is and has to recover it itself.
    void look() {
        auto looked_at = disk_->copy();
        vfs_.use(looked_at);
        std::optional<world> there;
        try {
            there = read();
        } catch (const std::exception&) { // not a database any more
        }
        vfs_.use(*disk_);
        if (!there) {
            found_.damaged += 1;
            return begin_afresh();
        }

        const auto acknowledged = done_.size();
        if (doubtful_) {
            done_.push_back(*doubtful_);
        }
        std::optional<std::size_t> kept;
        auto then = before_;
        for (std::size_t i = 0;; ++i) {
            if (then == *there) {
                kept = i;
            }
            if (i == done_.size()) {
                break;
            }
            bring(then, done_[i]);
        }
        if (!kept) {
            found_.mixed += 1;
        } else {
            found_.landed += *kept > acknowledged ? 1U : 0U;
            found_.lost += acknowledged - std::min(acknowledged, *kept);
            found_.points_with_loss += *kept < acknowledged ? 1U : 0U;
        }
        before_ = std::move(*there);
    }

    /// Everything that is stored; nothing if the file is not sound.
    [[nodiscard]] static std::optional<world> read() {
        world out;
        const auto opened = open(mode::full);
        auto page = vouch::query::all("q");
        page.payloads = true;
        for (;;) {
            const auto found = opened.store->list(page);
            for (const auto& e : found) {
                out[e.id] = e;
            }
            if (found.empty()) {
                break;
            }
            page.after = found.back().sequence;
        }
        if (database(path, disk_vfs::name).text("PRAGMA integrity_check") != "ok") {
            return std::nullopt;
        }
        return out;
    }

    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    static constexpr const char* path = "/power.db";

    disk_vfs& vfs_;
    mode mode_;
    std::mt19937_64 random_;
    vouch::manual_clock clock_{};
    vouch::uuid7_source ids_;
    std::unique_ptr<disk> disk_;
    connection connection_{};
    world before_{};                    // what the session found
    std::vector<changes> done_{};       // what it has committed
    std::optional<changes> doubtful_{}; // what it may have committed, after that
    findings found_{};
};

} // namespace power_test
