// SPDX-License-Identifier: MIT
// Places the kill points inside SQLite, without help from the store: every connection of the process traces its
// statements and row changes, and a VFS dies before, during and after the writes of a COMMIT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <sqlite3.h>

#include "sqlite/programs/kill_points.hpp"

namespace kill_test {

inline constexpr const char* vfs_name = "killing";

/// What the process is doing, where the SQL text alone does not tell.
inline bool is_settling = false;
inline bool is_migrating = false;

namespace detail {

inline bool is_committing = false;

inline int on_trace(unsigned what, void*, void* statement, void*) {
    const char* const text = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    const std::string_view sql = text == nullptr ? "" : text;
    if (what == SQLITE_TRACE_PROFILE) {
        is_committing = is_committing && sql != "COMMIT";
        return 0;
    }
    if (sql.starts_with("INSERT INTO vouch_entries")) {
        reach(point::in_enqueue);
    } else if (sql.starts_with("DELETE FROM vouch_entries")) {
        reach(point::in_purge);
    } else if (sql == "COMMIT") {
        if (is_settling) {
            reach(point::before_settle_commit);
        }
        is_committing = true;
    }
    if (is_migrating) {
        reach(point::in_migration);
    }
    return 0;
}

/// Called in the middle of a statement, when only some of the indexes contain the row.
inline void on_change(void*, int what, const char*, const char* table, sqlite3_int64) {
    if (table == std::string_view("vouch_entries") && what != SQLITE_UPDATE) {
        reach(what == SQLITE_INSERT ? point::in_enqueue : point::in_purge);
    }
}

inline int on_open(sqlite3* db, const char**, const struct sqlite3_api_routines*) {
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, on_trace, nullptr);
    sqlite3_update_hook(db, on_change, nullptr);
    return SQLITE_OK;
}

// The VFS is the system's, except for the methods that write. It never syncs: this test kills processes, not the
// machine, and what a process has written survives its death.

inline sqlite3_vfs* system_vfs = nullptr;
inline sqlite3_vfs killing_vfs{};
inline sqlite3_io_methods system_methods{}; // the write methods are the same for all files
inline sqlite3_io_methods methods_of_database{};
inline sqlite3_io_methods methods_of_log{};

/// Each write passes the point three times: before it, with half of it written, and after it.
inline int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
    const auto where = is_migrating ? point::in_migration : point::in_commit;
    const bool counts = is_migrating || is_committing;
    if (counts) {
        reach(where);
        if (is_due(where)) {
            system_methods.xWrite(file, data, size / 2, at);
            die();
        }
    }
    const int rc = system_methods.xWrite(file, data, size, at);
    if (counts) {
        reach(where);
    }
    return rc;
}

inline int sync(sqlite3_file*, int) {
    if (is_committing) {
        reach(point::in_commit);
    }
    return SQLITE_OK;
}

inline int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flags_out) {
    const int rc = system_vfs->xOpen(system_vfs, name, file, flags, flags_out);
    const bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (rc == SQLITE_OK && (is_log || (flags & SQLITE_OPEN_MAIN_DB) != 0)) {
        auto& methods = is_log ? methods_of_log : methods_of_database;
        system_methods = methods = *file->pMethods;
        methods.xWrite = write;
        methods.xSync = sync;
        file->pMethods = &methods;
    }
    return rc;
}

} // namespace detail

/// Installs the hooks for all connections that this process opens from now on.
inline void install_hooks() {
    using entry_point = void (*)();
    detail::system_vfs = sqlite3_vfs_find(nullptr);
    detail::killing_vfs = *detail::system_vfs;
    detail::killing_vfs.zName = vfs_name;
    detail::killing_vfs.xOpen = detail::open;
    if (sqlite3_vfs_register(&detail::killing_vfs, 0) != SQLITE_OK ||
        sqlite3_auto_extension(reinterpret_cast<entry_point>(detail::on_open)) != SQLITE_OK) {
        throw std::runtime_error("SQLite refuses to register the hooks");
    }
}

} // namespace kill_test
