// SPDX-License-Identifier: MIT
// The first thing a simulated run did that a saga must never do. Later ones are usually consequences of it.
#pragma once

#include <string>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

class first_violation {
  public:
    void report(std::string what) {
        if (text_.empty()) {
            text_ = std::move(what);
        }
    }
    /// Empty if there was none.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

  private:
    std::string text_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
