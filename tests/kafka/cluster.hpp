// SPDX-License-Identifier: MIT
// A Kafka cluster for tests: librdkafka's mock cluster, which speaks Kafka's protocol over sockets of this machine. Real
// brokers behave in more ways than this one.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <vouch/kafka.hpp>

namespace kafka_test {

using namespace std::chrono_literals;

// Numbers of requests in Kafka's protocol.
enum class request : std::int16_t { produce = 0, offset_commit = 8, init_producer_id = 22 };

class cluster {
  public:
    explicit cluster(int brokers = 3) {
        rd_kafka_conf_t* const conf = rd_kafka_conf_new();
        rd_kafka_conf_set_log_cb(conf, nullptr);
        host_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0));
        mock_.reset(rd_kafka_mock_cluster_new(host_.get(), brokers));
    }

    [[nodiscard]] std::string servers() const { return rd_kafka_mock_cluster_bootstraps(mock_.get()); }
    void create(const std::string& topic, int partitions) const {
        rd_kafka_mock_topic_create(mock_.get(), topic.c_str(), partitions, 1);
    }
    /// The next requests of this kind are answered with these errors, one each. `_TRANSPORT` cuts the connection.
    void fail(request what, const std::vector<rd_kafka_resp_err_t>& errors) const {
        rd_kafka_mock_push_request_errors_array(mock_.get(), static_cast<std::int16_t>(what), errors.size(),
                                                errors.data());
    }
    void fail_topic(const std::string& topic, rd_kafka_resp_err_t error) const {
        rd_kafka_mock_topic_set_error(mock_.get(), topic.c_str(), error);
    }
    void lead(const std::string& topic, int partition, int broker) const {
        rd_kafka_mock_partition_set_leader(mock_.get(), topic.c_str(), partition, broker);
    }
    void down() const { rd_kafka_mock_broker_set_down(mock_.get(), -1); }
    void up() const { rd_kafka_mock_broker_set_up(mock_.get(), -1); }
    void delay(std::chrono::milliseconds by) const {
        rd_kafka_mock_broker_set_rtt(mock_.get(), -1, static_cast<int>(by.count()));
    }

  private:
    template <auto Destroy>
    struct end {
        template <class T>
        void operator()(T* what) const {
            Destroy(what);
        }
    };
    std::unique_ptr<rd_kafka_t, end<rd_kafka_destroy>> host_;
    std::unique_ptr<rd_kafka_mock_cluster_t, end<rd_kafka_mock_cluster_destroy>> mock_;
};

/// A record as it is in the cluster.
struct record {
    std::string key{};
    std::string id{};
    int partition = 0;
};

[[nodiscard]] inline record record_of(const rd_kafka_message_t& m) {
    record out{.key = std::string(static_cast<const char*>(m.key), m.key_len), .partition = m.partition};
    rd_kafka_headers_t* headers = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    if (rd_kafka_message_headers(&m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "vouch-id", &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        out.id.assign(static_cast<const char*>(value), size);
    }
    return out;
}

/// Everything that is in a topic, read without a group and without vouch.
[[nodiscard]] inline std::vector<record> records(const std::string& servers, const std::string& topic, int partitions) {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    for (const auto& [name, value] : std::map<std::string, std::string>{{"bootstrap.servers", servers},
                                                                        {"group.id", "reader"},
                                                                        {"enable.auto.commit", "false"},
                                                                        {"enable.partition.eof", "true"}}) {
        rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0);
    }
    rd_kafka_conf_set_log_cb(conf, nullptr);
    rd_kafka_t* const client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0);
    rd_kafka_topic_partition_list_t* const list = rd_kafka_topic_partition_list_new(partitions);
    for (int i = 0; i < partitions; ++i) {
        rd_kafka_topic_partition_list_add(list, topic.c_str(), i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);

    std::vector<record> out;
    const auto until = std::chrono::steady_clock::now() + 60s;
    for (int ends = 0; ends < partitions && std::chrono::steady_clock::now() < until;) {
        rd_kafka_message_t* const m = rd_kafka_consumer_poll(client, 1000);
        if (m == nullptr) {
            continue;
        }
        if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            ++ends;
        } else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            out.push_back(record_of(*m));
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return out;
}

