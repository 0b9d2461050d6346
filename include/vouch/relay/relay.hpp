// SPDX-License-Identifier: MIT
// Sends the entries of a queue to a broker. A relay is a batch handler: an entry succeeds when the broker has confirmed
// its message, is dead if the broker refuses it, and is sent again, under the same message id, if the answer is unknown.
//
//   vouch::rabbitmq::publisher broker({.connection = {.url = url}, .exchange = exchange});
//   router.on(vouch::relay(broker));
//   worker.serve(router, {.queue = "outgoing"});
//
// An entry that replaces a dead one (`requeue`) is sent under the id of the first entry: that one may have arrived, even
// if it is dead because the broker did not confirm it, and the intake on the other side stores the message once.
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
#include <vouch/contract/id.hpp>
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
    /// What to send for an entry. An exception is that entry's failure; `reject` makes it dead. An id that is not the
    /// entry's is left as it is, also if the entry replaces a dead one.
    std::function<message(const entry&)> make = message_of;
};

namespace detail {

/// The id of the first entry that `e` continues. A predecessor is not purged before its successor.
template <class Reader>
[[nodiscard]] id first_of_family(const Reader& from, const entry& e) {
    auto first = e.predecessor;
    for (auto before = from.find(first); before && !before->predecessor.is_nil(); before = from.find(first)) {
        first = before->predecessor;
    }
    return first;
}

} // namespace detail

template <publisher Publisher>
class relay {
  public:
    /// The publisher must outlive the relay.
    explicit relay(Publisher& to, relay_options options = {}) : to_(&to), options_(std::move(options)) {}

    [[nodiscard]] const relay_options& options() const noexcept { return options_; }

    /// Sends a batch, whose entries are in the store that `from` reads.
    template <class Reader>
    [[nodiscard]] std::vector<outcome> send(const Reader& from, delivery_batch& batch) const {
        return publish(batch, [&](const entry& e) {
            auto out = options_.make(e);
            if (!e.predecessor.is_nil() && out.id == to_string(e.id)) {
                out.id = to_string(detail::first_of_family(from, e));
            }
            return out;
        });
    }

    /// The same without a store, for `on_batch`: an entry that replaces a dead one is sent under its own id.
    [[nodiscard]] std::vector<outcome> operator()(delivery_batch& batch) const { return publish(batch, options_.make); }

  private:
    template <class Make>
    [[nodiscard]] std::vector<outcome> publish(delivery_batch& batch, const Make& make) const {
        return detail::publish_batch(
            *to_, batch, make, [](const delivery&) -> outcome { return succeed{}; },
            [](const delivery&, std::string code) -> outcome { return retry{.error = std::move(code)}; });
    }

    Publisher* to_;
    relay_options options_;
};

/// Makes `router.on(relay)` work; call that.
template <class Store, publisher Publisher>
void add_route(router<Store>& to, const relay<Publisher>& added) {
    const auto& how = added.options();
    const auto* const store = &to.outbox().store();
    to.on_batch(
        how.pattern, [added, store](delivery_batch& batch) { return added.send(*store, batch); },
        {.size_max = how.size_max, .wait = how.wait}, how.retry);
}

} // namespace v0
} // namespace vouch
