// SPDX-License-Identifier: MIT
// A base class for transactions: the operations of `writer`, with everything around them that is the same in every
// store. A store's transaction derives from it and implements only the unchecked operations.
//
//   class my_transaction : public vouch::validated_writer<my_transaction> {
//       ...
//       void commit();
//   };
//
// The base guarantees, for every operation:
//  1. A closed transaction throws `misuse`, whatever the arguments are.
//  2. Arguments are validated before anything is read or written: `invalid_argument`, or `unsupported` for a
//     capability that the store does not have.
//  3. After any error but `invalid_argument` the transaction is closed.
//
// `Self` provides four members, which may be private if `Self` befriends this class and `validated_reader<Self>`:
//  1. `const capabilities& expect_open() const` throws `misuse` if the transaction is closed or moved from. Otherwise
//     it returns the store's capabilities.
//  2. `void close() const noexcept` rolls back and closes. It is called after an error and does nothing if the
//     transaction is closed already. It is const because a read that fails closes the transaction, too.
//  3. `read(operation) const` calls `operation(r)` and returns its result. `r` has the operations of `reader`.
//  4. `write(operation)` calls `operation(w)` and returns its result. `w` has the operations of `writer` that
//     `reader` does not have.
// `r` and `w` receive valid arguments only. They may throw anything; `invalid_argument` only before they have written
// anything, because it leaves the transaction open.
//
// Moving, the destructor (which rolls back) and `commit` remain with `Self`: `commit` calls `expect_open` first and
// closes the transaction, whether it succeeds or not. A transaction is used by one thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

template <class Self>
class validated_writer : public validated_reader<Self> {
  public:
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return guard([&](const capabilities& can) {
            validate(drafts, can);
            return self().write([&](auto&& unchecked) { return unchecked.enqueue(drafts, now); });
        });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return guard([&](const capabilities& can) {
            validate(request, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.claim(request); });
        });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return guard([&](const capabilities& can) {
            validate(settles, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.settle(settles, now); });
        });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return guard([&](const capabilities& can) {
            validate(tickets, now, lease, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.extend(tickets, now, lease); });
        });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return guard([&](const capabilities&) {
            return self().write([&](auto&& unchecked) { return unchecked.nudge(wanted, now); });
        });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return guard([&](const capabilities& can) {
            validate_error_code(error, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.cancel(wanted, error, now); });
        });
    }
    std::size_t purge(const purge_request& request) {
        return guard([&](const capabilities& can) {
            validate(request, can.limits);
            return self().write([&](auto&& unchecked) { return unchecked.purge(request); });
        });
    }

  protected:
    validated_writer() = default;

  private:
    friend class validated_reader<Self>;

    [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
    [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

    template <class Operation>
    auto guard(const Operation& operation) const {
        const capabilities& can = self().expect_open();
        try {
            return operation(can);
        } catch (const error& e) {
            if (e.kind() != error_kind::invalid_argument) {
                self().close();
            }
            throw;
        } catch (...) {
            self().close();
            throw;
        }
    }
};

} // namespace v0
} // namespace vouch
