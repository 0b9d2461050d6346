// SPDX-License-Identifier: MIT
// The argument of a step's action: the saga's context, the idempotency key of the action, the results of the earlier
// steps and, for a compensation, the result of the forward action it undoes.
//
// A step_call is valid during one call of one action and is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <vouch/contract/id.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

class step_call {
  public:
    /// Made by the engine. All arguments outlive the call.
    step_call(const delivery& d, const saga_progress& p, std::size_t step, std::string_view result) noexcept
        : delivery_(d), progress_(p), step_(step), result_(result) {}
    step_call(const step_call&) = delete;
    step_call& operator=(const step_call&) = delete;

    /// The saga's id: that of its first entry. A resume does not change it.
    [[nodiscard]] const id& saga() const noexcept { return progress_.origin; }
    /// The step's name.
    [[nodiscard]] const std::string& step() const noexcept { return progress_.steps[step_].name; }
    /// Whether this call undoes the step.
    [[nodiscard]] bool is_compensation() const noexcept { return progress_.direction == saga_direction::back; }
    /// The idempotency key to pass on to the service the action calls. It is the same for every attempt of this action
    /// of this saga, also after a resume.
    [[nodiscard]] id key() const noexcept { return saga_key(saga(), step(), is_compensation()); }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return delivery_.attempt(); } ///< counted from 1
    /// When the engine was called for this claim.
    [[nodiscard]] time_point now() const noexcept { return delivery_.now(); }
    /// A stop is requested when the worker stops or the claim is lost, as for `delivery::stop`.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return delivery_.stop(); }
    /// The saga's payload, decoded.
    template <decodable T>
    [[nodiscard]] T as() const {
        return delivery_.as<T>();
    }
    /// The saga's payload.
    [[nodiscard]] const std::string& payload() const noexcept { return delivery_.payload(); }

    /// Why the saga compensates: an error code. Empty on the way forward.
    [[nodiscard]] const std::string& reason() const noexcept { return progress_.reason; }
    /// For a compensation: whether the forward action is known to have succeeded. If not, there is no result, and there
    /// may be nothing to undo.
    [[nodiscard]] bool is_known() const noexcept { return progress_.steps[step_].state == step_state::done; }
    /// The result of the forward action that this call undoes. Empty on the way forward, and if it is not known.
    [[nodiscard]] std::string_view result() const noexcept { return result_; }
    /// `result()`, decoded. Throws `reject("undecodable_result")` if the codec throws anything but a `failure`.
    template <decodable T>
    [[nodiscard]] T result_as() const {
        try {
            return codec<T>::decode(result_);
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable_result");
        }
    }
    /// The result of another step; nothing unless that step is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> result_of(std::string_view step) const noexcept {
        return results().of(step);
    }
    /// The results of all steps so far.
    [[nodiscard]] step_results results() const noexcept { return step_results(progress_); }

  private:
    const delivery& delivery_;
    const saga_progress& progress_;
    std::size_t step_;
    std::string_view result_;
};

} // namespace v0
} // namespace vouch
