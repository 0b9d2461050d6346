// SPDX-License-Identifier: MIT
// What a step's action is handed: the saga's context, the idempotency key of what it is about to do, the results of the
// steps before it, and, for a compensation, the result of its own forward action.
//
// A call belongs to one call of one action; it is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <vouch/contract/id.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/saga_progress.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

class step_call {
  public:
    step_call(const delivery& d, const saga_progress& p, std::size_t step, std::string_view result) noexcept
        : delivery_(d), progress_(p), step_(step), result_(result) {}
    step_call(const step_call&) = delete;
    step_call& operator=(const step_call&) = delete;

    /// The saga. After a resume it is the first entry's id: what names the saga outside must not change.
    [[nodiscard]] const id& saga() const noexcept { return progress_.origin; }
    [[nodiscard]] const std::string& step() const noexcept { return progress_.steps[step_].name; }
    [[nodiscard]] bool is_compensation() const noexcept { return progress_.direction == saga_direction::back; }
    /// The idempotency key to hand on: the same for every try of this action of this saga, also after a resume.
    [[nodiscard]] id key() const noexcept { return saga_key(saga(), step(), is_compensation()); }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return delivery_.attempt(); } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return delivery_.now(); }
    [[nodiscard]] const std::stop_token& stop() const noexcept { return delivery_.stop(); }
    /// The saga's payload as a value.
    template <decodable T>
    [[nodiscard]] T as() const {
        return delivery_.as<T>();
    }
    [[nodiscard]] const std::string& payload() const noexcept { return delivery_.payload(); }

    /// Why the saga was turned round; empty on the way forward.
    [[nodiscard]] const std::string& reason() const noexcept { return progress_.reason; }
    /// Whether it is known that the forward action succeeded. If not, there may be nothing to undo, and no result.
    [[nodiscard]] bool is_known() const noexcept { return progress_.steps[step_].state == step_state::done; }
    /// Of the forward action that is being undone; empty on the way forward.
    [[nodiscard]] std::string_view result() const noexcept { return result_; }
    /// The same as a value. Bytes the codec rejects are a permanent failure.
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
    /// Of another step, if it is known to have succeeded.
    [[nodiscard]] std::optional<std::string_view> result_of(std::string_view step) const noexcept {
        return results().of(step);
    }
    /// Of all steps so far.
    [[nodiscard]] step_results results() const noexcept { return step_results(progress_); }

  private:
    const delivery& delivery_;
    const saga_progress& progress_;
    std::size_t step_;
    std::string_view result_;
};

} // namespace v0
} // namespace vouch
