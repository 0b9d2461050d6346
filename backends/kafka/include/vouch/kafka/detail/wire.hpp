// SPDX-License-Identifier: MIT
// A message as a Kafka record, and back. Id and topic are headers, the payload is the value, the lane (or else the id) is
// the key, and everything else is as `relay/properties.hpp` says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <librdkafka/rdkafka.h>

#include <vouch/kafka/detail/handles.hpp>
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/properties.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

inline constexpr std::string_view id_header = "vouch-id";
inline constexpr std::string_view topic_header = "vouch-topic";

/// Records with the same key are in the same partition, and so in order.
[[nodiscard]] inline const std::string& key_of(const message& m) noexcept { return m.lane.empty() ? m.id : m.lane; }

/// librdkafka returns names of headers as C strings.
[[nodiscard]] inline bool can_be_sent(const message& m) noexcept {
    return std::none_of(m.headers.begin(), m.headers.end(),
                        [](const auto& header) { return header.first.find('\0') != std::string::npos; });
}

[[nodiscard]] inline headers_handle headers_of(const message& m) {
    const auto properties = properties_of(m);
    headers_handle out(rd_kafka_headers_new(properties.size() + 2));
    const auto add = [&](std::string_view name, const std::string& value) {
        rd_kafka_header_add(out.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                            static_cast<ssize_t>(value.size()));
    };
    add(id_header, m.id);
    add(topic_header, m.topic);
    for (const auto& [name, value] : properties) {
        add(name, value);
    }
    return out;
}

[[nodiscard]] inline std::string bytes_of(const void* data, std::size_t size) {
    return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

[[nodiscard]] inline std::string source_of(const rd_kafka_message_t& record) {
    return std::string(rd_kafka_topic_name(record.rkt)) + "/" + std::to_string(record.partition);
}

struct record_headers {
    header_list properties{};
    std::string id{};
    std::string topic{};
};

[[nodiscard]] inline record_headers read_headers(const rd_kafka_message_t& record) {
    record_headers out;
    rd_kafka_headers_t* headers = nullptr;
    if (rd_kafka_message_headers(&record, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return out; // there are none
    }
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
        if (name == id_header) {
            out.id = bytes_of(value, size);
        } else if (name == topic_header) {
            out.topic = bytes_of(value, size);
        } else {
            out.properties.emplace_back(name, bytes_of(value, size));
        }
    }
    return out;
}

/// The id of a record of a program that does not use vouch: the same each time it is delivered. The time tells it from a
/// record at the same offset of a topic that was deleted and created again.
[[nodiscard]] inline std::string foreign_id(const rd_kafka_message_t& record) {
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    const auto at = rd_kafka_message_timestamp(&record, &type);
    const auto place = source_of(record) + "/" + std::to_string(record.offset);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? place : place + "/" + std::to_string(at);
}

[[nodiscard]] inline received read_record(const rd_kafka_message_t& record, bool lane_from_key) {
    received out;
    auto headers = read_headers(record);
    out.source = source_of(record);
    out.message.payload = bytes_of(record.payload, record.len);
    const bool is_foreign = headers.id.empty();
    out.message.id = is_foreign ? foreign_id(record) : std::move(headers.id);
    out.message.topic = headers.topic.empty() ? rd_kafka_topic_name(record.rkt) : std::move(headers.topic);
    if (!read_properties(std::move(headers.properties), out.message)) {
        out.malformed = "malformed_properties";
    }
    if (is_foreign && lane_from_key && out.message.lane.empty()) {
        out.message.lane = bytes_of(record.key, record.key_len);
    }
    return out;
}

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
