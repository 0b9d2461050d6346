// SPDX-License-Identifier: MIT
// Opens plain stores of one temper for the suite, with every hook a fixture may have.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <vouch/conformance/location.hpp>

#include "plain_store.hpp"

namespace mutants {

class plain_fixture {
  public:
    using location = vouch::conformance::location;

    explicit plain_fixture(temper how = {}) : temper_(how) {}

    [[nodiscard]] store open(const location& at) {
        const std::lock_guard lock(mutex_);
        const auto on = ground_at(at);
        on->open_handle();
        auto handle = on->handles.lock();
        if (!handle) {
            handle = std::make_shared<int>();
            on->handles = handle;
        }
        return {on, handle};
    }

    void crash(const location& at) {
        const std::lock_guard lock(mutex_);
        ground_at(at)->crash();
    }
    void seam(machinery::callback f) { machinery_->set_seam(std::move(f)); }
    bool fail_at(std::size_t n) { return machinery_->fail_at(n); }

  private:
    struct known {
        location at;
        std::shared_ptr<ground> on;
    };

    /// Places that nobody has opened for long are forgotten: a run has thousands.
    [[nodiscard]] std::shared_ptr<ground> ground_at(const location& at) {
        for (const auto& k : grounds_) {
            if (k.at == at || temper_.is(defect::places_share_everything)) {
                return k.on;
            }
        }
        constexpr std::size_t kept = 64;
        for (auto k = grounds_.begin(); grounds_.size() > kept && k != grounds_.end();) {
            k = k->on->handles.expired() ? grounds_.erase(k) : std::next(k);
        }
        grounds_.push_back({at, std::make_shared<ground>(temper_, machinery_)});
        return grounds_.back().on;
    }

    temper temper_;
    std::shared_ptr<machinery> machinery_ = std::make_shared<machinery>();
    std::mutex mutex_{};
    std::list<known> grounds_{};
};

} // namespace mutants
