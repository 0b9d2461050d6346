// SPDX-License-Identifier: MIT
// The database an operator points at: never created, never migrated. One of an older schema is opened read-only and can
// be looked at (older.hpp); one of a newer schema is left alone.
#pragma once

#include <cstdint>
#include <cstdio>
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
            return path_ + " has no tables with the prefix " + prefix_ +
                   "; `--prefix` names another, and an application creates them by opening a store";
        }
        const auto stored = path_ + " has schema version " + std::to_string(*version_);
        if (is_older()) {
            return stored + ", older than " + ours +
                   ", which this program needs; it was opened read-only, so `stats`, `list`, `show` and `schema` tell "
                   "what is stored, and nothing can be changed. The application brings it up to date, built with this "
                   "version of vouch, by opening a store or with vouch::sqlite::migrate";
        }
        if (*version_ > vouch::sqlite::schema_version) {
            return stored + ", newer than " + ours +
                   ", the newest this program knows; nothing was read or changed. The `vouch` of the application's "
                   "version knows it";
        }
        return {};
    }

    /// Whether only `looking` can be used; says why on stderr.
    [[nodiscard]] bool is_to_be_looked_at_only() const {
        if (is_older()) {
            std::fprintf(stderr, "vouch: %s\n", difference().c_str());
        }
        return is_older();
    }

    /// A connection that cannot write.
    [[nodiscard]] sqlite3* looking() const noexcept { return looking_.get(); }

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
