// SPDX-License-Identifier: MIT
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_CONFORMANCE_GTEST
#define VOUCH_SINGLE_HEADER_CONFORMANCE_GTEST

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/conformance.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

// ---- vouch/conformance_gtest.hpp
// The suite as GoogleTest tests, one per clause:
//
//   static const vouch::conformance::gtest_cases<fixture> cases({"acme", "1.4.0"});
//
// The test of the clause CLAIM-03 is `conformance_examples.CLAIM_03`: the layer is the test suite, and a filter reads a
// dash as "without". Each test runs its clause on a new fixture. A clause that the store does not support is skipped.

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Registers one test per clause. Define one object of this type at namespace scope.
template <class Fixture>
class gtest_cases {
  public:
    explicit gtest_cases(const identity& whose, const options& how = {.profile = profile::quick}) {
        for (const auto& c : all_clauses()) {
            const auto suite = "conformance_" + std::string(name_of(c.layer));
            std::string name(c.id);
            std::replace(name.begin(), name.end(), '-', '_');
            auto only = how;
            only.clause = c.id;
            testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                                  [whose, only]() -> testing::Test* { return new test(whose, only); });
        }
    }

  private:
    class test final : public testing::Test {
      public:
        test(identity whose, options how) : whose_(std::move(whose)), options_(std::move(how)) {}
        void TestBody() override {
            Fixture fixture{};
            const auto r = check(fixture, options_, whose_);
            for (const auto& one : r.clauses) {
                if (one.clause.id != options_.clause) {
                    continue;
                }
                if (is_failure(one.result)) {
                    FAIL() << failure_text(one, "this program");
                }
                if (one.result != result::pass) {
                    GTEST_SKIP() << name_of(one.result) << " " << one.why;
                }
            }
        }

      private:
        identity whose_;
        options options_;
    };
};

} // namespace conformance
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_CONFORMANCE_GTEST
