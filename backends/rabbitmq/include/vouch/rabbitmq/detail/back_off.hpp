// SPDX-License-Identifier: MIT
// When to connect again: at once after a connection that worked, and after failures with waits that double up to a bound.
#pragma once

#include <algorithm>

#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/rabbitmq/detail/target.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

class back_off {
  public:
    explicit back_off(const target& to)
        : min_(to.reconnect_wait_min), max_(std::max(to.reconnect_wait_max, to.reconnect_wait_min)) {}

    /// The time before which the next attempt is not made.
    [[nodiscard]] steady::time_point not_before() const noexcept { return not_before_; }

    void failed() noexcept {
        wait_ = wait_ == steady::duration::zero() ? min_ : std::min(2 * wait_, max_);
        not_before_ = steady::now() + wait_;
    }
    void worked() noexcept { *this = back_off(min_, max_); }

  private:
    back_off(steady::duration min, steady::duration max) noexcept : min_(min), max_(max) {}

    steady::duration min_;
    steady::duration max_;
    steady::duration wait_ = steady::duration::zero();
    steady::time_point not_before_ = steady::time_point::min();
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
