// SPDX-License-Identifier: MIT
// How a publisher and a consumer use a Kafka cluster. Every member has a usable default except the topics, which only the
// application knows.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

/// A setting of librdkafka, by its name in librdkafka's CONFIGURATION.md, such as `security.protocol`. librdkafka checks
/// it. Settings that the promises of vouch rest on are refused. Values of settings whose names begin with `sasl.` or
/// `ssl.` are never shown in an error.
struct setting {
    std::string name{};
    std::string value{};
};

/// Messages whose topic fits the pattern go to the Kafka topic. `*` is one word and `#` any number of words.
struct route {
    std::string pattern{};
    std::string topic{};
};

/// Gets librdkafka's log lines: a level of syslog, and a text. librdkafka calls it from its own threads.
using log_function = std::function<void(int level, std::string_view text)>;

struct publisher_options {
    std::string bootstrap_servers{"localhost:9092"}; ///< HOST:PORT, joined by commas
    /// Which Kafka topic a message goes to. The most specific pattern that fits decides; of equal ones the first.
    std::vector<route> routes{};
    std::string default_topic{}; ///< for messages that fit no route; empty: they are refused as `unroutable`
    /// Asked before the routes if it is set. Returns a Kafka topic, or an empty text to let the routes decide.
    std::function<std::string(const message&)> topic_of{};
    /// How long `publish` waits in total. 10 ms to 15 minutes.
    std::chrono::milliseconds publish_limit{10'000};
    std::string client_id{"vouch"};  ///< shown in the broker's logs and metrics
    std::vector<setting> settings{}; ///< in this order
    log_function log{};              ///< none: librdkafka logs nothing
};

struct consumer_options {
    std::string bootstrap_servers{"localhost:9092"}; ///< HOST:PORT, joined by commas
    std::string group{};                             ///< the consumer group; required
    std::vector<std::string> topics{};               ///< the Kafka topics; at least one
    /// How many received messages may be unacknowledged before `receive` takes no more. At least 1.
    std::size_t unacknowledged_max = 1000;
    /// The same in bytes of payload. A single larger message is received nevertheless. At least 1.
    std::size_t unacknowledged_bytes_max = 64 * 1024 * 1024;
    /// How many KiB librdkafka fetches ahead. 1 to 2,097,151.
    std::size_t queue_kbytes = 16 * 1024;
    /// How long a commit of offsets may take, and leaving the group. 10 ms to 15 minutes.
    std::chrono::milliseconds commit_limit{10'000};
    /// Whether the Kafka key of a message that no vouch publisher has sent becomes its lane.
    bool lane_from_key = false;
    std::string client_id{"vouch"};  ///< shown in the broker's logs and metrics
    std::vector<setting> settings{}; ///< in this order
    log_function log{};              ///< none: librdkafka logs nothing
};

} // namespace kafka
} // namespace v0
} // namespace vouch
