// SPDX-License-Identifier: MIT
// The suite for the store of examples/log_store/log_store.hpp.
#include <vouch/conformance.hpp>

#include "../../examples/log_store/log_store.hpp"

namespace {

struct fixture {
    log_store::store open(const vouch::conformance::location& p) {
        // Without sync: it protects against power loss, which the suite does not test, and is very slow on some disks.
        return log_store::store(p.directory() / "work.log", false);
    }
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"log", "0.1.0"}, argc, argv); }
