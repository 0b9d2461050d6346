// SPDX-License-Identifier: MIT
// A store that injects faults into another store. It shows what a program does when the disk is full, the connection is
// lost, or the answer of a commit does not arrive:
//
//   auto plan = std::make_shared<fault_plan>();
//   faulty<memory::store> store(memory::store{}, plan);
//   plan->arm({.call = 3});
//
// All reads and writes count as calls. A fault in a transaction rolls it back and closes it, as the contract requires. A
// store that cannot be moved is passed as `any_store`.
#pragma once

#include <memory>
#include <utility>

#include <vouch/conformance/fault_plan.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store_adaptor.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Fails the calls that a plan names. The interceptor of `faulty`.
struct fault_injector {
    std::shared_ptr<fault_plan> plan{};

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        const auto due = plan->next();
        const bool is_commit = what == store_operation::commit;
        if (due && due->moment == fault_moment::before) {
            fail(*due, is_commit && due->in_doubt);
        }
        auto answer = call();
        if (due) {
            fail(*due, is_commit);
        }
        return answer;
    }

  private:
    [[noreturn]] static void fail(const fault& f, bool in_doubt) {
        throw error(f.kind, "faulty: an injected fault", {.in_doubt = in_doubt});
    }
};

/// A store whose calls fail as its plan says. `inner()` is the store without faults.
template <class Store>
class faulty : public store_adaptor<Store, fault_injector> {
  public:
    faulty(Store store, std::shared_ptr<fault_plan> plan)
        : store_adaptor<Store, fault_injector>(std::move(store), fault_injector{std::move(plan)}) {}

    [[nodiscard]] fault_plan& plan() const noexcept { return *this->interceptor().plan; }
};

} // namespace conformance
} // namespace v0
} // namespace vouch
