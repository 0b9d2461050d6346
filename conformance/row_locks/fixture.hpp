// SPDX-License-Identifier: MIT
// Opens stores with row locks for the suite. Handles on one location share a store, which is kept until the suite forgets
// the location. Safe for concurrent use.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <vouch/conformance/location.hpp>

#include "../mutants/test_hooks.hpp"
#include "store.hpp"

namespace row_locks {

class fixture {
  public:
    using location = vouch::conformance::location;

    explicit fixture(options how = {}) : options_(std::move(how)) {
        options_.seam = [on = hooks_](std::string_view where) {
            on->step(where);
            on->pause(where);
        };
    }

    [[nodiscard]] store open(const location& at) {
        const std::lock_guard lock(mutex_);
        return stores_.try_emplace(at, options_).first->second;
    }
    void forget(const location& at) {
        const std::lock_guard lock(mutex_);
        stores_.erase(at);
    }
    void seam(mutants::test_hooks::callback f) { hooks_->set_seam(std::move(f)); }
    bool fail_at(std::size_t n) { return hooks_->fail_at(n); }

  private:
    std::shared_ptr<mutants::test_hooks> hooks_ = std::make_shared<mutants::test_hooks>();
    options options_;
    std::mutex mutex_{};
    std::map<location, store> stores_{};
};

} // namespace row_locks
