// SPDX-License-Identifier: MIT
// The optional functions of a fixture, found by their names. A report lists those that are missing and what they cost.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/conformance/location.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

struct fixture_hooks {
    /// Leaves the location as the sudden death of its process would. It is called while handles on the location, and
    /// usually a transaction, are still open: cut them off, so that they can change nothing that is stored. The suite
    /// destroys them next, ignores their errors, and then opens the location again. Without the hook, the files are
    /// copied while the handles are open, and restored when the handles are destroyed.
    std::function<void(const location&)> crash{};
    /// Makes the store call back between its internal steps, on the thread that is in the store. Null: stop calling.
    std::function<void(std::function<void(std::string_view)>)> seam{};
    /// Says that this location will not be opened again.
    std::function<void(const location&)> forget{};
    /// Makes the n-th of the store's internal steps fail, counted from now; 0: none. Returns whether one has failed
    /// since the last call.
    std::function<bool(std::size_t)> fail_at{};
};

template <class Fixture>
[[nodiscard]] fixture_hooks hooks_of(Fixture& fixture, report& r) {
    fixture_hooks out;
    const auto note = [&](bool there, const char* name, const char* without) {
        if (there) {
            r.hooks.emplace_back(name);
        } else {
            r.missing.push_back(std::string(name) + ": " + without);
        }
    };
    constexpr bool can_crash = requires(const location& p) { fixture.crash(p); };
    constexpr bool has_seam = requires(std::function<void(std::string_view)> f) { fixture.seam(f); };
    constexpr bool can_fail = requires(std::size_t n) {
        { fixture.fail_at(n) } -> std::convertible_to<bool>;
    };
    note(can_crash, "crash", "a crash restores the files as they were before the handles were destroyed");
    note(has_seam, "seam", "threads are scheduled between operations only, not inside them");
    note(can_fail, "fail_at", "faults are injected before and after calls, not inside them");
    if constexpr (can_crash) {
        out.crash = [&fixture](const location& p) { fixture.crash(p); };
    }
    if constexpr (requires(const location& p) { fixture.forget(p); }) {
        out.forget = [&fixture](const location& p) { fixture.forget(p); }; // only saves memory, so it is not reported
    }
    if constexpr (has_seam) {
        out.seam = [&fixture](std::function<void(std::string_view)> f) { fixture.seam(std::move(f)); };
    }
    if constexpr (can_fail) {
        out.fail_at = [&fixture](std::size_t n) { return fixture.fail_at(n); };
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
