// SPDX-License-Identifier: MIT
// A memory store that counts its commits and fails them as a script says: before the effect, after it (in doubt), or by
// a conflict.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include <vouch/vouch.hpp>

namespace support {

enum class commit_fate {
    fine,
    lost_in_doubt,   ///< throws an error in doubt; the commit did not take effect
    landed_in_doubt, ///< throws an error in doubt; the commit took effect
    conflict,
    io,
};

struct script {
    std::deque<commit_fate> fates{}; ///< of the next commits; all later ones are fine
    std::size_t commits = 0;         ///< commits that took effect

    [[nodiscard]] commit_fate next() {
        if (fates.empty()) {
            return commit_fate::fine;
        }
        const auto fate = fates.front();
        fates.pop_front();
        return fate;
    }
};

/// The interceptor of `scripted_store`.
struct scripted_commits {
    std::shared_ptr<script> plan = std::make_shared<script>();

    template <class Call>
    auto operator()(vouch::store_operation what, const Call& call) const {
        const bool is_commit = what == vouch::store_operation::commit;
        const auto fate = is_commit ? plan->next() : commit_fate::fine;
        if (fate != commit_fate::fine && fate != commit_fate::landed_in_doubt) {
            fail(fate);
        }
        auto answer = call();
        plan->commits += is_commit ? 1U : 0U;
        if (fate == commit_fate::landed_in_doubt) {
            fail(fate);
        }
        return answer;
    }

  private:
    [[noreturn]] static void fail(commit_fate fate) {
        using kind = vouch::error_kind;
        switch (fate) {
        case commit_fate::conflict: throw vouch::error(kind::conflict, "scripted: conflict");
        case commit_fate::io: throw vouch::error(kind::io, "scripted: io");
        default: throw vouch::error(kind::io, "scripted: in doubt", {.in_doubt = true});
        }
    }
};

class scripted_store : public vouch::store_adaptor<vouch::memory::store, scripted_commits> {
  public:
    /// The store without its script.
    [[nodiscard]] vouch::memory::store& plain() { return inner(); }
    [[nodiscard]] script& plan() { return *interceptor().plan; }
};

static_assert(vouch::store<scripted_store>);

} // namespace support
