// SPDX-License-Identifier: MIT
// Sends messages to Kafka through an idempotent producer of librdkafka, and answers after all replicas in sync have them.
//
// The key of a record is the message's lane, else its id, so messages of a lane are in one partition, in order. The producer
// keeps that order when it repeats a request. After an error that ends a producer, the next call makes a new one: a message
// of the old one may then arrive late, as a duplicate of one that was sent again. The intake on the other side drops it.
//
// Any number of threads may call `publish`. Calls take turns; the wait for a turn counts as a wait for the broker.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/kafka/detail/configuration.hpp>
#include <vouch/kafka/detail/producer.hpp>
#include <vouch/kafka/detail/publish_call.hpp>
#include <vouch/kafka/detail/turn.hpp>
#include <vouch/kafka/options.hpp>
#include <vouch/kafka/topic_map.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

class publisher {
  public:
    /// Throws `invalid_argument` if an option or a setting is wrong. Does not wait for a connection.
    explicit publisher(publisher_options options) : options_(std::move(options)), topics_(options_) {
        detail::check_between("publisher", "publish_limit", options_.publish_limit);
        events_.log = options_.log;
        producer_.emplace(options_, events_);
    }
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;

    /// See the concept `vouch::publisher`. Codes are those of `answer.hpp`, and of this list:
    ///
    /// unroutable            refused: no route fits the topic
    /// invalid_topic         refused: `topic_of` returned no valid name of a Kafka topic
    /// invalid_header_name   refused: the name of a header contains a NUL byte
    /// batch_refused         unknown: the broker refused several messages together, and there was no time to ask for each
    /// publisher_busy        unknown: calls of other threads took all the time
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        const auto until = std::chrono::steady_clock::now() + options_.publish_limit;
        const detail::turn::hold turn(turn_, until);
        if (!turn) {
            return std::vector<confirmation>(messages.size(), {confirmation::kind::unknown, "publisher_busy"});
        }
        if (!producer_) {
            producer_.emplace(options_, events_);
        }
        auto out = detail::publish_call(messages, topics_, *producer_, events_, until).run();
        if (producer_->fatal_error() != RD_KAFKA_RESP_ERR_NO_ERROR) {
            producer_.reset();
        }
        return out;
    }

    /// librdkafka's producer, for statistics and tests; null after an error that has ended it. Do not use it during a call
    /// of `publish`, and do not poll it.
    [[nodiscard]] rd_kafka_t* handle() const noexcept { return producer_ ? producer_->handle() : nullptr; }

  private:
    publisher_options options_;
    topic_map topics_;
    detail::producer_events events_; // before the producer, which refers to it
    detail::turn turn_;
    std::optional<detail::producer> producer_;
};

static_assert(vouch::publisher<publisher>);

} // namespace kafka
} // namespace v0
} // namespace vouch
