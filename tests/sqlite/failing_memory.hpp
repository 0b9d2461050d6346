// SPDX-License-Identifier: MIT
// Allocations that fail: of C++ and of SQLite, counted together. sqlite_faults.cpp replaces the global operator new.
#pragma once

#include <cstdint>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
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

/// A step and its result.
enum class ending : std::uint8_t { done, undone, in_doubt, other_exception };

template <class F>
ending end_of(F&& f) {
    try {
        f();
        return ending::done;
    } catch (const vouch::error& e) {
        return e.is_in_doubt() ? ending::in_doubt : ending::undone;
    } catch (...) {
        return ending::other_exception;
    }
}

} // namespace sqlite_faults_test
