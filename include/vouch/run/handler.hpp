// SPDX-License-Identifier: MIT
// The forms a handler may have:
//
//   [](delivery&) { ... }                          succeeds when it returns; the parameter may be left out
//   [](delivery&) { return value; }                succeeds with a result: a string, or a value with a codec
//   [](delivery&) -> outcome { ... }               decides the outcome: succeed, retry, bury, release or advance
//   [](const user&, delivery&) { ... }             typed payload, with `on<user>(pattern, handler)`; the delivery may be
//                                                  left out
//   struct { R work(delivery&);                    any of the above as a member, called outside any transaction
//            void record(transaction&, const R&);  called in the settling transaction: short, no I/O but the store's
//            outcome ended(delivery&, ending); }   called instead of burying, when time or attempts have run out
//
// The forms of a batch handler, for `on_batch`; with `ended`, but without `record`:
//
//   [](delivery_batch&) { ... }                    every entry of the call succeeds when it returns
//   [](delivery_batch&) -> std::vector<outcome>    decides the outcome of each entry, in order; a `retry` without a time
//                                                  is due when the policy says, as after an exception
//   struct { R work(delivery_batch&);              either of the above as a member
//            outcome ended(delivery&, ending); }   called for one entry at a time
//
// An exception of a batch handler is the outcome of every entry of the call: `reject` buries them all, any other fails an
// attempt of each. If there are more or fewer outcomes than entries, each has failed with `wrong_outcome_count`.
//
// `record` and `ended` may be left out, overloaded or templates. A member of one of these names that cannot be called
// is a compile error. An expired entry is given to `ended` only, never to `work`. If `ended` buries without a code, the
// entry has the code of the failure that ended it. `record` is called again if its transaction was rolled back.
#pragma once

#include <cstdint>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

/// Why an entry is about to be buried although its handler did not reject it.
enum class ending : std::uint8_t {
    expired,   ///< its time is over
    exhausted, ///< its attempts are used up
};

} // namespace v0
} // namespace vouch
