// SPDX-License-Identifier: MIT
// One power-loss trial: a session of transactions, a power cut, and an inspection. The contents afterwards must be
// those after the first n transactions of the session. The `synchronous` setting decides how large n must be.
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
            start_over(); // so that the power is also cut while tables are created
        }
        done_.clear();
        in_doubt_.reset();
        vfs_.use(*disk_);
        const auto at = disk::all_requests[below(disk::all_requests.size())];
        disk_->cut_after(at, 1 + below(usual(at)));
        try {
            work();
            while (below(4) == 0) {
                connection_.close(); // a clean close, with a checkpoint
                work();
            }
            disk_->cut_now(); // if the planned cut did not happen: at rest, with everything open
        } catch (const std::exception&) {
            if (disk_->has_power() && mode_ != mode::off) {
                throw;
            }
        }
        const bool is_unusable = disk_->has_power(); // a corrupt file was not detected when it was opened
        connection_.close();
        if (is_unusable) {
            found_.damaged += 1;
            return start_over();
        }
        found_.cuts[disk_->cut_at()] += 1;
        disk_->reboot();
        inspect();
    }

    [[nodiscard]] const findings& found() const noexcept { return found_; }

  private:
    /// About the number of such requests in a session.
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
        if (as == mode::off) { // the store does not offer this, but an application may choose it
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

    void start_over() {
        disk_ = std::make_unique<disk>(random_());
        before_.clear();
    }

    // Before the cut.

    void work() {
        auto now = before_;
        for (const auto& d : done_) {
            apply_changes(now, d);
        }
        connection_ = open(mode_);
        for (auto left = 1 + below(8); left > 0; --left) {
            clock_.pass(std::chrono::seconds{1});
            apply_changes(now, transact(now));
            if (below(4) == 0) {
                checkpoint();
            }
        }
    }

    /// Checkpoints through another connection, because the store's own checkpoints are rare.
    void checkpoint() {
        const database other(path, disk_vfs::name);
        const std::string setting = mode_ == mode::full ? "FULL" : mode_ == mode::normal ? "NORMAL" : "OFF";
        const std::string how = below(3) == 0 ? "TRUNCATE" : below(2) == 0 ? "RESTART" : "PASSIVE";
        other.execute("PRAGMA synchronous = " + setting);
        other.execute("PRAGMA wal_checkpoint(" + how + ')');
    }

    /// One transaction, committed.
    [[nodiscard]] changes transact(const contents& now) {
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
                in_doubt_ = made;
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

    /// What a reader sees of the transaction in doubt. That must survive the power cut.
    [[nodiscard]] changes answer(const contents& before) {
        auto with = before;
        apply_changes(with, *in_doubt_);
        contents seen = before;
        for (const auto& [id, e] : *in_doubt_) {
            apply_changes(seen, {{id, connection_.store->find(id)}});
        }
        found_.answered += 1;
        const auto made = std::exchange(in_doubt_, std::nullopt);
        if (seen == before) {
            return {};
        }
        if (seen != with) {
            throw std::logic_error("a reader sees part of a transaction");
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

    [[nodiscard]] std::vector<vouch::id> settle_and_claim(vouch::sqlite::transaction& tx, const contents& now) {
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
                throw std::logic_error("a claim that survived the power cut does not settle");
            }
        }
        for (const auto& e : tx.claim({.queue = "q", .limit = 3, .now = clock_()})) {
            touched.push_back(e.id);
        }
        return touched;
    }

    // After the cut.

    /// Inspects a copy, so that the next session recovers the disk itself.
    void inspect() {
        auto looked_at = disk_->copy();
        vfs_.use(looked_at);
        std::optional<contents> there;
        try {
            there = read();
        } catch (const std::exception&) { // no longer a database
        }
        vfs_.use(*disk_);
        if (!there) {
            found_.damaged += 1;
            return start_over();
        }

        const auto acknowledged = done_.size();
        if (in_doubt_) {
            done_.push_back(*in_doubt_);
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
            apply_changes(then, done_[i]);
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

    /// All stored entries; nothing if the file is corrupt.
    [[nodiscard]] static std::optional<contents> read() {
        contents out;
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
    contents before_{};                 // when the session began
    std::vector<changes> done_{};       // the transactions it has committed
    std::optional<changes> in_doubt_{}; // the transaction after these, if its commit is in doubt
    findings found_{};
};

} // namespace power_test
