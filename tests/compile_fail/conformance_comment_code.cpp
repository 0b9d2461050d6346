// SPDX-License-Identifier: MIT
// expect-ok
// flags: -DVOUCH_CLAUSES_ELSEWHERE
// The code in the comments of the suite's headers and in its README.
#include <cstdio>
#include <memory>

#include <vouch/conformance/faulty.hpp>
#include <vouch/conformance/recording.hpp>

#include "acme.hpp"

// clang-format off
#include <vouch/conformance.hpp>

struct fixture {
    auto open(const vouch::conformance::location& at) { return acme::store{at.directory() / "acme.db"}; }
};
int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"acme", "1.4.0"}, argc, argv); }
// clang-format on

namespace comment_code_test {

using namespace vouch;
using namespace vouch::conformance;

void fail() {
    auto plan = std::make_shared<fault_plan>();
    faulty<memory::store> store(memory::store{}, plan);
    plan->arm({.call = 3});
}

void record() {
    auto calls = std::make_shared<call_log>();
    recording<memory::store> store(memory::store{}, calls);
    // clang-format off
    for (const auto& call : calls->all()) { std::puts(to_string(call).c_str()); }
    // clang-format on
}

} // namespace comment_code_test
