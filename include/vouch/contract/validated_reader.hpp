// SPDX-License-Identifier: MIT
// A base class for stores: the operations of `reader`, with their arguments checked before the store sees them. A
// store derives from it, and so can anything else that reads entries. Writers derive from `validated_writer`, which
// includes this class.
//
//   class my_store : public vouch::validated_reader<my_store> {
//       friend class vouch::validated_reader<my_store>;
//       const vouch::capabilities& expect_open() const { return my_capabilities; }
//       template <class Operation>
//       auto read(const Operation& operation) const { return operation(my_unchecked_reader()); }
//   };
//
// `Self` provides two members, which may be private if `Self` befriends this class:
//  1. `const capabilities& expect_open() const` returns the capabilities that validation uses. Throw here if `Self`
//     cannot be used now, for instance because its file has failed.
//  2. `read(operation) const` calls `operation(r)` and returns its result. `r` has the operations of `reader` and
//     receives valid arguments only.
//
// Adds no state, no virtual function and no synchronization: it is as safe for threads as `Self` is.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/validate.hpp>

namespace vouch {
inline namespace v0 {

template <class Self>
class validated_reader {
  public:
    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return self().guard(
            [&](const capabilities&) { return self().read([&](auto&& unchecked) { return unchecked.find(wanted); }); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return self().guard([&](const capabilities& can) {
            validate(q, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.list(q); });
        });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return self().guard([&](const capabilities& can) {
            validate_queue(queue, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.counts(queue); });
        });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return self().guard([&](const capabilities& can) {
            validate_queue(queue, can.limits);
            return self().read([&](auto&& unchecked) { return unchecked.next_due(queue); });
        });
    }

  protected:
    validated_reader() = default;

    /// A reader has nothing to close after an error. `validated_writer` hides this function.
    template <class Operation>
    auto guard(const Operation& operation) const {
        return operation(self().expect_open());
    }

  private:
    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

} // namespace v0
} // namespace vouch
