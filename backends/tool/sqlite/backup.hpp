// SPDX-License-Identifier: MIT
// Copies a SQLite file with SQLite's backup API, while other processes write. The copy appears under its name only when it
// is complete, and never replaces a file.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"

namespace tool {

namespace detail {

struct closes_copy {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};

[[noreturn]] inline void throw_not_copied(const std::string& to, int rc) {
    throw vouch::error(rc == SQLITE_FULL ? vouch::error_kind::full : vouch::error_kind::io,
                       "cannot copy to " + to + ": " + sqlite3_errstr(rc), {.code = rc});
}

/// Copies all pages in one step: a copy in several steps begins again after every commit of another process, and would
/// never end beside busy workers. In WAL mode, nobody waits for it.
inline void copy_pages(sqlite3* from, const std::string& to) {
    sqlite3* opened = nullptr;
    const int rc = sqlite3_open_v2(to.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    const std::unique_ptr<sqlite3, closes_copy> copy(opened);
    if (rc != SQLITE_OK) {
        throw_not_copied(to, rc);
    }
    sqlite3_backup* const run = sqlite3_backup_init(opened, "main", from, "main");
    if (run == nullptr) {
        throw_not_copied(to, sqlite3_errcode(opened));
    }
    const int stepped = sqlite3_backup_step(run, -1);
    const int finished = sqlite3_backup_finish(run);
    if (stepped != SQLITE_DONE || finished != SQLITE_OK) {
        throw_not_copied(to, stepped == SQLITE_DONE ? finished : stepped);
    }
    // The copy is one file: nothing of it may stay in a log beside it.
    sqlite3_exec(opened, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
}

/// Removes a file when it goes out of scope.
struct temporary_file {
    explicit temporary_file(std::string at) : path(std::move(at)) {}
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() {
        for (const auto* const beside : {"", "-wal", "-shm", "-journal"}) {
            static_cast<void>(std::remove((path + beside).c_str()));
        }
    }
    std::string path;
};

} // namespace detail

inline void back_up_file(sqlite3* from, const std::string& to) {
    if (access(to.c_str(), F_OK) == 0) {
        throw failure(refused, to + " exists; backup never overwrites a file");
    }
    const detail::temporary_file part(to + ".part-" + std::to_string(getpid()));
    detail::copy_pages(from, part.path);
    // A hard link, because a rename would replace a file that has appeared meanwhile.
    if (link(part.path.c_str(), to.c_str()) != 0) {
        throw failure(refused, "cannot create " + to + ": it exists now, or the file system has no hard links");
    }
}

} // namespace tool
