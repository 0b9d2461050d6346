// SPDX-License-Identifier: MIT
// Opens plain stores of one variant for the suite and keeps what they have committed, per location: in memory, or in a
// file if a child process uses the location. Has every hook that a fixture may have. Safe for concurrent use.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <vouch/conformance/location.hpp>

#include "plain_store.hpp"

namespace mutants {

class plain_fixture {
  public:
    using location = vouch::conformance::location;

    explicit plain_fixture(variant how = {}) : variant_(how) {}

    [[nodiscard]] plain_store open(const location& at) {
        const std::lock_guard lock(mutex_);
        const auto on = state_at(at);
        on->open_handle();
        auto handle = on->handles.lock();
        if (!handle) {
            handle = std::make_shared<int>();
            on->handles = handle;
        }
        return {on, handle};
    }

    /// The handles that are open keep the state of the process that died; the next ones get what it has left.
    void crash(const location& at) {
        const std::lock_guard lock(mutex_);
        const auto dead = state_at(at);
        for (auto& k : states_) {
            if (k.on == dead) {
                k.on = std::make_shared<shared_state>(variant_, hooks_);
                k.on->inherit(*dead);
            }
        }
    }
    void seam(test_hooks::callback f) { hooks_->set_seam(std::move(f)); }
    bool fail_at(std::size_t n) { return hooks_->fail_at(n); }

  private:
    struct location_state {
        location at;
        std::shared_ptr<shared_state> on;
    };

    /// Drops locations without an open handle once there are many: a run has thousands.
    [[nodiscard]] std::shared_ptr<shared_state> state_at(const location& at) {
        for (const auto& k : states_) {
            if (k.at == at || variant_.is(defect::locations_share_everything)) {
                return k.on;
            }
        }
        constexpr std::size_t kept = 64;
        for (auto k = states_.begin(); states_.size() > kept && k != states_.end();) {
            k = k->on->handles.expired() ? states_.erase(k) : std::next(k);
        }
        states_.push_back({at, std::make_shared<shared_state>(variant_, hooks_)});
        const bool has_others = getpid() != home_ || state_file::is_in(at.directory());
        if (has_others && !variant_.is(defect::durable_work_stays_in_memory)) {
            states_.back().on->share_through(at.directory());
        }
        return states_.back().on;
    }

    const pid_t home_ = getpid(); ///< the process that keeps work in memory; its children share it through files
    variant variant_;
    std::shared_ptr<test_hooks> hooks_ = std::make_shared<test_hooks>();
    std::mutex mutex_{};
    std::list<location_state> states_{};
};

} // namespace mutants
