// SPDX-License-Identifier: MIT
// One claim of one saga: the entry's progress says where the saga is, the claim takes it one action further, and the
// outcome says what is next. Decisions are in `rules.hpp`.
//
// A decision that runs no action can be made again, so it shares a claim with what follows. A checkpoint follows every
// action, and every answer of a condition, because the engine cannot make those again. A command that has ended never
// changes, and a command that ends later wakes the saga even while it is claimed. So nothing that is read outside the
// settling transaction can be missed.
#pragma once

#include <string>
#include <utility>

#include <vouch/contract/outcome.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/detail/command_channel.hpp>
#include <vouch/saga/detail/compensation_pass.hpp>
#include <vouch/saga/detail/forward_pass.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class saga_claim {
  public:
    saga_claim(Store& store, const saga_definition& what, saga_progress at, delivery& d)
        : claim_(store, what, std::move(at), d) {}
    saga_claim(const saga_claim&) = delete;
    saga_claim& operator=(const saga_claim&) = delete;

    [[nodiscard]] saga_outcome run() {
        if (claim_.progress.direction == saga_direction::back) {
            return back_.run();
        }
        if (Rules::honours_cancel() && claim_.store.find(cancel_mark_of(claim_.progress.origin))) {
            return back_.start("cancelled");
        }
        return forward_.run();
    }

    /// The entry as a whole has expired or used up its attempts.
    [[nodiscard]] saga_outcome end(ending why) {
        const std::string code = why == ending::expired ? "expired" : "attempts_exhausted";
        if (!Rules::compensates_at_end()) {
            return {bury{.error = code}};
        }
        if (claim_.progress.direction == saga_direction::forward) {
            return back_.start(code);
        }
        if (why == ending::exhausted && back_.is_at_local_undo()) {
            return {bury{.error = code}};
        }
        return back_.run();
    }

  private:
    claim_state<Store> claim_;
    command_channel<Store> commands_{claim_};
    compensation_pass<Store, Rules> back_{claim_, commands_};
    forward_pass<Store, Rules> forward_{claim_, commands_, back_};
};

} // namespace detail
} // namespace v0
} // namespace vouch
