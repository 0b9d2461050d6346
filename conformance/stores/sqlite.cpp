// SPDX-License-Identifier: MIT
// The SQLite store under the suite, on a file system that lets the n-th of its calls fail when the suite asks for it.
#include <cstddef>
#include <utility>

#include <vouch/conformance.hpp>
#include <vouch/sqlite.hpp>

#include "../../tests/sqlite/faulty_vfs.hpp"

namespace {

struct fixture {
    vouch::sqlite::store open(const vouch::conformance::location& p) {
        // What NORMAL gives up is lost with the power, not with the process; cutting the power is another test's job.
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
