// SPDX-License-Identifier: MIT
// The suite for the reference store with row locks, on which several transactions are open at the same time.
#include <vouch/conformance.hpp>

#include "../row_locks/fixture.hpp"

int main(int argc, char** argv) {
    return vouch::conformance::run<row_locks::fixture>({"row_locks", "0.1.0"}, argc, argv);
}
