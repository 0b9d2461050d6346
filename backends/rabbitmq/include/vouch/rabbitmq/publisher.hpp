// SPDX-License-Identifier: MIT
// Publishes messages to an exchange of RabbitMQ: a model of `vouch::publisher` with the confirmations of the broker. A message
// is confirmed when every queue that takes it has stored it; for a quorum queue, on the disks of most of its nodes.
//
// Codes of messages that are not confirmed:
//   refused  unroutable (no queue takes it), message_too_large, expired, invalid_message (no id, or an id or a topic of more
//            than 255 bytes)
//   unknown  nacked, connection_lost, confirm_timeout, broker_blocked (the broker is out of memory or disk), no_exchange,
//            access_refused, and others that an operator can mend
//
// Thread-safe: calls take turns.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/back_off.hpp>
#include <vouch/rabbitmq/detail/confirm_channel.hpp>
#include <vouch/rabbitmq/detail/replies.hpp>
#include <vouch/rabbitmq/detail/target.hpp>
#include <vouch/rabbitmq/options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

class publisher {
  public:
    /// Throws `invalid_argument` if an option is not valid. Connects at the first `publish`.
    explicit publisher(publisher_options options)
        : options_(std::move(options)), target_(options_.connection), back_off_(target_) {
        detail::expect_name("exchange", options_.exchange);
        detail::expect_span("confirm_limit", options_.confirm_limit);
        if (options_.message_size_max == 0) {
            detail::refuse_option("message_size_max", "is 0; it must be at least 1");
        }
        if (!options_.clock) {
            detail::refuse_option("clock", "is empty");
        }
    }
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;

    /// Sends the messages and waits for the broker's answers. Throws `vouch::error` if no connection can be made: `io` if the
    /// broker does not answer, `invalid_argument` if it does not accept the user, the password, the virtual host or the
    /// certificate. If the exchange does not exist, every message is `unknown` with the code `no_exchange`.
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        std::vector<confirmation> answers(messages.size());
        std::unique_lock lock(mutex_);
        const auto now = options_.clock();
        std::vector<std::size_t> chosen;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (auto code = objection(messages[i], now)) {
                answers[i] = {confirmation::kind::refused, std::move(*code)};
            } else {
                chosen.push_back(i);
            }
        }
        if (!chosen.empty()) {
            publish_all({messages, chosen, options_.exchange, now, answers}, lock);
        }
        return answers;
    }

  private:
    using ending = detail::ending;
    using batch = detail::batch;

    /// Why the message is refused without asking the broker; none if it is not.
    [[nodiscard]] std::optional<std::string> objection(const message& m, time_point now) const {
        if (m.id.empty() || m.id.size() > detail::name_size_max || m.topic.size() > detail::name_size_max) {
            return "invalid_message";
        }
        if (m.expires_at && *m.expires_at <= now) {
            return "expired";
        }
        auto size = m.payload.size();
        for (const auto& [name, value] : properties_of(m)) {
            size += name.size() + value.size();
        }
        return size > options_.message_size_max ? std::optional<std::string>("message_too_large") : std::nullopt;
    }

    void publish_all(const batch& all, std::unique_lock<std::mutex>& lock) {
        connect(lock);
        auto end = detail::steady::now() + options_.confirm_limit;
        auto how = channel_->publish(all, end);
        if (how == ending::unsent) { // the connection had died while it was not used
            channel_.reset();
            connect(lock);
            end = detail::steady::now() + options_.confirm_limit;
            how = channel_->publish(all, end);
        }
        if (how == ending::closed && all.chosen.size() > 1 && channel_->closed_with() != AMQP_NOT_FOUND) {
            publish_one_by_one(all, end);
        } else {
            finish(all, how);
        }
    }

    /// One of the messages made the broker close the channel, and it does not say which. So that it stops no other message,
    /// all that have no answer are sent again, each alone.
    void publish_one_by_one(const batch& all, detail::steady::time_point end) {
        for (const auto index : all.chosen) {
            if (all.answers[index].what == confirmation::kind::unknown && all.answers[index].code.empty()) {
                const batch one{all.messages, {&index, 1}, all.exchange, all.now, all.answers};
                const auto how = channel_->publish(one, end);
                if (how == ending::answered || how == ending::closed) {
                    finish(one, how);
                } else {
                    finish(all, how);
                    return;
                }
            }
        }
    }

    /// Gives every message of the batch that has no answer the code of the ending.
    void finish(const batch& sent, ending how) {
        confirmation rest{confirmation::kind::unknown, "connection_lost"};
        if (how == ending::timed_out) {
            rest.code = channel_->is_blocked() ? "broker_blocked" : "confirm_timeout";
        } else if (how == ending::closed) {
            rest = detail::confirmation_of_reply(channel_->closed_with(), channel_->closed_text());
            if (sent.chosen.size() > 1) {
                rest.what = confirmation::kind::unknown;
            }
        }
        for (const auto index : sent.chosen) {
            if (auto& one = sent.answers[index]; one.what == confirmation::kind::unknown && one.code.empty()) {
                one = rest;
            }
        }
        if (how == ending::timed_out || how == ending::lost || how == ending::unsent) {
            channel_.reset();
        }
    }

    /// Makes a connection unless there is one that works.
    void connect(std::unique_lock<std::mutex>& lock) {
        if (channel_ && channel_->is_alive()) {
            return;
        }
        channel_.reset();
        while (detail::steady::now() < back_off_.not_before() && !channel_) {
            waiting_.wait_until(lock, back_off_.not_before()); // other calls may connect meanwhile
        }
        if (channel_) {
            return;
        }
        try {
            channel_ = std::make_unique<detail::confirm_channel>(target_);
            back_off_.worked();
        } catch (const std::bad_alloc&) {
            throw error(error_kind::full, "rabbitmq: connect: out of memory");
        } catch (const error&) {
            back_off_.failed();
            throw;
        }
        waiting_.notify_all();
    }

    const publisher_options options_;
    const detail::target target_;
    std::mutex mutex_{};
    std::condition_variable waiting_{};
    detail::back_off back_off_;
    std::unique_ptr<detail::confirm_channel> channel_{};
};

static_assert(vouch::publisher<publisher>);

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
