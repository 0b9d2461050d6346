// SPDX-License-Identifier: MIT
// A memory store that counts its commits and makes planned ones fail: before the effect, after it (in doubt), or with a
// conflict.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include <vouch/vouch.hpp>

namespace support {

enum class commit_fault {
    none,
    rolled_back_in_doubt, ///< throws an error in doubt; the commit has no effect
    committed_in_doubt,   ///< throws an error in doubt; the commit has taken effect
    conflict,
    io,
};

struct commit_plan {
    std::deque<commit_fault> faults{}; ///< of the next commits; later commits succeed
    std::size_t commits = 0;           ///< commits that took effect

    [[nodiscard]] commit_fault next() {
        if (faults.empty()) {
            return commit_fault::none;
        }
        const auto fault = faults.front();
        faults.pop_front();
        return fault;
    }
};

/// The interceptor of `commit_fault_store`.
struct planned_commits {
    std::shared_ptr<commit_plan> plan = std::make_shared<commit_plan>();

    template <class Call>
    auto operator()(vouch::store_operation what, const Call& call) const {
        const bool is_commit = what == vouch::store_operation::commit;
        const auto fault = is_commit ? plan->next() : commit_fault::none;
        if (fault != commit_fault::none && fault != commit_fault::committed_in_doubt) {
            fail(fault);
        }
        auto answer = call();
        plan->commits += is_commit ? 1U : 0U;
        if (fault == commit_fault::committed_in_doubt) {
            fail(fault);
        }
        return answer;
    }

  private:
    [[noreturn]] static void fail(commit_fault fault) {
        using kind = vouch::error_kind;
        switch (fault) {
        case commit_fault::conflict: throw vouch::error(kind::conflict, "planned: conflict");
        case commit_fault::io: throw vouch::error(kind::io, "planned: io");
        default: throw vouch::error(kind::io, "planned: in doubt", {.in_doubt = true});
        }
    }
};

class commit_fault_store : public vouch::store_adaptor<vouch::memory::store, planned_commits> {
  public:
    /// The decorated store, whose commits do not fail.
    [[nodiscard]] vouch::memory::store& plain() { return inner(); }
    [[nodiscard]] commit_plan& plan() { return *interceptor().plan; }
};

static_assert(vouch::store<commit_fault_store>);

} // namespace support
