// SPDX-License-Identifier: MIT
// The results of the steps so far, for a step's condition and for its action. A step_results is a view of the saga's
// progress: do not keep it, or the views it returns, beyond the call that receives it.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include <vouch/outbox/codec.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

class step_results {
  public:
    /// Made by the engine.
    explicit step_results(const saga_progress& p) noexcept : progress_(p) {}

    /// The result of a step; nothing unless that step is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> of(std::string_view step) const noexcept {
        const auto* const record = find(step);
        return record != nullptr && record->state == step_state::done ? std::optional<std::string_view>(record->result)
                                                                      : std::nullopt;
    }
    /// The same, decoded. Throws `reject("undecodable_result")` if the codec throws anything but a `failure`.
    template <decodable T>
    [[nodiscard]] std::optional<T> as(std::string_view step) const {
        const auto result = of(step);
        try {
            return result ? std::optional<T>(codec<T>::decode(*result)) : std::nullopt;
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable_result");
        }
    }
    /// Whether the step was skipped because its condition was false.
    [[nodiscard]] bool is_skipped(std::string_view step) const noexcept {
        const auto* const record = find(step);
        return record != nullptr && record->state == step_state::skipped;
    }

  private:
    [[nodiscard]] const step_record* find(std::string_view step) const noexcept {
        const auto found = std::find_if(progress_.steps.begin(), progress_.steps.end(),
                                        [&](const step_record& s) { return s.name == step; });
        return found == progress_.steps.end() ? nullptr : &*found;
    }

    const saga_progress& progress_;
};

} // namespace v0
} // namespace vouch
