// SPDX-License-Identifier: MIT
// Handles on an empty store for case after case. Opening a store may cost a hundred times what a case does, so one that
// can be swept clean is used again for a while.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class playground {
  public:
    playground(trial& t, std::size_t handles) : trial_(t), count_(handles) {}
    playground(const playground&) = delete;
    playground& operator=(const playground&) = delete;
    ~playground() { leave(); }

    /// Handles on an empty store: the same as last time, if that case ended well.
    [[nodiscard]] std::vector<any_store>& enter() {
        if (!is_clean_ || ++used_ > reuse_max) {
            leave();
            place_.emplace(trial_.fresh_place());
            for (std::size_t i = 0; i < count_; ++i) {
                handles_.push_back(i == 0 || trial_.can().shared ? trial_.on().open(*place_) : handles_.front());
            }
            used_ = 0;
        }
        is_clean_ = false;
        return handles_;
    }

    /// The case ended well: everything in it is removed through the contract's own means.
    void sweep() {
        constexpr time_point late = start + std::chrono::hours{24 * 3650};
        auto& store = handles_.front();
        for (const std::string queue : {"q", "r"}) {
            const auto live = store.list({.by = query::path::live, .queue = queue, .limit = 1000});
            transact(store, [&](auto& tx) {
                for (const auto& e : live) {
                    std::ignore = tx.cancel(e.id, "swept", late);
                }
            });
        }
        transact(store, [&](auto& tx) {
            for (const std::string queue : {"q", "r"}) {
                tx.purge({.queue = queue, .before = late + duration{1}});
            }
        });
        is_clean_ = store.counts("q").total() + store.counts("r").total() == 0;
    }

  private:
    void leave() {
        handles_.clear();
        if (place_) {
            trial_.leave(*place_);
        }
        place_.reset();
    }

    static constexpr std::size_t reuse_max = 50;
    trial& trial_;
    std::size_t count_;
    std::optional<place> place_{};
    std::vector<any_store> handles_{};
    bool is_clean_ = false;
    std::size_t used_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
