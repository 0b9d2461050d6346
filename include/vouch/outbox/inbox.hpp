// SPDX-License-Identifier: MIT
// The table of messages a consumer has processed, as entries born succeeded. A message that comes again, from another
// store or a broker that delivers at least once, runs nothing and gets the stored result.
//
//   const auto reply = vouch::inbox::once(tx, "billing", message_id, now, [&] { return charge(tx); });
//
// A saga's participant hands it the command's key, not its id: a compensating command that is sent again has another
// id.
//
//   const auto key = vouch::command_of(d.entry())->key;
//   const auto reply = vouch::inbox::once(tx, "billing", key, now, [&] { return refund(tx); });
//
// Everything is in the caller's transaction: the work's writes, the mark and the result are one commit, so a crash
// half-way leaves nothing. Of two that race one commits; the other gets a `conflict`, is repeated by `transact` or the
// runner, and then finds the result. The window is as long as the entries stay: purge the queue by age.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace inbox {

/// The queue that holds what a consumer has processed. Nobody works on it.
[[nodiscard]] inline std::string queue_of(std::string_view consumer) { return "inbox." + std::string(consumer); }

/// Runs `work()`, which returns nothing or a string, once per consumer and message, and returns what it returned, now
/// or then. What `work` throws goes through, and the caller's transaction is to be rolled back.
template <class Writer, class Work>
std::string once(Writer& tx, std::string_view consumer, const id& message, time_point now, Work&& work) {
    static_assert(explain_writer<Writer>());
    if (consumer.empty()) {
        detail::refuse({"inbox", "consumer"}, "is empty");
    }
    const auto mark = derive(message, queue_of(consumer));
    if (const auto stored = tx.find(mark)) {
        return stored->result.value_or(std::string{});
    }
    std::string result;
    if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
        work();
    } else {
        static_assert(std::convertible_to<std::invoke_result_t<Work&>, std::string>,
                      "vouch: the work of inbox::once returns nothing or a string");
        result = work();
    }
    const std::array drafts{draft{.id = mark, .queue = queue_of(consumer), .topic = "processed", .result = result}};
    if (tx.enqueue(drafts, now).front().what != receipt::kind::inserted) {
        throw error(error_kind::conflict, "inbox: the message has been processed in the meantime");
    }
    return result;
}

} // namespace inbox
} // namespace v0
} // namespace vouch
