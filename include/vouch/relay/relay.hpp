// SPDX-License-Identifier: MIT
// Sends the entries of a queue to a broker. A relay is a batch handler: an entry succeeds when the broker has confirmed
// its message, is dead if the broker refuses it, and is sent again, under the same message id, if the answer is unknown.
//
//   vouch::rabbitmq::publisher broker({.connection = {.url = url}, .exchange = exchange});
//   router.on(vouch::relay(broker));
//   worker.serve(router, {.queue = "outgoing"});
//
// A store hands out one entry of a lane at a time, and the next one only after the first has ended. So messages of one
// lane are published in order, whatever fails in between.
//
// Any number of threads may use a relay, as its publisher allows that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/relay/detail/publishing.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>
#include <vouch/run/delivery_batch.hpp>
#include <vouch/run/router.hpp>

namespace vouch {
inline namespace v0 {

struct relay_options {
    std::string pattern = "#";  ///< the topics of the entries that are sent
    std::size_t size_max = 500; ///< messages per call of the publisher
    duration wait{};            ///< how long a worker's thread waits for more messages to send with the first
    /// When to send again. By default there is no last attempt: a broker that is away for days loses nothing. What a
    /// policy of yours leaves unset is the runner's to decide.
    retry_policy retry{.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                       .attempts_max = std::numeric_limits<std::uint32_t>::max()};
    /// What to send for an entry. An exception is that entry's failure; `reject` makes it dead.
    std::function<message(const entry&)> make = message_of;
};

template <publisher Publisher>
class relay {
  public:
    /// The publisher must outlive the relay.
    explicit relay(Publisher& to, relay_options options = {}) : to_(&to), options_(std::move(options)) {}

    [[nodiscard]] const relay_options& options() const noexcept { return options_; }

    [[nodiscard]] std::vector<outcome> operator()(delivery_batch& batch) const {
        return detail::publish_batch(
            *to_, batch, options_.make, [](const delivery&) -> outcome { return succeed{}; },
            [](const delivery&, std::string code) -> outcome { return retry{.error = std::move(code)}; });
    }

  private:
    Publisher* to_;
    relay_options options_;
};

/// Makes `router.on(relay)` work; call that.
template <class Store, publisher Publisher>
void add_route(router<Store>& to, const relay<Publisher>& added) {
    const auto& how = added.options();
    to.on_batch(how.pattern, added, {.size_max = how.size_max, .wait = how.wait}, how.retry);
}

} // namespace v0
} // namespace vouch
