// SPDX-License-Identifier: MIT
// What `work` of a handler returns if its `record` depends on the entry: an outcome, and what to do in the transaction
// that settles it.
#pragma once

#include <functional>

#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Transaction>
struct recorded_outcome {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};

    operator vouch::outcome() const { return outcome; } // NOLINT(google-explicit-constructor): a handler's result
};

} // namespace detail
} // namespace v0
} // namespace vouch
