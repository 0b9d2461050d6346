// SPDX-License-Identifier: MIT
// The database an operator points at: never created, never migrated, its journal mode never changed. It is opened
// read-only until a verb is to change something. One of an older schema can be looked at (older.hpp); one of a newer
// schema is left alone.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sqlite3.h>
#include <unistd.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "output.hpp"

namespace tool {

/// Reads what is stored, through a connection that need not be able to write.
class view {
  public:
    view(sqlite3* through, const std::string& prefix)
        : on_(std::make_unique<vouch::sqlite::detail::connection>(through, vouch::sqlite::options{.prefix = prefix})) {}

    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id& wanted) const { return reading().find(wanted); }
    [[nodiscard]] std::vector<vouch::entry> list(const vouch::query& q) const {
        vouch::validate(q, limits);
        return reading().list(q);
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        vouch::validate_queue(queue, limits);
        return reading().counts(queue);
    }
    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const {
        vouch::validate_queue(queue, limits);
        return reading().next_due(queue);
    }

  private:
    static constexpr auto limits = vouch::sqlite::detail::can.limits;
    [[nodiscard]] vouch::sqlite::detail::reading reading() const noexcept {
        return vouch::sqlite::detail::reading(*on_);
    }
    std::unique_ptr<vouch::sqlite::detail::connection> on_;
};

static_assert(vouch::reader<view>);

class database {
  public:
    /// Throws `vouch::error` if there is no such file, no database in it, or nothing of ours in that.
    explicit database(const arguments& with) : path_(with.file), prefix_(with.prefix) {
        try {
            look_through(open(path_, SQLITE_OPEN_READONLY));
        } catch (const vouch::error& e) {
            const auto code = e.code() & 0xff;
            if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) || access(path_.c_str(), R_OK) != 0) {
                throw;
            }
            // In WAL mode SQLite wants to write beside the file even to read it. Where it may not, and nothing lies
            // there, the file is all there is to read.
            std::error_code none;
            if (std::filesystem::file_size(log_path(), none) > 0 && !none) {
                throw vouch::error(e.kind(), path_ + " has its newest changes in " + log_path() +
                                                 ", which cannot be read without writing beside it: copy both to a "
                                                 "folder you may write, or use a user who may write this one");
            }
            look_through(open(uri_of(path_) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
        }
    }

    database(const database&) = delete;
    database& operator=(const database&) = delete;
    ~database() {
        try {
            close();
        } catch (const vouch::error&) { // NOLINT(bugprone-empty-catch): it could not be left tidier
        }
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

    /// What is stored, if the schema is ours.
    [[nodiscard]] const view& stored() {
        if (!view_) {
            expect_our_schema();
            view_.emplace(looking_.get(), prefix_);
        }
        return *view_;
    }

    /// The store, for a verb that changes something, if the schema is ours. From then on nothing else is to be used.
    [[nodiscard]] vouch::sqlite::store& store() {
        if (!store_) {
            expect_our_schema();
            view_.reset();
            looking_.reset(); // closed last, it would leave the write-ahead log behind
            writing_ = open(path_, SQLITE_OPEN_READWRITE);
            store_.emplace(writing_.get(), vouch::sqlite::options{.prefix = prefix_, .create = false});
        }
        return *store_;
    }

  private:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };
    using handle = std::unique_ptr<sqlite3, closer>;

    [[nodiscard]] static handle open(const std::string& path, int flags) {
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
        handle out(opened);
        if (rc != SQLITE_OK) {
            throw vouch::error(vouch::error_kind::io, "cannot open " + path + ": " + sqlite3_errstr(rc), {.code = rc});
        }
        sqlite3_busy_timeout(opened, 5000);
        return out;
    }

    /// `file:///folder/name`, with everything escaped that means something there.
    [[nodiscard]] static std::string uri_of(const std::string& path) {
        std::string out = "file://";
        for (const char c : std::filesystem::absolute(path).string()) {
            const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                  c == '/' || c == '.' || c == '-' || c == '_';
            out += is_plain ? std::string(1, c) : '%' + hex_of(std::string_view(&c, 1));
        }
        return out;
    }

    void close() {
        view_.reset();
        looking_.reset();
        store_.reset();
        if (writing_) {
            // What was changed goes from the write-ahead log into the file, as far as those who read it at the moment
            // allow, so that a copy of the file has it.
            sqlite3_busy_timeout(writing_.get(), 1000);
            sqlite3_wal_checkpoint_v2(writing_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
            writing_.reset();
        } else if (!had_log_ && has_log()) {
            // Looking made a log. The last to close it removes it, if it is one that could write.
            const auto last = open(path_, SQLITE_OPEN_READWRITE);
            sqlite3_exec(last.get(), "SELECT 1 FROM sqlite_master", nullptr, nullptr, nullptr);
        }
    }

    [[nodiscard]] std::string log_path() const { return path_ + "-wal"; }
    [[nodiscard]] bool has_log() const { return access(log_path().c_str(), F_OK) == 0; }

    void look_through(handle opened) {
        vouch::sqlite::detail::expect_utf8(opened.get());
        version_ = vouch::sqlite::stored_schema_version(opened.get(), prefix_);
        looking_ = std::move(opened);
    }

    void expect_our_schema() const {
        if (const auto wrong = difference(); !wrong.empty()) {
            throw vouch::error(vouch::error_kind::unsupported, wrong);
        }
    }

    std::string path_;
    std::string prefix_;
    bool had_log_ = has_log();
    std::optional<std::int64_t> version_{};
    handle looking_{};
    std::optional<view> view_{};
    handle writing_{};
    std::optional<vouch::sqlite::store> store_{}; // destroyed before its connection is closed
};

} // namespace tool
