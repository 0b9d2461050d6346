// SPDX-License-Identifier: MIT
// The store of examples/log_store/log_store.hpp under the suite.
#include <vouch/conformance.hpp>

#include "../../examples/log_store/log_store.hpp"

namespace {

struct fixture {
    log_store::store open(const vouch::conformance::place& p) { return log_store::store(p.directory() / "work.log"); }
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"log", "0.1.0"}, argc, argv); }
