// SPDX-License-Identifier: MIT
// A third-party store, as comments and READMEs use it in their examples.
#pragma once

#include <filesystem>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace acme {

struct store : vouch::memory::store {
    explicit store(const std::filesystem::path& /*file*/) {}
};

} // namespace acme

// That the suite itself compiles is for other tests to show; here it would take half a minute.
struct fixture;
extern template int vouch::conformance::run<fixture>(const vouch::conformance::identity&, int, char**);
