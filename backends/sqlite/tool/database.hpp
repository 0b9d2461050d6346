// SPDX-License-Identifier: MIT
// The database an operator points at: never created, never migrated. One of an older schema is opened read-only, and
// all that can be said of it is how many entries there are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"

namespace tool {

class database {
  public:
    /// Throws `vouch::error` if there is no such file, no database in it, or nothing of ours in that.
    explicit database(const arguments& with) : path_(with.file), prefix_(with.prefix) {
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
        looking_.reset(opened);
        if (rc != SQLITE_OK) {
            throw vouch::error(vouch::error_kind::io, "cannot open " + path_ + ": " + sqlite3_errstr(rc));
        }
        sqlite3_busy_timeout(opened, 5000);
        version_ = vouch::sqlite::stored_schema_version(opened, prefix_);
    }

    [[nodiscard]] std::optional<std::int64_t> version() const noexcept { return version_; }
    [[nodiscard]] bool is_older() const noexcept { return version_ && *version_ < vouch::sqlite::schema_version; }

    /// How it differs from what this program works with; empty if it does not.
    [[nodiscard]] std::string difference() const {
        const auto ours = std::to_string(vouch::sqlite::schema_version);
        if (!version_) {
            return path_ + " has no tables with the prefix " + prefix_;
        }
        if (is_older()) {
            return path_ + " has schema version " + std::to_string(*version_) + ", this program needs " + ours +
                   "; it was opened read-only, and only `stats` can be told. The application brings it up to date "
                   "(vouch::sqlite::migrate, or opening a store)";
        }
        if (*version_ > vouch::sqlite::schema_version) {
            return path_ + " has schema version " + std::to_string(*version_) + ", newer than " + ours +
                   ", the newest this program knows";
        }
        return {};
    }

    [[nodiscard]] std::vector<std::string> queues() const {
        return vouch::sqlite::queue_names(looking_.get(), prefix_);
    }
    [[nodiscard]] std::map<std::string, vouch::state_counts> counts() const {
        return vouch::sqlite::counts_of_any_schema(looking_.get(), prefix_);
    }

    /// The store, if the schema is ours.
    [[nodiscard]] vouch::sqlite::store& store() {
        if (!store_) {
            if (const auto wrong = difference(); !wrong.empty()) {
                throw vouch::error(vouch::error_kind::unsupported, wrong);
            }
            store_.emplace(path_, vouch::sqlite::options{.prefix = prefix_, .create = false});
        }
        return *store_;
    }

  private:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };
    std::string path_;
    std::string prefix_;
    std::unique_ptr<sqlite3, closer> looking_{};
    std::optional<std::int64_t> version_{};
    std::optional<vouch::sqlite::store> store_{};
};

} // namespace tool
