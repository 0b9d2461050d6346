// SPDX-License-Identifier: MIT
// Sends the commands of sagas to a participant in another service. A command stays open after the broker has confirmed
// it: its reply ends it (`reply_handler`), which wakes the saga, or the saga's timeout does.
//
//   router.on(vouch::command_relay(broker, {.reply_topic = "orders.reply"}));
//   worker.serve(router, {.queue = "payment"}); // the queue that the saga's step names
//
// What the saga knows of a command is what it would know of one in its own store. A command that was never claimed had
// no effect; one that may have been sent and has no reply is unknown, and undone; one that the broker refuses when it is
// sent for the first time is rejected, and not undone.
//
// A command that has no reply is sent again from time to time, under the same message id: the participant's intake drops
// it if it has it. A broker that is away costs no attempt.
//
// Any number of threads may use it, as its publisher allows that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/relay/detail/publishing.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>
#include <vouch/relay/saga/reply.hpp>
#include <vouch/run/delivery_batch.hpp>
#include <vouch/run/router.hpp>
#include <vouch/saga/command.hpp>

namespace vouch {
inline namespace v0 {

struct command_relay_options {
    std::string pattern = "#";              ///< the topics of the commands that are sent
    std::string reply_topic = "saga.reply"; ///< the topic of the replies
    std::size_t size_max = 100;             ///< messages per call of the publisher
    duration wait{}; ///< how long a worker's thread waits for more messages to send with the first
    duration retry_in = std::chrono::seconds{1};     ///< when to send again what the broker has not confirmed
    duration resend_after = std::chrono::minutes{5}; ///< when to send again what has no reply
};

template <publisher Publisher>
class command_relay {
  public:
    /// The publisher must outlive the relay. Throws `invalid_argument` if a time is not positive, or if the topic of the
    /// replies is none.
    explicit command_relay(Publisher& to, command_relay_options options = {}) : to_(&to), options_(std::move(options)) {
        detail::check_required_name({"command_relay", "reply_topic"}, options_.reply_topic, limits{}.name_max);
        check_positive("retry_in", options_.retry_in);
        check_positive("resend_after", options_.resend_after);
    }

    [[nodiscard]] const command_relay_options& options() const noexcept { return options_; }

    [[nodiscard]] std::vector<outcome> operator()(delivery_batch& batch) const {
        auto out = detail::publish_batch(
            *to_, batch, [&](const entry& e) { return message_for(e); },
            [&](delivery& d) { return sent(d, options_.resend_after); },
            [&](delivery& d, std::string code) {
                d.tag(std::move(code));
                return sent(d, options_.retry_in);
            });
        for (std::size_t i = 0; i < out.size(); ++i) {
            adapt(out[i], batch[i]);
        }
        return out;
    }

  private:
    /// Otherwise a command would be sent again at once, without an end.
    static void check_positive(std::string_view option, duration given) {
        if (given <= duration::zero()) {
            detail::refuse({"command_relay", option},
                           "is " + std::to_string(given.count()) + " us, it must be at least 1 us");
        }
    }

    /// The lane keeps the commands of one order in order, and the participant from handling two of them at a time.
    [[nodiscard]] message message_for(const entry& e) const {
        const auto command = command_of(e);
        if (!command) {
            throw reject("no_command");
        }
        auto out = message_of(e);
        if (out.lane.empty()) {
            out.lane = "saga:" + to_string(command->saga);
        }
        out.group.clear();
        out.headers.emplace_back(detail::remote_header, out.id);
        out.headers.emplace_back(reply_topic_header, options_.reply_topic);
        return out;
    }

    /// The command has been sent, and may have arrived. It is marked as such, and stays open.
    [[nodiscard]] static outcome sent(const delivery& d, duration again_in) {
        const auto again = later(d.time(), again_in);
        if (detail::is_relayed(d.entry())) {
            return release{.at = again};
        }
        return advance{.progress = std::string(detail::relayed_progress), .at = again};
    }

    /// A command has the attempts of its participant, so one that could not be sent must not spend them. One that was
    /// sent before may have arrived, even if the broker refuses it now. Only what is refused at once had no effect: the
    /// empty result says so.
    void adapt(outcome& o, delivery& d) const {
        if (const auto* const unsent = std::get_if<vouch::retry>(&o)) {
            d.tag(unsent->error);
            o = release{.at = later(d.time(), options_.retry_in)};
        } else if (auto* const refused = std::get_if<bury>(&o); refused && !detail::is_relayed(d.entry())) {
            refused->result.emplace();
        }
    }

    Publisher* to_;
    command_relay_options options_;
};

/// Makes `router.on(command_relay)` work; call that.
template <class Store, publisher Publisher>
void add_route(router<Store>& to, const command_relay<Publisher>& added) {
    const auto& how = added.options();
    to.on_batch(how.pattern, added, {.size_max = how.size_max, .wait = how.wait});
}

} // namespace v0
} // namespace vouch
