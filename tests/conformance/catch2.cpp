// SPDX-License-Identifier: MIT
// The suite as Catch2 test cases for the memory store. With FORGETFUL set, its next_due always returns none.
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include <vouch/conformance_catch2.hpp>
#include <vouch/memory.hpp>

namespace {

struct maybe_forgetful_store : vouch::memory::store {
    using vouch::memory::store::store;

    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const {
        const auto due = vouch::memory::store::next_due(queue);
        return std::getenv("FORGETFUL") == nullptr ? due : std::nullopt;
    }
};

struct fixture {
    maybe_forgetful_store open(const vouch::conformance::location& p) { return stores[p]; }

    std::map<vouch::conformance::location, maybe_forgetful_store> stores{};
};

const vouch::conformance::catch2_cases<fixture> memory_cases({"memory", "0.1.0"});

/// The code in the header's comment. Never called, so that the cases are registered once.
template <class fixture>
[[maybe_unused]] void as_in_the_comment() {
    static const vouch::conformance::catch2_cases<fixture> cases({"acme", "1.4.0"});
}

} // namespace
