// SPDX-License-Identifier: MIT
// The SQLite store under the suite.
#include <vouch/conformance.hpp>
#include <vouch/sqlite.hpp>

namespace {

struct fixture {
    vouch::sqlite::store open(const vouch::conformance::place& p) {
        // What NORMAL gives up is lost with the power, not with the process; cutting the power is another test's job.
        return vouch::sqlite::store((p.directory() / "store.db").string(),
                                    {.synchronous = vouch::sqlite::synchronous::normal});
    }
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"sqlite", "0.1.0"}, argc, argv); }
