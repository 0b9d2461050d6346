// SPDX-License-Identifier: MIT
// The store of examples/log_store/log_store.hpp under the suite.
#include <vouch/conformance.hpp>

#include "../../examples/log_store/log_store.hpp"

namespace {

struct fixture {
    log_store::store open(const vouch::conformance::location& p) {
        // What a sync is for is lost with the power, not with the process; and disks differ by a factor of a thousand.
        return log_store::store(p.directory() / "work.log", false);
    }
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"log", "0.1.0"}, argc, argv); }
