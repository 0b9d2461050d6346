// SPDX-License-Identifier: MIT
// Kafka topics as data, and the commands that create them. A publisher creates no topics: how many partitions a topic has
// and how it is replicated is a decision, and a cluster that creates topics by itself would decide otherwise.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/kafka/options.hpp>
#include <vouch/kafka/topic_map.hpp>
#include <vouch/kafka/topic_name.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

struct topic {
    std::string name{};
    int partitions = 6;         ///< at most this many consumers of a group work at the same time
    int replication_factor = 3; ///< on how many brokers each partition is kept
    int insync_min = 2;         ///< how many of them must have a message before it is confirmed
    /// How long messages are kept, whether they have been read or not. A consumer that stops for longer loses messages.
    std::chrono::milliseconds retention = std::chrono::hours(7 * 24);
    std::size_t message_max_bytes = 0; ///< 0: as the broker is configured, by default 1,048,588
};

/// One topic for each that the routes and the default name, sorted by name, each with the settings of `like`.
[[nodiscard]] inline std::vector<topic> topics_of(const publisher_options& options, const topic& like = {}) {
    std::vector<topic> out;
    for (auto& name : topic_map(options).names()) {
        out.push_back(like);
        out.back().name = std::move(name);
    }
    return out;
}

struct create_options {
    std::string bootstrap_servers{"localhost:9092"};
    std::string tool{"kafka-topics.sh"}; ///< the path of Kafka's tool
};

namespace detail {

/// One word of a POSIX shell, whatever it contains.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

inline void check(const topic& t) {
    check_topic_name("the name of a topic", t.name);
    const auto refuse = [&](const std::string& what) {
        throw error(error_kind::invalid_argument, "kafka: topic '" + t.name + "': " + what);
    };
    if (t.partitions < 1 || t.replication_factor < 1 || t.replication_factor > 32767) {
        refuse("has " + std::to_string(t.partitions) + " partitions and the replication factor " +
               std::to_string(t.replication_factor) + "; both must be at least 1, the factor at most 32767");
    }
    if (t.insync_min < 1 || t.insync_min > t.replication_factor) {
        refuse("insync_min is " + std::to_string(t.insync_min) + "; it must be 1 to the replication factor, " +
               std::to_string(t.replication_factor));
    }
    if (t.retention.count() < 1 && t.retention.count() != -1) {
        refuse("retention is " + std::to_string(t.retention.count()) +
               " ms; it must be at least 1 ms, or -1 ms to keep messages for ever");
    }
    if (t.message_max_bytes > std::size_t{2'147'483'647}) {
        refuse("message_max_bytes is " + std::to_string(t.message_max_bytes) + "; it must be at most 2147483647");
    }
}

/// Kafka's metrics write dots as underscores, so Kafka refuses names that differ only in these.
[[nodiscard]] inline std::string metric_name(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

} // namespace detail

/// The command that creates one topic unless it exists, for a POSIX shell, without a line end. Throws `invalid_argument` if
/// the name or a number is not valid.
[[nodiscard]] inline std::string create_command(const topic& t, const create_options& with = {}) {
    detail::check(t);
    auto out = detail::shell_word(with.tool) + " --create --if-not-exists --bootstrap-server " +
               detail::shell_word(with.bootstrap_servers) + " --topic " + detail::shell_word(t.name) +
               " --partitions " + std::to_string(t.partitions) + " --replication-factor " +
               std::to_string(t.replication_factor) + " --config min.insync.replicas=" + std::to_string(t.insync_min) +
               " --config retention.ms=" + std::to_string(t.retention.count());
    if (t.message_max_bytes != 0) {
        out += " --config max.message.bytes=" + std::to_string(t.message_max_bytes);
    }
    return out;
}

/// The commands for all of them, one line each. Throws `invalid_argument` also if two names are the same to Kafka.
[[nodiscard]] inline std::string create_commands(std::span<const topic> topics, const create_options& with = {}) {
    std::string out;
    for (std::size_t i = 0; i < topics.size(); ++i) {
        for (const auto& other : topics.first(i)) {
            if (detail::metric_name(other.name) == detail::metric_name(topics[i].name)) {
                throw error(error_kind::invalid_argument, "kafka: topics '" + other.name + "' and '" + topics[i].name +
                                                              "' are the same to Kafka, which writes '.' as '_'");
            }
        }
        out += create_command(topics[i], with) + "\n";
    }
    return out;
}

} // namespace kafka
} // namespace v0
} // namespace vouch
