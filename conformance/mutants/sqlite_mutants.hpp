// SPDX-License-Identifier: MIT
// The SQLite store with one of its statements rewritten on the way to SQLite. The store itself is the shipped one.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include <vouch/conformance/place.hpp>

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

} // namespace mutants

#define sqlite3_prepare_v3 ::mutants::mutated_prepare
#include <vouch/sqlite.hpp>
#undef sqlite3_prepare_v3

namespace mutants {

struct sqlite_fixture {
    [[nodiscard]] vouch::sqlite::store open(const vouch::conformance::place& p) {
        return vouch::sqlite::store((p.directory() / "store.db").string(),
                                    {.synchronous = vouch::sqlite::synchronous::normal});
    }
};

} // namespace mutants
