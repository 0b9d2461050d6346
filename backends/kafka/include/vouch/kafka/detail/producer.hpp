// SPDX-License-Identifier: MIT
// One idempotent producer of librdkafka: it keeps the order of what it sends to a partition, across its own repetitions.
// Used by one thread at a time, except for librdkafka's threads, which call only the log.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <librdkafka/rdkafka.h>

#include <vouch/kafka/detail/configuration.hpp>
#include <vouch/kafka/detail/handles.hpp>
#include <vouch/kafka/detail/reports.hpp>
#include <vouch/kafka/detail/wire.hpp>
#include <vouch/kafka/options.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

struct producer_events : client_events {
    kafka::detail::reports reports{};
};

inline constexpr auto owned_by_publisher = std::to_array<owned_setting>({
    {"bootstrap.servers", "use the option bootstrap_servers"},
    {"metadata.broker.list", "use the option bootstrap_servers"},
    {"client.id", "use the option client_id"},
    {"message.timeout.ms", "use the option publish_limit"},
    {"delivery.timeout.ms", "use the option publish_limit"},
    {"enable.idempotence", "the order of messages rests on it"},
    {"acks", "a confirmation is given only after all replicas in sync have the message"},
    {"request.required.acks", "a confirmation is given only after all replicas in sync have the message"},
    {"delivery.report.only.error", "confirmations are delivery reports"},
    {"transactional.id", "the publisher uses no transactions"},
});

class producer {
  public:
    producer(const publisher_options& options, producer_events& events) : client_(create(options, events)) {}
    producer(const producer&) = delete;
    producer& operator=(const producer&) = delete;
    ~producer() {
        // Otherwise librdkafka waits for what it has not sent.
        rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_flush(client_.get(), 100);
    }

    /// Hands the message over. If the result is no error, a report with the number follows.
    [[nodiscard]] rd_kafka_resp_err_t send(const std::string& topic, const message& m, void* number) {
        auto headers = headers_of(m);
        const auto& key = key_of(m);
        std::array<rd_kafka_vu_t, 6> parts{};
        parts[0].vtype = RD_KAFKA_VTYPE_TOPIC;
        parts[0].u.cstr = topic.c_str();
        parts[1].vtype = RD_KAFKA_VTYPE_KEY;
        parts[1].u.mem = {const_cast<char*>(key.data()), key.size()};
        parts[2].vtype = RD_KAFKA_VTYPE_VALUE;
        parts[2].u.mem = {const_cast<char*>(m.payload.data()), m.payload.size()};
        parts[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
        parts[3].u.i = RD_KAFKA_MSG_F_COPY;
        parts[4].vtype = RD_KAFKA_VTYPE_HEADERS;
        parts[4].u.headers = headers.get();
        parts[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
        parts[5].u.ptr = number;
        const error_handle failure(rd_kafka_produceva(client_.get(), parts.data(), parts.size()));
        if (failure) {
            return rd_kafka_error_code(failure.get());
        }
        (void)headers.release(); // the record owns them now
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }

    /// Serves reports. Returns when it has served some, or after `at_most`.
    void poll(std::chrono::milliseconds at_most) {
        rd_kafka_poll(client_.get(), static_cast<int>(std::max<std::int64_t>(at_most.count(), 0)));
    }

    /// Whether no message is on its way, late ones of earlier calls included.
    [[nodiscard]] bool is_idle() {
        while (rd_kafka_poll(client_.get(), 0) > 0) {
        }
        return rd_kafka_outq_len(client_.get()) == 0;
    }

    /// librdkafka remembers for minutes that a topic is missing or forbidden. The next call asks the broker again, because
    /// an operator may have mended it.
    void suspect(const std::string& topic) { suspects_.insert(topic); }
    void ask_again(std::chrono::steady_clock::time_point until) {
        for (const auto& name : std::exchange(suspects_, {})) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            const auto at_most = std::max(left / 2, std::chrono::milliseconds(1)); // the messages need time, too
            const topic_handle topic(rd_kafka_topic_new(client_.get(), name.c_str(), nullptr));
            const rd_kafka_metadata_t* answer = nullptr;
            if (rd_kafka_metadata(client_.get(), 0, topic.get(), &answer, static_cast<int>(at_most.count())) ==
                RD_KAFKA_RESP_ERR_NO_ERROR) {
                rd_kafka_metadata_destroy(answer);
            }
        }
    }

    /// The error after which this producer sends nothing any more.
    [[nodiscard]] rd_kafka_resp_err_t fatal_error() const noexcept {
        return rd_kafka_fatal_error(client_.get(), nullptr, 0);
    }

    [[nodiscard]] rd_kafka_t* handle() const noexcept { return client_.get(); }

  private:
    [[nodiscard]] static client_handle create(const publisher_options& options, producer_events& events) {
        using namespace std::chrono_literals;
        configuration conf("publisher", events);
        set_common(conf, options.bootstrap_servers, options.client_id);
        conf.set("enable.idempotence", "true");
        conf.set("acks", "all");
        conf.set("message.timeout.ms", options.publish_limit);
        conf.set("request.timeout.ms", options.publish_limit);
        // A broker that does not answer must not hold up more than one call.
        conf.set("socket.timeout.ms", std::clamp<std::chrono::milliseconds>(options.publish_limit, 1s, 60s));
        // How long a topic that is not there may still be in creation: it leaves time to say which topic is missing.
        conf.set("topic.metadata.propagation.max.ms",
                 std::min<std::chrono::milliseconds>(options.publish_limit / 2, 30s));
        conf.set("linger.ms", "0"); // a call hands over all its messages before it waits
        // The largest entry of vouch fits, so that the broker decides.
        conf.set("message.max.bytes", std::to_string(1536 * 1024));
        conf.set("partitioner", "murmur2_random"); // the same as in Kafka's own clients
        conf.set_all(options.settings, owned_by_publisher);
        rd_kafka_conf_set_dr_msg_cb(conf.get(), &report);
        rd_kafka_conf_set_error_cb(conf.get(), &note_error);
        return std::move(conf).create(RD_KAFKA_PRODUCER);
    }

    [[nodiscard]] static producer_events& events_of(void* opaque) noexcept {
        return static_cast<producer_events&>(*static_cast<client_events*>(opaque));
    }
    static void report(rd_kafka_t* /*client*/, const rd_kafka_message_t* record, void* opaque) {
        events_of(opaque).reports.arrive(record->_private, record->err);
    }
    static void note_error(rd_kafka_t* /*client*/, int error, const char* text, void* opaque) {
        events_of(opaque).note(static_cast<rd_kafka_resp_err_t>(error), text);
    }

    client_handle client_;
    std::set<std::string> suspects_;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
