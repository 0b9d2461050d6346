// SPDX-License-Identifier: MIT
// Errors of the SQLite store as tests expect them, and stores whose files can be made to fail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::query;
namespace sqlite = vouch::sqlite;

/// In everything that is stored here, and in no message.
inline const std::string secret = "hunter2";

inline vouch::draft secret_draft(std::uint64_t n) {
    auto d = draft_of(n);
    d.topic = d.key = d.group = d.lane = d.payload = d.progress = secret;
    d.key += std::to_string(n);
    d.lane += std::to_string(n);
    d.headers = {{secret, secret}};
    return d;
}

template <class Writer>
void put_secret(Writer& tx, std::uint64_t n) {
    tx.enqueue(std::array{secret_draft(n)}, t0);
}

/// What was thrown. It does not tell the secret.
template <class F>
std::optional<vouch::error> thrown_by(F&& f) {
    auto e = support::error_of(f);
    if (e) {
        CHECK(std::string_view(e->what()).find(secret) == std::string_view::npos);
    }
    return e;
}

struct expectation {
    error_kind kind{};
    int code = 0; ///< the first byte of it; 0: there is none
    bool in_doubt = false;
};

template <class F>
void expect(const expectation& expected, F&& f) {
    const auto e = thrown_by(f);
    REQUIRE(e);
    const std::string message = e->what();
    CAPTURE(message);
    CHECK(e->kind() == expected.kind);
    CHECK((e->code() & 0xff) == expected.code);
    CHECK(e->is_in_doubt() == expected.in_doubt);
    CHECK(message.rfind("sqlite: ", 0) == 0);
    const bool has_code = message.find(" (" + std::to_string(e->code()) + ")") != std::string::npos;
    CHECK(has_code == (expected.code != 0));
}

/// What `f` does in a transaction fails and closes it; nothing of it is there afterwards.
template <class F>
void expect_in_transaction(const expectation& expected, sqlite::store& store, F&& f) {
    auto tx = store.begin();
    expect(expected, [&] { f(tx); });
    CHECK(kind_of([&] { std::ignore = tx.next_due("q"); }) == error_kind::misuse);
    CHECK(kind_of([&] { put_secret(tx, 99); }) == error_kind::misuse);
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
}

/// The store takes and shows an entry.
inline bool is_working(sqlite::store& store, std::uint64_t n) {
    const auto receipt = vouch::enqueue(store, std::array{secret_draft(n)}, t0).front();
    return receipt.what == vouch::receipt::kind::inserted && store.find(id_of(n));
}

/// A store on a file that can fail.
struct on_disk {
    folder files{};
    std::string path = files.fresh_path();
    faulty_vfs vfs{"faulty"};
    sqlite::store store{path, {.busy_limit = 30ms, .vfs = vfs.name()}};

    /// The next such call fails, once.
    void fail(faulty_vfs::call which, int code) {
        vfs.matters = [=](faulty_vfs::call c, std::string_view) { return c == which; };
        vfs.code = [=](faulty_vfs::call) { return code; };
        vfs.next = {.nth = 1};
    }
};

/// A store on a connection of the application's.
struct on_connection {
    folder files{};
    std::string path = files.fresh_path();
    application app{path};
    sqlite::store store{make(app), {.busy_limit = 30ms}};

    static sqlite3* make(application& app) {
        app.execute("PRAGMA journal_mode = WAL");
        return app.connection();
    }
};

inline void overwrite(const std::string& path, std::streamoff at, std::size_t size) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << std::string(size, '\xaa');
    REQUIRE(file.good());
}

} // namespace sqlite_errors_test
