// SPDX-License-Identifier: MIT
// Processes each message once: a table of the messages that a consumer has processed, stored as entries that are born
// succeeded. A message that arrives again, from another store or from a broker that delivers at least once, runs
// nothing and gets the stored result.
//
//   vouch::transact(store, [&](auto& tx) {
//       vouch::inbox::once(tx, {.consumer = "billing", .message = message_id, .now = now}, [&] { return charge(tx); });
//   });
//
// A saga's participant uses the command's key, not its id, because a compensating command that is sent again has another
// id: `.message = vouch::command_of(d.entry())->key`.
//
// Everything happens in the caller's transaction: the work's writes, the mark and the result are one commit, so a crash
// leaves nothing half done. If two transactions process the same message, one commits; the other gets `conflict`, is
// repeated by `transact` or the runner, and finds the result. The dedup window is as long as the marks are stored: purge
// the consumer's queue by age.
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

/// The queue of a consumer's marks. No worker serves it.
[[nodiscard]] inline std::string queue_of(std::string_view consumer) { return "inbox." + std::string(consumer); }

struct request {
    std::string_view consumer{}; ///< required; each consumer processes a message once
    id message{};                ///< identifies the message, for this consumer
    time_point now{};
};

/// Runs `work()`, which returns nothing or a string, unless this consumer has processed this message. Returns what the
/// work returned, now or the first time. If the work throws, the exception passes through, and the caller must roll its
/// transaction back. Throws `invalid_argument` if the consumer is empty.
template <class Writer, class Work>
std::string once(Writer& tx, const request& r, Work&& work) {
    static_assert(explain_writer<Writer>());
    if (r.consumer.empty()) {
        detail::refuse({"inbox", "consumer"}, "is empty");
    }
    const auto mark = derive(r.message, queue_of(r.consumer));
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
    const std::array drafts{draft{.id = mark, .queue = queue_of(r.consumer), .topic = "processed", .result = result}};
    if (tx.enqueue(drafts, r.now).front().what != receipt::kind::inserted) {
        throw error(error_kind::conflict, "inbox: another transaction has processed the message meanwhile");
    }
    return result;
}

} // namespace inbox
} // namespace v0
} // namespace vouch
