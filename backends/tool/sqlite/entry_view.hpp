// SPDX-License-Identifier: MIT
// Reads entries through a connection that need not be able to write.
#pragma once

#include <memory>
#include <string>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace tool {

class entry_view : public vouch::validated_reader<entry_view> {
  public:
    entry_view(sqlite3* through, const std::string& prefix)
        : on_(std::make_unique<vouch::sqlite::detail::connection>(through, vouch::sqlite::options{.prefix = prefix})) {}

  private:
    friend class vouch::validated_reader<entry_view>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return vouch::sqlite::detail::supported; }

    template <class Operation>
    auto read(const Operation& operation) const {
        return operation(vouch::sqlite::detail::entry_reader(*on_));
    }

    std::unique_ptr<vouch::sqlite::detail::connection> on_;
};

static_assert(vouch::reader<entry_view>);

} // namespace tool
