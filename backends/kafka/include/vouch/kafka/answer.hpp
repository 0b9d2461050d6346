// SPDX-License-Identifier: MIT
// What each error code of Kafka and of librdkafka says about a message: the only table of them. A code that is not in it
// says `unknown`, because sending again is always safe: the intake on the other side drops duplicates.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <librdkafka/rdkafka.h>

#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

/// A row of the table.
struct answer {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    confirmation::kind what = confirmation::kind::unknown;
    std::string_view code{};
    /// The broker judges a whole batch of messages. The answer holds for one of them only if it was sent alone.
    bool is_of_batch = false;
    bool is_of_topic = false; ///< about the Kafka topic rather than the message
};

namespace detail {

inline constexpr auto answer_table = [] {
    using enum confirmation::kind;
    return std::to_array<answer>({
        {RD_KAFKA_RESP_ERR_NO_ERROR, confirmed, ""},

        // The message itself is wrong, and stays so.
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, refused, "message_too_large", true},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, refused, "invalid_record", true},

        // An operator can mend these.
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, unknown, "unknown_topic", false, true},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, unknown, "unknown_topic", false, true},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, unknown, "unknown_partition", false, true},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, unknown, "invalid_topic", false, true},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, unknown, "topic_not_authorized", false, true},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, unknown, "cluster_not_authorized"},
        {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, unknown, "cluster_not_authorized"},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, unknown, "group_not_authorized"},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, unknown, "not_authenticated"},
        {RD_KAFKA_RESP_ERR__SSL, unknown, "tls_failed"},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, unknown, "policy_violation"},
        {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, unknown, "invalid_timestamp"},
        {RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, unknown, "unsupported_by_broker"},
        {RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE, unknown, "unsupported_by_broker"},

        // The cluster is in trouble, or too slow.
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, unknown, "delivery_timeout"},
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, unknown, "brokers_unreachable"},
        {RD_KAFKA_RESP_ERR__RESOLVE, unknown, "brokers_unreachable"},
        {RD_KAFKA_RESP_ERR__TRANSPORT, unknown, "connection_lost"},
        {RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, unknown, "connection_lost"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR__ISR_INSUFF, unknown, "not_enough_replicas"},
        {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, unknown, "no_leader"},
        {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, unknown, "broker_storage"},
        {RD_KAFKA_RESP_ERR_INVALID_MSG, unknown, "corrupt_in_transit"},
        {RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, unknown, "quota_exceeded"},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, unknown, "queue_full"},

        // The producer cannot go on. The next call has a new one.
        {RD_KAFKA_RESP_ERR__FATAL, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__INCONSISTENT, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__FENCED, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__DESTROY, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__PURGE_QUEUE, unknown, "producer_failed"},
        {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, unknown, "producer_failed"},
    });
}();

} // namespace detail

/// What the error says about a message; `unknown` with the code `kafka_error` if the table does not have it.
[[nodiscard]] constexpr answer answer_of(rd_kafka_resp_err_t error) noexcept {
    const auto* const found = std::find_if(detail::answer_table.begin(), detail::answer_table.end(),
                                           [&](const answer& a) { return a.error == error; });
    return found != detail::answer_table.end() ? *found : answer{error, confirmation::kind::unknown, "kafka_error"};
}

} // namespace kafka
} // namespace v0
} // namespace vouch
