// SPDX-License-Identifier: MIT
// The suite for the SQLite store, on a VFS that fails the n-th of its calls when the suite asks for it.
#include <cstddef>
#include <utility>

#include <vouch/conformance.hpp>
#include <vouch/sqlite.hpp>

#include "../../tests/sqlite/faulty_vfs.hpp"

namespace {

struct fixture {
    vouch::sqlite::store open(const vouch::conformance::location& p) {
        // NORMAL does not protect against power loss, which another test covers.
        return vouch::sqlite::store((p.directory() / "store.db").string(),
                                    {.synchronous = vouch::sqlite::synchronous::normal, .vfs = files.name()});
    }
    bool fail_at(std::size_t n) {
        files.next.nth = static_cast<long>(n);
        files.next.length = 1;
        return std::exchange(files.next.has_fired, false);
    }

    sqlite_test::faulty_vfs files{"suite"};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"sqlite", "0.1.0"}, argc, argv); }
