// SPDX-License-Identifier: MIT
// An application with a connection of its own, as far as the tests need one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <sqlite3.h>

namespace sqlite_test {

class application {
  public:
    explicit application(const std::string& path) {
        if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
            throw std::runtime_error("the application cannot open its file");
        }
    }
    application(const application&) = delete;
    application& operator=(const application&) = delete;
    ~application() { sqlite3_close_v2(db_); }

    [[nodiscard]] sqlite3* connection() const noexcept { return db_; }

    /// The result code.
    int try_execute(const std::string& sql) { return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr); }

    void execute(const std::string& sql) {
        if (try_execute(sql) != SQLITE_OK) {
            throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_));
        }
    }

    /// The first column of the first row; empty if there is none.
    [[nodiscard]] std::string text(const std::string& sql) const {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
            throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_));
        }
        std::string out;
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
            out = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
        }
        sqlite3_finalize(statement);
        return out;
    }
    [[nodiscard]] std::int64_t number(const std::string& sql) const { return std::stoll("0" + text(sql)); }

    /// Closes as a program does that minds its statements: not a success while any is left.
    [[nodiscard]] bool close() {
        const bool closed = sqlite3_close(db_) == SQLITE_OK;
        if (closed) {
            db_ = nullptr;
        }
        return closed;
    }

  private:
    sqlite3* db_ = nullptr;
};

} // namespace sqlite_test