/// The ids of each key, in the order of the partition, each once: a message that was sent again counts where it was first.
[[nodiscard]] inline std::map<std::string, std::vector<std::string>> ids_by_key(const std::vector<record>& all) {
    std::map<std::string, std::vector<std::string>> out;
    for (const auto& one : all) {
        auto& ids = out[one.key];
        if (std::find(ids.begin(), ids.end(), one.id) == ids.end()) {
            ids.push_back(one.id);
        }
    }
    return out;
}

[[nodiscard]] inline vouch::message message_of(int number, std::string lane = {}) {
    return {.id = "m" + std::to_string(number), .topic = "order.placed", .payload = "x", .lane = std::move(lane)};
}

/// Sends to the topic `orders`.
[[nodiscard]] inline vouch::kafka::publisher_options sending(const cluster& to, std::chrono::milliseconds limit = 30s,
                                                             std::vector<vouch::kafka::setting> settings = {}) {
    return {.bootstrap_servers = to.servers(),
            .default_topic = "orders",
            .publish_limit = limit,
            .settings = std::move(settings)};
}

/// Sends a record without anything of vouch to the topic `orders`.
inline void send_foreign(const cluster& to, const std::string& key,
                         const std::vector<std::array<std::string, 2>>& headers) {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", to.servers().c_str(), nullptr, 0);
    rd_kafka_conf_set_log_cb(conf, nullptr);
    rd_kafka_t* const client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0);
    rd_kafka_headers_t* const list = rd_kafka_headers_new(1);
    for (const auto& [name, value] : headers) {
        rd_kafka_header_add(list, name.c_str(), -1, value.data(), static_cast<ssize_t>(value.size()));
    }
    std::array<rd_kafka_vu_t, 3> parts{};
    parts[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    parts[0].u.cstr = "orders";
    parts[1].vtype = RD_KAFKA_VTYPE_KEY;
    parts[1].u.mem = {const_cast<char*>(key.data()), key.size()};
    parts[2].vtype = RD_KAFKA_VTYPE_HEADERS;
    parts[2].u.headers = list;
    const bool is_sent = rd_kafka_produceva(client, parts.data(), parts.size()) == nullptr &&
                         rd_kafka_flush(client, 30'000) == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_destroy(client);
    if (!is_sent) {
        throw std::runtime_error("a record of another program cannot be sent");
    }
}

[[nodiscard]] inline std::vector<vouch::kafka::setting> with_password(const std::string& password) {
    return {{"security.protocol", "sasl_plaintext"},
            {"sasl.mechanism", "PLAIN"},
            {"sasl.username", "orders"},
            {"sasl.password", password}};
}

/// Receives from the topic `orders`. The mock cluster takes a second less than the session timeout for a group to form anew.
[[nodiscard]] inline vouch::kafka::consumer_options receiving(const std::string& servers) {
    return {.bootstrap_servers = servers,
            .group = "shop",
            .topics = {"orders"},
            .settings = {{"session.timeout.ms", "3000"}, {"heartbeat.interval.ms", "300"}}};
}

/// What arrives until there are `count` messages, or for a minute.
[[nodiscard]] inline std::vector<vouch::received> receive(vouch::kafka::consumer& from, std::size_t count) {
    std::vector<vouch::received> out;
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (out.size() < count && std::chrono::steady_clock::now() < until) {
        auto some = from.receive(count - out.size(), 1s, {});
        std::move(some.begin(), some.end(), std::back_inserter(out));
    }
    return out;
}

[[nodiscard]] inline std::vector<std::string> ids_of(const std::vector<vouch::received>& all) {
    std::vector<std::string> out;
    for (const auto& one : all) {
        out.push_back(one.message.id);
    }
    return out;
}

} // namespace kafka_test
