// SPDX-License-Identifier: MIT
// The stores under which the page is tested, and what their contract does not tell.
#pragma once

#include <string>
#include <utility>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

#ifdef VOUCH_PAGE_POSTGRES // the same tests again, in a program that runs with a server
#include <vouch/postgres.hpp>

#include "postgres/server.hpp"
#elif defined(VOUCH_HAS_SQLITE)
#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "sqlite/folder.hpp"
#endif

namespace page_test {

struct in_memory {
    using store_type = vouch::memory::store;
    store_type store{};
    [[nodiscard]] vouch::page::options options(vouch::page::options how) const { return how; }
};

#ifdef VOUCH_PAGE_POSTGRES
struct in_postgres {
    using store_type = vouch::postgres::store;
    std::string prefix = postgres_test::fresh_prefix();
    store_type store{postgres_test::conninfo(), {.prefix = prefix}};
    postgres_test::application app{};

    [[nodiscard]] vouch::page::options options(vouch::page::options how) {
        how.queues = [this] { return vouch::postgres::queue_names(app.connection(), prefix); };
        return how;
    }
};
#define VOUCH_PAGE_STORES page_test::in_postgres
#elif defined(VOUCH_HAS_SQLITE)
struct in_sqlite {
    using store_type = vouch::sqlite::store;
    sqlite_test::folder in{};
    std::string path = in.fresh_path();
    store_type store{path};

    [[nodiscard]] vouch::page::options options(vouch::page::options how) const {
        how.queues = [this] {
            sqlite3* db = nullptr;
            sqlite3_open(path.c_str(), &db);
            auto names = vouch::sqlite::queue_names(db);
            sqlite3_close(db);
            return names;
        };
        return how;
    }
};
#define VOUCH_PAGE_STORES page_test::in_memory, page_test::in_sqlite
#else
#define VOUCH_PAGE_STORES page_test::in_memory
#endif

} // namespace page_test
