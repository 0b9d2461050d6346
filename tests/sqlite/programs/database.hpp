// SPDX-License-Identifier: MIT
// A plain SQLite connection for what the tests do beside the store, so that the store is not used to check the store.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sqlite3.h>

namespace sqlite_test {

/// The current row of a query. Valid until the next step.
class row {
  public:
    explicit row(sqlite3_stmt* of) noexcept : of_(of) {}

    [[nodiscard]] std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(of_, column); }
    [[nodiscard]] std::string bytes(int column) const {
        const auto* const data = static_cast<const char*>(sqlite3_column_blob(of_, column));
        return data == nullptr ? std::string{}
                               : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(of_, column)));
    }

  private:
    sqlite3_stmt* of_;
};

class database {
  public:
    explicit database(const std::string& path, const char* vfs = nullptr) {
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
        db_.reset(opened);
        check(rc, "open");
        sqlite3_busy_timeout(opened, 20'000);
    }

    [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }

    void execute(const std::string& sql) const {
        check(sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr), sql);
    }

    template <class Use>
    void each(const std::string& sql, Use&& use) const {
        sqlite3_stmt* prepared = nullptr;
        check(sqlite3_prepare_v2(handle(), sql.c_str(), -1, &prepared, nullptr), sql);
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(prepared, sqlite3_finalize);
        int rc = sqlite3_step(prepared);
        for (; rc == SQLITE_ROW; rc = sqlite3_step(prepared)) {
            use(row(prepared));
        }
        check(rc == SQLITE_DONE ? SQLITE_OK : rc, sql);
    }

    /// The first column of the only row.
    [[nodiscard]] std::int64_t integer(const std::string& sql) const {
        std::int64_t out = 0;
        each(sql, [&](const row& r) { out = r.integer(0); });
        return out;
    }
    [[nodiscard]] std::string text(const std::string& sql) const {
        std::string out;
        each(sql, [&](const row& r) { out = r.bytes(0); });
        return out;
    }

  private:
    void check(int rc, std::string_view doing) const {
        if (rc != SQLITE_OK) {
            throw std::runtime_error(std::string(doing) + ": " + sqlite3_errmsg(handle()));
        }
    }

    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };
    std::unique_ptr<sqlite3, closer> db_{};
};

} // namespace sqlite_test
