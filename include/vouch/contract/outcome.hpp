// SPDX-License-Identifier: MIT
// How a claim ends: one of five outcomes. A settle pairs an outcome with the ticket of the claim.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// The work is done. The entry becomes `succeeded`.
struct succeed {
    std::string result{};
    [[nodiscard]] friend bool operator==(const succeed&, const succeed&) = default;
};

/// The attempt failed; the entry is due again at `at`.
struct retry {
    std::string error{};
    time_point at{};
    [[nodiscard]] friend bool operator==(const retry&, const retry&) = default;
};

/// The work failed for good. The entry becomes `dead`. A saga's participant can leave its reply in `result`.
struct bury {
    std::string error{};
    std::optional<std::string> result{};
    [[nodiscard]] friend bool operator==(const bury&, const bury&) = default;
};

/// The claim is given back. It costs no attempt, and leaves `lapses` as it is. With `at` the entry is due then;
/// without, its due time stays.
struct release {
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const release&, const release&) = default;
};

/// A checkpoint: one step is done and the next is due at `at` (unset: now). Replaces the progress and resets the
/// attempts to 0. Use it only when the progress has changed; if there is nothing to do yet, release with `at`.
struct advance {
    std::string progress{};
    std::optional<time_point> at{};
    [[nodiscard]] friend bool operator==(const advance&, const advance&) = default;
};

/// Any of the five.
using outcome = std::variant<succeed, retry, bury, release, advance>;

/// `std::visit` for an outcome. It compiles much faster.
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

/// Ends the claim that `ticket` names.
struct settle {
    vouch::ticket ticket{};
    vouch::outcome outcome{};
    [[nodiscard]] friend bool operator==(const settle&, const settle&) = default;
};

} // namespace v0
} // namespace vouch
