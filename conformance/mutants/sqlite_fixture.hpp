// SPDX-License-Identifier: MIT
// Opens the SQLite store with one of its statements rewritten on the way to SQLite. The store is the shipped one; only
// the two SQLite functions it calls are replaced.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

#include <vouch/conformance/location.hpp>

#include "sqlite_rewrites.hpp"

namespace mutants {

inline const rewrite* active_rewrite = nullptr; // set once, before any store is opened

inline int mutated_prepare(sqlite3* db, const char* text, int bytes, unsigned flags, sqlite3_stmt** out,
                           const char** tail) {
    const std::string_view given(text, static_cast<std::size_t>(bytes));
    const auto sql = active_rewrite == nullptr ? std::nullopt : rewritten(given, *active_rewrite);
    if (!sql) {
        return sqlite3_prepare_v3(db, text, bytes, flags, out, tail);
    }
    const int rc = sqlite3_prepare_v3(db, sql->c_str(), static_cast<int>(sql->size()), flags, out, nullptr);
    if (rc == SQLITE_ERROR) { // a statement that does not run proves nothing
        std::fprintf(stderr, "the rewritten statement does not compile: %s\n%s\n", sqlite3_errmsg(db), sql->c_str());
        std::_Exit(5);
    }
    return rc;
}

/// The store uses the file's name to find the other handles of its process. If handles are `separate`, each gets
/// another name for the same file.
inline const char* separate_filename(sqlite3* db, const char* schema) {
    const char* const name = sqlite3_db_filename(db, schema);
    if (active_rewrite == nullptr || !active_rewrite->separate || name == nullptr) {
        return name;
    }
    static std::mutex mutex;
    static std::map<std::string, std::size_t> aliases;
    static std::deque<std::string> names; // SQLite's names live as long as the connection; these live longer
    const std::lock_guard lock(mutex);
    std::string alias(name);
    const auto slash = alias.rfind('/');
    for (auto n = ++aliases[alias]; n > 0; --n) {
        alias.insert(slash, "/.");
    }
    return names.emplace_back(std::move(alias)).c_str();
}

} // namespace mutants

#define sqlite3_prepare_v3 ::mutants::mutated_prepare
#define sqlite3_db_filename ::mutants::separate_filename
#include <vouch/sqlite.hpp>
#undef sqlite3_prepare_v3
#undef sqlite3_db_filename

namespace mutants {

struct sqlite_fixture {
    [[nodiscard]] vouch::sqlite::store open(const vouch::conformance::location& p) {
        return vouch::sqlite::store((p.directory() / "store.db").string(),
                                    {.synchronous = vouch::sqlite::synchronous::normal});
    }
};

} // namespace mutants
