// SPDX-License-Identifier: MIT
// One call of `publish`: sends the messages, waits for their reports until a point in time, and answers for each. What has
// no report by then is `unknown`; its late report is dropped by the next call.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/contract/error.hpp>
#include <vouch/kafka/answer.hpp>
#include <vouch/kafka/detail/producer.hpp>
#include <vouch/kafka/detail/wire.hpp>
#include <vouch/kafka/topic_map.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class publish_call {
  public:
    using deadline = std::chrono::steady_clock::time_point;

    publish_call(std::span<const message> messages, const topic_map& topics, kafka::detail::producer& to,
                 producer_events& events, deadline until)
        : messages_(messages), topics_(topics), producer_(to), events_(events), until_(until),
          topic_of_(messages.size()), answers_(messages.size()) {}

    [[nodiscard]] std::vector<confirmation> run() && {
        events_.clear();
        route_all();
        producer_.ask_again(until_);
        const bool was_idle = producer_.is_idle();
        const auto sent = send_all();
        wait();
        const bool is_alone = was_idle && sent == 1;
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            if (is_open(i)) {
                take(i, i);
            }
        }
        if (!is_alone) {
            judge_alone();
        }
        return std::move(confirmations_);
    }

  private:
    void route_all() {
        confirmations_.resize(messages_.size());
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            topic_of_[i] = topics_.find(messages_[i]);
            if (messages_[i].id.empty()) { // its receiver would take it for a message of another program
                confirmations_[i] = {confirmation::kind::refused, "invalid_message"};
            } else if (topic_of_[i].empty()) {
                confirmations_[i] = {confirmation::kind::refused, "unroutable"};
            } else if (!is_topic_name(topic_of_[i])) {
                confirmations_[i] = {confirmation::kind::refused, "invalid_topic"};
            } else if (!can_be_sent(messages_[i])) {
                confirmations_[i] = {confirmation::kind::refused, "invalid_header_name"};
            }
        }
    }

    /// Whether the message has no answer yet.
    [[nodiscard]] bool is_open(std::size_t i) const noexcept {
        return confirmations_[i].what == confirmation::kind::unknown && confirmations_[i].code.empty();
    }

    /// Returns how many were handed over.
    std::size_t send_all() {
        std::size_t sent = 0;
        events_.reports.open(messages_.size());
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            if (!is_open(i)) {
                continue;
            }
            const auto error = send(i, i);
            if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
                ++sent;
                continue;
            }
            const auto answer = answer_of(error);
            confirmations_[i] = {answer.what, std::string(answer.code)};
            if (answer.is_of_topic) {
                producer_.suspect(topic_of_[i]);
            }
            if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL || error == RD_KAFKA_RESP_ERR__FATAL) {
                break; // messages that follow must not overtake this one
            }
        }
        return sent;
    }

    /// Hands the message over, and waits until there is room for it.
    [[nodiscard]] rd_kafka_resp_err_t send(std::size_t i, std::size_t place) {
        auto error = producer_.send(topic_of_[i], messages_[i], events_.reports.number_of(place));
        while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL && left() > std::chrono::milliseconds::zero()) {
            producer_.poll(slice());
            error = producer_.send(topic_of_[i], messages_[i], events_.reports.number_of(place));
        }
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            events_.reports.sent();
        }
        return error;
    }

    void wait() {
        do {
            producer_.poll(events_.reports.is_complete() ? std::chrono::milliseconds::zero() : slice());
            check_password();
        } while (!events_.reports.is_complete() && left() > std::chrono::milliseconds::zero() &&
                 producer_.fatal_error() == RD_KAFKA_RESP_ERR_NO_ERROR);
    }

    /// A wrong password stays wrong. librdkafka would try again until the end of the call.
    void check_password() const {
        if (!events_.is_refused || events_.reports.has_success()) {
            return;
        }
        throw error(
            error_kind::invalid_argument,
            "kafka: publish: the broker refuses to authenticate this client; check the settings sasl.* and ssl.*",
            {.code = events_.last_error, .text_code = "not_authenticated"});
    }

    /// The answer for message `i`, whose report is in `place`.
    void take(std::size_t i, std::size_t place) {
        auto error = events_.reports[place].value_or(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
        if (error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && events_.last_error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            error = events_.last_error; // why it has timed out
        }
        if (const auto fatal = producer_.fatal_error();
            fatal != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            error = fatal;
        }
        answers_[i] = answer_of(error);
        confirmations_[i] = {answers_[i].what, std::string(answers_[i].code)};
        if (answers_[i].is_of_topic) {
            producer_.suspect(topic_of_[i]);
        }
        // An error of the connection or of the producer is no answer of the broker to this message.
        if (answers_[i].what != confirmation::kind::unknown && !events_.reports[place]) {
            confirmations_[i] = {confirmation::kind::unknown, "producer_failed"};
        }
    }

    /// The broker refuses batches as a whole. Each message of a refused batch is sent again alone, so that the answer is
    /// about this message. One that a later message of the same key has overtaken is not: it would change their order.
    void judge_alone() {
        std::unordered_set<std::string_view> overtaken;
        std::vector<std::size_t> again;
        for (std::size_t i = messages_.size(); i-- > 0;) {
            if (confirmations_[i].what == confirmation::kind::confirmed) {
                overtaken.insert(key_of(messages_[i]));
            } else if (answers_[i].is_of_batch) {
                confirmations_[i] = {confirmation::kind::unknown, "batch_refused"};
                if (!overtaken.contains(key_of(messages_[i]))) {
                    again.push_back(i);
                }
            }
        }
        std::reverse(again.begin(), again.end());
        for (const auto i : again) {
            if (left() > std::chrono::milliseconds::zero() && producer_.is_idle()) {
                send_alone(i);
            }
        }
    }

    void send_alone(std::size_t i) {
        events_.reports.open(1);
        if (send(i, 0) == RD_KAFKA_RESP_ERR_NO_ERROR) {
            wait();
            take(i, 0);
        }
    }

    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::chrono::ceil<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
    }
    [[nodiscard]] std::chrono::milliseconds slice() const {
        return std::min<std::chrono::milliseconds>(left(), std::chrono::milliseconds(100));
    }

    std::span<const message> messages_;
    const topic_map& topics_;
    kafka::detail::producer& producer_;
    producer_events& events_;
    deadline until_;
    std::vector<std::string> topic_of_;
    std::vector<answer> answers_;
    std::vector<confirmation> confirmations_;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
