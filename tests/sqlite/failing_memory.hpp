// SPDX-License-Identifier: MIT
// Allocations that fail: of C++ and of SQLite, counted together. sqlite_faults.cpp includes `failing_new.hpp`.
#pragma once

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "ending.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_faults_test {

/// Counts the allocations of this thread, those of C++ and, where `own_memory` lives, those of SQLite.
inline thread_local sqlite_test::fault shortage;

using namespace support;
using sqlite_test::application;
using sqlite_test::fault;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::query;
namespace sqlite = vouch::sqlite;

/// From one call to fail to the next. Every one is tried where that takes no longer than people wait.
inline constexpr long stride(long quick) {
#ifdef __OPTIMIZE__
    return quick;
#else
    return 3 * quick;
#endif
}

/// SQLite's memory, from the same counter as C++'s.
class own_memory {
  public:
    own_memory() {
        sqlite3_shutdown(); // nothing is open between two tests
        sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual());
        auto methods = usual();
        methods.xMalloc = [](int size) { return shortage.strikes() ? nullptr : usual().xMalloc(size); };
        methods.xRealloc = [](void* p, int size) { return shortage.strikes() ? nullptr : usual().xRealloc(p, size); };
        sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
        sqlite3_initialize();
    }
    own_memory(const own_memory&) = delete;
    own_memory& operator=(const own_memory&) = delete;
    ~own_memory() {
        sqlite3_shutdown();
        sqlite3_config(SQLITE_CONFIG_MALLOC, &usual());
        sqlite3_initialize();
    }

  private:
    static sqlite3_mem_methods& usual() {
        static sqlite3_mem_methods kept{};
        return kept;
    }
};

} // namespace sqlite_faults_test
