// SPDX-License-Identifier: MIT
// What a runner says became of a claim. A settle pairs an outcome with the ticket that entitles to it.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Done for good.
struct succeed {
    std::string result{};
    [[nodiscard]] friend bool operator==(const succeed&, const succeed&) = default;
};

/// Failed; try again at `at`.
struct retry {
    std::string error{};
    time_point at{};
    [[nodiscard]] friend bool operator==(const retry&, const retry&) = default;
};

/// Failed for good. The result may carry a participant's failure reply.
struct bury {
    std::string error{};
    std::optional<std::string> result{};
    [[nodiscard]] friend bool operator==(const bury&, const bury&) = default;
};

/// Handed back untouched: costs no attempt, and says nothing about earlier lapses. With `at` it is snoozed until then,
/// else its due time stays.
struct release {
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const release&, const release&) = default;
};

/// A checkpoint: progress replaced, attempts back to 0, due at `at` (unset: now). Only when progress moved; "nothing to
/// do yet" is a release with `at`.
struct advance {
    std::string progress{};
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const advance&, const advance&) = default;
};

using outcome = std::variant<succeed, retry, bury, release, advance>;

/// `std::visit` for an outcome, at a fraction of what that costs the compiler.
template <class F>
decltype(auto) visit_outcome(const F& f, const outcome& o) {
    switch (o.index()) {
    case 0: return f(*std::get_if<0>(&o));
    case 1: return f(*std::get_if<1>(&o));
    case 2: return f(*std::get_if<2>(&o));
    case 3: return f(*std::get_if<3>(&o));
    default: return f(*std::get_if<4>(&o));
    }
}

struct settle {
    vouch::ticket ticket{};
    vouch::outcome outcome{};
    [[nodiscard]] friend bool operator==(const settle&, const settle&) = default;
};

} // namespace v0
} // namespace vouch
