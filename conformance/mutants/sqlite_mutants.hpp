// SPDX-License-Identifier: MIT
// The SQLite store with one of its statements rewritten on the way to SQLite. The store itself is the shipped one.
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

#include "rewrite.hpp"

namespace mutants {

inline const rewrite* rewrite_in_force = nullptr; // set once, before any store is opened

inline int mutated_prepare(sqlite3* db, const char* text, int bytes, unsigned flags, sqlite3_stmt** out,
                           const char** tail) {
    const std::string_view given(text, static_cast<std::size_t>(bytes));
    const auto sql = rewrite_in_force == nullptr ? std::nullopt : rewritten(given, *rewrite_in_force);
    if (!sql) {
        return sqlite3_prepare_v3(db, text, bytes, flags, out, tail);
    }
    const int rc = sqlite3_prepare_v3(db, sql->c_str(), static_cast<int>(sql->size()), flags, out, nullptr);
    if (rc == SQLITE_ERROR) { // a mutant that cannot run proves nothing
        std::fprintf(stderr, "the rewritten statement is wrong: %s\n%s\n", sqlite3_errmsg(db), sql->c_str());
        std::_Exit(5);
    }
    return rc;
}

/// The store asks for the file's name to find those of its process who have it open, too. Apart, each is told another
/// way to the same file.
inline const char* separate_filename(sqlite3* db, const char* schema) {
    const char* const name = sqlite3_db_filename(db, schema);
    if (rewrite_in_force == nullptr || !rewrite_in_force->apart || name == nullptr) {
        return name;
    }
    static std::mutex mutex;
    static std::map<std::string, std::size_t> ways;
    static std::deque<std::string> names; // kept, as SQLite keeps its own
    const std::lock_guard lock(mutex);
    std::string way(name);
    const auto slash = way.rfind('/');
    for (auto n = ++ways[way]; n > 0; --n) {
        way.insert(slash, "/.");
    }
    return names.emplace_back(std::move(way)).c_str();
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
