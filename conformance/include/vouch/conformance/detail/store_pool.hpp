// SPDX-License-Identifier: MIT
// Handles on an empty store, for many cases in a row. Opening a store may take a hundred times as long as a case, so a
// store that can be emptied is reused.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class store_pool {
  public:
    /// The cases have entries in these queues only.
    store_pool(trial& t, std::size_t handles, std::vector<std::string> queues = {"q", "r"})
        : trial_(t), count_(handles), queues_(std::move(queues)) {}
    store_pool(const store_pool&) = delete;
    store_pool& operator=(const store_pool&) = delete;
    ~store_pool() { close(); }

    [[nodiscard]] const std::vector<std::string>& queues() const noexcept { return queues_; }

    /// Handles on an empty store. They are those of the previous case if it was cleared.
    [[nodiscard]] std::vector<any_store>& acquire() {
        if (!is_clean_ || ++used_ > reuse_max) {
            close();
            location_.emplace(trial_.fresh_location());
            for (std::size_t i = 0; i < count_; ++i) {
                handles_.push_back(i == 0 || trial_.can().shared ? trial_.context().open(*location_)
                                                                 : handles_.front());
            }
            used_ = 0;
        }
        is_clean_ = false;
        return handles_;
    }

    /// Ends a case that passed: removes all entries. Most cases leave only entries that have ended.
    void clear() {
        purge_all();
        is_clean_ = is_empty();
        if (!is_clean_) {
            cancel_all();
            purge_all();
            is_clean_ = is_empty();
        }
    }

  private:
    static constexpr time_point late = start + std::chrono::hours{24 * 3650};

    void purge_all() {
        transact(handles_.front(), [&](auto& tx) {
            for (const auto& queue : queues_) {
                tx.purge({.queue = queue, .before = late + duration{1}});
            }
        });
    }

    void cancel_all() {
        auto& store = handles_.front();
        for (const auto& queue : queues_) {
            const auto live = store.list({.by = query::path::live, .queue = queue, .limit = 1000});
            transact(store, [&](auto& tx) {
                for (const auto& e : live) {
                    std::ignore = tx.cancel(e.id, "cleared", late);
                }
            });
        }
    }

    [[nodiscard]] bool is_empty() {
        return std::all_of(queues_.begin(), queues_.end(),
                           [&](const auto& queue) { return handles_.front().counts(queue).total() == 0; });
    }

    void close() {
        handles_.clear();
        if (location_) {
            trial_.abandon(*location_);
        }
        location_.reset();
    }

    static constexpr std::size_t reuse_max = 50;
    trial& trial_;
    std::size_t count_;
    std::vector<std::string> queues_;
    std::optional<location> location_{};
    std::vector<any_store> handles_{};
    bool is_clean_ = false;
    std::size_t used_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
