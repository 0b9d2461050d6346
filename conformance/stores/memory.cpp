// SPDX-License-Identifier: MIT
// The memory store under the suite. Its places are names: what is stored at one is kept as long as the program runs.
#include <map>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace {

struct fixture {
    vouch::memory::store open(const vouch::conformance::place& p) { return stores[p]; }
    void forget(const vouch::conformance::place& p) { stores.erase(p); }

    std::map<vouch::conformance::place, vouch::memory::store> stores{};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"memory", "0.1.0"}, argc, argv); }
