// SPDX-License-Identifier: MIT
// A claim whose handler has finished: the entry, its outcome, and everything that has to be committed with it. It is
// kept until the store has accepted or refused the outcome, so no handler runs twice because a settle failed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/run/detail/caught_exception.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The store's final answer to an outcome.
struct settle_result {
    enum class kind : std::uint8_t {
        applied,
        stale,     ///< another worker had taken over the claim
        unsettled, ///< the store refuses the outcome; the entry stays claimed until its lease ends
    };
    settle_result::kind what = kind::applied;
    bool group_completed = false;
    std::string error{};      ///< unsettled: the code of what was thrown
    bool is_reported = false; ///< to the observers
};

template <class Store>
struct completion {
    vouch::entry entry{};
    vouch::outcome outcome{};
    std::vector<draft> emissions{};
    std::string tag{};  ///< the handler's word about the outcome
    death reason{};     ///< set if the outcome is `bury`
    std::string text{}; ///< of the exception behind the outcome, for observers that asked for it; never stored
    std::function<void(typename Store::transaction&)> record{};
    std::optional<duration> took{}; ///< from the handler's call to its end; unset if the handler was not called

    // State of the settle, so that a batch can be settled again after a fault of the store or of a hook.
    std::optional<settle_result> result{};            ///< unset: not settled yet
    std::string held_up{};                            ///< the code of what an audit sink or a group callback threw
    std::string held_up_text{};                       ///< its text, for observers that asked for it
    bool is_untried = false;                          ///< held up because hooks of other entries kept failing
    std::optional<caught_exception> record_failure{}; ///< `record` threw, and no outcome follows from that yet
    bool is_reported = false;                         ///< to the observers: that it is held up
    std::vector<receipt> receipts{};                  ///< of the emissions, from the last try
    bool completes_group = false;                     ///< according to the last try
    bool in_doubt = false;                            ///< an earlier commit may have succeeded
};

} // namespace detail
} // namespace v0
} // namespace vouch
