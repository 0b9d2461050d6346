// SPDX-License-Identifier: MIT
// The suite as Catch2 test cases, one per clause, with Catch2 2 or 3:
//
//   static const vouch::conformance::catch2_cases<fixture> cases({"acme", "1.4.0"});
//
// Each case runs its clause on a new fixture.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/check.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Registers one test case per clause. Define one object of this type at namespace scope.
template <class Fixture>
class catch2_cases {
  public:
    explicit catch2_cases(identity whose, options how = {.profile = profile::quick}) {
        settings() = {std::move(whose), std::move(how)};
        add_all(std::make_index_sequence<clauses_max>{});
    }

  private:
    static constexpr std::size_t clauses_max = 512;

    [[nodiscard]] static std::pair<identity, options>& settings() {
        static std::pair<identity, options> kept;
        return kept;
    }

    /// Catch2 2 registers function pointers, so each clause needs a function.
    template <std::size_t N>
    static void run_one() {
        auto [whose, how] = settings();
        const auto& c = all_clauses()[N];
        how.clause = c.id;
        Fixture fixture{};
        const auto r = check(fixture, how, whose);
        for (const auto& one : r.clauses) {
            if (one.clause.id == c.id && one.result == result::fail) {
                FAIL(failure_text(one, "this program"));
            }
        }
        SUCCEED(name_of(r.clauses[N].result));
    }

    template <std::size_t... N>
    static void add_all(std::index_sequence<N...>) {
        static constexpr std::array<void (*)(), sizeof...(N)> runs{&run_one<N>...};
        for (std::size_t i = 0; i < all_clauses().size() && i < runs.size(); ++i) {
            const auto& c = all_clauses()[i];
            REGISTER_TEST_CASE(runs[i], std::string(c.id) + ": " + std::string(c.sentence),
                               "[conformance][" + std::string(name_of(c.layer)) + "]");
        }
    }
};

} // namespace conformance
} // namespace v0
} // namespace vouch
