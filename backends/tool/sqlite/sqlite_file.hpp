// SPDX-License-Identifier: MIT
// A SQLite file. The tool never creates or migrates it and never changes its journal mode. It is opened read-only until
// a verb writes. A file with an older schema can be read (older_schema.hpp); one with a newer schema is refused.
#pragma once

#include <cstddef>
#include <cstdint>
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

#include "../any_store.hpp"
#include "../arguments.hpp"
#include "../database.hpp"
#include "../output.hpp"
#include "backup.hpp"
#include "entry_view.hpp"

namespace tool {

class sqlite_file final : public database {
  public:
    /// Throws `vouch::error` if the file does not exist or is not a SQLite database.
    explicit sqlite_file(const arguments& with) : path_(with.location), prefix_(with.prefix) {
        try {
            use(open(path_, SQLITE_OPEN_READONLY));
        } catch (const vouch::error& e) {
            const auto code = e.code() & 0xff;
            if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) || access(path_.c_str(), R_OK) != 0) {
                throw;
            }
            // In WAL mode SQLite writes beside the file even to read it. If that is not allowed, and there is no log,
            // the file can be read as immutable.
            std::error_code none;
            if (std::filesystem::file_size(log_path(), none) > 0 && !none) {
                throw vouch::error(e.kind(), path_ + " has its newest changes in " + log_path() +
                                                 ", which cannot be read without writing beside it: copy both to a "
                                                 "folder that you may write, or run as a user who may write this one");
            }
            use(open(uri_of(path_) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
        }
    }

    sqlite_file(const sqlite_file&) = delete;
    sqlite_file& operator=(const sqlite_file&) = delete;
    ~sqlite_file() override {
        try {
            close();
        } catch (const vouch::error&) { // NOLINT(bugprone-empty-catch): nothing more can be done
        }
    }

    [[nodiscard]] std::int64_t our_version() const override { return vouch::sqlite::schema_version; }
    [[nodiscard]] std::optional<std::int64_t> version() const override { return version_; }
    [[nodiscard]] std::optional<int> run_on_older_schema(const arguments& with) override;
    [[nodiscard]] bool is_older() const noexcept { return version_ && *version_ < vouch::sqlite::schema_version; }

    /// How the schema differs from the one that this program needs; empty if it does not.
    [[nodiscard]] std::string difference() const override {
        const auto ours = std::to_string(vouch::sqlite::schema_version);
        if (!version_) {
            return path_ + " has no tables with the prefix " + prefix_ +
                   "; name another with --prefix, or let the application create them by opening a store";
        }
        const auto stored = path_ + " has schema version " + std::to_string(*version_);
        if (is_older()) {
            return stored + ", older than " + ours +
                   ", which this program needs; it can be read with `stats`, `list`, `show` and `schema`, but not "
                   "changed. "
                   "To migrate it, build the application with this version of vouch; opening a store or calling "
                   "vouch::sqlite::migrate does the rest";
        }
        if (*version_ > vouch::sqlite::schema_version) {
            return stored + ", newer than " + ours +
                   ", the newest that this program supports; nothing was read or changed. Use the `vouch` tool of the "
                   "application's version";
        }
        return {};
    }

    /// A connection that cannot write.
    [[nodiscard]] sqlite3* read_connection() const noexcept { return reading_.get(); }

    [[nodiscard]] std::vector<std::string> queues() const override {
        return vouch::sqlite::queue_names(reading_.get(), prefix_);
    }
    [[nodiscard]] std::map<std::string, vouch::state_counts> counts() const {
        return vouch::sqlite::counts_of_any_schema(reading_.get(), prefix_);
    }

    [[nodiscard]] const stored_entries& stored() override {
        if (!entries_) {
            expect_same_schema();
            view_.emplace(reading_.get(), prefix_);
            entries_.emplace(*view_);
        }
        return *entries_;
    }

    /// The contract has no query by lane, and reading all live entries would take seconds for a million.
    [[nodiscard]] std::optional<vouch::entry> head_of_lane(const vouch::entry& e) override {
        if (e.lane.empty()) {
            return std::nullopt;
        }
        const auto head = vouch::sqlite::head_of_lane(reading_.get(), {e.queue, e.lane}, prefix_);
        return head && *head != e.id ? stored().find(*head) : std::nullopt;
    }

    [[nodiscard]] std::vector<vouch::id> ids_between(const vouch::id& first, const vouch::id& last,
                                                     std::size_t limit) override {
        if (!version_) {
            expect_same_schema();
        }
        return vouch::sqlite::ids_between(reading_.get(), {first, last, limit}, prefix_);
    }

    [[nodiscard]] std::vector<vouch::attempt_line> history_of(const vouch::id& which) override {
        return vouch::sqlite::history_of(reading_.get(), which, prefix_);
    }

    void back_up(const std::string& to) override { back_up_file(reading_.get(), to); }

    /// The store, for a verb that writes; use nothing else after it. Throws `unsupported` if the schema differs.
    [[nodiscard]] any_store& store() override {
        if (!store_) {
            expect_same_schema();
            entries_.reset();
            view_.reset();
            reading_.reset(); // if it were closed last, the write-ahead log would remain
            writing_ = open(path_, SQLITE_OPEN_READWRITE);
            tables_.emplace(writing_.get(), vouch::sqlite::options{.prefix = prefix_, .create = false});
            store_.emplace(*tables_);
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

    /// The path as a `file:` URI.
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
        entries_.reset();
        view_.reset();
        reading_.reset();
        store_.reset();
        tables_.reset();
        if (writing_) {
            // Move the changes from the write-ahead log into the file, as far as concurrent readers allow, so that a
            // copy of the file has them.
            sqlite3_busy_timeout(writing_.get(), 1000);
            sqlite3_wal_checkpoint_v2(writing_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
            writing_.reset();
        } else if (!had_log_ && has_log()) {
            // Reading has created a log. The last connection to close removes it, if it can write.
            const auto last = open(path_, SQLITE_OPEN_READWRITE);
            sqlite3_exec(last.get(), "SELECT 1 FROM sqlite_master", nullptr, nullptr, nullptr);
        }
    }

    [[nodiscard]] std::string log_path() const { return path_ + "-wal"; }
    [[nodiscard]] bool has_log() const { return access(log_path().c_str(), F_OK) == 0; }

    void use(handle opened) {
        vouch::sqlite::detail::expect_utf8(opened.get());
        version_ = vouch::sqlite::stored_schema_version(opened.get(), prefix_);
        reading_ = std::move(opened);
    }

    void expect_same_schema() const {
        if (const auto wrong = difference(); !wrong.empty()) {
            throw vouch::error(vouch::error_kind::unsupported, wrong);
        }
    }

    std::string path_;
    std::string prefix_;
    bool had_log_ = has_log();
    std::optional<std::int64_t> version_{};
    handle reading_{};
    std::optional<entry_view> view_{};
    std::optional<reads_from<entry_view>> entries_{};
    handle writing_{};
    std::optional<vouch::sqlite::store> tables_{}; // destroyed before its connection is closed
    std::optional<works_on<vouch::sqlite::store>> store_{};
};

} // namespace tool
